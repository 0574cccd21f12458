"""GET /v1/sources, /v1/coverage, /v1/quality-metrics/{sku}, /v1/export and /v1/usage."""

from datetime import UTC, datetime
from typing import Final

from sankofa.access.tiers import Usage
from sankofa.edition.format.keys import COVERAGE, SOURCES, coverage_key
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.read.edition import Selection
from sankofa.model.catalogue_rows import CoverageRow, ExportRow, QualityRow, SourceRow, UsageRow
from sankofa.model.days import instant
from sankofa.model.errors import NotFound
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import wire
from sankofa.operations import parameters
from sankofa.operations.contract import NO_ROWS, Answer, Call, operation
from sankofa.operations.paging import first_page


@operation(
    "/v1/sources",
    row=SourceRow,
    errors=(400, 401, 429, 503),
    extension=True,
    not_by_day="Sources are described by the files taken in last, so a locked view does not list them: "
    "`_license` of each answer names the sources of its rows.",
)
async def get_sources(call: Call) -> Answer:
    """Publishers of the data, their licences and attributions.

    Every source that the edition has rows of, ordered by source_id. The first and last date are those of the
    data: period ends, releases, observations. `freshness_days` counts from the newest day of publication that
    the source evidences to the edition's last capture, and is null if it evidences none.
    """
    day = call.today.toordinal()
    return Answer(await call.edition.select(SOURCES, "", day=day) or NO_ROWS)


_SOURCES_ORDER = RowOrder("sku", "country", "source_id", "unit_of_count")


@operation(
    "/v1/coverage",
    row=CoverageRow,
    errors=(400, 401, 402, 429, 503),
    tool="get_coverage",
    extension=True,
    not_by_day="Coverage is counted over the newest data, so a locked view does not show it: /v1/issuers, "
    "/v1/series and /v1/tenders list what was known on the day.",
)
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
    selection = await page.select(COVERAGE, coverage_key(country, sku), _SOURCES_ORDER, most)
    return page.answer(selection or NO_ROWS, _SOURCES_ORDER)


_QUALITY_ORDER = RowOrder("measure")


@operation(
    "/v1/quality-metrics/{sku}",
    row=QualityRow,
    errors=(401, 404, 429, 503),
    tool="get_quality_metrics",
    not_by_day="Quality is measured over the whole ledger, with refused rows and the age of files, which "
    "have no day of publication: a locked view does not show it.",
    extensions=("limit", "cursor"),
)
async def get_quality_metrics(
    call: Call, *, sku: parameters.Sku, limit: parameters.LimitOrAll = None, cursor: parameters.Cursor = None
) -> Answer:
    """Coverage and freshness of one dataset, ordered by measure.

    Each measure is held against the floor its sources set: `PASS`, `FAIL`, or `UNMEASURED` if there is a
    floor and no measurement, which is never a pass. For age, rejects and
    restatements the floor is a maximum; for every other measure it is a minimum.
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


@operation(
    "/v1/export",
    row=ExportRow,
    errors=(401, 429, 503),
    not_by_day="The files hold what is known today, so a locked view lists none: /delta-sharing/ has tables "
    "with the rows of the day.",
)
async def get_export(call: Call) -> Answer:
    """The Parquet files of the current edition, ordered by name, and where to fetch them.

    Open panels are licensed CC-BY-4.0 and are read by their URL with no key. The files of the datasets and of
    the licensed panels need a key of `min_tier`. A URL stays the same from edition to edition; with `edition`
    and an id in its query it names one that is kept, and so does every URL where the question does. Range,
    `If-Range` and HEAD are answered, so that a reader of Parquet fetches no more than it needs.
    """
    built_from = call.edition.manifest["built_from"]
    pinned = f"?edition={call.edition.id}" if call.pinned else ""
    rows = []
    for name in sorted(call.edition.files):
        file = call.edition.files[name]
        folder = OPEN_FILES if file["access"] == "open" else LICENSED_FILES
        rows.append(
            wire.encode(
                ExportRow(
                    name=name,
                    sku=file["sku"],
                    signal_key=file["signal_key"],
                    access=file["access"],
                    license=file["license"],
                    url=f"{call.base_url}{folder}{name}{pinned}",
                    media_type=MEDIA_TYPE,
                    size_bytes=file["size_bytes"],
                    sha256=file["sha256"],
                    row_count=file["row_count"],
                    columns=file["columns"],
                    min_tier=file["min_tier"],
                    updated_at=built_from,
                    source_ref=file.get("source_ref") or source_ref(SERVICE, "edition", name),
                    license_class=file["license_class"],
                    observed_at=built_from,
                )
            )
        )
    return Answer(Selection(rows, len(rows), truncated=False))


@operation("/v1/usage", row=UsageRow, errors=(401, 429, 503), extension=True, live=True)
async def get_usage(call: Call) -> Answer:
    """Usage and limits of the key, including this request.

    Limits hold per UTC minute and per UTC calendar month; `minute_reset_at` and `month_reset_at` say when the
    next begins. A key that replaced another is counted together with it. The answer is never cached.
    """
    grant = call.grant
    usage = call.usage or Usage("", "", [], grant)
    row = UsageRow(
        source_ref=source_ref(SERVICE, "usage", grant.key_id),
        license_class="public-domain",
        observed_at=instant(datetime.now(UTC)),
        tier=grant.tier,
        minute_limit=grant.per_minute,
        minute_used=usage.in_minute,
        minute_reset_at=_instant(usage.minute_ends),
        month_limit=grant.per_month,
        month_used=usage.in_month,
        month_reset_at=_instant(usage.month_ends),
        expires_at=grant.expires_at,
    )
    return Answer(Selection([wire.encode(row)], 1, truncated=False))


def _instant(seconds: int) -> str:
    return instant(datetime.fromtimestamp(seconds, UTC))
