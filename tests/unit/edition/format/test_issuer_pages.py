"""Pages of issuers against the steps they were made of."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.format.issuer_pages import SLICES_PER_ROW, Step, encode_page, row_parts, rows_on
from sankofa.model.days import FOREVER

DAYS = st.integers(1, 400)
HISTORIES = st.lists(st.sets(DAYS, max_size=60).map(sorted), max_size=12)


def page_of(histories: list[list[int]]) -> tuple[bytes, bytes]:
    """A page of issuers that are known by their number, each with a step on every day of its history."""
    return encode_page(
        [
            (b'{"number":%d,' % number, [Step(day, 1, day, day, 0) for day in days])
            for number, days in enumerate(histories)
        ]
    )


@given(HISTORIES, DAYS | st.just(FOREVER), st.integers(0, 12), st.data())
def test_a_page_has_the_step_of_each_issuer_that_stands_on_a_day(
    histories: list[list[int]], day: int, room: int, data: st.DataObject
) -> None:
    wanted = sorted(data.draw(st.sets(st.sampled_from(range(len(histories))))) if histories else ())
    known = {
        n: max(d for d in histories[n] if d <= day)
        for n in wanted
        if min(histories[n], default=FOREVER + 1) <= day
    }
    page = page_of(histories)
    runs, following = rows_on(page, day, wanted, room)
    for ends in (True, False):
        assert rows_on(page, day, wanted, room, row_parts(page, ends=ends)) == (runs, following)
    rows = json.loads(b"[%b]" % b"".join(runs).removeprefix(b","))
    assert [(row["number"], row["fact_count"]) for row in rows] == list(known.items())[:room]
    assert following == (list(known)[room] if len(known) > room else None)
    assert len(runs) == SLICES_PER_ROW * len(rows)
