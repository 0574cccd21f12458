"""Every index of an edition shows on a day exactly what the one rule shows."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.format.columns import RowFilter, columns_of, encode_columns, visible_rows
from sankofa.edition.format.issuer_pages import DAYS_PER_MARK, LAST_DAY, VALID_ON
from sankofa.edition.format.macro import DayRange, encode_ranges, pack_series, visible_ranges
from sankofa.edition.format.macro import select as select_series
from sankofa.edition.format.row_blocks import Entry, pack, select, select_where, shows_any
from sankofa.edition.format.visibility import (
    ANY_TAG,
    DayRows,
    admitted,
    blocks_within,
    day_rows,
    first_day_of_blocks,
    visible,
)
from sankofa.edition.write.datasets.metrics import _marks
from sankofa.model.days import FOREVER
from sankofa.model.rows import Row, wire

DAYS = st.integers(0, 40)
MODES = st.integers(1, 7)
TAGS = st.integers(0, 3)


class Numbered(Row, frozen=True, kw_only=True):
    number: int


def row(number: int) -> Numbered:
    return Numbered(source_ref="s", license_class="public-domain", observed_at="", number=number)


@st.composite
def entries(draw: st.DrawFn) -> list[Entry]:
    listed = []
    for number in range(draw(st.integers(1, 30))):
        first = draw(DAYS)
        until = draw(st.one_of(st.integers(first + 1, 42), st.just(FOREVER)))
        listed.append(Entry(wire.encode(row(number)), first, until, draw(MODES), draw(TAGS)))
    return listed


def visible_numbers(listed: list[Entry], day: int, modes: int = 7, tag: int = ANY_TAG) -> list[int]:
    return [
        number
        for number, entry in enumerate(listed)
        if visible(entry.first, entry.until, day) and admitted(entry.modes, entry.tag, modes, tag)
    ]


def numbers(runs: list[bytes | memoryview]) -> list[int]:
    return [one["number"] for one in json.loads(b"[%b]" % b",".join(runs))]


@given(entries(), DAYS, MODES, st.one_of(TAGS, st.just(ANY_TAG)))
def test_blocks_of_rows(listed: list[Entry], day: int, modes: int, tag: int) -> None:
    for rows_per_block in (0, 4):
        selected: list[int] = []
        tested: list[int] = []
        for block in pack(listed, rows_per_block):
            selected += numbers(select(block, day, modes, tag, 100)[0])
            if not shows_any(block[0], day, modes):
                assert select((block[0], b""), day, modes, tag, 100) == ([], 0), "its rows are not needed"
            tested += numbers(select_where(block, day, modes, tag, 100, lambda _: True)[0])
        assert selected == tested == visible_numbers(listed, day, modes, tag)


@given(entries(), DAYS)
def test_blocks_of_series(listed: list[Entry], day: int) -> None:
    for block in pack_series(sorted(listed, key=lambda entry: -entry.tag)):
        runs, count, more = select_series(block, DayRange(day), 100)
        assert sorted(numbers(runs)) == visible_numbers(listed, day)
        assert (count, more) == (len(visible_numbers(listed, day)), False)


@given(entries(), DAYS, MODES, st.one_of(TAGS, st.just(ANY_TAG)))
def test_columns_for_arrow(listed: list[Entry], day: int, modes: int, tag: int) -> None:
    expected = visible_numbers(listed, day, modes, tag)
    stored = list(encode_columns(Numbered, [row(n) for n in range(len(listed))], listed, {}))
    row_filter = RowFilter("kind", "key", day, modes, tag)
    table = visible_rows(stored, columns_of(Numbered), row_filter, len(expected))
    assert table is not None
    assert table.column("number").to_pylist() == expected


@given(entries(), DAYS)
def test_the_order_of_facts(listed: list[Entry], day: int) -> None:
    block = encode_ranges(
        zip(*((one.first, one.until, n, n, n) for n, one in enumerate(listed)), strict=True)
    )
    assert visible_ranges(block, day) == [(n, n, n) for n in visible_numbers(listed, day)]


@given(st.integers(0, LAST_DAY), st.integers(0, LAST_DAY + 1))
def test_the_marks_of_a_screen(first: int, until: int) -> None:
    marks = _marks(first, until)
    valid = [bool(VALID_ON[day % DAYS_PER_MARK][marks[day // DAYS_PER_MARK]]) for day in range(LAST_DAY)]
    assert valid == [visible(first, until, day) for day in range(LAST_DAY)]


NEWEST_FIRST = st.lists(st.integers(1, 20), min_size=1, max_size=40).map(lambda days: sorted(days)[::-1])


@given(NEWEST_FIRST, st.integers(1, 21))
def test_the_rows_of_a_day_are_found_by_their_number(days: list[int], day: int) -> None:
    older = [number for number, one in enumerate(days) if one <= day]
    assert DayRows(day_rows(days, ended=False)).first_row(day) == (older[0] if older else None)
    index = DayRows(memoryview(day_rows(days, ended=True).tobytes()).cast("i"))
    assert index.count == len(days)
    assert index.days() == sorted(set(days))[::-1]
    assert index.first_row(day) == (older[0] if older else len(days))
    first, end = index.rows_of(day)
    assert days[first:end] == [one for one in days if one == day]


@given(NEWEST_FIRST, st.integers(0, 21), st.integers(0, 21))
def test_no_block_with_a_matching_row_is_skipped(days: list[int], since: int, until: int):
    first, end = blocks_within(first_day_of_blocks(days, 4), since, until)
    matching = [number // 4 for number, day in enumerate(days) if since <= day <= until]
    assert all(first <= block < end for block in matching)
