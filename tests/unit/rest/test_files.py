"""Which bytes a Range header asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.rest.files import MOST_RANGES, requested_ranges

SIZE = 10_000


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", [(0, 1)]),
        ("bytes=0-", [(0, SIZE)]),
        ("bytes=-1", [(SIZE - 1, SIZE)]),
        ("bytes=-99999", [(0, SIZE)]),
        ("BYTES=5-9", [(5, 10)]),
        ("bytes=9990-123456", [(9990, SIZE)]),
        ("bytes= 0-4 , 5000-5001", [(0, 5), (5000, 5002)]),
        ("bytes=5000-5001,0-4", [(0, 5), (5000, 5002)]),
        ("bytes=0-4,2-8", [(0, 9)]),
        ("bytes=0-4,99999-", [(0, 5)]),
        ("bytes=10000-", []),
        ("bytes=-0", []),
    ],
)
def test_a_range_is_read_as_the_rfc_has_it(header: str, expected: list[tuple[int, int]]) -> None:
    assert requested_ranges(header, SIZE) == expected


@pytest.mark.parametrize(
    "header",
    [
        *(
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=a-b",
            "bytes=1-2-3",
            "items=0-1",
            "bytes=0-1,",
        ),
        *("bytes=+1-2", "bytes=\u0661-\u0662", "bytes=0x1-2", "bytes=0-1;2-3", "bytes=" + "9" * 19 + "-"),
        "bytes=" + ",".join(f"{n}-{n}" for n in range(MOST_RANGES + 1)),
    ],
)
def test_what_is_malformed_or_too_much_is_ignored(header: str) -> None:
    assert requested_ranges(header, SIZE) is None


numbers = st.integers(0, 2 * SIZE)
specs = st.one_of(
    st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}"),
    numbers.map(lambda first: f"{first}-"),
    numbers.map(lambda last: f"-{last}"),
)


@given(st.lists(specs, min_size=1, max_size=MOST_RANGES), st.integers(1, SIZE))
def test_every_byte_asked_for_is_sent_once_and_never_more_than_the_file(asked: list[str], size: int) -> None:
    found = requested_ranges("bytes=" + ",".join(asked), size)
    assert found is not None
    wanted: set[int] = set()
    for spec in asked:
        first, _, last = spec.partition("-")
        if first:
            wanted |= set(range(int(first), min(int(last) + 1 if last else size, size)))
        else:
            wanted |= set(range(max(size - int(last), 0), size))
    sent = [byte for start, end in found for byte in range(start, end)]
    assert len(sent) == len(set(sent)) <= size
    assert wanted <= set(sent)
    assert bool(sent) == bool(wanted)


@given(st.text(max_size=60), st.integers(0, SIZE))
def test_no_header_breaks_it(header: str, size: int) -> None:
    requested_ranges(header, size)
    requested_ranges(f"bytes={header}", size)
