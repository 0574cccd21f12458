"""Series as dialects need them: the catalogue row of a key, and every value it had with the days it stood."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import msgspec

from sankofa.dialects.contract import DialectQuestion
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.revisions import columns_of_series, every_vintage
from sankofa.edition.read.series_catalogue import entry_behind, entry_count, entry_on
from sankofa.model.catalogue_rows import SeriesCatalogueRow
from sankofa.model.errors import InvalidParameter
from sankofa.operations.locked import locked

_row = msgspec.json.Decoder(SeriesCatalogueRow).decode


class ValueStep(NamedTuple):
    """A value from a day on, until the next one; None where it was withdrawn."""

    day: int
    value: Decimal | None


History = dict[date, list[ValueStep]]
"""By the date of the value, oldest first."""


def edition_on(question: DialectQuestion, day: date) -> Edition:
    """The edition as it was known on a day, which is not later than that of the view."""
    edition = question.call.edition
    whole = edition.whole if isinstance(edition, DayView) else edition
    lock = question.call.lock
    return edition if day >= question.call.today else locked(whole, day if lock is None else min(day, lock))


async def series_row(edition: Edition, key: str) -> SeriesCatalogueRow | None:
    """The catalogue row of a series; None where there is no such series, or it was not known yet."""
    number = await entry_behind(edition, (key, 1, "", ""))
    if number >= entry_count(edition):
        return None
    stored = await entry_on(edition, number)
    row = None if stored is None else _row(stored)
    return row if row is not None and row.series == key and row.vintages else None


async def history(edition: Edition, key: str, day: date) -> History:
    """Every value that a series had by a day, and the days from which on it stood.

    Raises InvalidParameter where several countries share the key.
    """
    vintages: defaultdict[date, list[tuple[int, int, Decimal | None]]] = defaultdict(list)
    columns = await columns_of_series(edition, key)
    if len(columns) > 1:
        raise InvalidParameter("series_id", f"{len(columns)} series have this key: ask /v1/macro for them")
    for column in columns:
        async for one in every_vintage(edition, column, day):
            known = max(one.available_at, one.date).toordinal()
            vintages[one.date].append((known, one.vintage, one.value))
    return {at: steps_of(vintages[at]) for at in sorted(vintages)}


def steps_of(vintages: Iterable[tuple[int, int, Decimal | None]]) -> list[ValueStep]:
    """The steps of one value; of two vintages that became known on one day the later stands."""
    steps: list[ValueStep] = []
    for known, _, value in sorted(vintages, key=lambda one: one[:2]):
        if steps and steps[-1].day == known:
            steps.pop()
        steps.append(ValueStep(known, value))
    return steps


def on_days(steps: list[ValueStep], days: Iterable[int]) -> list[Decimal | None]:
    """The values that stood on some days, given in order."""
    values: list[Decimal | None] = []
    value, following = None, 0
    for day in days:
        while following < len(steps) and steps[following].day <= day:
            value = steps[following].value
            following += 1
        values.append(value)
    return values
