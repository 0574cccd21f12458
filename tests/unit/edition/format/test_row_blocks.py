"""Blocks answer as a plain filter over the rows would."""

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sankofa.edition.format.row_blocks import ANY_TAG, Entry, entries_of, pack, select, select_where
from sankofa.edition.read.edition import Edition
from sankofa.model.days import FOREVER
from sankofa.model.vintages import Mode
from tests.loop import wait
from tests.memory import MemoryReader

ALL_MODES = int(Mode.LATEST | Mode.AS_REPORTED | Mode.ALL)
MODES = st.sampled_from([int(mode) for mode in Mode] + [ALL_MODES])
TAGS = st.integers(0, 3)
DAYS = st.integers(-1, 42)


@st.composite
def entries(draw: st.DrawFn, most: int = 40) -> list[Entry]:
    spans = draw(
        st.lists(
            st.tuples(
                st.integers(0, 40), st.integers(1, 20) | st.none(), st.integers(0, 7), TAGS, st.integers(0, 9)
            ),
            max_size=most,
        )
    )
    return [
        Entry(
            json.dumps({"n": n, "x": "," * size}).encode(),
            first,
            FOREVER if days is None else first + days,
            modes,
            tag,
        )
        for n, (first, days, modes, tag, size) in enumerate(spans)
    ]


def many(count: int, seed: int) -> list[Entry]:
    """Enough for several blocks, with more changes than are worked out in advance."""
    chance = random.Random(seed)
    rows = []
    for n in range(count):
        first = chance.randrange(300)
        until = chance.choice((FOREVER, first + chance.randrange(1, 60)))
        row = json.dumps({"n": n, "text": "x" * chance.randrange(300)}).encode()
        rows.append(Entry(row, first, until, chance.randrange(8), chance.randrange(4)))
    return rows


def plainly(rows: list[Entry], day: int, modes: int, tag: int) -> list[bytes]:
    return [e.row for e in rows if e.first <= day < e.until and e.modes & modes and tag in (ANY_TAG, e.tag)]


def in_memory(rows: list[Entry]) -> MemoryReader:
    """An edition with one key."""
    reader = MemoryReader()
    reader.shelve("fundamentals", "K", list(pack(rows)))
    return reader


def answer(
    rows: list[Entry],
    day: int,
    modes: int,
    tag: int,
    limit: int | None,
    where: Callable[[bytes], bool] | None = None,
) -> tuple[list[int], bool]:
    """The numbers of the rows served, and whether more matched."""
    edition = Edition("e", in_memory(rows))
    found = wait(edition.select("fundamentals", "K", day=day, modes=modes, tag=tag, limit=limit, where=where))
    assert found is not None
    served = json.loads(b"[" + found.rows + b"]")
    assert len(served) == found.count
    return [row["n"] for row in served], found.truncated


@given(entries(), DAYS, MODES, TAGS | st.just(ANY_TAG), st.integers(1, 45))
def test_a_block_shows_what_a_filter_shows(
    rows: list[Entry], day: int, modes: int, tag: int, room: int
) -> None:
    for block in pack(rows):
        found, count = select(block, day, modes, tag, room)
        expected = plainly(rows, day, modes, tag)[:room]
        assert (b",".join(found), count) == (b",".join(expected), len(expected))


@given(entries(), DAYS, MODES, TAGS | st.just(ANY_TAG), st.integers(1, 45), st.integers(0, 9))
def test_a_block_with_a_further_test_shows_what_a_filter_shows(
    rows: list[Entry], day: int, modes: int, tag: int, room: int, digit: int
) -> None:
    def where(row: bytes) -> bool:
        return str(digit).encode() in row

    for block in pack(rows):
        expected = list(filter(where, plainly(rows, day, modes, tag)))[:room]
        assert select_where(block, day, modes, tag, room, where) == (expected, len(expected))


@given(entries())
def test_what_is_packed_is_read_back_as_it_was(rows: list[Entry]) -> None:
    assert [entry for block in pack(rows) for entry in entries_of(block)] == rows


@given(entries(), DAYS, MODES, TAGS | st.just(ANY_TAG), st.none() | st.integers(1, 45))
def test_a_selection_is_cut_at_its_limit_and_says_so_only_when_more_matched(
    rows: list[Entry], day: int, modes: int, tag: int, limit: int | None
) -> None:
    expected = [json.loads(row)["n"] for row in plainly(rows, day, modes, tag)]
    cut = len(expected) if limit is None else limit
    assert answer(rows, day, modes, tag, limit) == (expected[:cut], len(expected) > cut)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.integers(600, 4000), MODES, TAGS | st.just(ANY_TAG), st.integers(-1, 360))
def test_a_selection_over_many_blocks_is_the_plain_filter(
    seed: int, count: int, modes: int, tag: int, day: int
) -> None:
    rows = many(count, seed)
    assert len(list(pack(rows))) > 1
    expected = [json.loads(row)["n"] for row in plainly(rows, day, modes, tag)]
    size = len(expected)
    for limit in (None, *{max(1, n) for n in (1, 25, size // 2, size - 1, size, size + 1)}):
        cut = size if limit is None else limit
        assert answer(rows, day, modes, tag, limit) == (expected[:cut], size > cut), limit
    odd = [n for n in expected if n % 2]
    assert answer(rows, day, modes, tag, 7, lambda row: json.loads(row)["n"] % 2 == 1) == (
        odd[:7],
        len(odd) > 7,
    )


@pytest.mark.parametrize("day", [-1, 0, 5, 2**31 - 2])
def test_a_key_without_rows_is_there_and_empty(day: int) -> None:
    assert answer([], day, ALL_MODES, ANY_TAG, 25) == ([], False)
    edition = Edition("e", in_memory([]))
    assert wait(edition.select("fundamentals", "other", day=day)) is None


def test_neighbours_that_are_both_seen_are_one_run_of_bytes() -> None:
    rows = [Entry(b'{"n":%d}' % n, first=0 if n != 3 else 10) for n in range(6)]
    (block,) = pack(rows)
    found, count = select(block, 5, int(Mode.LATEST), ANY_TAG, 100)
    assert (found, count) == ([b'{"n":0},{"n":1},{"n":2}', b'{"n":4},{"n":5}'], 5)
