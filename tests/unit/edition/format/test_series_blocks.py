"""Blocks of a column, and the lists that lead to columns, against the plainest reading of the rules."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from sankofa.edition.format.macro import (
    ROWS_IN_A_BLOCK,
    DayRange,
    block_days,
    list_pages,
    pack_pages,
    pack_series,
    summary_of,
)
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import visible
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.macro import read_one_series, read_series
from sankofa.model.days import FOREVER
from tests.loop import wait
from tests.memory import MemoryReader
from tests.torture import rounds

DAYS = st.integers(1, 12)


def shelve(columns: dict[str, list[Entry]]) -> MemoryReader:
    shelf = MemoryReader()
    for key, entries in columns.items():
        shelf.shelve("kind", key, list(pack_series(entries)))
        if days := block_days(entries):
            shelf.shelve("kind-days", key, [(b"", days)])
    listed = [summary_of(key, entries) for key, entries in columns.items()]
    for key, pages in list_pages(listed, lambda one: ("", one.key[:1])):
        shelf.shelve("kind-list", key, list(pack_pages(pages)))
    return shelf


def expected(entries: list[Entry], span: DayRange) -> list[bytes]:
    return [
        e.row
        for e in entries
        if visible(e.first, e.until, span.known_on) and span.since <= e.tag <= span.until
    ]


@st.composite
def entry_lists(draw: st.DrawFn) -> list[Entry]:
    """Newest first; some days with several entries, seen one after the other."""
    entries: list[Entry] = []
    for day in range(draw(st.integers(1, 12)), 0, -1):
        first = draw(DAYS)
        for until in (*sorted(draw(st.sets(st.integers(first + 1, 14), max_size=2))), FOREVER):
            entries.append(Entry(b"%d" % len(entries), first, until, tag=day))
            first = until
    copies = draw(st.sampled_from((1, 1, 40)))  # so that a column has several blocks
    return [entry for entry in entries for _ in range(copies)]


@settings(max_examples=rounds(25, 75, 150), deadline=None)
@given(
    st.dictionaries(st.sampled_from(("A1", "A2", "B1", "B2")), entry_lists(), min_size=1),
    st.tuples(DAYS, DAYS, DAYS),
    st.integers(1, 200),
    st.sampled_from(("", "A", "B", "C")),
)
def test_an_answer_is_the_first_rows_seen_in_the_span_and_says_whether_there_are_more(
    columns: dict[str, list[Entry]], span: tuple[int, int, int], limit: int, listed: str
) -> None:
    asked = DayRange(*span)
    every = [row for key in columns if key.startswith(listed) for row in expected(columns[key], asked)]
    edition = Edition("e", shelve(columns))
    found = wait(read_series(edition, "kind", listed, asked, limit))
    assert found.rows == b",".join(every[:limit])
    assert (found.count, found.truncated) == (len(every[:limit]), len(every) > limit)
    for key in columns:
        one = wait(read_one_series(edition, "kind", key, asked, limit))
        assert one is not None
        whole = expected(columns[key], asked)
        assert (one.rows, one.truncated) == (b",".join(whole[:limit]), len(whole) > limit)


def test_a_few_rows_of_a_long_column_cost_a_page_and_a_block_or_two_wherever_they_are() -> None:
    entries = [Entry(b"%d" % day, day, tag=day) for day in range(100_000, 0, -1)]
    shelf = shelve({"A": entries, "B": entries, **{f"C{n}": entries[-3:] for n in range(500)}})
    edition = Edition("e", shelf)
    for span in (
        DayRange(FOREVER),
        DayRange(FOREVER, 0, 40_000),
        DayRange(50_000, 39_900, 40_000),
        DayRange(7, 0, 7),
    ):
        shelf.asked = 0
        found = wait(read_series(edition, "kind", "A", span, 50))
        newest = min(span.until, span.known_on, 100_000)
        assert json.loads(b"[" + found.rows + b"]") == list(range(newest, max(newest - 50, 0), -1))
        assert len(found.slices) <= 2
        assert shelf.asked <= 4
    shelf.asked = 0
    none = wait(read_series(edition, "kind", "", DayRange(FOREVER, 200_000), 50))
    assert none.count == 0
    assert shelf.asked == shelf.count("kind-list", ""), "columns that cannot match are passed over unread"


def test_there_is_no_column_under_another_key() -> None:
    edition = Edition("e", shelve({"A": [Entry(b"1", tag=1)]}))
    assert wait(read_one_series(edition, "kind", "B", DayRange(5), 5)) is None
    for span in (DayRange(5), DayRange(0), DayRange(5, 3), DayRange(5, 0, 0)):
        assert wait(read_one_series(edition, "kind", "A", span, 5)) is not None


def test_the_last_rows_of_a_column_fill_a_block_exactly() -> None:
    entries = [Entry(b"1", tag=1)] * (2 * ROWS_IN_A_BLOCK)
    edition = Edition("e", shelve({"A": entries}))
    for limit in (1, ROWS_IN_A_BLOCK, 2 * ROWS_IN_A_BLOCK, 2 * ROWS_IN_A_BLOCK + 1):
        found = wait(read_series(edition, "kind", "A", DayRange(5), limit))
        assert (found.count, found.truncated) == (min(limit, len(entries)), limit < len(entries))
