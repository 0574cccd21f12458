"""Releases that withhold thousands: an index finds exactly what looking for each secret in turn finds."""

import random
from collections.abc import Iterable
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.ocds import redaction, secret_index
from sankofa.model.ocds.redaction import CUT, Secrets

_WORDS = "ann bee carl dube ella fana gogo h i van de la y water supply dr mokoena peña".split()
_WRITTEN = [form for word in _WORDS for form in (word, word.title(), word.upper())] + [
    "H", "A", "B.", "Mr", "Dr", "with", "and", "%20", "&nbsp;", "Road",
]  # fmt: skip
_LITERALS = [
    "ann.bee@example.org",
    "082 555 0101",
    "+27 (0)82 555-0102",
    "9001015009087",
    "王小明",
    "A-12345",
]

names = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join)
secrets_of_a_release = st.lists(st.one_of(names, st.sampled_from(_LITERALS)), max_size=12)
pieces = st.one_of(
    st.sampled_from(_WRITTEN), st.sampled_from(_LITERALS), st.sampled_from(["0825550101", "12345"])
)
texts = st.lists(st.tuples(pieces, st.sampled_from([" ", " ", ", ", "-", ""])), max_size=14).map(
    lambda parts: "".join(piece + between for piece, between in parts)
)


def _cut(text: str, withheld: Iterable[str], public: Iterable[str], many: int) -> str:
    secrets = Secrets()
    for secret in withheld:
        secrets.add(secret)
    for name in public:
        secrets.spare(name)
    with patch.object(redaction, "_MANY", many):
        return secrets.cut(text)


@given(texts, secrets_of_a_release, st.lists(names, max_size=1))
def test_an_index_cuts_what_looking_for_each_in_turn_cuts(
    text: str, withheld: list[str], public: list[str]
) -> None:
    one_by_one = _cut(text, withheld, public, many=1_000)
    assert _cut(text, withheld, public, many=-1) == one_by_one


def test_many_names_that_share_their_words_are_told_apart_by_those_in_the_text_alone() -> None:
    chance = random.Random(7)
    syllables = "ka mo lo ndi tha bo zu me ri sa".split()
    surnames = ["".join(chance.choices(syllables, k=3)).title() for _ in range(2_000)]
    secrets = Secrets()
    for surname in surnames:
        secrets.add(f"Thandiwe de {surname}")
    looked_for = []

    def counted(*arguments: object) -> object:
        looked_for.append(arguments)
        return runs(*arguments)  # type: ignore[arg-type]

    runs = secret_index.runs
    with patch.object(secret_index, "runs", counted):
        assert secrets.cut(f"Won by Thandiwe de {surnames[5]}, road 5") == f"Won by {CUT}, road 5"
        assert secrets.cut("Repair of roads de la Vega") == "Repair of roads de la Vega"
    assert len(looked_for) < 20


@pytest.mark.parametrize("number", [40, 400])
def test_what_many_withheld_have_in_common_with_a_text_is_cut_each_at_its_place(number: int) -> None:
    secrets = Secrets()
    for n in range(number):
        secrets.add(f"80{n:07d}083")
        secrets.add(f"someone{n}@example.org")
    text = f"80{3:07d}083, then 80{number:07d}083 and 80{number - 1:07d}083"
    assert secrets.cut(text) == f"{CUT}, then 80{number:07d}083 and {CUT}"


def test_a_title_followed_by_a_tab_is_seen_as_any_other() -> None:
    assert Secrets().cut("for Mr\tZebulon Vyver") == f"for Mr\t{CUT}"


def test_a_text_of_nothing_but_titles_is_read_once() -> None:
    text = "Mr Zebulon " * 20_000
    assert Secrets().cut(text).startswith(f"Mr {CUT}")
