"""Provenance and licence of rows: licence classes, `source_ref`, notices. And facts: a value of any dataset
in one shape, with its entity and its provenance.

The one place that names a fact and its provenance, for the endpoint and for files in bulk alike: a fact has
the same `fact_id` in every edition and on every machine.
"""

import hashlib
import unicodedata
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

import msgspec

LICENSE_CLASSES: Final = tuple(
    "public-domain cc0 cc-by open-government statutory-filing licensed-redistribution synthetic".split()
)
_FROM_THE_FREEST: Final = tuple(
    "public-domain cc0 cc-by open-government synthetic statutory-filing licensed-redistribution".split()
)
KEYED_CLASSES: Final = frozenset({"statutory-filing", "licensed-redistribution"})
"""Rows of these classes need an API key; no open file holds them."""
OWING_CLASSES: Final = frozenset({"cc-by", "open-government", "statutory-filing", "licensed-redistribution"})
"""Classes whose sources must be named wherever their data is used."""

SKUS: Final = ("AF-FUND", "AF-TENDER", "AF-MACRO")
ORGANISATIONS: Final = "organisations"
"""The key for sources of organisation records; datasets use their sku."""
EVERY_SOURCE: Final = ""
"""The key of all sources of an edition."""

OPEN_LICENSE: Final = "CC-BY-4.0"
KEYED_LICENSE: Final = "LicenseRef-Sankofa-Bulk"
SERVICE: Final = "sankofa"
"""The source id of the few rows that the service itself originates."""

LICENSE_NOTICE: Final = (
    "Licence-clean data: every row names its source and the licence class it is held under, and no "
    "natural-person data is served. For research and information only; not a regulated benchmark."
)
_MARK_DIGITS: Final = 8
_LONGEST_HEADER: Final = 4_000


def source_ref(source_id: str, document: str, location: str, content_sha256: str = "") -> str:
    """`<source id>:<document>#<location>`: the origin of a row, the same on every surface.

    If the document is the captured file itself, `@` and the beginning of its digest follow: the next capture
    of the same table is another document. A document named by its publisher (an accession number, an annual
    report) is the same in every file.
    """
    mark = f"@{file_mark(content_sha256)}" if content_sha256 else ""
    return f"{source_id}:{document}{mark}#{location}"


def file_mark(content_sha256: str) -> str:
    """How a `source_ref` identifies a captured file."""
    return content_sha256[:_MARK_DIGITS]


def source_of_ref(ref: str) -> str:
    """The id of the source that a `source_ref` begins with."""
    return ref.partition(":")[0]


def strictness(license_class: str) -> int:
    """Orders the classes; a lower number is a freer licence."""
    return _FROM_THE_FREEST.index(license_class)


def strictest(license_classes: Iterable[str]) -> str:
    """The licence class of a value derived from rows of these classes."""
    return max(license_classes, key=strictness)


def file_license(license_classes: Iterable[str], *, keyed: bool) -> str:
    """The licence of a file with rows of these classes; `keyed` if it needs a key in any case."""
    return KEYED_LICENSE if keyed or not KEYED_CLASSES.isdisjoint(license_classes) else OPEN_LICENSE


def notice(attributions: Iterable[str]) -> str:
    """The `_license` text: the terms of the data, and the sources to attribute."""
    attribution = "; ".join(attributions)
    return f"{LICENSE_NOTICE} Attribution: {attribution}." if attribution else LICENSE_NOTICE


def in_a_header(text: str) -> str:
    """A notice that fits a header field: ASCII, one line, not too long for a proxy."""
    decomposed = unicodedata.normalize("NFKD", text)
    ascii_only = "".join(
        c if c.isascii() and c.isprintable() else "" if unicodedata.combining(c) else "?" for c in decomposed
    )
    if len(ascii_only) <= _LONGEST_HEADER:
        return ascii_only
    whole = ascii_only[:_LONGEST_HEADER].rpartition("; ")[0]
    return f"{whole}; and more: see _license of the JSON form."


FUND, TENDER, MACRO = SKUS
EXTRACTED: Final = "extracted"
STRUCTURED: Final = "structured"
STRUCTURED_ROUNDED: Final = "structured-rounded"
"""Published as data with period dates rounded to month ends; a shared fact says `structured`."""
METHODS: Final = (EXTRACTED, STRUCTURED, STRUCTURED_ROUNDED)
SHARED_METHODS: Final = (EXTRACTED, STRUCTURED)
AWARD_VALUE: Final = "award_value"
TENDER_VALUE: Final = "tender_value"
IN_AN_ID: Final = ":"
"""Separates dataset, record and measure in a `fact_id`."""


class FactEntity(NamedTuple):
    """The entity of a fact: an organisation, or a country by its alpha-3 code."""

    entity_id: str
    entity_name: str | None
    country_iso3: str | None


class FactSource(msgspec.Struct, frozen=True, gc=False):
    """The provenance of a value, which `provenance_id` refers to."""

    source_ref: str
    license_class: str
    observed_at: str | None
    """None in a locked view."""
    extraction_confidence: float | None = None
    method: str = STRUCTURED


class Sourced(Protocol):
    """A row with its provenance."""

    @property
    def source_ref(self) -> str: ...
    @property
    def license_class(self) -> str: ...
    @property
    def observed_at(self) -> str | None: ...
    @property
    def extraction_confidence(self) -> float | None: ...
    @property
    def method(self) -> str: ...


def source_of(row: Sourced) -> FactSource:
    """The provenance of a row in the form of shared facts."""
    method = STRUCTURED if row.method == STRUCTURED_ROUNDED else row.method
    return FactSource(row.source_ref, row.license_class, row.observed_at, row.extraction_confidence, method)


class SharedFact(msgspec.Struct, frozen=True, gc=False):
    """A fact on the wire, its fields in served order; `model.rows.FactRow` describes them."""

    fact_id: str
    entity_id: str
    entity_name: str | None
    country_iso3: str | None
    dataset: str
    measure: str
    value: msgspec.Raw
    unit: str | None
    period_end: str
    period_type: str
    available_at: str | None
    vintage: str
    provenance_id: str
    source_ref: str
    license_class: str
    extraction_confidence: float | None
    observed_at: str | None
    method: str


def fact(
    who: FactEntity,
    dataset: str,
    record_ref: str,
    measure: str,
    value: msgspec.Raw,
    unit: str | None,
    period: tuple[str, str],
    available_at: str | None,
    vintage: int,
    source: FactSource,
) -> SharedFact:
    """One vintage of one value; `period` is the last day and the kind of the period."""
    entity_id, entity_name, country_iso3 = who
    period_end, period_type = period
    return SharedFact(
        f"{dataset}{IN_AN_ID}{record_ref}{IN_AN_ID}{measure}", entity_id, entity_name, country_iso3, dataset,
        measure, value, unit, period_end, period_type, available_at, str(vintage), provenance_id(source),
        source.source_ref, source.license_class, source.extraction_confidence, source.observed_at,
        source.method,
    )  # fmt: skip


def record_ref(*parts: str) -> str:
    """Identifies a vintage by its content, never by the time or order of ingestion."""
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()


def provenance_id(source: FactSource) -> str:
    """Identifies a provenance: rows from one location in one document, captured at one time, share it."""
    score = "" if source.extraction_confidence is None else source.extraction_confidence
    location = f"{source.source_ref}\x1f{source.license_class}\x1f{source.observed_at or ''}"
    fields = f"{location}\x1f{score}\x1f{source.method}"
    return hashlib.blake2b(fields.encode(), digest_size=12).hexdigest()
