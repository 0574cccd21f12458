"""The words of a search index: the possible meanings of a query word, and the records with each word."""

from array import array
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator
from heapq import merge
from itertools import zip_longest
from operator import itemgetter
from typing import Final, NamedTuple

from sankofa.edition.format.keys import (
    LETTERS,
    MOST_COUNTED,
    ORGANISATIONS,
    SearchIndex,
    bucket,
    former_scope,
)
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.engines.block_file import BoundedCache
from sankofa.model.text import near_words, neighbourhood, tolerated, words

_WORDS_PER_YIELD: Final = 256
_EVERY: Final = 2**31 - 1
_BEGUN: Final = 8
"""Number of words that an incomplete word may mean."""
_MISSPELT: Final = 8
"""Number of words that an unknown word may mean."""
_FEW_RECORDS: Final = 64
"""Up to this many records in all lists of a word, a table is faster."""
_BYTES_A_RECORD: Final = 100
_CACHE: Final = "meanings of words"
_WORDS_KEPT: Final = 8_192
_LARGEST_KEPT: Final = 8 * 1024
"""Most bytes in memory for one word, so at most 64 MB. Longer lists are read again unless mapped."""


class Postings:
    """The records that have a word; views of the index."""

    __slots__ = ("in_memory", "numbers", "word_counts")

    def __init__(self, numbers: memoryview, word_counts: bytes | memoryview, *, mapped: bool) -> None:
        self.numbers = numbers
        """In order."""
        self.word_counts = word_counts
        """Number of words of the name of each record, as a byte; may be empty (see `search_records`)."""
        self.in_memory = 0 if mapped else numbers.nbytes + len(word_counts)
        """Size in memory besides the mapped file."""

    def word_count(self, number: int) -> int:
        """The word count of a record; 0 if the record lacks the word."""
        numbers = self.numbers
        at = bisect_left(numbers, number)
        return self.word_counts[at] if at < len(numbers) and numbers[at] == number else 0

    def among(self, numbers: Iterable[int]) -> Iterator[int]:
        """The given records that have the word."""
        held, size = self.numbers, len(self.numbers)
        for number in numbers:
            at = bisect_left(held, number)
            if at < size and held[at] == number:
                yield number


NO_RECORDS: Final = Postings(memoryview(b"").cast("I"), b"", mapped=True)


class Meaning(NamedTuple):
    """A word of the index that a query word may mean, how close it is, and the records with it."""

    word: str
    closeness: float
    postings: Postings


ClosestMeaning = tuple[str, float, int]
"""The closest word of a record, how close it is, and the number of words in the record's name."""


class Meanings:
    """The words of the index that a query word may mean."""

    __slots__ = ("_closest_first", "closest", "counted", "fewest", "in_memory", "words")

    def __init__(self, words: list[Meaning]) -> None:
        self.words = words
        """In the order in which they lead to candidates."""
        self._closest_first = sorted(words, key=itemgetter(1, 0), reverse=True)
        sizes = [len(one.postings.numbers) for one in words]
        exact = [size for one, size in zip(words, sizes, strict=True) if one.closeness == 1.0]
        self.fewest = min(exact or sizes, default=1)
        """Number of records with the word itself, else with the rarest word it may mean."""
        self.counted = all(one.postings.word_counts for one in words)
        """Whether every list has word counts."""
        few = self.counted and sum(sizes) <= _FEW_RECORDS
        self.closest: Callable[[int], ClosestMeaning | None] = (
            self._table().get if few else self._look_up_closest
        )
        """The closest meaning of a record by number; None if there is none, or no word count."""
        self.in_memory = sum(one.postings.in_memory for one in words)
        """Approximate bytes it takes besides the mapped file."""
        if few:
            self.in_memory += _BYTES_A_RECORD * sum(sizes)

    def _table(self) -> dict[int, ClosestMeaning]:
        """The result of `_look_up_closest` for each record; records share the few meanings."""
        table: dict[int, ClosestMeaning] = {}
        shared: dict[ClosestMeaning, ClosestMeaning] = {}
        for word, closeness, postings in reversed(self._closest_first):
            for number, count in zip(postings.numbers, postings.word_counts, strict=False):  # padded behind
                if count:
                    meaning = word, closeness, count
                    table[number] = shared.setdefault(meaning, meaning)
        return table

    def _look_up_closest(self, number: int) -> ClosestMeaning | None:
        for word, closeness, postings in self._closest_first:
            if count := postings.word_count(number):
                return word, closeness, count
        return None


UNKNOWN: Final = Meanings([])
_Read = Callable[[Edition, SearchIndex, str, str, bool], Awaitable[list[Meaning]]]
_ReadCached = Callable[[Edition, SearchIndex, str, str, bool], Awaitable[Meanings]]


def _cached(read: _Read) -> _ReadCached:
    """Caches the meanings of words, because queries repeat words."""

    async def cached(edition: Edition, index: SearchIndex, word: str, scope: str, last: bool) -> Meanings:
        cache: BoundedCache[tuple[_Read, str, str, str, bool], Meanings] = edition.cache(_CACHE, _WORDS_KEPT)
        name = read, index.words, scope, word, last
        if (meanings := cache.get(name)) is None:
            meant = await read(edition, index, word, scope, last)
            meanings = Meanings(meant) if meant else UNKNOWN
            if meanings.in_memory <= _LARGEST_KEPT:
                cache.put(name, meanings)
            if not meant:  # nor is it known elsewhere in a query
                cache.put((read, index.words, scope, word, not last), UNKNOWN)
        return meanings

    return cached


async def postings_of(edition: Edition, index: SearchIndex, key: str) -> Postings:
    """The records with a word, a code, or a word in a country."""
    block = await edition.index_block(index.words, key)
    postings = NO_RECORDS
    if block is not None:
        counts, numbers = block
        postings = Postings(memoryview(numbers).cast("I"), counts, mapped=isinstance(numbers, memoryview))
    return await _known_postings(edition, index, key, postings) if isinstance(edition, DayView) else postings


async def _known_postings(edition: DayView, index: SearchIndex, key: str, postings: Postings) -> Postings:
    """The records known on the day, with the word in a name of that day, in the country."""
    day, days = edition.day, await edition.record_days(index)
    renamed = (await edition.known_days()).renamed if index is ORGANISATIONS else frozenset()
    country, _, word = key.rpartition("|")
    stored: Iterable[tuple[int, int]] = zip_longest(
        postings.numbers, postings.word_counts[: len(postings.numbers)], fillvalue=0
    )
    if country and renamed:
        left = await edition.raw(index.words, f"{former_scope(country)}|{word}") or b""
        stored = merge(stored, ((number, 0) for number in memoryview(left).cast("I")))
    numbers, counts = array("I"), bytearray()
    for number, count in stored:
        if days[number] > day:
            continue
        if number in renamed and not word.startswith("$"):
            names = await edition.names(number, country or None)
            if not any(word in words(name) for name in names):
                continue
            own = words(names[0]) if len(names) == 1 else []
            count = len(own) if len(own) == len(set(own)) <= MOST_COUNTED else 0
        counts.append(count)
        numbers.append(number)
    padded = bytes(counts) if any(counts) else b""
    return Postings(memoryview(numbers), padded, mapped=False)


@_cached
async def known_meanings(
    edition: Edition, index: SearchIndex, word: str, scope: str, last: bool
) -> list[Meaning]:
    """The word itself, and the words that start with it if it is unknown or the last word of the query."""
    own = await postings_of(edition, index, scope + word)
    meant = [Meaning(word, 1.0, own)] if own.numbers else []
    if last or not meant:
        for other in await words_begun(edition, index, word, _BEGUN):
            postings = await postings_of(edition, index, scope + other)
            if postings.numbers:
                meant.append(Meaning(other, 0.6 + 0.39 * len(word) / len(other), postings))
    return meant


@_cached
async def misspelt_meanings(
    edition: Edition, index: SearchIndex, word: str, scope: str, _last: bool
) -> list[Meaning]:
    """The known words that may have been misspelt, closest first."""
    allowed = tolerated(word)
    if not allowed:
        return []
    buckets = int(edition.manifest.get(index.buckets, 1))
    others: set[str] = set()
    yield_points = YieldPoints(_WORDS_PER_YIELD)
    numbers = {bucket(form, buckets) for form in neighbourhood(word)}
    await yield_points.step(8 * len(numbers))
    for number in numbers:
        others.update(bytes(await edition.raw(index.near, str(number)) or b"").decode().split())
    await yield_points.step(len(others))
    # A bucket also holds words that share no form.
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
    """The first known words that start with a word, most frequent first."""
    if len(word) < LETTERS:
        return []
    listed = b" %b " % bytes(await edition.raw(index.beginnings, word[:LETTERS]) or b"")
    if isinstance(edition, DayView):
        listed = await _known_words(edition, index, listed)
    begun: list[str] = []
    beginning = b" " + word.encode()
    at = listed.find(beginning)
    while at >= 0 and len(begun) < most:
        end = listed.index(b" ", at + 1)
        if end - at > len(beginning):
            begun.append(listed[at + 1 : end].decode())
        at = listed.find(beginning, end)
    return begun


async def _known_words(edition: DayView, index: SearchIndex, listed: bytes) -> bytes:
    """The words that a record of the day has, most frequent first."""
    counts = {
        word: len((await postings_of(edition, index, word)).numbers) for word in listed.decode().split()
    }
    known = sorted((word for word, count in counts.items() if count), key=lambda word: (-counts[word], word))
    return f" {' '.join(known)} ".encode()
