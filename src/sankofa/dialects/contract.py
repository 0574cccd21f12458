"""The interface of a dialect: its question and its reply. Each module of this package with a `DIALECT` is
a dialect. `app.py` authenticates and counts the request and chooses the edition, then calls `answer`. A
dialect calls operations and writes their rows in its own format."""

import asyncio
import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

import sankofa.dialects
from sankofa.access.tiers import Grant
from sankofa.edition.format.keys import ENTRIES_PER_BLOCK, SERIES_ENTRIES, SERIES_KNOWN
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.series_catalogue import entry_behind, entry_count, entry_on
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.days import parse_day
from sankofa.model.errors import InvalidParameter, Problem
from sankofa.model.observations import TABLED
from sankofa.operations.contract import Answer, Call
from sankofa.operations.locked import ask, decode_answer
from sankofa.operations.service import Service

Row = dict[str, Any]
T = TypeVar("T")
_EVERY_ROW: Final = 1 << 31

JSON: Final = "application/json; charset=utf-8"


class DialectReply(NamedTuple):
    body: bytes
    content_type: str = JSON
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cached: bool = True
    """Whether the answer stays the same until the next edition or the next day."""


class DialectRequest(msgspec.Struct, frozen=True, gc=False):
    """A request as a dialect sees it; also used to write errors."""

    method: str
    root: str
    """The root of the path, e.g. `/fred`."""
    path: str
    """The path after the root, without its first slash, decoded."""
    query: tuple[tuple[str, str], ...]
    """The query parameters in order, without the key."""
    accept: str = "*/*"
    body: bytes = b""
    values: Mapping[str, list[str]] = {}
    """The query parameters by name."""

    def given(self, name: str, otherwise: str = "") -> str:
        """The value of a parameter, or `otherwise` if missing. Raises InvalidParameter if repeated."""
        values = self.values.get(name)
        if values is not None and len(values) > 1:
            raise InvalidParameter(name, "given more than once")
        return values[0] if values else otherwise

    def chosen(self, name: str, words: Iterable[str], otherwise: str) -> str:
        """One of these words. Raises InvalidParameter."""
        if not (text := self.given(name)):
            return otherwise
        if text not in words:
            raise InvalidParameter(name, f"expected one of {', '.join(words)}")
        return text

    def number(self, name: str, otherwise: int, least: int, most: int) -> int:
        """A whole number within bounds. Raises InvalidParameter."""
        if not (text := self.given(name)):
            return otherwise
        if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
            raise InvalidParameter(name, f"expected a whole number from {least} to {most}")
        return int(text)

    def day(self, name: str) -> date | None:
        """A day; None if the parameter is missing. Raises InvalidParameter."""
        text = self.given(name)
        return self.read_day(name, text) if text else None

    @staticmethod
    def read_day(name: str, text: str) -> date:
        try:
            return parse_day(text.strip())
        except ValueError as failure:
            raise InvalidParameter(name, str(failure)) from None


class DialectQuestion(NamedTuple):
    """An authenticated, counted request."""

    request: DialectRequest
    call: Call
    """The edition, the grant and the day. Open dialects get a sample-tier call without a key."""
    service: Service

    async def answer(self, name: str, **parameters: Any) -> Answer:
        """The answer of an operation to parameters as text, without empty ones. A paid key gets all rows at
        once. Raises the problem that REST would answer with."""
        texts = {label.rstrip("_"): text for label, text in parameters.items() if text}
        call = self.call
        if not call.grant.sample:
            call = msgspec.structs.replace(call, grant=_every_row(call.grant))
        return await ask(call, name, texts)

    async def rows(self, name: str, **parameters: Any) -> list[Row]:
        """The rows of an operation with every digit. Raises UpgradeRequired instead of cutting them."""
        return await self.read(decode_answer, name, **parameters)

    async def read(self, decode: Callable[[bytes], list[T]], name: str, **parameters: Any) -> list[T]:
        """Like `rows`, decoded by `decode`: fastest with a type of only the needed fields."""
        answer = await self.answer(name, **parameters)
        if answer.selection.truncated:
            self.refuse_cut(self.call.grant.row_cap + 1)
        rows: list[T] = []
        for chunk in answer.selection.lists():
            if rows:
                await asyncio.sleep(0)  # let other requests run
            rows += decode(chunk)
        return rows

    def refuse_cut(self, row_count: int, what: str = "This answer") -> None:
        """Raises UpgradeRequired if the sample tier would get fewer rows: these clients cannot tell that
        an answer was cut."""
        grant = self.call.grant
        if grant.sample and row_count > grant.row_cap:
            grant.requires_paid(f"{what} has more than the {grant.row_cap} rows of the sample tier: it")


@lru_cache(maxsize=64)
def _every_row(grant: Grant) -> Grant:
    return dataclasses.replace(grant, row_cap=_EVERY_ROW, default_rows=_EVERY_ROW)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect, declared as `DIALECT` in a module of this package."""

    name: str
    """Its name in `sankofa keys link --dialect`."""
    roots: tuple[str, ...]
    """Its paths begin with one of these and a slash; roots that end in a dot need no slash."""
    answer: Callable[[DialectQuestion], Awaitable[DialectReply]]
    refuse: Callable[[Problem, DialectRequest], DialectReply]
    """An error in the dialect's format. The status may differ from the problem's."""
    open: bool = False
    """Whether it needs no key."""
    key_parameter: str = ""
    """The query parameter for keys; it accepts only link keys."""
    methods: tuple[str, ...] = ("GET", "HEAD")
    operation: str = field(init=False)
    """The name that its requests are logged and counted under."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "operation", f"dialect:{self.name}")


@cache
def dialects() -> tuple[Dialect, ...]:
    modules = (m.name for m in pkgutil.iter_modules(sankofa.dialects.__path__))
    loaded = (importlib.import_module(f"sankofa.dialects.{name}") for name in modules)
    declared = (getattr(module, "DIALECT", None) for module in loaded)
    return tuple(sorted((one for one in declared if one is not None), key=lambda one: one.name))


def root_of(path: str) -> str:
    """The dialect root of a path; empty for other paths."""
    match = _roots().match(path)
    return match[0] if match else ""


@cache
def _roots() -> re.Pattern[str]:
    roots = (root for dialect in dialects() for root in dialect.roots)
    return re.compile("|".join(re.escape(one) + ("" if one.endswith(".") else r"(?=/|\Z)") for one in roots))


_TABLED_INDICATOR: Final = re.compile(rb'"series":"WDI:([A-Z0-9._-]+):')
"""The indicator in a catalogue row, such as `"series":"WDI:NY.GDP.MKTP.CD:GHA"`."""
_BEHIND_TABLED: Final = "WDI;"
"""Sorts after every key that begins with `WDI:`."""


class ListedSeries(msgspec.Struct, frozen=True):
    """The fields of a `/v1/series` row that are served."""

    series: str
    name: str | None
    unit: str | None
    note: str | None
    frequency: str
    country: str | None
    first_date: date
    last_date: date
    vintages: int
    source_id: str


read_series_rows = msgspec.json.Decoder(list[ListedSeries]).decode
_read_row = msgspec.json.Decoder(ListedSeries).decode


async def series_row(edition: Edition, key: str) -> ListedSeries | None:
    """The catalogue row of a series; None if there is no such series, or it was not known yet."""
    cached_rows = edition.cache("series rows", 1024)
    if (known := cached_rows.get(key)) is not None:
        return cast("ListedSeries", known)
    number = await entry_behind(edition, (key, 1, "", ""))
    rows = await rows_numbered(edition, [number] if number < entry_count(edition) else [])
    if not rows or rows[0].series != key or not rows[0].vintages:
        return None
    cached_rows.put(key, rows[0])
    return rows[0]


async def rows_numbered(edition: Edition, numbers: Iterable[int]) -> list[ListedSeries]:
    """The rows of catalogue entries; in a locked view as of its day, without entries not known yet."""
    rows, yield_points = [], YieldPoints(16)
    for number in numbers:
        if (stored := await entry_on(edition, number)) is not None:
            rows.append(_read_row(stored))
        await yield_points.step()
    return rows


async def stored_row(edition: Edition, number: int) -> ListedSeries:
    """Today's row of a catalogue entry, whatever the day of the view."""
    (stored,) = await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, number, number + 1)
    return _read_row(stored)


async def tabled_numbers(edition: Edition) -> Mapping[str, list[int]]:
    """By indicator, the catalogue numbers of its `WDI:` series; in a locked view only those known then."""
    whole = edition.whole if isinstance(edition, DayView) else edition
    cached = whole.cache("tabled indicators", 1)
    numbers: dict[str, list[int]] | None = cached.get("")
    if numbers is None:
        numbers = {}
        begin, end = [await entry_behind(whole, (key, 1, "", "")) for key in (TABLED, _BEHIND_TABLED)]
        number = begin
        yield_points = YieldPoints(1)
        for first in range(begin, end, 1024):
            rows = await whole.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, first, min(first + 1024, end))
            for indicator in _TABLED_INDICATOR.findall(b",".join(rows)):
                numbers.setdefault(indicator.decode(), []).append(number)
                number += 1
            await yield_points.step()
        cached.put("", numbers)
    if not isinstance(edition, DayView):
        return numbers
    days = await edition.numbers(SERIES_KNOWN, "", keep=True)
    known = {one: [n for n in own if days[n] <= edition.day] for one, own in numbers.items()}
    return {one: own for one, own in known.items() if own}
