"""Which ISINs an LEI has issued: GLEIF's relationship file as CSV, and replies of the GLEIF API as JSON."""

from collections.abc import Iterator
from typing import IO, Final

import msgspec

from sankofa.model.errors import FormatError
from sankofa.model.identifiers import is_isin, is_lei, make_identifier
from sankofa.model.records import IdentifierLink, Record, Rejected
from sankofa.sources.base import InputFile, adapter

_EXPECTED: Final = "expected a LEI-ISIN relationship CSV or a GLEIF API reply with isins"

Pairs = Iterator[tuple[str, str, str] | Rejected]
"""(location, LEI, ISIN) as published."""


@adapter("gleif-isin")
def read(file: InputFile) -> Iterator[Record]:
    """The LEI-ISIN relationship CSV and GLEIF API JSON."""
    for name, stream in file.documents(
        ".csv", ".json", expected=f"{_EXPECTED}, found neither in the archive"
    ):
        prefix = f"{name} " if file.is_zip else ""
        title = f"{file.name}: {prefix}".strip()
        first = stream.readline().removeprefix(b"\xef\xbb\xbf")
        if first.lstrip()[:1] in (b"{", b"["):
            yield from _links(_from_json(title, prefix, first + stream.read()))
        else:
            yield from _links(_from_csv(title, prefix, first, stream))


def _links(pairs: Pairs) -> Iterator[Record]:
    previous = subject = ""
    for pair in pairs:
        if isinstance(pair, Rejected):
            yield pair
            continue
        location, lei, isin = pair
        try:
            if lei != previous:  # the file has the ISINs of an LEI together, thousands for a bank
                subject = f"lei:{lei}" if is_lei(lei) else str(make_identifier("lei", lei))
                previous = lei
            identifier = f"isin:{isin}" if is_isin(isin) else str(make_identifier("isin", isin))
        except ValueError as failure:
            yield Rejected(location, str(failure))
        else:
            yield IdentifierLink(identifier, subject, location)


def _from_csv(title: str, prefix: str, first: bytes, stream: IO[bytes]) -> Pairs:
    columns = [name.upper() for name in _fields(first)]
    if columns.count("LEI") != 1 or columns.count("ISIN") != 1:
        raise FormatError(f"{title} {_EXPECTED}; found no columns LEI and ISIN")
    lei, isin, width = columns.index("LEI"), columns.index("ISIN"), len(columns)
    for number, line in enumerate(stream, 2):
        fields = _fields(line)
        if len(fields) == width:
            yield f"{prefix}row {number}", fields[lei], fields[isin]
        elif fields != [""]:
            yield Rejected(f"{prefix}row {number}", f"{len(fields)} fields where the header has {width}")


def _fields(line: bytes) -> list[str]:
    # No identifier has a quote or a comma in it, so a quote left open need not cost the rest of the file.
    return line.decode("utf-8", "replace").replace('"', "").strip().split(",")


def _from_json(title: str, prefix: str, data: bytes) -> Pairs:
    try:
        reply = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError(f"{title} {_EXPECTED}; this is not JSON") from None
    records = reply.get("data") if isinstance(reply, dict) else None
    if records == [] and isinstance(reply.get("meta"), dict) and "goldenCopy" in reply["meta"]:
        return  # an LEI that has issued none
    if not isinstance(records, list) or not any(_is_isin_record(record) for record in records):
        answer = "an error reply" if isinstance(reply, dict) and "errors" in reply else "other JSON"
        raise FormatError(f"{title} {_EXPECTED}; this is {answer}")
    for index, record in enumerate(records):
        location = f"{prefix}data/{index}"
        attributes = record.get("attributes") if _is_isin_record(record) else None
        lei, isin = (attributes.get(key) if isinstance(attributes, dict) else None for key in ("lei", "isin"))
        if isinstance(lei, str) and isinstance(isin, str):
            yield location, lei, isin
        else:
            yield Rejected(location, "malformed record")


def _is_isin_record(record: object) -> bool:
    return isinstance(record, dict) and record.get("type") == "isins"
