"""Search by name: the rarest words of a query lead to candidates, which are then scored against the whole
query.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.search_records import (
    MACRO_ITEMS,
    MACRO_SPANS,
    ORGANISATIONS,
    SearchIndex,
    SearchRecord,
    code_key,
)
from sankofa.edition.read.edition import BoundedCache, Edition
from sankofa.edition.read.search_words import (
    ClosestMeaning,
    Meaning,
    Meanings,
    kept_meanings,
    known_meanings,
    misspelt_meanings,
    postings_of,
    words_begun,
)
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.limits import limit

LEAST_SCORE: Final = 0.35
_ROUNDED: Final = 0.0001  # what a score may gain by being rounded
_POSTINGS_READ: Final = 4_000
_RARE: Final = 400
_BISECTED: Final = 8
"""How many times as many a list must be before each of some numbers is looked for in it by halves."""


class Scoring:
    """What each word of a query is worth, and the scores of records by the words that they have."""

    def __init__(self, asked: Mapping[str, Meanings], records: int, unasked_weight: float) -> None:
        self.asked = asked
        self.worth = {word: math.log(1 + records / meant.fewest) for word, meant in asked.items()}
        self.whole = sum(self.worth.values())
        self._unasked = unasked_weight * (self.whole / len(self.worth))
        self._candidates = -1
        """How many `candidates` found; before it did, none that there could be."""
        self._looked_up: dict[Meaning, tuple[int, dict[int, ClosestMeaning]]] = {}
        """Those of so many candidates that were found in a long list."""

    @cached_property
    def closenesses(self) -> dict[str, dict[str, float]]:
        """Of each word of the query the words it may mean, each with how close it is."""
        return {word: {one.word: one.closeness for one in meant.words} for word, meant in self.asked.items()}

    def score(self, agreed: float, unasked: int) -> float:
        """Of a name that agrees with so much of the query and has so many words that were not asked for."""
        return agreed / (self.whole + self._unasked * unasked)

    def scores(self, numbers: list[int]) -> dict[int, float]:
        """The scores of those records whose word counts are kept, without reading a record."""
        if not all(meant.counted for meant in self.asked.values()):
            return {}
        closest_meanings = [self._closest(meant) for meant in self.asked.values()]
        scores: dict[int, float] = {}
        known: dict[tuple[ClosestMeaning | None, ...], float] = {}
        for number in numbers:
            # Most candidates agree with a query in one of a few ways, each of which is scored once.
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
        matched: set[str] = set()  # two words of the query may mean the same, which is then matched once
        for worth, meaning in zip(self.worth.values(), agreement, strict=True):
            if meaning is not None:
                other, closeness, words = meaning
                agreed += worth * closeness
                matched.add(other)
        return rounded(self.score(agreed, words - len(matched)))

    async def candidates(self) -> tuple[dict[int, float], bool]:
        """The records that the words lead to, each with the worth of those it has; and whether some were left
        out."""
        weights: dict[int, float] = {}
        passed_over = False
        worth = self.worth
        left = _POSTINGS_READ
        for word in sorted(worth, key=lambda w: (-worth[w], w)) if len(worth) > 1 else worth:
            only_adds = bool(weights)
            for meaning in self.asked[word].words:
                # A word that is but begun narrows what the others lead to; alone it leads itself.
                gain = worth[word] * meaning.closeness
                if not self._add(weights, meaning, gain, only_adds and meaning.closeness < 1.0):
                    passed_over = True
                left -= max(len(meaning.postings.numbers), len(weights))
                if left <= 0:  # others have a turn
                    left = _POSTINGS_READ
                    await asyncio.sleep(0)
        self._candidates = len(weights)
        return weights, passed_over

    def _add(self, weights: dict[int, float], meaning: Meaning, gain: float, only_adds: bool) -> bool:
        """The rarest words make the candidates; a common one only adds to those there are.

        False where there were too many of them to read.
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
            counts = meaning.postings.counts_among(weights)
            for number in counts:
                weights[number] += gain
            closest = {n: (meaning.word, meaning.closeness, count) for n, count in counts.items() if count}
            self._looked_up[meaning] = len(weights), closest
        return True

    def _closest(self, meant: Meanings) -> Callable[[int], ClosestMeaning | None]:
        """`Meanings.closest`, of a single long list without looking for the candidates in it again."""
        if len(meant.words) == 1:
            among, closest = self._looked_up.get(meant.words[0], (0, {}))
            if among == self._candidates:  # none was added since
                return closest.get
        return meant.closest

    def best_first(self, weights: dict[int, float]) -> list[int]:
        """The candidates that may be hits, those with most of the query first, then by number."""
        # What was found of a name is the most it can score: behind the first that falls short, all do.
        least = (LEAST_SCORE - _ROUNDED) * self.whole
        best = sorted([number for number, weight in weights.items() if weight >= least])
        best.sort(key=weights.__getitem__, reverse=True)
        return best


def rounded(score: float) -> float:
    return round(min(score, 0.98), 4)


_WEIGHED = 20
_WEIGHED_PER_YIELD = 128
_SCORED_PER_YIELD = 512
_MOST_WORDS: Final = limit("words of a search", 12, "different words", "the first ones are looked for")
_UNASKED: Final = {ORGANISATIONS: 0.35, MACRO_ITEMS: 0.04}
"""What a word of the name that was not asked for weighs, of an average one that was: indicators are wordy."""
_COMPARED: Final = 200
"""How many codes a mistaken one is compared with."""
ORGANISATION: Final = "organisation"
_NAMES_KEPT: Final = 16_384
"""Of those found last: some are found again and again, whatever is asked. About 5 MB."""
_decode = msgspec.json.Decoder(SearchRecord).decode


class Hit(NamedTuple):
    """What was found: why, by which of its names, and how well (1 is perfect)."""

    score: float
    id: str
    matched_on: str
    matched_value: str
    number: int = -1
    """Its number in the index, where it is a series or an indicator."""
    type: str = ORGANISATION


class NameQuery:
    """The words of a query against one index, in a country where one is given."""

    def __init__(
        self, edition: Edition, index: SearchIndex, query_words: Iterable[str], country: str | None
    ) -> None:
        self._edition = edition
        self._index = index
        self._words = list(islice(dict.fromkeys(query_words), _MOST_WORDS))
        self._scope = f"{country}|" if country else ""
        self.records = int(edition.manifest.get("indexes", {}).get(index.records, 1))
        """How many are in the index."""
        self._known: dict[str, Meanings] | None = None

    async def meanings(self, *, forgiving: bool) -> dict[str, Meanings]:
        """What each word may mean; none where no word is known and slips of the pen are not to be forgiven.

        They are looked for where another word of the query is known in any case.
        """
        edition, index, scope = self._edition, self._index, self._scope
        if not self.records:
            return {}
        if self._known is None:
            last = self._words[-1] if self._words else ""
            self._known = {
                word: kept_meanings(edition, index, word, scope, last=word == last)
                or await known_meanings(edition, index, word, scope, last=word == last)
                for word in self._words
            }
        if not (forgiving or any(known.words for known in self._known.values())):
            return {}
        return {
            word: known if known.words else await misspelt_meanings(edition, index, word, scope)
            for word, known in self._known.items()
        }

    async def search(
        self,
        most: int,
        admits: Callable[[int], bool] | None = None,
        type: str | None = None,
        *,
        forgiving: bool = True,
    ) -> tuple[list[Hit], bool]:
        """The best hits, best first, ties by id; and whether there are others.

        `admits` tells by its number whether a record may be found at all; `type` keeps those of one type.
        """
        asked = await self.meanings(forgiving=forgiving)
        if not asked:
            return [], False
        scoring = Scoring(asked, max(self.records, 1), _UNASKED[self._index])
        weights, passed_over = await scoring.candidates()
        best = scoring.best_first(weights)
        hits: list[tuple[float, int, Hit | None]] = []
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
                hits = [(-score, number, None) for number, score in scores.items() if score >= LEAST_SCORE]
                some = []
            for number in some:
                if len(hits) > most and first:
                    break
                if admits is not None and not admits(number):
                    continue
                hit = None
                if (score := scores.get(number)) is None:
                    await yield_points.step()
                    hit = _weigh(await _record(self._edition, self._index, number), number, scoring)
                    score = hit.score
                if score >= LEAST_SCORE and (type is None or type == (hit.type if hit else ORGANISATION)):
                    hits.append((-score, number, hit))
            if len(hits) > most:
                break
        hits.sort(key=_by_number if self._index.in_order_of_ids else _by_id)
        return await self._complete(hits[:most]), passed_over or len(hits) > most

    async def _complete(self, hits: list[tuple[float, int, Hit | None]]) -> list[Hit]:
        """The hits, with id and name of the record where it was not read to tell the score."""
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


async def search_names(
    edition: Edition, index: SearchIndex, query_words: Iterable[str], country: str | None, most: int
) -> tuple[list[Hit], bool]:
    """See `NameQuery.search`."""
    return await NameQuery(edition, index, query_words, country).search(most)


async def search_code(edition: Edition, code: str) -> list[Hit]:
    """The series and the indicator of a code."""
    hits = []
    for number in (await postings_of(edition, MACRO_ITEMS, code_key(code))).numbers:
        record = await _record(edition, MACRO_ITEMS, number)
        hits.append(Hit(1.0, record.id, record.type, record.id, number, record.type))
    return hits


async def macro_spans(edition: Edition) -> memoryview:
    """Of each series or indicator, by number, the [first, end) of its entries in the catalogue."""
    return await edition.numbers(MACRO_SPANS, "", keep=True)


async def series_named(edition: Edition, query_words: list[str]) -> list[tuple[int, int]]:
    """The entries of the catalogue that have every word, or one that begins with it: [first, end) of each."""
    named: set[int] | None = None
    for word in query_words[:_MOST_WORDS]:
        own = set((await postings_of(edition, MACRO_ITEMS, word)).numbers)
        for other in await words_begun(edition, MACRO_ITEMS, word):
            own.update((await postings_of(edition, MACRO_ITEMS, other)).numbers)
        named = own if named is None else named & own
    spans = await macro_spans(edition)
    return [(spans[2 * number], spans[2 * number + 1]) for number in sorted(named or ())]


async def codes_sharing_words(edition: Edition, query_words: Iterable[str]) -> list[str]:
    """Some codes of series and indicators that share a word with a query, or a word a slip away."""
    numbers: dict[int, None] = {}
    for word in islice(dict.fromkeys(query_words), _MOST_WORDS):
        meant = await known_meanings(edition, MACRO_ITEMS, word, "", last=True)
        if not meant.words:
            meant = await misspelt_meanings(edition, MACRO_ITEMS, word, "")
        for _, _, postings in meant.words:
            numbers.update(dict.fromkeys(postings.numbers[:_COMPARED]))
    return [(await _record(edition, MACRO_ITEMS, n)).id for n in islice(numbers, _COMPARED)]


async def search_symbol(edition: Edition, symbol: str) -> list[Hit]:
    """Every listing of a bare ticker symbol, whatever the exchange."""
    symbol = symbol.strip().upper()
    hits = []
    for number in (await postings_of(edition, ORGANISATIONS, code_key(symbol))).numbers[:_WEIGHED]:
        named = await _record(edition, ORGANISATIONS, number)
        ticker = next(t for t in named.tickers if t.partition(":")[2] == symbol)
        hits.append(Hit(0.99, named.id, "ticker", ticker))
    return hits


def _weigh(named: SearchRecord, number: int, scoring: Scoring) -> Hit:
    """How well the best of a record's names agrees with the query, either way round."""
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
    # Not by `raw`, which would keep where it stands, in the place of a word that many ask for.
    return _decode((await edition.blocks(index.records, str(number), 0, 1))[0][1])
