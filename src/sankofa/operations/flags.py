"""GET /v1/flags: red flags of contracting processes, as they could be raised on a day (contract: FLAG-1)."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

from sankofa.derive.rounding import quotient
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.flags import Flag, flags_of_process, flags_on, spellings
from sankofa.edition.read.tenders import process_releases
from sankofa.model.errors import Absence
from sankofa.model.facts import TENDER
from sankofa.model.ocds.red_flags import INDICATORS
from sankofa.model.rows import wire
from sankofa.model.tender_rows import FlagRow
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.paging import ListPage, first_page
from sankofa.operations.parameter_types import Text
from sankofa.operations.parameters import (
    ContractDayParameter,
    CountryParameter,
    CursorParameter,
    LimitParameter,
)

_NAME: Final = r"^[^\x00-\x1f\x7f]{1,400}$"
FlagProcessParameter = Annotated[
    str | None,
    Text(_NAME, "ocds-999sza-00134", longest=400),
    "Every indicator of this contracting process, flagged or not.",
]
FlagBuyerParameter = Annotated[
    str | None,
    Text(_NAME, "Groot Sample District Municipality", longest=400),
    "Rows about this buyer and its processes: its whole name, service_id, or id in releases, in any case.",
]
FlagSupplierParameter = Annotated[
    str | None,
    Text(_NAME, "Duineveld Sample Civils (Pty) Ltd", longest=400),
    "Rows about this tenderer and processes with an award to it, named like a buyer.",
]

METHODOLOGY: Final = "signals-v1/red-flags"
_ORDER: Final = RowOrder("country", "indicator", "subject_type", "subject")
_ONE: Final = Decimal(1)


@operation(
    "/v1/flags",
    dataset=TENDER,
    row=FlagRow,
    errors=(400, 401, 402, 429, 503),
    tool="get_flags",
    extension=True,
)
async def get_flags(
    call: Call,
    *,
    country: CountryParameter = None,
    ocid: FlagProcessParameter = None,
    buyer: FlagBuyerParameter = None,
    supplier: FlagSupplierParameter = None,
    as_of: ContractDayParameter = None,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """Red flags of contracting processes, buyers and tenderers, as they could be raised on a day.

    The indicators are those of Cardinal, with its defaults. The population is that day's: every process of
    the country, compiled from its releases up to then. Prices are compared in the currency that most bids
    have. With `ocid`: every indicator of the process, `flagged` null and a `reason` where it cannot be
    computed; otherwise what is flagged. `buyer` and `supplier` keep the rows about that party and about its
    processes. A flag is a reason to look, and proves nothing. Ordered by country, indicator, subject_type
    and subject. The method is explained at `/methodology/signals-v1/red-flags`.
    """
    parties = tuple(None if one is None else next(iter(spellings(one)), "") for one in (buyer, supplier))
    page = await first_page(call, "flags", country, ocid, *parties, as_of=as_of, cursor=cursor)
    most = call.grant.rows(limit)
    countries: Sequence[str] = [country] if country else await page.edition.keys("tender_day")
    if ocid is not None:
        releases = await process_releases(page.edition, ocid)
        days = [released for released, of_country, _ in releases if of_country in countries]
        if days and days[0] > page.day:
            detail = f"Not known on {page.day}: its first release is of {days[0]}."
            absent = Absence("not_yet_known", detail, days[0], days[-1])
            members: dict[str, object] = {"next_cursor": None}
            return Answer(
                Selection((), 0, truncated=False), page.day, members, page.edition.id, absent=absent
            )
        countries = sorted({of_country for day, of_country, _ in releases if day <= page.day} & {*countries})
    rows: list[bytes] = []
    for one in countries:
        if len(rows) <= most and (not page.key or one >= str(page.key[0])):
            rows += await _rows(page, one, ocid, parties, most + 1 - len(rows))
    more = len(rows) > most
    selection = Selection(rows[:most], len(rows[:most]), truncated=more, following=(0,) if more else None)
    return page.answer(selection, _ORDER, as_of=page.day)


async def _rows(
    page: ListPage, country: str, ocid: str | None, parties: Sequence[str | None], most: int
) -> list[bytes]:
    """The next rows of a country."""
    known = await flags_on(page.edition, country, page.day)
    if known is None:
        return []
    buyer, supplier = parties
    flags = known.flags if ocid is None else await flags_of_process(page.edition, country, known, ocid)
    rows: list[bytes] = []
    for flag in flags:
        if len(rows) == most:
            break
        if buyer is not None and buyer not in flag.subject.buyers:
            continue
        if supplier is not None and supplier not in flag.subject.suppliers:
            continue
        if page.key and not _ORDER.is_behind((country, *flag.sort_key), page.key):
            continue
        rows.append(wire.encode(_row(country, flag, known.population.count)))
    return rows


def _row(country: str, flag: Flag, population: int) -> FlagRow:
    finding, subject = flag
    return FlagRow(
        country=country,
        indicator=finding.indicator,
        title=INDICATORS[finding.indicator]["title"],
        subject_type=finding.subject_type,
        subject=finding.subject,
        name=subject.name,
        service_id=subject.service_id,
        flagged=finding.flagged,
        value=_rounded(finding.value),
        threshold=_rounded(finding.threshold),
        formula=INDICATORS[finding.indicator]["formula"],
        inputs={name: _rounded(one) if type(one) is float else one for name, one in finding.inputs.items()},
        population=population,
        reason=finding.reason,
        methodology_ref=METHODOLOGY,
        source_ref=subject.release.source_ref,
        license_class=subject.release.license_class,
        observed_at=subject.release.observed_at,
    )


def _rounded(value: Any) -> Decimal | None:
    return None if value is None else quotient(Decimal(value), _ONE)
