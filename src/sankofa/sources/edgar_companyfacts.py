"""SEC companyfacts: everything one registrant reported in XBRL, one JSON document per CIK."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from sankofa.model import text
from sankofa.model.days import day_in
from sankofa.model.errors import FormatError
from sankofa.model.figures import exact
from sankofa.model.identifiers import Identifier, cik
from sankofa.model.records import EntityRecord, Fact, Profile, Record, Rejected, Skipped
from sankofa.sources.base import InputFile, adapter

_TAXONOMIES: Final = frozenset(("us-gaap", "ifrs-full", "srt"))
_EXPECTED: Final = "expected SEC companyfacts JSON with cik, entityName and facts"


class _Row(msgspec.Struct, gc=False):
    """One reported figure. The number stays text, so that no digit passes through a float."""

    start: str | None = None
    end: str | None = None
    val: msgspec.Raw = msgspec.Raw(b"")
    accn: str | None = None
    filed: str | None = None


class _Concept(msgspec.Struct, gc=False):
    units: dict[str, list[_Row]]


class _Document(msgspec.Struct):
    cik: int | str
    facts: dict[str, dict[str, _Concept]]
    entityName: str | None = None  # noqa: N815 - the publisher's spelling


_decode = msgspec.json.Decoder(_Document).decode


@adapter("edgar-companyfacts")
def read(file: InputFile) -> Iterator[Record]:
    """SEC companyfacts JSON, one document per registrant, or the bulk zip of them.

    A damaged document among others in a zip is rejected by name; if none is left that can be
    read, the file is not of this format.
    """
    readable = 0
    for name, stream in file.documents(".json"):
        try:
            for record in _records(stream.read()):
                if type(record) is Rejected and file.is_zip:
                    yield Rejected(f"{name}/{record.position}", record.reason)
                else:
                    yield record
            readable += 1
        except ValueError as failure:
            if not file.is_zip:
                raise FormatError(f"{file.name}: {_EXPECTED}; {failure}") from None
            yield Rejected(name, f"{_EXPECTED}; {failure}")
    if not readable:
        raise FormatError(f"{file.name}: {_EXPECTED}; found no such document in the archive")


def _records(data: bytes) -> Iterator[Record]:
    """All of one document. Raises ValueError, before the first record, for anything else."""
    document, rejects = _parse(data)
    issuer = cik(document.cik)
    yield from rejects
    yield _entity(issuer, document)
    yield from _facts(str(issuer), document)


def _entity(issuer: Identifier, document: _Document) -> EntityRecord:
    """The registrant. Its name is at least as recent as the last filing in the document."""
    subject = str(issuer)
    profile = Profile(
        legal_name=text.name(document.entityName or ""),
        identifiers=(subject,),
        document=f"CIK{issuer.value}.json",
    )
    filed = {
        row.filed or ""
        for concepts in document.facts.values()
        for concept in concepts.values()
        for rows in concept.units.values()
        for row in rows
    }
    return EntityRecord(subject, max(filter(_is_day, filed), default=""), profile, incidental=True)


def _facts(subject: str, document: _Document) -> Iterator[Record]:
    skipped = 0
    for taxonomy, concepts in document.facts.items():
        for name, concept in concepts.items():
            full_name = f"{taxonomy}:{name}"
            for unit, rows in concept.units.items():
                # Executive pay (ecd) is about persons; cover pages (dei) count only as share counts.
                if taxonomy not in _TAXONOMIES and not (taxonomy == "dei" and unit == "shares"):
                    skipped += len(rows)
                    continue
                if not (full_name.isprintable() and unit.isprintable()):
                    yield Rejected(ascii(f"{taxonomy}/{name}/{unit}"), "a name that cannot be printed")
                    continue
                for index, row in enumerate(rows):
                    try:
                        fact = _fact(subject, full_name, unit, row)
                    except ValueError as failure:
                        yield Rejected(f"{taxonomy}/{name}/{unit}/{index}", str(failure))
                        continue
                    if fact is None:
                        skipped += 1
                    else:
                        yield fact
    if skipped:
        yield Skipped(skipped)


def _fact(subject: str, concept: str, unit: str, row: _Row) -> Fact | None:
    """The fact in a row; None if its value is null. Raises ValueError with the fault."""
    value = str(row.val, "utf-8")
    if value == "null":
        return None
    if not value:
        raise ValueError("val is missing")
    start, end, filed = _days(row.start, row.end, row.filed)
    document = row.accn
    if not document or not document.isprintable():
        raise ValueError("accn is missing")
    return Fact(subject, concept, unit, start, end, filed, document, exact(value), concept)


@lru_cache(maxsize=65536)
def _days(start: str | None, end: str | None, filed: str | None) -> tuple[str, str, str]:
    """The days of a figure: hundreds of figures share them. Raises ValueError with the fault."""
    last = day_in("end", end or "")
    first = day_in("start", start) if start else ""
    if first > last:
        raise ValueError("start is after end")
    return first, last, day_in("filed", filed or "")


def _is_day(day: str) -> bool:
    try:
        return bool(day_in("filed", day))
    except ValueError:
        return False


def _parse(data: bytes) -> tuple[_Document, list[Rejected]]:
    """The document, and its parts that could not be decoded. Raises ValueError for other content.

    Typed decoding is fast but all or nothing. A document that it refuses is read the slow way, so that one
    malformed figure loses no others.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return _decode(data), []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _salvaged(data)


class _Number(str):
    """A JSON number as written."""

    __slots__ = ()


def _salvaged(data: bytes) -> tuple[_Document, list[Rejected]]:
    try:
        whole = json.loads(
            data.decode("utf-8", "replace"), parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
    except json.JSONDecodeError as failure:
        raise ValueError(f"not JSON: {failure.msg} at character {failure.pos}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(whole, dict) or not isinstance(whole.get("facts"), dict) or "cik" not in whole:
        raise ValueError("found other JSON")
    rejects: list[Rejected] = []
    facts: dict[str, dict[str, _Concept]] = {}
    for taxonomy, concepts in _members("", whole["facts"], rejects):
        concepts_read = facts[taxonomy] = {}
        for name, concept in _members(taxonomy, concepts, rejects):
            units = concept.get("units") if isinstance(concept, dict) else None
            rows_of = concepts_read[name] = _Concept({})
            for unit, rows in _members(f"{taxonomy}/{name}", units, rejects):
                if isinstance(rows, list):
                    rows_of.units[unit] = [_row(row) for row in rows]
                else:
                    rejects.append(Rejected(f"{taxonomy}/{name}/{unit}", "expected a list of figures"))
    entity_name = whole.get("entityName")
    return _Document(str(whole["cik"]), facts, entity_name if isinstance(entity_name, str) else None), rejects


def _members(position: str, value: object, rejects: list[Rejected]) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    rejects.append(Rejected(position, "expected an object"))
    return []


def _row(value: object) -> _Row:
    """A row with every field as text; a value of another type fails its field's check."""
    fields = value if isinstance(value, dict) else {}
    number = fields.get("val", _Number(""))
    return _Row(
        val=msgspec.Raw((number if isinstance(number, _Number) else json.dumps(number)).encode()),
        **{key: _as_text(fields.get(key)) for key in ("start", "end", "accn", "filed")},
    )


def _as_text(value: object) -> str | None:
    if value is None or (isinstance(value, str) and not isinstance(value, _Number)):
        return value
    return "\0"  # another type: made a text that fails every check
