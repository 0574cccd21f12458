"""Releases that withhold thousands: an index finds exactly what looking for each secret in turn finds."""

from collections.abc import Iterable
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.ocds import redaction
from sankofa.model.ocds.redaction import Secrets

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
def test_an_index_cuts_what_looking_for_each_in_turn_cuts(text: str, withheld: list[str], public: list[str]):
    one_by_one = _cut(text, withheld, public, many=1_000)
    assert _cut(text, withheld, public, many=-1) == one_by_one
