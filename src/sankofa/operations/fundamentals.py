"""GET /v1/fundamentals/{service_id}, /v1/statements/{service_id} and /v1/shared/facts."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sankofa.access.tiers import Grant
from sankofa.edition.format.keys import FULL_YEARS, STATEMENTS
from sankofa.edition.format.row_blocks import FUNDAMENTALS_ORDER, RowOrder, SortKey
from sankofa.edition.format.visibility import ANY_TAG, KIND_MODES
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.facts import (
    MACRO_ORDER,
    find_macro,
    find_measure,
    find_released,
    find_reported,
    macro_facts,
    measure_facts,
    released_facts,
    released_key,
    reported_facts,
)
from sankofa.edition.read.issuer_figures import StatementRows, core_first, find_core_first, line_item_of
from sankofa.model.catalogue_rows import StatementFigureRow, WideStatementRow
from sankofa.model.countries import alpha2_of
from sankofa.model.errors import InvalidParameter
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import AWARD_VALUE, FUND, MACRO, TENDER, TENDER_VALUE, strictest
from sankofa.model.rows import FactRow, FundamentalsRow, wire
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import NO_ROWS, NULLABLE_AS_OF, AgentView, Answer, Call, operation
from sankofa.operations.nearest import (
    MOST_NEAREST,
    line_items_meant,
    predecessor_hint,
    refuse_other_identifier,
    unknown_organisation,
)
from sankofa.operations.paging import ListPage, first_page

_MODES = {"latest": int(Mode.LATEST), "as_reported": int(Mode.AS_REPORTED), "all": int(Mode.ALL)}
_STATEMENT: Final = "statement"


@operation(
    "/v1/fundamentals/{service_id}",
    dataset=FUND,
    row=FundamentalsRow,
    tool="get_fundamentals",
    extensions=("line_items", "order", "limit", "cursor"),
    agent=AgentView(overflow={"order": _STATEMENT}),
)
async def get_fundamentals(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    as_of: parameters.AsOf = None,
    period_type: parameters.PeriodType = None,
    vintages: parameters.Vintages = "latest",
    line_items: parameters.LineItems = None,
    order: parameters.FundamentalsOrder = None,
    limit: parameters.LimitOrAll = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Point-in-time reported facts for one issuer.

    Ordered by period_end descending, period_type, line_item and vintage. Without `limit` the sample tier gets
    the first rows with `truncated: true`, paid tiers everything. `order=statement` puts the documented line
    items first (newest period first, in documented order), then all others. A cursor is valid for its own
    order only.
    """
    key = service_id.upper()
    page = await first_page(
        call, "fundamentals", key, period_type, vintages, line_items, as_of=as_of, cursor=cursor
    )
    most = call.grant.rows_or_all(limit)
    modes = _MODES[vintages]
    tag = ANY_TAG if period_type is None else PERIOD_TYPES.index(period_type)
    where = None if line_items is None else has_line_item(line_items)
    # In statement order a cursor's key begins with the name of the order.
    by_statement = (page.key[0] if page.key else order) == _STATEMENT
    if order is not None and (order == _STATEMENT) != by_statement:
        raise InvalidParameter("order", "this cursor is for the other order; leave it out")
    if by_statement:
        names = None if line_items is None else frozenset(name.encode() for name in line_items)
        rows = StatementRows(key, page.day.toordinal(), modes, tag, names)
        start = await page.start(lambda edition, behind: find_core_first(edition, rows, behind[1:]))
        selection = await core_first(page.edition, rows, 2**31 - 1 if most is None else most, start)
    else:
        selection = await page.select(
            "fundamentals", key, FUNDAMENTALS_ORDER, most, modes=modes, tag=tag, where=where
        )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    behind: RowOrder | SortKey = FUNDAMENTALS_ORDER
    if by_statement and selection.following is not None:
        behind = _STATEMENT, *FUNDAMENTALS_ORDER.key_of(selection.last_row)
    members: dict[str, object] = {}
    if not selection.count:
        if line_items is not None and set(line_items).isdisjoint(LINE_ITEMS):
            members["nearest"] = line_items_meant(line_items)[:MOST_NEAREST]
        members |= await predecessor_hint(page.edition, key, selection, call.today)
    return page.answer(selection, behind, as_of=page.day, members=members)


def has_line_item(line_items: tuple[str, ...]) -> Callable[[bytes], bool]:
    """A test for encoded rows, true for rows of these line items. A hundred items cost no more than one."""
    encoded = frozenset(name.encode() for name in line_items)
    return lambda row: line_item_of(row) in encoded


_FULL_YEAR: Final = "FY"


class FigureFields(msgspec.Struct):
    """The fields of a figure that operations compute with."""

    source_ref: str
    license_class: str
    observed_at: str | None
    record_ref: str
    line_item: str
    concept: str | None
    value_reported: Decimal | None
    unit: str | None
    period_start: date | None
    period_end: date
    period_type: str
    fiscal_year: int | None
    available_at: date
    vintage: int
    superseded_at: date | None
    alternatives: int = 0
    sign_turned: bool = False


read_figures = msgspec.json.Decoder(list[FigureFields]).decode


@operation(
    "/v1/statements/{service_id}",
    dataset=FUND,
    row=StatementFigureRow,
    also=(WideStatementRow,),
    tool="get_statement",
    extension=True,
)
async def get_statement(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    as_of: parameters.AsOf = None,
    period_type: parameters.PeriodType = None,
    kind: parameters.StatementKind = None,
    line_items: parameters.LineItems = None,
    shape: parameters.Shape = "long",
    limit: parameters.LimitOrAll = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """The statements of one issuer: one figure per line item and period.

    Each figure is the reported one that the metrics use, in one accounting standard and one currency per
    period. `alternatives` counts the other figures that `/v1/fundamentals` has for the line item and period.
    A line item has no row if the metrics compute it from several figures or leave it out. Ordered by
    period_end descending, period_type, then by line item as in a statement. `shape=wide` gives one row per
    line item with a column for each period, named by its period_end, newest first. If the standard or the
    currency changes, a new row begins. Without `period_type` the wide shape has full years only. Without
    `limit` the sample tier gets the first figures with `truncated: true`, paid tiers everything.
    """
    key, wide = service_id.upper(), shape == "wide"
    filters = (period_type, kind, line_items, shape)
    page = await first_page(call, "statement", key, *filters, as_of=as_of, cursor=cursor)
    most = call.grant.rows_or_all(limit)
    full_years = period_type == _FULL_YEAR or (wide and period_type is None)
    figures = replace(page, key=()) if wide else page
    selection = await figures.select(
        FULL_YEARS if full_years else STATEMENTS,
        key,
        _ORDER,
        # A wide page needs all the figures of the long answer.
        most if not wide else call.grant.row_cap if call.grant.sample else None,
        modes=int(Mode.LATEST) if kind is None else KIND_MODES[kind],
        tag=ANY_TAG if period_type is None or full_years else PERIOD_TYPES.index(period_type),
        where=None if line_items is None else has_line_item(line_items),
    )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    hint = await predecessor_hint(page.edition, service_id, selection, call.today)
    if not wide:
        return page.answer(selection, _ORDER, as_of=page.day, shape=StatementFigureRow, members=hint)
    columns, rows = _wide(cell for chunk in selection.lists() for cell in read_figures(chunk))
    rest = [row for row in rows if not page.key or _WIDE_ORDER.behind(page.key)(row)]
    shown = rest[:most]
    cut = selection.truncated or len(shown) < len(rest)
    table = Selection(shown, len(shown), truncated=cut, following=(0,) if cut else None)
    return page.answer(
        table, _WIDE_ORDER, as_of=page.day, shape=WideStatementRow, members=hint, more_columns=columns
    )


_POSITION: Final = {"line_item": LINE_ITEMS.index}
_ORDER: Final = RowOrder("-period_end", "period_type", "line_item", ranks=_POSITION)
_WIDE_ORDER: Final = RowOrder("line_item", ranks=_POSITION)


def _wide(cells: Iterable[FigureFields]) -> tuple[tuple[str, ...], list[bytes]]:
    """The period ends, and one row per line item with its value at each, null if there is none.

    A line item has one row for each accounting standard and unit, newest first.
    """
    by_row: dict[tuple[str, str, str | None], dict[str, FigureFields]] = {}
    for cell in cells:
        standard = (cell.concept or "").partition(":")[0]
        by_row.setdefault((cell.line_item, standard, cell.unit), {})[str(cell.period_end)] = cell
    columns = tuple(sorted({end for own in by_row.values() for end in own}, reverse=True))
    ordered = sorted(by_row.values(), key=lambda own: min(columns.index(end) for end in own))
    ordered.sort(key=lambda own: LINE_ITEMS.index(next(iter(own.values())).line_item))
    return columns, [_wide_row(own, columns) for own in ordered]


def _wide_row(own: dict[str, FigureFields], columns: tuple[str, ...]) -> bytes:
    first = next(iter(own.values()))
    row = WideStatementRow(
        source_ref=first.source_ref,
        license_class=strictest(cell.license_class for cell in own.values()),
        observed_at=max(cell.observed_at or "" for cell in own.values()),
        line_item=first.line_item,
        period_type=first.period_type,
        unit=first.unit,
        cells={
            end: {
                "concept": cell.concept,
                "unit": cell.unit,
                "available_at": str(cell.available_at),
                "vintage": cell.vintage,
                "alternatives": cell.alternatives,
                "record_ref": cell.record_ref,
                "source_ref": cell.source_ref,
            }
            for end, cell in own.items()
        },
    )
    values = {end: own[end].value_reported if end in own else None for end in columns}
    return b"%b,%b" % (wire.encode(row)[:-1], wire.encode(values)[1:])


def _check_subject(_: Grant, arguments: Mapping[str, Any]) -> None:
    """Raises InvalidParameter unless exactly one entity or country is given, with a dataset that it has."""
    entity_id, country = arguments["entity_id"], arguments["country"]
    if (entity_id is None) == (country is None):
        raise InvalidParameter("entity_id", "exactly one of entity_id and country is needed")
    _dataset(_issuer(entity_id), country, arguments["dataset"])


@operation(
    "/v1/shared/facts", check=_check_subject, row=FactRow, members=NULLABLE_AS_OF, extensions=("cursor",)
)
async def get_shared_facts(
    call: Call,
    *,
    entity_id: parameters.EntityId = None,
    country: parameters.SharedCountry = None,
    dataset: parameters.Dataset = None,
    as_of: parameters.AsOf = None,
    measure: parameters.Measure = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Any dataset as entity, fact and provenance rows: the latest vintage of each value.

    Give exactly one of `entity_id` and `country`. For an organisation, `entity_id` selects its AF-FUND facts
    (the default), ordered as in `/v1/fundamentals`. With `dataset=AF-TENDER` it selects the contract awards
    it won, newest release first, then by ocid and award. For a country, give `country` and a `dataset`:
    AF-TENDER has the values of its tenders, newest release first, then by ocid; AF-MACRO has its series and
    indicators, newest period first, then by measure. The country's alpha-3 code as `entity_id` selects its
    AF-MACRO facts too. `as_of` keeps the latest vintage available by that day. Annual macro values have no
    evidenced release date, so they are left out with any `as_of`, and an answer that holds one has a null
    `as_of`. An amount that is zero or not published is not a fact. Each winner of an award has the award's
    whole amount, known from the day of the release that reported it, not from the day of the award.
    `entity_name` is today's name, whatever the `as_of`.
    """
    issuer = _issuer(entity_id)
    dataset = _dataset(issuer, country, dataset)
    code = (issuer or country or entity_id or "").upper()
    # With an as_of, a country's macro facts come from another list: the dated ones.
    with_annual = dataset == MACRO and measure is None and as_of is None
    page = await first_page(
        call, "facts", code, dataset, measure and measure.upper(), with_annual, as_of=as_of, cursor=cursor
    )
    most = call.grant.rows(limit)
    if dataset == FUND:
        selection, last = await _reported(page, code, measure, most)
    elif dataset == TENDER:
        selection, last = await _released(page, code, measure, most, awards=issuer is not None)
    else:
        selection, last = await _of_country(page, code, measure, most, dated=as_of is not None)
    if entity_id is not None and not selection.count and code not in alpha2_of():
        await refuse_other_identifier(call, entity_id, "entity_id")
    # Annual values have no day, and none is there with an as_of.
    undated = as_of is None and dataset == MACRO and b'"available_at":null' in selection.rows
    return page.answer(selection, last, as_of=None if undated else page.day, dataset=dataset)


def _issuer(entity_id: str | None) -> str | None:
    """The id of an organisation; None if it is a country's."""
    return entity_id if entity_id and entity_id.startswith("DC") else None


def _dataset(issuer: str | None, country: str | None, dataset: str | None) -> str:
    """The dataset requested, or the default. Raises InvalidParameter if the entity cannot have it."""
    if country is not None and dataset is None:
        raise InvalidParameter("dataset", f"required with country: {TENDER} or {MACRO}")
    what = "a country's entity_id"
    expected: tuple[str, ...] = (MACRO,)
    if country is not None:
        what, expected = "country", (TENDER, MACRO)
    elif issuer:
        what, expected = "an organisation's entity_id", (FUND, TENDER)
    if dataset not in (None, *expected):
        raise InvalidParameter("dataset", f"with {what}, expected {' or '.join(expected)}")
    return dataset or expected[0]


_Page = tuple[Selection, RowOrder | SortKey]
"""Some facts, and the order that gives the last one's sort key."""


async def _reported(page: ListPage, service_id: str, measure: str | None, most: int) -> _Page:
    day, line_item = page.day.toordinal(), None if measure is None else measure.lower()
    start = await page.start(
        lambda edition, behind: find_reported(edition, service_id, day, line_item, behind)
    )
    return await reported_facts(page.edition, service_id, day, line_item, most, start)


async def _released(page: ListPage, code: str, measure: str | None, most: int, *, awards: bool) -> _Page:
    if measure is not None and measure.lower() != (AWARD_VALUE if awards else TENDER_VALUE):
        return NO_ROWS, ()
    day = page.day.toordinal()
    start = await page.start(lambda edition, behind: find_released(edition, code, day, behind))
    selection = await released_facts(page.edition, code, day, most, start)
    return selection, () if selection.following is None else released_key(selection)


async def _of_country(page: ListPage, code: str, measure: str | None, most: int, *, dated: bool) -> _Page:
    alpha2, day = alpha2_of().get(code, ""), page.day.toordinal()
    if measure is None:
        start = await page.start(
            lambda edition, behind: find_macro(edition, alpha2, day, behind, dated=dated)
        )
        return await macro_facts(page.edition, alpha2, day, most, dated=dated, start=start), MACRO_ORDER
    name = measure.upper()
    start = await page.start(
        lambda edition, behind: find_measure(edition, alpha2, name, day, behind, dated=dated)
    )
    facts = await measure_facts(page.edition, alpha2, name, day, most, dated=dated, start=start)
    return facts, MACRO_ORDER
