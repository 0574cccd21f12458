"""Cursors: signed, bound to filters and edition, and good for as long as their secret is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.access.records import Cursors, Position
from sankofa.model.errors import InvalidParameter
from tests.every import every

POSITION = Position("20260101T000000Z-0123456789", "country=ZA", (20240630, "ocds-1", 7))
CURSORS = Cursors([b"secret"])
ISSUED = CURSORS.issue(POSITION)


def test_a_cursor_is_opaque_and_safe_in_a_url() -> None:
    assert ISSUED.replace("-", "").replace("_", "").isalnum()
    assert "country" not in ISSUED


@every("at", range(len(ISSUED)))
def test_an_altered_cursor_is_refused(at: int) -> None:
    other = "A" if ISSUED[at] != "A" else "B"
    with pytest.raises(InvalidParameter) as refused:
        CURSORS.read(ISSUED[:at] + other + ISSUED[at + 1 :], POSITION.filters)
    assert refused.value.parameter == "cursor"


@every(
    "cursor",
    [
        "",
        "=",
        "a",
        "====",
        ISSUED[:-1],
        ISSUED + "A",
        ISSUED + "=",
        ISSUED + "\n",
        " " + ISSUED,
        ISSUED * 2,
        "\xe9",
        "a b",
    ],
)
def test_what_was_never_issued_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidParameter):
        CURSORS.read(cursor, POSITION.filters)


@given(st.text(max_size=200))
def test_any_text_is_refused_and_nothing_worse(cursor: str) -> None:
    with pytest.raises(InvalidParameter):
        CURSORS.read(cursor, POSITION.filters)


def test_secrets_are_rotated_without_breaking_a_walk() -> None:
    rotated = Cursors([b"new", b"secret"])
    assert rotated.read(ISSUED, POSITION.filters) == POSITION
    issued = rotated.issue(POSITION)
    assert Cursors([b"new"]).read(issued, POSITION.filters) == POSITION
    with pytest.raises(InvalidParameter):
        CURSORS.read(issued, POSITION.filters)
    with pytest.raises(InvalidParameter):
        Cursors([b"new"]).read(ISSUED, POSITION.filters)
