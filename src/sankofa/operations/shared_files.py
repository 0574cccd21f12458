"""Files by short-lived signed addresses, and tables as they were on the day of a locked view.

Readers of Parquet send no key, so the address of a file can be signed: for one file of one edition or day,
for some minutes, with the rights and under the counter of the key that asked for it.
"""

import asyncio
import dataclasses
import hashlib
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from sankofa.access.keys import Keys
from sankofa.access.records import Cursors, Position
from sankofa.access.tiers import Grant, Lock
from sankofa.edition.read.day_view import DayView, KnownDays
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import InvalidParameter, NotFound, Unauthorized

if TYPE_CHECKING:
    import pyarrow

SIGNED_FOR: Final = timedelta(minutes=15)
_PART: Final = re.compile(r"(.+?)(?:-[0-9]{3,})?\.parquet")
_CAPTURE: Final = "@[0-9a-f]{8}#"
_FOOTER_END: Final = 8
"""Bytes after the footer of a Parquet file: its length and four letters."""
_ROWS_IN_A_GROUP: Final = 131_072
_DATED: Final = {
    "af-fund-fundamentals": ("available_at", "period_end"),
    "af-macro-series": ("available_at", "date"),
    "af-tender-releases": ("release_date",),
}
"""The tables whose rows say since when they are known, and by which columns."""


def table_name(file: str) -> str:
    """The table that a file belongs to: a large one has several, numbered."""
    match = _PART.fullmatch(file)
    return match[1] if match else file


def is_dated(file: str) -> bool:
    """Whether a locked view has the table of a file."""
    return table_name(file) in _DATED


def sign_file(
    cursors: Cursors, grant: Grant, name: str, edition: str, lock: date | None, until: datetime
) -> str:
    """The `signature` of the address of a file. `lock` is the day that the file is to be of."""
    rights = int(until.timestamp()), "" if lock is None else lock.isoformat(), grant.presented
    return cursors.issue(Position(edition, _subject(name), rights))


async def signed_grant(
    cursors: Cursors, keys: Keys, signature: str, name: str, edition: str | None, now: datetime
) -> Grant:
    """The rights today of the key that an address was signed for. Raises Unauthorized."""
    try:
        position = cursors.read(signature, _subject(name))
        until, day, presented = position.after
    except (InvalidParameter, ValueError):
        raise Unauthorized("The signature is not of this file.") from None
    if position.edition != (edition or ""):
        raise Unauthorized("The signature is of another edition.")
    if now.timestamp() > int(until):
        raise Unauthorized("The address has expired: ask for another.")
    grant = await keys.presented(str(presented))
    return dataclasses.replace(grant, lock=Lock(date.fromisoformat(str(day)))) if day else grant


def _subject(name: str) -> str:
    return f"signed file {name}"


async def file_schema(edition: Edition, name: str) -> "pyarrow.Schema":
    """The columns of a file and its metadata, from its footer."""
    schemas = edition.cache("schemas of files", 64)
    if (schema := schemas.get(name)) is None:
        size = edition.files[name]["size_bytes"]
        end = await _read(edition, name, size - _FOOTER_END, size)
        footer = await _read(edition, name, size - _FOOTER_END - int.from_bytes(end[:4], "little"), size)
        schema = await asyncio.to_thread(_schema, footer)
        schemas.put(name, schema)
    return schema


def _schema(footer: bytes) -> "pyarrow.Schema":
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.read_schema(pa.BufferReader(b"PAR1" + footer))


async def _read(edition: Edition, name: str, start: int, end: int) -> bytes:
    return b"".join([chunk async for chunk in edition.file_chunks(name, start, end)])


class DayFile(NamedTuple):
    """A Parquet file with the rows of a day."""

    content: bytes
    sha256: str
    row_count: int


async def day_file(edition: Edition, name: str) -> DayFile:
    """The rows of a file that were known on the day of a locked view. Raises NotFound."""
    if not isinstance(edition, DayView) or name not in edition.files or not is_dated(name):
        raise NotFound("A locked view has no such file.")
    files = edition.cache("files", 4)
    if (file := files.get(name)) is None:
        size = edition.files[name]["size_bytes"]
        content = await _read(edition, name, 0, size)
        known = await edition.known_days()
        file = await asyncio.to_thread(_of_day, content, _DATED[table_name(name)], edition, known)
        files.put(name, file)
    return cast("DayFile", file)


def _of_day(content: bytes, dated: tuple[str, ...], view: DayView, known: KnownDays) -> DayFile:
    """The rows known on a day, without what was captured or published later, written anew."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import compute

    source = pq.ParquetFile(pa.BufferReader(content))
    day = date.fromordinal(view.day)
    groups = []
    for number in range(source.num_row_groups):
        table = source.read_row_group(number)
        for name in dated:
            end = _end(table.schema.field(name).type, day)
            table = table.filter(compute.less_equal(table[name], end))
        for name in {"service_id", "buyer_service_id"}.intersection(table.column_names):
            ids = table[name].unique().to_pylist()
            numbers = {one: known.number(one) for one in ids if one}
            seen = [one for one, at in numbers.items() if at is not None and known.days[at] <= view.day]
            was_known = compute.is_in(table[name], pa.array(seen, pa.string()))
            if name == "service_id":
                table = table.filter(was_known)
            else:  # the release stays, without an organisation that was not known yet
                at = table.column_names.index(name)
                field = table.schema.field(at)
                shown = compute.if_else(was_known, table[name], pa.scalar(None, field.type))
                table = table.set_column(at, field, shown)
        groups.append(_without_later(table, day))
    schema = source.schema_arrow.remove_metadata()
    whole = pa.concat_tables(groups) if groups else schema.empty_table()
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(whole.replace_schema_metadata(None), row_group_size=_ROWS_IN_A_GROUP)
    written = sink.getvalue().to_pybytes()
    return DayFile(written, hashlib.sha256(written).hexdigest(), whole.num_rows)


def _end(kind: "pyarrow.DataType", day: date) -> Any:
    """The last value of a column of days or instants that is not after a day."""
    import pyarrow as pa

    if pa.types.is_date(kind):
        return pa.scalar(day, kind)
    return pa.scalar(datetime.combine(day, time.max, UTC), kind)


def _without_later(table: "pyarrow.Table", day: date) -> "pyarrow.Table":
    import pyarrow as pa
    from pyarrow import compute

    def put(name: str, values: Any) -> None:
        nonlocal table
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), values)

    if "superseded_at" in table.column_names:
        later = compute.greater(table["superseded_at"], pa.scalar(day))
        for name in ("superseded_at", "superseding_record_ref"):
            if name in table.column_names:
                kind = table.schema.field(name).type
                put(
                    name, compute.if_else(compute.fill_null(later, False), pa.scalar(None, kind), table[name])
                )
    put("source_ref", compute.replace_substring_regex(table["source_ref"], _CAPTURE, "#"))
    put("observed_at", pa.nulls(len(table), table.schema.field("observed_at").type))
    return table
