"""Write `model/sessions.toml`: the sessions of stock exchanges, from exchange-calendars and holidays.

    python -m tools.sessions

The service computes with this table instead of the two libraries: they would bring pandas to every start.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import exchange_calendars  # type: ignore[import-untyped]
import holidays

PATH = Path(__file__).parents[1] / "src/sankofa/model/sessions.toml"
FIRST, LAST = date(1990, 1, 1), date(2028, 12, 31)
_EXCLUDED = (
    *("24/5", "24/7", "us_futures", "CMES", "IEPA", "XCBF"),  # no stock exchanges
    *("ASEX", "XBEL", "XBSE", "XCYS", "XTAE"),  # exchange-calendars 4.13 cannot compute them with pandas 3
)
_NARROWER = (FIRST, *(date(year, 1, 1) for year in (1991, 1997, 2000, 2006, 2012, 2017, 2021)))
"""First days to try: some calendars begin later."""
_ALIKE = {"XNYS": ("XNAS", "XASE", "ARCX", "OOTC"), "XTSE": ("XTSX",), "XBOM": ("XNSE",)}
"""Markets that keep the sessions of another. Both Indian exchanges observe the same list of holidays."""


class Market(NamedTuple):
    """A market whose sessions are its weekdays without the public holidays of its country."""

    country: str
    zone: str
    opens: str
    weekdays: tuple[int, ...]
    source: str


_WEEK, _FROM_SUNDAY = (0, 1, 2, 3, 4), (0, 1, 2, 3, 6)
MARKETS = {
    "XCAI": Market(
        "EG", "Africa/Cairo", "10:00", _FROM_SUNDAY,
        "Egyptian Exchange: Sunday to Thursday from 10:00, closed on official holidays (www.egx.com.eg)",
    ),
    "XNAI": Market(
        "KE", "Africa/Nairobi", "09:30", _WEEK,
        "Nairobi Securities Exchange: Monday to Friday from 9:30 (www.nse.co.ke); Public Holidays Act (110)",
    ),
    "XNSA": Market(
        "NG", "Africa/Lagos", "09:30", _WEEK,
        "NGX: Monday to Friday from 9:30 (ngxgroup.com); Public Holidays Act, Cap. P40 LFN 2004, as declared",
    ),
}  # fmt: skip


def table() -> str:
    lines = [
        "# Sessions of stock exchanges by market identifier code. Written by tools/sessions.py: do not edit.",
        "# `open` has the local time of opening from each day on. `closed` and `extra` have the days when",
        "# a usual weekday (0 is Monday) had no session, and another day had one: YEAR MMDD MMDD; YEAR ...",
        "# `unsure` has estimated holidays, which follow the moon, and the day before and after each.",
    ]
    for mic in sorted({*exchange_calendars.get_calendar_names(include_aliases=False), *MARKETS}):
        if mic not in _EXCLUDED:
            lines += ["", f"[{mic}]", *(_market(mic) if mic in MARKETS else _calendar(mic))]
    return "\n".join(lines) + "\n"


def _calendar(mic: str) -> Iterator[str]:
    calendar = _opened(mic)
    sessions = {one.date() for one in calendar.sessions}
    usual = Counter(one.weekday() for one in sessions)
    weekdays = tuple(sorted(day for day, times in usual.items() if times * 20 > len(sessions)))
    opens = zip(calendar.sessions, calendar.opens.dt.tz_convert(calendar.tz), strict=True)
    changes = [
        (next(same)[0].date(), clock) for clock, same in groupby(opens, key=lambda pair: f"{pair[1]:%H:%M}")
    ]
    source = f"exchange-calendars {version('exchange-calendars')}"
    first, last = (one.date() for one in (calendar.first_session, calendar.last_session))
    yield from _lines(source, str(calendar.tz), changes, weekdays, sessions, first, last)
    if mic in _ALIKE:
        yield f"also = {list(_ALIKE[mic])}".replace("'", '"')


def _opened(mic: str) -> exchange_calendars.ExchangeCalendar:
    failure: Exception | None = None
    for last in (LAST, date(2026, 12, 31)):
        for first in _NARROWER:
            try:
                return exchange_calendars.get_calendar(mic, start=str(first), end=str(last))
            except (ValueError, NotImplementedError) as refused:
                failure = refused
    raise SystemExit(f"{mic}: {failure}")


def _market(mic: str) -> Iterator[str]:
    market = MARKETS[mic]
    with warnings.catch_warnings(action="ignore"):
        closed = holidays.country_holidays(
            market.country, years=range(FIRST.year, LAST.year + 1), language="en_US"
        )
    days = [FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1)]
    sessions = {day for day in days if day.weekday() in market.weekdays and day not in closed}
    source = f"{market.source}; holidays by the package holidays {version('holidays')}"
    opens = [(FIRST, market.opens)]
    yield from _lines(source, market.zone, opens, market.weekdays, sessions, FIRST, LAST)
    estimated = [day for day, name in closed.items() if "estimated" in name]
    unsure = {day + timedelta(days) for day in estimated for days in (-1, 0, 1)}
    yield f'unsure = "{_years(day for day in days if day in unsure)}"'


def _lines(
    source: str,
    zone: str,
    opens: list[tuple[date, str]],
    weekdays: tuple[int, ...],
    sessions: set[date],
    first: date,
    last: date,
) -> Iterator[str]:
    days = [first + timedelta(number) for number in range((last - first).days + 1)]
    yield f'source = "{source}"'
    yield f'zone = "{zone}"'
    yield f"first = {first}"
    yield f"last = {last}"
    yield f"weekdays = {list(weekdays)}"
    yield "open = [" + ", ".join(f'["{day}", "{clock}"]' for day, clock in opens) + "]"
    yield f'closed = "{_years(d for d in days if d.weekday() in weekdays and d not in sessions)}"'
    yield f'extra = "{_years(d for d in days if d.weekday() not in weekdays and d in sessions)}"'


def _years(days: Iterable[date]) -> str:
    by_year = groupby(days, key=lambda day: day.year)
    return "; ".join(f"{year} " + " ".join(f"{day:%m%d}" for day in same) for year, same in by_year)


if __name__ == "__main__":
    PATH.write_text(table(), "utf-8")
