"""GET /v1/shared/facts."""

from collections.abc import Mapping
from typing import Any

from sankofa.access.tiers import Grant
from sankofa.edition.format.row_blocks import RowOrder, SortKey
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.facts import (
    MACRO_ORDER,
    award_facts,
    find_macro,
    find_measure,
    find_released,
    find_reported,
    macro_facts,
    measure_facts,
    released_key,
    reported_facts,
    tender_facts,
)
from sankofa.model.countries import alpha2_of
from sankofa.model.errors import InvalidParameter
from sankofa.model.facts import AWARD_VALUE, FUND, MACRO, TENDER, TENDER_VALUE
from sankofa.model.rows import FactRow
from sankofa.operations import parameters
from sankofa.operations.contract import NO_ROWS, NULLABLE_AS_OF, Answer, Call, operation
from sankofa.operations.nearest import refuse_other_identifier
from sankofa.operations.paging import ListPage, first_page


def _check_subject(_: Grant, arguments: Mapping[str, Any]) -> None:
    """Raises InvalidParameter unless one entity or country is asked about, and a dataset that it has."""
    entity_id, country = arguments["entity_id"], arguments["country"]
    if (entity_id is None) == (country is None):
        raise InvalidParameter("entity_id", "exactly one of entity_id and country is needed")
    _dataset(_issuer(entity_id), country, arguments["dataset"])


@operation(
    "/v1/shared/facts",
    check=_check_subject,
    row=FactRow,
    errors=(400, 401, 402, 429, 503),
    members=NULLABLE_AS_OF,
    extensions=("cursor",),
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

    Exactly one of `entity_id` and `country` is given. An organisation's `entity_id` selects its AF-FUND facts
    (the default), ordered as `/v1/fundamentals` orders them, or with AF-TENDER the contract awards it won,
    the newest release first, then by ocid and award. A country, by `country` and a `dataset`, has AF-TENDER
    facts (the values of its tenders, the newest release first, then by ocid) and AF-MACRO facts (the newest
    period first, then by measure), which its alpha-3 code as `entity_id` selects too. `as_of` keeps what was
    available by that day, and of that the latest vintage; annual macro has no evidenced release date and is
    left out under any `as_of`, so that an answer with such a value says null for its own. An
    amount that is not published, or zero, is no fact. Each winner of an award has its whole amount, known
    from the day of the release that told it, not from the day of the award. `entity_name` is the name of
    today under any `as_of`.
    """
    issuer = _issuer(entity_id)
    dataset = _dataset(issuer, country, dataset)
    code = (issuer or country or entity_id or "").upper()
    # Under an as_of, all macro facts of a country are another list: the dated ones.
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
    undated = as_of is None and dataset == MACRO and _holds_annual(selection)
    return page.answer(selection, last, as_of=None if undated else page.day, dataset=dataset)


def _issuer(entity_id: str | None) -> str | None:
    """The id of an organisation; None if it is a country's."""
    return entity_id if entity_id and entity_id.startswith("DC") else None


def _holds_annual(selection: Selection) -> bool:
    """Whether the rows have annual macro values: those are never returned under an as_of."""
    return any(b'"available_at":null' in bytes(row_slice) for row_slice in selection.slices)


def _dataset(issuer: str | None, country: str | None, dataset: str | None) -> str:
    """The dataset requested, or the default. Raises InvalidParameter if the entity cannot have it."""
    if country is not None:
        if dataset is None:
            raise InvalidParameter("dataset", f"required with country: {TENDER} or {MACRO}")
        if dataset == FUND:
            raise InvalidParameter("dataset", f"with country, expected {TENDER} or {MACRO}")
        return dataset
    if issuer:
        if dataset == MACRO:
            raise InvalidParameter(
                "dataset", f"with an organisation's entity_id, expected {FUND} or {TENDER}"
            )
        return dataset or FUND
    if dataset not in (None, MACRO):
        raise InvalidParameter("dataset", f"with a country's entity_id, expected {MACRO}")
    return MACRO


_Page = tuple[Selection, RowOrder | SortKey]
"""Some facts, and what tells the sort key of the last of them."""


async def _reported(page: ListPage, service_id: str, measure: str | None, most: int) -> _Page:
    day, line_item = page.day.toordinal(), None if measure is None else measure.lower()
    start = await page.start(
        lambda edition, behind: find_reported(edition, service_id, day, line_item, behind)
    )
    return await reported_facts(page.edition, service_id, day, line_item, most, start)


async def _released(page: ListPage, code: str, measure: str | None, most: int, *, awards: bool) -> _Page:
    if measure is not None and measure.lower() != (AWARD_VALUE if awards else TENDER_VALUE):
        return NO_ROWS, ()
    day, facts_of = page.day.toordinal(), award_facts if awards else tender_facts
    start = await page.start(lambda edition, behind: find_released(edition, code, day, behind))
    selection = await facts_of(page.edition, code, day, most, start)
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
