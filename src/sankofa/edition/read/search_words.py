"""The words of a search index: which of them a word of a query may mean, and the records that have each."""

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple

from sankofa.edition.format.search_records import LETTERS, SearchIndex, bucket
from sankofa.edition.read.bounded_cache import BoundedCache
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.turns import Turns
from sankofa.model.names import near_words, neighbourhood, tolerated

_WORDS_A_TURN: Final = 256
_EVERY: Final = 2**31 - 1
_BEGUN: Final = 8
"""How many words a word that is only begun may mean."""
_MISSPELT: Final = 8
"""How many words a word that is not known may mean."""
_FEW_RECORDS: Final = 8
_BYTES_A_RECORD: Final = 100
"""What a record takes in a table, about."""
_CACHE: Final = "meanings of words"
_WORDS_KEPT: Final = 8_192
_LARGEST_KEPT: Final = 8 * 1024
"""Bytes in memory for one word, so at most 64 MB; most take one. Lists of common words that are no views of a
file are read again."""


class Postings:
    """The records that have a word; views of the index."""

    __slots__ = ("count_of", "in_memory", "numbers", "word_counts")

    def __init__(self, numbers: memoryview, word_counts: bytes | memoryview, *, mapped: bool) -> None:
        self.numbers = numbers
        """In order."""
        self.word_counts = word_counts
        """Of each record how many words its name has, as a byte; see `search_records`.

        Empty where they are not kept.
        """
        few = len(numbers) <= _FEW_RECORDS and bool(word_counts)
        self.count_of: Callable[[int], int | None] = (
            dict(zip(numbers, word_counts, strict=False)).get  # behind the counts is padding
            if few
            else partial(_count_in, numbers, word_counts)
        )
        """The word count of a record; None where it does not have the word."""
        self.in_memory = (_BYTES_A_RECORD * len(numbers) if few else 0) + (
            0 if mapped else numbers.nbytes + len(word_counts)
        )
        """Bytes that it takes besides the file it is a view of."""


def _count_in(numbers: memoryview, word_counts: bytes | memoryview, number: int) -> int | None:
    at = bisect_left(numbers, number)
    return word_counts[at] if at < len(numbers) and numbers[at] == number else None


NO_RECORDS: Final = Postings(memoryview(b"").cast("I"), b"", mapped=True)


class Meaning(NamedTuple):
    """A word of the index that a word of the query may mean, how close it is, and who has it."""

    word: str
    closeness: float
    postings: Postings


class Meanings:
    """The words of the index that a word of the query may mean."""

    __slots__ = ("closest_first", "counted", "fewest", "words")

    def __init__(self, words: list[Meaning]) -> None:
        self.words = words
        """In the order in which they lead to candidates."""
        self.closest_first = sorted(words, key=itemgetter(1, 0), reverse=True)
        exact = [len(one.postings.numbers) for one in words if one.closeness == 1.0]
        self.fewest = min(exact or [len(one.postings.numbers) for one in words], default=1)
        """How many records have it: the word itself where it is known, else the rarest that it may mean."""
        self.counted = all(one.postings.word_counts for one in words)
        """Whether word counts are kept with every list."""


_Name = tuple[str, str, str, bool]
"""The index, the country, the word, and whether it is the last of a query."""
_MeaningsCache = BoundedCache[_Name, Meanings]
"""People ask for the same words again."""


def _keep(cache: _MeaningsCache, name: _Name, words: list[Meaning]) -> Meanings:
    meanings = Meanings(words)
    if sum(one.postings.in_memory for one in words) <= _LARGEST_KEPT:
        cache.put(name, meanings)
    return meanings


async def postings_of(edition: Edition, index: SearchIndex, key: str) -> Postings:
    """The records that have a word, a code, or a word in a country."""
    block = await edition.index_block(index.words, key)
    if block is None:
        return NO_RECORDS
    counts, numbers = block
    return Postings(memoryview(numbers).cast("I"), counts, mapped=isinstance(numbers, memoryview))


def kept_meanings(
    edition: Edition, index: SearchIndex, word: str, scope: str, *, last: bool
) -> Meanings | None:
    """What `known_meanings` gives, where it was looked up before."""
    cache: _MeaningsCache = edition.cache(_CACHE, _WORDS_KEPT)
    return cache.get((index.words, scope, word, last))


async def known_meanings(
    edition: Edition, index: SearchIndex, word: str, scope: str, *, last: bool
) -> Meanings:
    """The word itself where it is known, and the words it begins, where it is not or is the last one."""
    if (kept := kept_meanings(edition, index, word, scope, last=last)) is not None:
        return kept
    words = await _known_meanings(edition, index, word, scope, last=last)
    return _keep(edition.cache(_CACHE, _WORDS_KEPT), (index.words, scope, word, last), words)


async def _known_meanings(
    edition: Edition, index: SearchIndex, word: str, scope: str, *, last: bool
) -> list[Meaning]:
    own = await postings_of(edition, index, scope + word)
    meant = [Meaning(word, 1.0, own)] if own.numbers else []
    if last or not meant:
        for other in await words_begun(edition, index, word, _BEGUN):
            postings = await postings_of(edition, index, scope + other)
            if postings.numbers:
                meant.append(Meaning(other, 0.6 + 0.39 * len(word) / len(other), postings))
    return meant


async def misspelt_meanings(edition: Edition, index: SearchIndex, word: str, scope: str) -> Meanings:
    """The known words that are a slip of the pen away, the closest first."""
    cache: _MeaningsCache = edition.cache(_CACHE, _WORDS_KEPT)
    name = (index.near, scope, word, False)
    if (meanings := cache.get(name)) is not None:
        return meanings
    return _keep(cache, name, await _misspelt_meanings(edition, index, word, scope))


async def _misspelt_meanings(edition: Edition, index: SearchIndex, word: str, scope: str) -> list[Meaning]:
    allowed = tolerated(word)
    if not allowed:
        return []
    buckets = int(edition.manifest.get(index.buckets, 1))
    others: set[str] = set()
    turns = Turns(_WORDS_A_TURN)
    for number in {bucket(form, buckets) for form in neighbourhood(word)}:
        await turns.step(8)
        others.update(bytes(await edition.raw(index.near, str(number)) or b"").decode().split())
    await turns.step(len(others))
    # A bucket holds strangers too, which share no form.
    near = [pair for pair in near_words(word, others) if pair[0] <= allowed]
    meant: list[Meaning] = []
    for distance, other in sorted(near):
        postings = await postings_of(edition, index, scope + other)
        if postings.numbers:
            meant.append(Meaning(other, 1 - distance / (len(word) + 1), postings))
            if len(meant) == _MISSPELT:
                break
    return meant


async def words_begun(edition: Edition, index: SearchIndex, word: str, most: int = _EVERY) -> list[str]:
    """The first known words that begin with a word and go on, those that most records have first."""
    if len(word) < LETTERS:
        return []
    listed = b" %b " % bytes(await edition.raw(index.beginnings, word[:LETTERS]) or b"")
    begun: list[str] = []
    beginning = b" " + word.encode()
    at = listed.find(beginning)
    while at >= 0 and len(begun) < most:
        end = listed.index(b" ", at + 1)
        if end - at > len(beginning):
            begun.append(listed[at + 1 : end].decode())
        at = listed.find(beginning, end)
    return begun
