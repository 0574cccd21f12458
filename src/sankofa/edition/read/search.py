"""Search by name: the rarest words of a query find candidates, which are scored against the whole query."""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sankofa.edition.format.keys import (
    ENTITIES,
    LETTERS,
    MACRO_ITEMS,
    MACRO_SPANS,
    ORGANISATIONS,
    SearchIndex,
    SearchRecord,
    code_key,
)
from sankofa.edition.read.day_view import DayView, organisation
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.search_words import (
    ClosestMeaning,
    Meaning,
    Meanings,
    known_meanings,
    misspelt_meanings,
    postings_of,
    words_begun,
)
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.engines.block_file import BoundedCache
from sankofa.model.limits import limit
from sankofa.model.text import words

LEAST_SCORE: Final = 0.35
_WHOLE_QUERY: Final = 0.8
"""Share of the query from which a name is a hit regardless of its other words, after all hits by score."""
_ROUNDED: Final = 0.0001  # the most that rounding can add to a score
_POSTINGS_READ: Final = 4_000
_RARE: Final = 400
_BISECTED: Final = 8
"""Ratio of lengths from which numbers are looked up in a list by binary search."""


class Scoring:
    """The weight of each word of a query, and the scores of records."""

    def __init__(self, asked: Mapping[str, Meanings], records: int, unasked_weight: float) -> None:
        self.asked = asked
        self.worth = {word: math.log(1 + records / meant.fewest) for word, meant in asked.items()}
        self.whole = sum(self.worth.values())
        self._unasked = unasked_weight * (self.whole / len(self.worth))

    @cached_property
    def closenesses(self) -> dict[str, dict[str, float]]:
        """For each word of the query, the words it may mean and how close each is."""
        return {word: {one.word: one.closeness for one in meant.words} for word, meant in self.asked.items()}

    def score(self, agreed: float, unasked: int) -> float:
        """The score of a name that matches `agreed` of the query and has `unasked` other words."""
        return agreed / (self.whole + self._unasked * unasked)

    def scores(self, numbers: list[int]) -> dict[int, float]:
        """The scores of records whose word counts are indexed, without reading a record."""
        if not all(meant.counted for meant in self.asked.values()):
            return {}
        closest_meanings = [meant.closest for meant in self.asked.values()]
        scores: dict[int, float] = {}
        known: dict[tuple[ClosestMeaning | None, ...], float] = {}
        for number in numbers:
            # Most candidates match a query in one of a few ways, and each way is scored once.
            agreement = tuple([closest(number) for closest in closest_meanings])
            if (score := known.get(agreement)) is None:
                if not any(agreement):
                    continue
                score = known[agreement] = self._score_of(agreement)
            scores[number] = score
        return scores

    def _score_of(self, agreement: Sequence[ClosestMeaning | None]) -> float:
        """The score of a name that has these meanings of the words of the query."""
        agreed = 0.0
        words = 0
        matched: set[str] = set()  # two words of the query may mean the same word
        for worth, meaning in zip(self.worth.values(), agreement, strict=True):
            if meaning is not None:
                other, closeness, words = meaning
                agreed += worth * closeness
                matched.add(other)
        return rounded(self.score(agreed, words - len(matched)))

    async def candidates(self) -> tuple[dict[int, float], bool]:
        """The records with these words, with the weight of the words in each; and whether some are left
        out."""
        weights: dict[int, float] = {}
        passed_over = False
        worth = self.worth
        left = _POSTINGS_READ
        for word in sorted(worth, key=lambda w: (-worth[w], w)) if len(worth) > 1 else worth:
            only_adds = bool(weights)
            for meaning in self.asked[word].words:
                # An incomplete word narrows the candidates of the other words; alone it finds its own
                # candidates.
                gain = worth[word] * meaning.closeness
                if not self._add(weights, meaning, gain, only_adds and meaning.closeness < 1.0):
                    passed_over = True
                left -= max(len(meaning.postings.numbers), len(weights))
                if left <= 0:
                    left = _POSTINGS_READ
                    await asyncio.sleep(0)
        return weights, passed_over

    def _add(self, weights: dict[int, float], meaning: Meaning, gain: float, only_adds: bool) -> bool:
        """Rare words add candidates; common words only add to the weight of candidates.

        Returns False if there were too many records to read.
        """
        held = meaning.postings.numbers
        if not weights:
            weights.update(dict.fromkeys(held[:_POSTINGS_READ], gain))
            return len(held) <= _POSTINGS_READ
        if not only_adds and len(held) <= _RARE:
            for number in held:
                weights[number] = weights.get(number, 0.0) + gain
        elif len(held) < _BISECTED * len(weights):
            for number in weights.keys() & held:
                weights[number] += gain
        else:
            for number in meaning.postings.among(weights):
                weights[number] += gain
        return True

    def best_first(self, weights: dict[int, float]) -> list[int]:
        """The candidates that may be hits, best match first, then by number."""
        # The weight of a name is the most it can score.
        least = (LEAST_SCORE - _ROUNDED) * self.whole
        best = sorted([number for number, weight in weights.items() if weight >= least])
        best.sort(key=weights.__getitem__, reverse=True)
        return best


def rounded(score: float) -> float:
    return round(min(score, 0.98), 4)


_WEIGHED, _MOST_WEIGHED = 20, 256
_WEIGHED_PER_YIELD = 128
_SCORED_PER_YIELD = 512
_MOST_WORDS: Final = limit("words of a search", 12, "different words", "the first ones are looked for")
_UNASKED: Final = {ORGANISATIONS: 0.35, MACRO_ITEMS: 0.04}
"""Weight of a name word that was not asked for, relative to an average query word: indicators are wordy."""
_COMPARED: Final = 200
"""Number of codes that a misspelt code is compared with."""
ORGANISATION: Final = "organisation"
_QUERIES_KEPT: Final = 8
"""Recent queries whose words are known: why nothing was found depends on the same words."""
_NAMES_KEPT: Final = 16_384
"""Names of recent hits, about 5 MB."""
_decode = msgspec.json.Decoder(SearchRecord).decode


class Hit(NamedTuple):
    """A hit: why it matched, on which name, and how well (1 is perfect)."""

    score: float
    id: str
    matched_on: str
    matched_value: str
    number: int = -1
    """Its number in the index, for a series or an indicator."""
    type: str = ORGANISATION
    entry: int = -1
    """Its number in the catalogue, for a series that the index leaves out."""


class NameQuery:
    """The words of a query in one index, optionally of one country."""

    def __init__(
        self, edition: Edition, index: SearchIndex, query_words: Iterable[str], country: str | None
    ) -> None:
        self._edition = edition
        self._index = index
        self._words = list(islice(dict.fromkeys(query_words), _MOST_WORDS))
        self._scope = f"{country}|" if country else ""
        self.records = int(edition.manifest.get("indexes", {}).get(index.records, 1))
        self._known: dict[str, Meanings] | None = None
        self._meanings: dict[str, Meanings] | None = None
        self._results: dict[tuple[int, str | None], tuple[list[Hit], bool]] = {}

    async def meanings(self, *, forgiving: bool) -> dict[str, Meanings]:
        """Known words for each typed word. Misspellings count if `forgiving`, or if another word is known."""
        if self._meanings is not None:
            return self._meanings
        edition, index, scope = self._edition, self._index, self._scope
        if not self.records:
            return {}
        if self._known is None:
            recent = edition.cache("words of queries", _QUERIES_KEPT)
            name = index.words, scope, *self._words
            self._known = recent.get(name) or await self._read_known()
            if not isinstance(edition, DayView):  # there its lists are copies
                recent.put(name, self._known)
        if not (forgiving or any(known.words for known in self._known.values())):
            return {}
        self._meanings = {
            word: known if known.words else await misspelt_meanings(edition, index, word, scope, False)
            for word, known in self._known.items()
        }
        return self._meanings

    async def _read_known(self) -> dict[str, Meanings]:
        edition, index, scope = self._edition, self._index, self._scope
        known: dict[str, Meanings] = {}
        query = await self._joined()
        for at, word in enumerate(query):
            known[word] = await known_meanings(edition, index, word, scope, at == len(query) - 1)
            if not known[word].words and (parts := await self._parts(word)):
                del known[word]
                known |= {part: await known_meanings(edition, index, part, scope, False) for part in parts}
        return known

    async def _joined(self) -> list[str]:
        """The words of the query, `anglo gold` as `anglogold` if a name has that and none has both words."""
        query = list(self._words)
        for at in range(len(query) - 2, -1, -1) if self._index is ORGANISATIONS else ():
            first, second = query[at : at + 2]
            if await self._in_a_name(first + second) and not await self._in_a_name(first, second):
                query[at : at + 2] = [first + second]
        return query

    async def _parts(self, word: str) -> tuple[str, str] | None:
        """The two words of an unknown one that a name has together: `gold fields` of `goldfields`."""
        if self._index is not ORGANISATIONS or not word.isalpha():
            return None
        for end in range(LETTERS, len(word) - LETTERS + 1):
            if await self._in_a_name(word[:end], word[end:]):
                return word[:end], word[end:]
        return None

    async def _in_a_name(self, *query_words: str) -> bool:
        """Whether a record has all of these words, among the first records that have the rarest of them."""
        lists = []
        for word in query_words:
            lists.append(await postings_of(self._edition, self._index, self._scope + word))
            if not lists[-1].numbers:
                return False
        rarest, *others = sorted(lists, key=lambda one: len(one.numbers))
        numbers: Iterable[int] = rarest.numbers[:_POSTINGS_READ]
        for other in others:
            numbers = other.among(numbers)
        return any(True for _ in numbers)

    async def is_known(self, *, forgiving: bool) -> bool:
        return any(meant.words for meant in (await self.meanings(forgiving=forgiving)).values())

    async def search(
        self,
        most: int,
        admits: Callable[[int], bool] | None = None,
        type: str | None = None,
        *,
        forgiving: bool = True,
    ) -> tuple[list[Hit], bool]:
        """The best hits, best first, ties by id, and whether there are more.

        `admits` tells whether the record with a number may be a hit; `type` selects one type.
        """
        asked = await self.meanings(forgiving=forgiving)
        if not any(meant.words for meant in asked.values()):
            return [], False
        if (result := self._results.get((most, type))) is not None:  # a known word was as forgiving before
            return result
        edition, records = self._edition, self.records
        if isinstance(edition, DayView):
            records = await edition.record_count(self._index)
        scoring = Scoring(asked, max(records, 1), _UNASKED[self._index])
        weights, passed_over = await scoring.candidates()
        best = scoring.best_first(weights)
        hits: list[tuple[float, int, Hit | None]] = []
        long_names: list[tuple[float, int, Hit | None]] = []
        least_agreed = _WHOLE_QUERY * scoring.whole
        at_once = max(_WEIGHED, most + 1)
        yield_points = YieldPoints(_WEIGHED_PER_YIELD)
        for first in range(0, len(best), at_once):
            some = best[first : first + at_once]
            scores: dict[int, float] = {}
            for start in range(0, len(some), _SCORED_PER_YIELD):
                if start:
                    await asyncio.sleep(0)
                scores |= scoring.scores(some[start : start + _SCORED_PER_YIELD])
            if not first and len(scores) == len(some) and admits is None and type in (None, ORGANISATION):
                for number, known in scores.items():
                    if known >= LEAST_SCORE:
                        hits.append((-known, number, None))
                    elif weights[number] >= least_agreed:
                        long_names.append((-known, number, None))
                some = []
            for number in some:
                if admits is not None and not admits(number):
                    continue
                hit = None
                if (score := scores.get(number)) is None:
                    await yield_points.step()
                    hit = _weigh(await _record(self._edition, self._index, number), number, scoring)
                    score = hit.score
                if type is not None and type != (hit.type if hit else ORGANISATION):
                    continue
                if score >= LEAST_SCORE:
                    hits.append((-score, number, hit))
                elif weights[number] >= least_agreed:
                    long_names.append((-score, number, hit))
            if len(hits) > most:
                last = -sorted(hit[0] for hit in hits)[most - 1]
                bound = max((weights[number] for number in best[first + at_once :][:1]), default=0.0)
                if rounded(scoring.score(bound, 0)) < last or first + at_once >= _MOST_WEIGHED:
                    break  # no other name can score more, or too many might
        if len(hits) <= most:
            hits += long_names
        hits.sort(key=_by_number if self._index.in_order_of_ids else _by_id)
        result = self._results[most, type] = (
            await self._complete(hits[:most]),
            passed_over or len(hits) > most,
        )
        return result

    async def _complete(self, hits: list[tuple[float, int, Hit | None]]) -> list[Hit]:
        """The hits, with id and name also for records that were scored unread."""
        cache: BoundedCache[int, tuple[str, str]] = self._edition.cache(self._index.records, _NAMES_KEPT)
        complete = []
        yield_points = YieldPoints(_WEIGHED_PER_YIELD)
        for score, number, hit in hits:
            if hit is None:
                if (named := cache.get(number)) is None:
                    await yield_points.step()
                    record = await _record(self._edition, self._index, number)
                    named = record.id, record.names[0]
                    cache.put(number, named)
                hit = Hit(-score, named[0], "legal_name", named[1], number)
            complete.append(hit)
        return complete


async def search_code(edition: Edition, code: str) -> list[Hit]:
    """The series and the indicator of a code."""
    hits = []
    for number in (await postings_of(edition, MACRO_ITEMS, code_key(code))).numbers:
        record = await _record(edition, MACRO_ITEMS, number)
        hits.append(Hit(1.0, record.id, record.type, record.id, number, record.type))
    return hits


async def macro_spans(edition: Edition) -> memoryview:
    """For each series or indicator by number, the [first, end) of its catalogue entries."""
    return await edition.numbers(MACRO_SPANS, "", keep=True)


async def series_named(edition: Edition, query_words: list[str]) -> list[tuple[int, int]]:
    """The catalogue entries in [first, end) that have every word, or a word that starts with it."""
    named: set[int] | None = None
    for word in query_words[:_MOST_WORDS]:
        own = set((await postings_of(edition, MACRO_ITEMS, word)).numbers)
        for other in await words_begun(edition, MACRO_ITEMS, word):
            own.update((await postings_of(edition, MACRO_ITEMS, other)).numbers)
        named = own if named is None else named & own
    spans = await macro_spans(edition)
    return [(spans[2 * number], spans[2 * number + 1]) for number in sorted(named or ())]


async def codes_sharing_words(edition: Edition, query_words: Iterable[str]) -> list[str]:
    """Some codes of series and indicators that share a word with a query, or nearly so."""
    numbers: dict[int, None] = {}
    for word in islice(dict.fromkeys(query_words), _MOST_WORDS):
        meant = await known_meanings(edition, MACRO_ITEMS, word, "", True)
        if not meant.words:
            meant = await misspelt_meanings(edition, MACRO_ITEMS, word, "", False)
        for _, _, postings in meant.words:
            numbers.update(dict.fromkeys(postings.numbers[:_COMPARED]))
    return [(await _record(edition, MACRO_ITEMS, n)).id for n in islice(numbers, _COMPARED)]


async def search_symbol(edition: Edition, symbol: str) -> list[Hit]:
    """Every listing of a bare ticker symbol, on any exchange, that its organisation had on the day."""
    symbol, hits = symbol.strip().upper(), []
    for number in (await postings_of(edition, ORGANISATIONS, code_key(symbol))).numbers[:_WEIGHED]:
        named = await _record(edition, ORGANISATIONS, number)
        if blocks := await edition.blocks(ENTITIES, named.id, 0, 1):
            held = [t for t in named.tickers if t.partition(":")[2] == symbol]
            own = organisation(blocks[0][1])
            hits += [Hit(0.99, named.id, "ticker", t) for t in held if own.holds("ticker", t)][:1]
    return hits


def _weigh(named: SearchRecord, number: int, scoring: Scoring) -> Hit:
    """The hit for the name of a record that matches the query best."""
    best = Hit(0.0, named.id, "name", "")
    for position, own in enumerate(named.words):
        agreed = 0.0
        matched = set[str]()
        for word, closenesses in scoring.closenesses.items():
            meant = [(closenesses[other], other) for other in own if other in closenesses]
            if meant:
                closeness, mate = max(meant)
                agreed += scoring.worth[word] * closeness
                matched.add(mate)
        unasked = len(own) - sum(map(matched.__contains__, own))
        score = scoring.score(agreed, unasked)
        if score > best.score:
            reason = "legal_name" if position == 0 else "other_name"
            best = Hit(rounded(score), named.id, reason, named.names[position], number, named.type)
    return best


_by_number: Final = itemgetter(0, 1)


def _by_id(one: tuple[float, int, Hit | None]) -> tuple[float, str]:
    return one[0], one[2].id if one[2] else ""


async def _record(edition: Edition, index: SearchIndex, number: int) -> SearchRecord:
    # Not through `raw`, whose cache is for words.
    record = _decode((await edition.blocks(index.records, str(number), 0, 1))[0][1])
    if not isinstance(edition, DayView) or index is not ORGANISATIONS:
        return record
    if number not in (await edition.known_days()).renamed:
        return record
    names = await edition.names(number)
    return replace(record, names=tuple(names), words=tuple(tuple(words(name)) for name in names))
