"""Screens off sheets: order, ties, countries, years, counts."""

import random
from array import array
from datetime import date
from decimal import Decimal
from itertools import chain

import msgspec
import pytest

from sankofa.derive.metrics.contract import metrics, slugs
from sankofa.derive.metrics.derive import Stretch, Value
from sankofa.edition.format.screen_index import AS_OF, SCREEN, SCREEN_RANGES
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.issuers import Ranking, screen
from sankofa.edition.write.datasets.metrics import ScreenIndex
from sankofa.edition.write.metric_rows import Standings
from sankofa.edition.write.partition_summaries import SegmentBuilder
from sankofa.ledger.spells import Placed
from sankofa.model.days import FOREVER
from sankofa.model.rows import State
from tests.loop import wait
from tests.memory import MemoryReader

METRIC = metrics()[3]


class Screening:
    """Issuers in two segments, each of whose rows is a block."""

    def __init__(self) -> None:
        self._segments = SegmentBuilder(), SegmentBuilder()
        self._first_blocks: dict[str, int] = {}
        self._next = 1

    def add(self, country: str | None, own: Standings, rows: list[bytes]) -> None:
        service_id = f"DC{len(self._first_blocks):04d}"
        segment = self._segments[len(self._first_blocks) > 1]
        self._first_blocks[service_id] = self._next
        self._next += len(rows)
        segment.add(service_id, [Placed("", country or "", ())], own, [[len(row)] for row in rows])

    def index(self) -> ScreenIndex:
        index = ScreenIndex()
        for segment in self._segments:
            index.add(segment.segment(), self._first_blocks)
        return index


def in_memory(rows: list[bytes], screening: Screening) -> MemoryReader:
    """Pages and rows: each row is a block."""
    index = screening.index()
    reader = MemoryReader({"screen_years": index.years})
    for number, row in enumerate(rows, 1):
        reader.shelve("metrics", str(number), [(b"", row)])
    for metric, keys in index.metrics():
        for kind, ranges in ((SCREEN, False), (SCREEN_RANGES, True)):
            made = index.pages(metric, ranges=ranges)
            assert sorted(made) == keys
            for key, page in made.items():
                reader.shelve(kind, key, [(b"", page)])
    return reader


def listed(values: list[Value], histories: list[list[Stretch]]) -> Standings:
    """What the sheets need to know of an issuer."""
    states = [(n, s.first, s.state) for n, history in enumerate(histories) for s in history]
    shown = array("i", chain.from_iterable(states)).tobytes()
    return Standings(
        firsts=array("i", [value.first for value in values]).tobytes(),
        untils=array("i", [value.until for value in values]).tobytes(),
        sizes=array("d", [float(value.value) for value in values]).tobytes(),
        metrics=bytes([slugs().index(value.metric.slug) for value in values]),
        ends=array("i", [value.end for value in values]).tobytes(),
        current=bytes([value.current for value in values]),
        shown=shown,
        known=shown,
    )


@pytest.mark.rule("SCR-1")
def test_a_screen_is_what_sorting_everything_would_give() -> None:
    chance = random.Random(3)
    screening = Screening()
    rows: list[bytes] = []
    told: list[tuple[str, str | None, Decimal, int, int]] = []
    issuers = [(f"DC{n:04d}", chance.choice(("ZA", "NG", None))) for n in range(120)]
    silent: dict[str, int] = {}
    for issuer, country in issuers:
        day = chance.randrange(date(2001, 1, 1).toordinal(), date(2003, 12, 31).toordinal())
        silent[issuer] = day
        values = []
        stretches = [Stretch(0, day, State.NOT_PUBLISHED)]
        for _ in range(chance.randrange(1, 6)):
            value = Decimal(chance.randrange(-3, 4)) / 2
            until = day + chance.randrange(1, 700)
            last = chance.random() < 0.2
            values.append(Value(METRIC, value, day, day, FOREVER if last else until, ()))
            stretches.append(Stretch(day, FOREVER if last else until, State.STANDS))
            told.append((issuer, country, value, day, FOREVER if last else until))
            rows.append(b'{%b,"id":"%b","value":%b}' % (AS_OF, issuer.encode(), str(value).encode()))
            if last:
                break
            day = until
        else:
            stretches.append(Stretch(day, FOREVER, State.INPUT_ABSENT))
        histories: list[list[Stretch]] = [[] for _ in slugs()]
        histories[slugs().index(METRIC.slug)] = stretches
        screening.add(country, listed(values, histories), rows[-len(values) :])
    edition = Edition("e", in_memory(rows, screening))
    for _ in range(200):
        asked_day = date.fromordinal(
            chance.randrange(date(1999, 1, 1).toordinal(), date(2015, 1, 1).toordinal())
        )
        day = asked_day.toordinal()
        country = chance.choice((None, "ZA", "NG"))
        upwards = chance.random() < 0.5
        most = chance.choice((1, 5, 50, 500))
        found = wait(screen(edition, Ranking(METRIC.slug, country, asked_day, upwards), most=most))
        standing = sorted(
            ((v if upwards else -v, i) for i, c, v, a, b in told if a <= day < b and country in (None, c))
        )
        served = msgspec.json.decode(b"[%b]" % found.selection.rows)
        assert [(r["rank"], r["id"], r["as_of"]) for r in served] == [
            (n, i, str(asked_day)) for n, (_, i) in enumerate(standing[:most], 1)
        ]
        assert found.selection.truncated == (len(standing) > most)
        asked = [i for i, c in issuers if country in (None, c)]
        assert len(standing) + sum(found.omitted.values()) == len(asked)
        assert found.omitted["not_published"] == sum(silent[i] > day for i in asked)


def test_what_stands_at_the_end_of_the_last_year_stands_on() -> None:
    screening = Screening()
    rows = [b'{%b,"id":"%b"}' % (AS_OF, issuer) for issuer in (b"DC1", b"DC2")]
    for row, first in zip(rows, (date(2003, 6, 15), date(2001, 2, 1)), strict=True):
        day = first.toordinal()
        histories: list[list[Stretch]] = [[] for _ in slugs()]
        histories[slugs().index(METRIC.slug)] = [
            Stretch(0, day, State.NOT_PUBLISHED),
            Stretch(day, FOREVER, State.STANDS),
        ]
        value = Value(METRIC, Decimal(1), day, day, FOREVER, ())
        screening.add(None, listed([value], histories), [row])
    edition = Edition("e", in_memory(rows, screening))
    for day_asked, expected in (
        ("1999-12-31", []), ("2001-01-31", []), ("2001-02-01", ["DC2"]), ("2003-06-14", ["DC2"]),
        ("2003-06-15", ["DC1", "DC2"]), ("2003-12-31", ["DC1", "DC2"]), ("2004-01-01", ["DC1", "DC2"]),
        ("2026-05-31", ["DC1", "DC2"]),
    ):  # fmt: skip
        for upwards in (False, True):
            asked = screen(
                edition, Ranking(METRIC.slug, None, date.fromisoformat(day_asked), upwards), most=9
            )
            served = msgspec.json.decode(b"[%b]" % wait(asked).selection.rows)
            assert [row["id"] for row in served] == expected, day_asked


def test_every_day_of_a_leap_year_shows_what_stands_on_it() -> None:
    start = date(2004, 1, 1).toordinal()
    borders = (-400, -1, 0, 1, 15, 16, 17, 31, 32, 359, 360, 365, 366, 367, 800)
    stretches = [(start + a, start + b) for a in borders for b in borders if a < b]
    screening = Screening()
    rows = [b'{%b,"id":%d}' % (AS_OF, number) for number in range(len(stretches))]
    for number, (first, until) in enumerate(stretches):
        histories: list[list[Stretch]] = [[] for _ in slugs()]
        histories[slugs().index(METRIC.slug)] = [
            Stretch(0, first, State.NOT_PUBLISHED),
            Stretch(first, until, State.STANDS),
            Stretch(until, FOREVER, State.INPUT_ABSENT),
        ]
        value = Value(METRIC, Decimal(-number), first, first, until, ())
        screening.add(None, listed([value], histories), [rows[number]])
    edition = Edition("e", in_memory(rows, screening))
    for day in range(start - 2, start + 369):
        asked = screen(edition, Ranking(METRIC.slug, None, date.fromordinal(day)), most=len(stretches))
        served = msgspec.json.decode(b"[%b]" % wait(asked).selection.rows)
        standing = [number for number, (first, until) in enumerate(stretches) if first <= day < until]
        assert [row["id"] for row in served] == standing, date.fromordinal(day)


def test_without_any_full_year_a_screen_is_empty() -> None:
    edition = Edition("e", in_memory([], Screening()))
    found = wait(screen(edition, Ranking("net_margin", None, date(2024, 1, 1)), most=9))
    assert (found.selection.count, set(found.omitted.values())) == (0, {0})
