"""The output of an adapter: canonical records, and rejected, withheld or skipped rows.

Everything in a record is text in canonical form (dates as YYYY-MM-DD, figures by
`model.figures.exact`, identifiers by `str(Identifier)`); the empty string means "not given",
so that a record can be part of a key on any engine.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from sankofa.model.observations import AnnualColumn, SeriesColumn, SeriesInfo


class Fact(NamedTuple):
    """One figure as one document reports it."""

    subject: str
    """The issuer's strong identifier, e.g. `registry:US-SEC-CIK:0001045810`."""
    concept: str
    """`us-gaap:Revenues`; our line item if the source names no concept."""
    unit: str
    """As the source writes it: `USD`, `USD/shares`, `shares`."""
    period_start: str
    """Empty for an instant."""
    period_end: str
    available_at: str
    """The day the source evidences as publication; empty if it evidences none."""
    document: str
    value: str
    """Empty if the document withdraws the figure."""
    location: str
    declared_period: str = ""
    """The source's own name for the period. It is only evidence of the issuer's year, never served."""
    confidence: str = ""


class Profile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One organisation as one source describes it."""

    legal_name: str | None = None
    other_names: tuple[str, ...] = ()
    jurisdiction: str | None = None
    country: str | None = None
    status: str | None = None
    category: str | None = None
    legal_form: str | None = None
    identifiers: tuple[str, ...] = ()
    """Every identifier the source gives for it, `str(Identifier)`, the subject among them."""
    successor: str | None = None
    document: str = ""
    """The position of this profile in the source: the document part of its source_ref."""
    registered: str = ""
    """The day on which its register first recorded it; empty if the source does not say."""
    former_name: str | None = None
    """The legal name before the present one, if the register says when it recorded the change."""
    renamed: str = ""
    """The day on which it did."""
    secondary: bool = False
    """True if the name comes with figures or identifiers. A register's name takes precedence."""
    relationship: str = ""
    """`direct` or `ultimate` for a record that only names the organisation consolidating its accounts."""
    parent: str | None = None
    """The identifier of that organisation."""
    ended: bool = False
    """True once they no longer do."""


class EntityRecord(NamedTuple):
    """A profile, keyed by the organisation's strong identifier."""

    subject: str
    effective: str
    """The instant or day the source last updated it; empty if it does not say."""
    profile: Profile
    incidental: bool = False
    """True if the file only mentions the issuer in passing; then it is not counted as read."""


class Acceptance(NamedTuple):
    """The instant at which a register accepted and published a document."""

    subject: str
    """The issuer's strong identifier."""
    document: str
    instant: str
    """RFC 3339, UTC."""


class IdentifierLink(NamedTuple):
    """A source says that an identifier belongs to a subject, both `str(Identifier)`."""

    identifier: str
    subject: str
    location: str
    first: str = ""
    """The first day on which it does; empty if the source does not say."""
    last: str = ""
    """The last day; empty while it does."""


class Release(NamedTuple):
    """An OCDS release as published, not yet cleaned: ingest removes people from it."""

    position: str
    content: dict[str, Any]


class Rejected(NamedTuple):
    """A row that could not be read. Neither part ever repeats a name."""

    position: str
    reason: str
    value: str = ""
    """The faulty text if it cannot be a name (`model.text.harmless`); shown only to the operator."""


class Withheld(NamedTuple):
    """A party without evidence that it is an organisation: counted, but its name is never kept.

    If the source proves that it is a natural person, `subject` names it: the ledger keeps a keyed hash of it
    and withholds all else under that identifier. It also keeps one of a `name` that could be a company's, and
    withholds parties of that name in the country.
    """

    position: str
    subject: str = ""
    name: str = ""
    country: str = ""


class Skipped(NamedTuple):
    """Rows that we do not read (segments, other taxonomies); they are not errors."""

    rows: int


Record = (
    Fact
    | AnnualColumn
    | SeriesColumn
    | SeriesInfo
    | EntityRecord
    | Acceptance
    | IdentifierLink
    | Release
    | Rejected
    | Withheld
    | Skipped
)


@dataclass
class Counts:
    """The outcome for the rows of a file. `skipped` rows are not for us to read."""

    read: int = 0
    appended: int = 0
    unchanged: int = 0
    withheld: int = 0
    rejected: int = 0
    skipped: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in vars(self).items())

    @property
    def accepted(self) -> int:
        """Rows that were understood, appended or not."""
        return self.appended + self.unchanged + self.withheld + self.skipped

    def add(self, other: "Counts") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def take(self, read: int, appended: int) -> None:
        """Count rows; those that were not appended are unchanged."""
        self.read += read
        self.appended += appended
        self.unchanged += read - appended

    def skip(self, rows: int) -> None:
        self.read += rows
        self.skipped += rows
