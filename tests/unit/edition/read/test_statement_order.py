"""Rows in statement order against rows that were decoded and sorted."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.statement_order import StatementRows, core_first
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.vintages import Mode
from tests.loop import wait
from tests.memory import MemoryReader

ITEMS = st.sampled_from((*LINE_ITEMS[:4], "something_else", "revenue_of_others"))
TEXTS = st.sampled_from(("plain", '"line_item":"revenue"', 'x"period_end":"1999-12-31"', "\\"))
ROWS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1), ITEMS, TEXTS), max_size=80)


def encoded(rows: list[tuple[int, int, str, str]]) -> list[bytes]:
    return [
        json.dumps(
            {"source_ref": text, "line_item": item, "unit": text, "period_end": f"202{year}-12-31", "n": n},
            separators=(",", ":"),
        ).encode()
        for n, (year, _, item, text) in enumerate(rows)
    ]


@given(ROWS, st.integers(1, 40))
def test_core_line_items_come_first_whatever_texts_rows_have(
    rows: list[tuple[int, int, str, str]], limit: int
) -> None:
    rows = sorted(rows, key=lambda row: (-row[0], row[1]))
    entries = [Entry(text, tag=row[1]) for text, row in zip(encoded(rows), rows, strict=True)]
    reader = MemoryReader()
    reader.shelve("fundamentals", "K", list(pack(entries)))
    edition = Edition("e", reader)
    core = [n for n, row in enumerate(rows) if row[2] in LINE_ITEMS]
    core.sort(key=lambda n: (-rows[n][0], rows[n][1], LINE_ITEMS.index(rows[n][2])))
    expected = [*core, *(n for n, row in enumerate(rows) if row[2] not in LINE_ITEMS)]
    seen: list[int] = []
    start: tuple[int | str, ...] = ()
    while rows:
        page = wait(core_first(edition, StatementRows("K", 1, int(Mode.LATEST), ANY_TAG), limit, start))
        assert page is not None
        seen += [json.loads(bytes(row))["n"] for row in page.slices]
        if page.following is None:
            break
        start = page.following
    assert seen == expected
