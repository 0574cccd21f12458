"""Scores told by the index against those told by the records."""

import asyncio
from array import array
from collections import defaultdict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.format.search_records import LETTERS, ORGANISATIONS, SearchRecord, bucket
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.search import Hit, NameQuery
from sankofa.edition.write.datasets.search import _word_count
from sankofa.model.text import neighbourhood
from tests.memory import MemoryReader

WORDS = st.sampled_from("bank banks banke baobab baobas baobabs cement cemex kilimo kilima trading".split())
NAMES = st.lists(WORDS, min_size=1, max_size=4)
ORGANISATION_NAMES = st.lists(st.lists(NAMES, min_size=1, max_size=2), min_size=1, max_size=40)
_BUCKETS = 7


def an_edition(organisations: list[list[list[str]]], *, counted: bool) -> Edition:
    """An edition of organisations by the words of their names, with or without the counts of these."""
    reader = MemoryReader({"indexes": {"named": len(organisations)}, ORGANISATIONS.buckets: _BUCKETS})
    postings: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
    counts: defaultdict[str, bytearray] = defaultdict(bytearray)
    for number, names in enumerate(organisations):
        spelt = tuple(" ".join(name) for name in names)
        record = SearchRecord(f"DC{number:024d}", None, spelt, tuple(map(tuple, names)), ())
        reader.shelve("named", str(number), [(b"", msgspec.json.encode(record))])
        for word in {word for name in names for word in name}:
            postings[word].append(number)
            counts[word].append(_word_count(record))
    beginnings: defaultdict[str, list[str]] = defaultdict(list)
    near: defaultdict[int, set[str]] = defaultdict(set)
    for word, numbers in sorted(postings.items()):
        reader.shelve("word", word, [(bytes(counts[word]) if counted else b"", numbers.tobytes())])
        beginnings[word[:LETTERS]].append(word)
        for form in neighbourhood(word):
            near[bucket(form, _BUCKETS)].add(word)
    for letters, words in beginnings.items():
        reader.shelve("beginning", letters, [(b"", " ".join(words).encode())])
    for one, others in near.items():
        reader.shelve("near", str(one), [(b"", " ".join(sorted(others)).encode())])
    return Edition("e", reader)


def search(edition: Edition, query: list[str], most: int) -> tuple[list[Hit], bool]:
    return asyncio.run(NameQuery(edition, ORGANISATIONS, query, None).search(most))


@given(
    ORGANISATION_NAMES,
    st.lists(WORDS | st.sampled_from(("ban", "baobax", "cemen", "xy"))),
    st.integers(1, 30),
)
def test_the_index_tells_the_same_hits_and_scores_as_the_records(
    organisations: list[list[list[str]]], query: list[str], most: int
) -> None:
    told = search(an_edition(organisations, counted=True), query, most)
    assert told == search(an_edition(organisations, counted=False), query, most)


@pytest.mark.parametrize(
    "query",
    ["rare3 cement", "cement rare3 other4", "rare3 cem", "cement", "rare cement trading", "rarx3 cement"],
)
def test_the_index_tells_the_same_of_words_that_many_records_have(query: str) -> None:
    organisations = [[[f"rare{n % 50}", "cement", *["trading"] * (n % 3)]] for n in range(900)]
    organisations += [[[f"other{n}", f"rare{n}"]] for n in range(9)]
    told = search(an_edition(organisations, counted=True), query.split(), 10)
    assert told == search(an_edition(organisations, counted=False), query.split(), 10)
    assert told[0]


def test_only_the_records_of_hits_are_read_where_the_index_tells_the_scores() -> None:
    read = []
    for counted in (True, False):
        edition = an_edition([[["baobab", f"trading{n}"]] for n in range(18)], counted=counted)
        hits, more = search(edition, ["baobab"], 3)
        assert [hit.id[-2:] for hit in hits] == ["00", "01", "02"]
        assert more
        read.append(edition._reader.asked)  # type: ignore[attr-defined]
    assert read[1] - read[0] == 18 - 3


@given(
    ORGANISATION_NAMES,
    st.lists(
        st.lists(WORDS | st.sampled_from(("ban", "baobax", "cemen", "xy")), min_size=1, max_size=3),
        min_size=2,
        max_size=6,
    ),
)
def test_what_an_edition_keeps_of_earlier_searches_changes_no_answer(
    organisations: list[list[list[str]]], queries: list[list[str]]
) -> None:
    edition = an_edition(organisations, counted=True)
    for query in [*queries, *queries]:
        assert search(edition, query, 5) == search(an_edition(organisations, counted=True), query, 5)


def test_a_search_for_words_and_names_that_are_known_reads_nothing() -> None:
    edition = an_edition([[["baobab", f"trading{n}"]] for n in range(18)], counted=True)
    first = search(edition, ["baobab"], 3)
    read = edition._reader.asked  # type: ignore[attr-defined]
    assert search(edition, ["baobab"], 3) == first
    assert edition._reader.asked == read  # type: ignore[attr-defined]
