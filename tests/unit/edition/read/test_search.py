"""Scores told by the index against those told by the records."""

import asyncio
from array import array
from collections import defaultdict

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.format.keys import LETTERS, ORGANISATIONS, SearchRecord, bucket
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
