"""GET /v1/sources, /v1/coverage, /v1/quality-metrics/{sku}, /v1/export and /v1/usage; and the files of an
edition: their columns, their signed addresses, and their rows on the day of a locked view.

Parquet readers send no key, so a file's address can be signed. It is valid for one file of one edition or
day, for some minutes, and uses the rights and the quota of the key that asked for it.
"""

import asyncio
import dataclasses
import hashlib
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from sankofa.access.keys import Keys
from sankofa.access.records import Cursors, Position
from sankofa.access.tiers import Grant, Lock, Usage
from sankofa.edition.format.keys import COVERAGE, COVERAGE_DAYS, SOURCES, coverage_key
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.format.visibility import CountOnDay, KnownCounts, read_known_counts
from sankofa.edition.read.day_view import DayView, KnownDays
from sankofa.edition.read.edition import Edition, Selection
from sankofa.model.catalogue_rows import CoverageRow, ExportRow, QualityRow, SourceRow, UsageRow
from sankofa.model.days import instant
from sankofa.model.errors import InvalidParameter, NotFound, Unauthorized
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import wire
from sankofa.operations import parameters
from sankofa.operations.contract import NO_ROWS, Answer, Call, operation
from sankofa.operations.paging import first_page

if TYPE_CHECKING:
    import pyarrow


@operation("/v1/sources", row=SourceRow, extension=True)
async def get_sources(call: Call) -> Answer:
    """Publishers of the data, their licences and attributions.

    Lists every source with rows in the edition, ordered by source_id. `first_date` and `last_date` are dates
    of the data: period ends, releases or observations. `freshness_days` counts from the source's newest
    evidenced day of publication to the edition's last capture; it is null without such a day. A locked view
    lists the sources known on its day, with the rows known then, and counts to that day.
    """
    day = call.today.toordinal()
    if call.lock is None:
        return Answer(await call.edition.select(SOURCES, "", day=day) or NO_ROWS)
    rows = [wire.encode(row) for row in await _sources_on(call.edition, day)]
    return Answer(Selection(rows, len(rows), truncated=False))


_stored_sources: Final = msgspec.json.Decoder(list[SourceRow]).decode


async def _known_counts(edition: Edition) -> list[KnownCounts]:
    """Counts by dataset, country and source, from each day on. Read once for an edition."""
    whole = edition.whole if isinstance(edition, DayView) else edition
    cached = whole.cache(COVERAGE_DAYS, 1)
    if (counts := cached.get("")) is None:
        counts = read_known_counts(await edition.raw(COVERAGE_DAYS, "") or b"\x90")
        cached.put("", counts)
    return cast("list[KnownCounts]", counts)


async def _sources_on(edition: Edition, day: int) -> list[SourceRow]:
    """The sources with something known on a day, and what was known."""
    stored = await edition.select(SOURCES, "", day=day) or NO_ROWS
    known: dict[str, list[tuple[KnownCounts, CountOnDay]]] = {}
    for counts in await _known_counts(edition):
        if (own := counts.on(day)) is not None:
            known.setdefault(counts.source_id, []).append((counts, own))
    rows = []
    for row in _stored_sources(b"[%b]" % stored.rows):
        some = known.get(row.source_id, [])
        # for a source of figures, count figures, not the organisations that it names
        some = [one for one in some if one[0].sku] or some
        if not some:
            continue
        counted = [own for _, own in some]
        known_then = msgspec.structs.replace(
            row,
            source_ref=source_ref(row.source_id, "known", row.source_id),
            observed_at="",
            countries=sorted({counts.country for counts, _ in some if counts.country}),
            row_count=sum(own.rows for own in counted),
            first_date=_date(min((own.first for own in counted if own.first), default=0)),
            last_date=_date(max(own.last for own in counted)),
            captured_at=None,
            freshness_days=_age(max(own.published for own in counted), day),
            rejected=None,
        )
        rows.append(known_then)
    return rows


def _date(day: int) -> date | None:
    return date.fromordinal(day) if day else None


def _age(published: int, day: int) -> int | None:
    return max(day - published, 0) if published else None


async def _coverage_on(edition: Edition, day: int, country: str | None, sku: str | None) -> list[CoverageRow]:
    licences = {row.source_id: row.license_class for row in await _sources_on(edition, day)}
    return [
        CoverageRow(
            sku=counts.sku,
            country=counts.country or None,
            source_id=counts.source_id,
            count=own.counted,
            unit_of_count=counts.unit,
            first_date=_date(own.first),
            last_date=_date(own.last),
            freshness_days=_age(own.published, day),
            source_ref=source_ref(counts.source_id, "known", f"{counts.sku} {counts.country} {counts.unit}"),
            license_class=licences[counts.source_id],
            observed_at="",
        )
        for counts in await _known_counts(edition)
        if counts.sku
        and sku in (None, counts.sku)
        and country in (None, counts.country)
        and (own := counts.on(day)) is not None
    ]


_SOURCES_ORDER = RowOrder("sku", "country", "source_id", "unit_of_count")


@operation("/v1/coverage", row=CoverageRow, tool="get_coverage", extension=True)
async def get_coverage(
    call: Call,
    *,
    country: parameters.Country = None,
    sku: parameters.OptionalSku = None,
    limit: parameters.LimitOrAll = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Coverage of each dataset by country and source: count, first and last date, freshness.

    Counts issuers (AF-FUND), releases (AF-TENDER), series and indicators (AF-MACRO), ordered by sku, country,
    source_id and unit_of_count. Dates and freshness as in `/v1/sources`. Call it to see what is covered.
    """
    page = await first_page(call, "coverage", country, sku, cursor=cursor)
    most = None if limit is None else call.grant.rows(limit)
    if call.lock is None:
        selection = await page.select(COVERAGE, coverage_key(country, sku), _SOURCES_ORDER, most)
    else:
        every = map(wire.encode, await _coverage_on(page.edition, page.day.toordinal(), country, sku))
        rows = [row for row in every if not page.key or _SOURCES_ORDER.behind(page.key)(row)]
        more = most is not None and most < len(rows)
        selection = Selection(rows[:most], len(rows[:most]), more, following=(0,) if more else None)
    return page.answer(selection or NO_ROWS, _SOURCES_ORDER)


_QUALITY_ORDER = RowOrder("measure")


@operation(
    "/v1/quality-metrics/{sku}",
    row=QualityRow,
    malformed_id_is_unknown=True,
    tool="get_quality_metrics",
    not_by_day="Quality is measured over the whole ledger, including refused rows and file ages that "
    "have no day of publication, so a locked view does not show it.",
    extensions=("limit", "cursor"),
)
async def get_quality_metrics(
    call: Call, *, sku: parameters.Sku, limit: parameters.LimitOrAll = None, cursor: parameters.Cursor = None
) -> Answer:
    """Coverage and freshness of one dataset, ordered by measure.

    Each measure is compared with the floor that its sources set: `PASS`, `FAIL`, or `UNMEASURED` if there is
    a floor but no measurement, which is never a pass. For age, rejects and restatements the floor is a
    maximum; for every other measure it is a minimum.
    """
    page = await first_page(call, "quality", sku.upper(), cursor=cursor)
    most = None if limit is None else call.grant.rows(limit)
    selection = await page.select("quality", sku.upper(), _QUALITY_ORDER, most)
    if selection is None:
        raise NotFound(f"No dataset {sku}.")
    return page.answer(selection, _QUALITY_ORDER, dataset=sku.upper())


MEDIA_TYPE: Final = "application/vnd.apache.parquet"
OPEN_FILES: Final = "/open/"
LICENSED_FILES: Final = "/v1/export/files/"
_AS_IN_THE_MANIFEST: Final = (
    "sku signal_key access license size_bytes sha256 row_count columns min_tier license_class".split()
)


@operation(
    "/v1/export",
    row=ExportRow,
    not_by_day="The files hold what is known today, so a locked view lists none. /delta-sharing/ has "
    "tables with the rows known on the day.",
)
async def get_export(call: Call) -> Answer:
    """The Parquet files of the current edition, ordered by name, and where to fetch them.

    Open panels are licensed CC-BY-4.0, and anyone can read them by URL without a key. Files of datasets and
    of licensed panels need a key of `min_tier`. A URL stays the same from edition to edition. Add
    `edition=<id>` to its query to read a kept edition; if your question names an edition, every URL in the
    answer does too. Range, `If-Range` and HEAD work, so a Parquet reader fetches only what it needs.
    """
    built_from = call.edition.manifest["built_from"]
    pinned = f"?edition={call.edition.id}" if call.pinned else ""
    rows = []
    for name, file in sorted(call.edition.files.items()):
        folder = OPEN_FILES if file["access"] == "open" else LICENSED_FILES
        row = ExportRow(
            name=name,
            url=f"{call.base_url}{folder}{name}{pinned}",
            media_type=MEDIA_TYPE,
            updated_at=built_from,
            source_ref=file.get("source_ref") or source_ref(SERVICE, "edition", name),
            observed_at=built_from,
            **{field: file[field] for field in _AS_IN_THE_MANIFEST},
        )
        rows.append(wire.encode(row))
    return Answer(Selection(rows, len(rows), truncated=False))


@operation("/v1/usage", row=UsageRow, extension=True, live=True)
async def get_usage(call: Call) -> Answer:
    """Usage and limits of the key, including this request.

    Limits hold per UTC minute and per UTC calendar month; `minute_reset_at` and `month_reset_at` say when the
    next begins. A key and the key it replaced share one count. The answer is never cached.
    """
    grant = call.grant
    usage = call.usage or Usage("", (), grant)
    ends = [instant(datetime.fromtimestamp(end, UTC)) for end in (usage.minute_ends, usage.month_ends)]
    row = UsageRow(
        source_ref=source_ref(SERVICE, "usage", grant.key_id),
        license_class="public-domain",
        observed_at=instant(datetime.now(UTC)),
        tier=grant.tier,
        minute_limit=grant.per_minute,
        minute_used=usage.in_minute,
        minute_reset_at=ends[0],
        month_limit=grant.per_month,
        month_used=usage.in_month,
        month_reset_at=ends[1],
        expires_at=grant.expires_at,
    )
    return Answer(Selection([wire.encode(row)], 1, truncated=False))


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
"""Tables whose rows have a day of publication, and the columns that hold it."""


def table_name(file: str) -> str:
    """The table that a file belongs to. A large table has several numbered files."""
    match = _PART.fullmatch(file)
    return match[1] if match else file


def is_dated(file: str) -> bool:
    """Whether a file's table is available in a locked view."""
    return table_name(file) in _DATED


def sign_file(
    cursors: Cursors, grant: Grant, name: str, edition: str, lock: date | None, until: datetime
) -> str:
    """The `signature` of the address of a file. `lock` is the day of the file's rows."""
    rights = int(until.timestamp()), "" if lock is None else lock.isoformat(), grant.presented
    return cursors.issue(Position(edition, _subject(name), rights))


async def signed_grant(
    cursors: Cursors, keys: Keys, signature: str, name: str, edition: str | None, now: datetime
) -> Grant:
    """The current rights of the key that an address was signed for. Raises Unauthorized."""
    try:
        position = cursors.read(signature, _subject(name))
        until, day, presented = position.after
    except (InvalidParameter, ValueError):
        raise Unauthorized("The signature is for another file.") from None
    if position.edition != (edition or ""):
        raise Unauthorized("The signature is for another edition.")
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
        end = await _read_part(edition, name, size - _FOOTER_END, size)
        footer = await _read_part(edition, name, size - _FOOTER_END - int.from_bytes(end[:4], "little"), size)
        schema = await asyncio.to_thread(_schema, footer)
        schemas.put(name, schema)
    return schema


def _schema(footer: bytes) -> "pyarrow.Schema":
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.read_schema(pa.BufferReader(b"PAR1" + footer))


async def _read_part(edition: Edition, name: str, start: int, end: int) -> bytes:
    return b"".join([chunk async for chunk in edition.file_chunks(name, start, end)])


class DayFile(NamedTuple):
    """A Parquet file with the rows known on a day."""

    content: bytes
    sha256: str
    row_count: int


async def day_file(edition: Edition, name: str) -> DayFile:
    """The file's rows known on the day of a locked view. Raises NotFound."""
    if not isinstance(edition, DayView) or name not in edition.files or not is_dated(name):
        raise NotFound("A locked view has no such file.")
    files = edition.cache("files", 4)
    if (file := files.get(name)) is None:
        size = edition.files[name]["size_bytes"]
        content = await _read_part(edition, name, 0, size)
        known = await edition.known_days()
        file = await asyncio.to_thread(_of_day, content, _DATED[table_name(name)], edition, known)
        files.put(name, file)
    return cast("DayFile", file)


def _of_day(content: bytes, dated: tuple[str, ...], view: DayView, known: KnownDays) -> DayFile:
    """Rewrites a file with the rows known on a day and without captures or later publications."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import compute

    source = pq.ParquetFile(pa.BufferReader(content))
    day = date.fromordinal(view.day)
    groups = []
    for number in range(source.num_row_groups):
        table = source.read_row_group(number)
        for name in dated:
            kind = table.schema.field(name).type
            end = day if pa.types.is_date(kind) else datetime.combine(day, time.max, UTC)
            table = table.filter(compute.less_equal(table[name], pa.scalar(end, kind)))
        for name in {"service_id", "buyer_service_id"}.intersection(table.column_names):
            ids = table[name].unique().to_pylist()
            numbers = {one: known.number(one) for one in ids if one}
            known_ids = [one for one, at in numbers.items() if at is not None and known.days[at] <= view.day]
            was_known = compute.is_in(table[name], pa.array(known_ids, pa.string()))
            if name == "service_id":
                table = table.filter(was_known)
            else:  # the release stays; organisations not known yet are removed
                nobody = pa.scalar(None, table.schema.field(name).type)
                table = _with(table, name, compute.if_else(was_known, table[name], nobody))
        groups.append(_without_later(table, day))
    schema = source.schema_arrow.remove_metadata()
    whole = pa.concat_tables(groups) if groups else schema.empty_table()
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(whole.replace_schema_metadata(None), row_group_size=_ROWS_IN_A_GROUP)
    written = sink.getvalue().to_pybytes()
    return DayFile(written, hashlib.sha256(written).hexdigest(), whole.num_rows)


def _with(table: "pyarrow.Table", name: str, values: Any) -> "pyarrow.Table":
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), values)


def _without_later(table: "pyarrow.Table", day: date) -> "pyarrow.Table":
    import pyarrow as pa
    from pyarrow import compute

    if "superseded_at" in table.column_names:
        later = compute.fill_null(compute.greater(table["superseded_at"], pa.scalar(day)), False)
        for name in {"superseded_at", "superseding_record_ref"}.intersection(table.column_names):
            nothing = pa.scalar(None, table.schema.field(name).type)
            table = _with(table, name, compute.if_else(later, nothing, table[name]))
    refs = compute.replace_substring_regex(table["source_ref"], _CAPTURE, "#")
    table = _with(table, "source_ref", refs)
    return _with(table, "observed_at", pa.nulls(len(table), table.schema.field("observed_at").type))
