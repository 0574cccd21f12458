"""No request holds the loop (contract: PAR-10). What is long gives way after a bounded number of steps.

Nothing here is timed: each step of the work notes which turn of the loop it ran in, or which thread.
"""

import asyncio
import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.format.macro import DayRange, SeriesSummary, pack_pages
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.format.search_records import ORGANISATIONS, SearchRecord
from sankofa.edition.read import changes, facts, macro, search, tender_filters
from sankofa.edition.read import edition as reading
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.tender_filters import TenderFilter, hits
from sankofa.edition.read.yield_points import CALL_BYTES, LARGE, YieldPoints, in_thread_if_large
from sankofa.mcp import exchange
from sankofa.model.days import FOREVER
from sankofa.operations import answers
from sankofa.operations.fundamentals import has_line_item
from tests.memory import MemoryReader

MAIN = threading.main_thread()


def steps_in_a_turn(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, work: Callable[[], Coroutine[Any, Any, Any]]
) -> tuple[int, int]:
    """How often a function is called by some work, at most in one turn of the loop and in all."""
    turn = 0
    calls: Counter[int] = Counter()
    function = getattr(owner, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        calls[turn] += 1
        return function(*arguments, **named)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def both() -> None:
        waiting = asyncio.create_task(others())
        await asyncio.sleep(0)
        await work()
        waiting.cancel()

    monkeypatch.setattr(owner, name, noted)
    asyncio.run(both())
    return max(calls.values()), calls.total()


def _row(number: int) -> bytes:
    return b'{"line_item":"item_%d","vintage":1,"n":%d}' % (number % 300, number)


def _crowded(rows: int, in_a_block: int = 16) -> Edition:
    reader = MemoryReader()
    entries = [Entry(_row(n), modes=7) for n in range(rows)]
    reader.shelve("kind", "A", list(pack(entries, in_a_block)))
    return Edition("e", reader)


@pytest.mark.rule("PAR-10")
@pytest.mark.parametrize("limit", [None, 100_000])
def test_rows_of_many_blocks_are_selected_in_turns(
    monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    edition = _crowded(4_096)
    most, total = steps_in_a_turn(
        monkeypatch, reading, "select", lambda: edition.select("kind", "A", day=1, modes=7, limit=limit)
    )
    assert total == 256
    assert most <= reading._BLOCKS_PER_YIELD


def test_rows_that_are_looked_at_one_by_one_are_selected_in_shorter_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edition = _crowded(4_096)
    most, total = steps_in_a_turn(
        monkeypatch,
        reading,
        "select_where",
        lambda: edition.select("kind", "A", day=1, modes=7, where=has_line_item(("item_5",))),
    )
    assert total >= 256
    assert most <= reading._FILTERED_BLOCKS_PER_YIELD


@given(st.lists(st.integers(0, 310).map(lambda n: f"item_{n}"), max_size=100))
def test_a_filter_by_line_items_admits_what_naming_each_admits(names: list[str]) -> None:
    admits = has_line_item(tuple(names))
    for number in range(0, 320, 7):
        row = _row(number)
        assert admits(row) is any(f'"line_item":"{name}"'.encode() in row for name in names)


def test_lists_of_columns_are_read_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [SeriesSummary(f"c{n}", newest=9, oldest=1, known=5) for n in range(1_600)]
    reader = MemoryReader()
    pages = [Entry(msgspec.json.encode(listed[at : at + 16])) for at in range(0, 1_600, 16)]
    reader.shelve("kind-list", "", list(pack_pages(pages)))
    edition = Edition("e", reader)
    most, total = steps_in_a_turn(
        monkeypatch, macro, "read_page", lambda: macro.read_series(edition, "kind", "", DayRange(1), 50)
    )
    assert total == 100, "nothing was known on that day, so every page is passed over"
    assert most <= macro._PAGES_PER_YIELD


def test_a_search_of_tenders_looks_into_lists_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = memoryview(b"".join(n.to_bytes(4, "little") for n in range(20_000))).cast("i")

    class Words:
        async def numbers(self, _kind: str, _key: str) -> memoryview:
            return numbers

        async def rows(self, *_: object) -> list[bytes]:
            return [b"{}"]

    words = [f"w{n}" for n in range(20)]
    most, total = steps_in_a_turn(
        monkeypatch,
        tender_filters,
        "_intersection",
        lambda: hits(Words(), "ZA", TenderFilter(words=words), 0, 20_000, 500),  # type: ignore[arg-type]
    )
    assert total == 19, "each of the other words, once for the first numbers"
    assert most == 1, "others have a turn after each"


def test_hits_of_a_name_are_weighed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = MemoryReader()
    held = b"".join(n.to_bytes(4, "little") for n in range(1_000))
    reader.shelve("word", "baobab", [(b"", held)])
    for n in range(1_000):
        named = SearchRecord(f"DC{n}", None, ("Baobab",), (("baobab",),), ())
        reader.shelve("named", str(n), [(b"", msgspec.json.encode(named))])
    edition = Edition("e", reader)
    most, total = steps_in_a_turn(
        monkeypatch,
        search,
        "_weigh",
        lambda: search.search_names(edition, ORGANISATIONS, ["baobab"], None, 900),
    )
    assert total == 901, "one more tells that there are more"
    assert most <= search._WEIGHED_PER_YIELD


def test_large_parts_are_compared_in_a_thread_a_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[threading.Thread] = []
    compared = changes._compared

    def noted(*arguments: Any) -> Any:
        seen.append(threading.current_thread())
        return compared(*arguments)

    monkeypatch.setattr(changes, "_compared", noted)
    feed = changes.Feed("things", "kind", ("n",), changes.whole("kind"))

    async def walk(edition: Edition) -> int:
        start = changes.ChangePosition("things")
        return sum([len(c) async for _, c, _ in changes.changed_keys(feed, None, edition, start)])

    assert asyncio.run(walk(_crowded(8))) == 8
    assert seen == [MAIN]
    assert asyncio.run(walk(_crowded(4_096))) == 4_096
    assert seen[-1] is not MAIN


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_large_bodies_are_compressed_in_a_thread_and_small_ones_at_once(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    seen: list[threading.Thread] = []
    compress = answers.compress

    def noted(body: bytes, encoding: str) -> bytes:
        seen.append(threading.current_thread())
        return compress(body, encoding)

    monkeypatch.setattr(answers, "compress", noted)
    large = b"x" * (LARGE + 1)
    assert asyncio.run(answers.compressed(large, encoding)) == compress(large, encoding)
    assert asyncio.run(answers.compressed(large[:-1], encoding)) == compress(large[:-1], encoding)
    assert seen[0] is not MAIN
    assert seen[1] is MAIN
    assert gzip.decompress(compress(large, "gzip")) == large


@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_an_answer_is_written_as_text_as_json_writes_it(value: Any) -> None:
    body = msgspec.json.encode(value)
    assert b"".join(exchange._as_text(body)) == msgspec.json.encode(body.decode())


def test_a_large_answer_is_escaped_a_piece_at_a_time() -> None:
    body = msgspec.json.encode(['a "quoted" \\ line\n'] * (2 * CALL_BYTES // 10))
    pieces = list(exchange._as_text(body))
    assert b"".join(pieces) == msgspec.json.encode(body.decode())
    assert max(map(len, pieces)) <= 2 * CALL_BYTES


@pytest.mark.parametrize(("between", "parts"), [(b",", 1), (b"", 3)])
def test_rows_are_handed_out_in_lists_of_bounded_size(between: bytes, parts: int) -> None:
    rows = [b'{"n":%d,"text":"%b"}' % (n, b"x" * 500) for n in range(2_000)]
    runs: list[bytes | memoryview] = []
    for number, row in enumerate(rows):
        if parts == 1:
            runs.append(row)
        else:
            runs += (
                b',{"n":%d,' % number if number else b'{"n":0,',
                b'"text":',
                row.partition(b'"text":')[2],
            )
    selection = Selection(runs, len(rows), truncated=False, between=between, slices_per_row=parts)
    lists = list(selection.lists())
    assert len(lists) > 3
    assert max(map(len, lists)) < CALL_BYTES + 1_000
    assert [row for one in lists for row in json.loads(one)] == [json.loads(row) for row in rows]


def test_reported_figures_become_facts_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = {
        "source_ref": "s", "license_class": "synthetic", "observed_at": "2024-01-01T00:00:00Z",
        "service_id": "DC1", "record_ref": "r", "line_item": "revenue", "value_reported": 1, "unit": "ZAR",
        "period_end": "2023-12-31", "period_type": "FY", "available_at": "2024-01-01", "vintage": 1,
        "extraction_confidence": None, "method": "structured", "padding": "x" * 1_000,
    }  # fmt: skip
    reader = MemoryReader()
    entries = [Entry(json.dumps(figure).encode(), until=FOREVER, modes=7) for _ in range(3_000)]
    reader.shelve("fundamentals", "DC1", list(pack(entries, 64)))
    edition = Edition("e", reader)
    most, total = steps_in_a_turn(
        monkeypatch, facts, "_reported", lambda: facts.reported_facts(edition, "DC1", 5, None, 10_000)
    )
    assert total == 3_000
    assert most <= 1 + 2 * CALL_BYTES // 1_000


@pytest.mark.rule("PAR-10")
def test_turns_are_given_after_so_many_steps_and_not_before() -> None:
    async def count(steps: int) -> int:
        given = 0

        async def others() -> None:
            nonlocal given
            while True:
                given += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(others())
        yield_points = YieldPoints(10)
        for _ in range(steps):
            await yield_points.step()
        waiting.cancel()
        return given

    assert asyncio.run(count(9)) == 0, "a small answer never waits"
    assert asyncio.run(count(35)) == 3


def test_little_work_is_done_at_once() -> None:
    async def both() -> list[threading.Thread]:
        return [await in_thread_if_large(size, threading.current_thread) for size in (LARGE, LARGE + 1)]

    at_once, in_thread = asyncio.run(both())
    assert at_once is MAIN
    assert in_thread is not MAIN
