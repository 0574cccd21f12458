"""GLEIF level 2: whose accounts consolidate an organisation, from the golden copy of relationship records."""

from collections.abc import Iterator
from datetime import date
from typing import Final

from sankofa.model.errors import FormatError
from sankofa.model.records import EntityRecord, Profile, Record, Rejected, Skipped
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.gleif_lei import golden_copy_rows, instant_text, lei_subject

_EXPECTED: Final = "expected a GLEIF relationship record golden copy CSV"
_CHILD: Final = "Relationship.StartNode.NodeID"
_PARENT: Final = "Relationship.EndNode.NodeID"
_TYPE: Final = "Relationship.RelationshipType"
_STATUS: Final = "Relationship.RelationshipStatus"
_REQUIRED: Final = (_CHILD, _PARENT, _TYPE, _STATUS)
_RELATIONSHIPS: Final = {
    "IS_DIRECTLY_CONSOLIDATED_BY": "direct",
    "IS_ULTIMATELY_CONSOLIDATED_BY": "ultimate",
}
_VOID: Final = ("RETIRED", "ANNULLED", "DUPLICATE")
"""Registration statuses of a record that no longer counts; a lapsed one does, as a lapsed LEI does."""
_PERIODS: Final = range(1, 6)


@adapter("gleif-rr")
def read(file: InputFile) -> Iterator[Record]:
    """GLEIF level 2 relationship records: golden copy CSV, plain or zip.

    Direct and ultimate accounting consolidation are read, other relationships (of funds and branches) are
    skipped. A record that is inactive, retired or annulled, or whose period is over, ends the relationship
    on the day it was last updated.
    """
    for name, stream in file.documents(".csv", expected=f"{_EXPECTED}, found none in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        rows = golden_copy_rows(stream.readline().removeprefix(b"\xef\xbb\xbf"), stream)
        header = next(rows)[1] or []
        for column in _REQUIRED:
            if column not in header:
                raise FormatError(f"{file.name}: {prefix}{_EXPECTED}; found no column {column}")
        for position, row in rows:
            if row is None:
                yield Rejected(prefix + position, "malformed record")
            else:
                yield from _relationship(prefix + position, dict(zip(header, row, strict=True)))


def _relationship(position: str, fields: dict[str, str]) -> Iterator[Record]:
    relationship = _RELATIONSHIPS.get(fields[_TYPE])
    if relationship is None:
        yield Skipped(1)
        return
    try:
        child, parent = lei_subject(fields[_CHILD]), lei_subject(fields[_PARENT])
        first, updated = (
            instant_text(fields.get(f"Registration.{name}Date", ""))
            for name in ("InitialRegistration", "LastUpdate")
        )
    except ValueError as failure:
        yield Rejected(position, str(failure))
        return
    if child == parent:
        yield Rejected(position, "an organisation cannot be its own parent")
        return
    void = fields.get("Registration.RegistrationStatus") in _VOID
    profile = Profile(
        document=child.removeprefix("lei:"),
        registered=first[:10],
        secondary=True,
        relationship=relationship,
        parent=parent,
        ended=fields[_STATUS] == "INACTIVE" or void or _is_over(fields, updated[:10]),
    )
    yield EntityRecord(child, updated, profile)


def _is_over(fields: dict[str, str], day: str) -> bool:
    """Whether every period of the relationship ended by the day of the last update."""
    ends = [
        fields.get(f"Relationship.Period.{number}.endDate", "")[:10]
        for number in _PERIODS
        if fields.get(f"Relationship.Period.{number}.periodType") == "RELATIONSHIP_PERIOD"
    ]
    return bool(ends and day) and all(end and _is_day(end) and end <= day for end in ends)


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False
