"""Search by name: the rarest words of a query lead to candidates, which are then weighed against it whole."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
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
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.search_words import (
    Meaning,
    Postings,
    known_meanings,
    misspelt_meanings,
    postings_of,
    words_begun,
)
from sankofa.edition.read.turns import Turns

_POSTINGS_READ = 4_000
_RARE = 400
_BISECTED = 8
"""How many times as many a list must be before each of some numbers is looked for in it by halves."""
_WEIGHED = 20
_WEIGHED_A_TURN = 128
_MOST_WORDS = 12
_LEAST_SCORE = 0.35
_ROUNDED = 0.0001  # what a score may gain by being rounded
_UNASKED: Final = {ORGANISATIONS: 0.35, MACRO_ITEMS: 0.04}
"""What a word of the name that was not asked for weighs, of an average one that was: indicators are wordy."""
_COMPARED: Final = 200
"""How many codes a mistaken one is compared with."""
ORGANISATION: Final = "organisation"
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
        self._records = int(edition.manifest.get("indexes", {}).get(index.records, 1))
        self._known: dict[str, list[Meaning]] | None = None

    async def meanings(self, *, forgiving: bool) -> dict[str, list[Meaning]]:
        """What each word may mean; none where no word is known and slips of the pen are not to be forgiven.

        They are looked for where another word of the query is known in any case.
        """
        edition, index, scope = self._edition, self._index, self._scope
        if not self._records:
            return {}
        if self._known is None:
            last = self._words[-1] if self._words else ""
            self._known = {
                word: await known_meanings(edition, index, word, scope, last=word == last)
                for word in self._words
            }
        if not (forgiving or any(self._known.values())):
            return {}
        return {
            word: known or await misspelt_meanings(edition, index, word, scope)
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
        scoring = Scoring(asked, max(self._records, 1), _UNASKED[self._index])
        weights, passed_over = await _candidates(asked, scoring.worth)
        # What was found of a name is the most it can score: behind the first that falls short, all do.
        least = (_LEAST_SCORE - _ROUNDED) * scoring.whole
        best = sorted(number for number, weight in weights.items() if weight >= least)
        best.sort(key=weights.__getitem__, reverse=True)
        hits: list[tuple[float, int, Hit | None]] = []
        scores: dict[int, float] = {}
        at_once = max(_WEIGHED, most + 1)
        turns = Turns(_WEIGHED_A_TURN)
        for rank, number in enumerate(best):
            if len(hits) > most and rank >= at_once:
                break
            if rank % at_once == 0:
                scores = scoring.scores(best[rank : rank + at_once])
            if admits is not None and not admits(number):
                continue
            score, hit = scores.get(number), None
            if score is None:
                await turns.step()
                hit = _weigh(await _record(self._edition, self._index, number), number, scoring)
                score = hit.score
            if score >= _LEAST_SCORE and type in (None, hit.type if hit else ORGANISATION):
                hits.append((-score, number, hit))
        hits.sort(key=_by_number if self._index.in_order_of_ids else _by_id)
        return [await self._hit(*hit) for hit in hits[:most]], passed_over or len(hits) > most

    async def _hit(self, score: float, number: int, hit: Hit | None) -> Hit:
        """A hit with the id and name of its record, where that was not read to tell the score."""
        if hit is not None:
            return hit
        record = await _record(self._edition, self._index, number)
        return Hit(-score, record.id, "legal_name", record.names[0], number)


async def search_names(
    edition: Edition, index: SearchIndex, query_words: Iterable[str], country: str | None, most: int
) -> tuple[list[Hit], bool]:
    """See `NameQuery.search`."""
    return await NameQuery(edition, index, query_words, country).search(most)


class Scoring:
    """What each word of a query is worth, and the scores of records by the words that they have."""

    def __init__(self, asked: dict[str, list[Meaning]], records: int, unasked_weight: float) -> None:
        self.asked = asked
        self.worth: dict[str, float] = {}
        for word, meant in asked.items():
            exact = [len(one.postings.numbers) for one in meant if one.closeness == 1.0]
            fewest = min(exact or (len(one.postings.numbers) for one in meant), default=1)
            self.worth[word] = math.log(1 + records / fewest)
        self.closenesses = {word: {one.word: one.closeness for one in meant} for word, meant in asked.items()}
        self.whole = sum(self.worth.values())
        self._unasked = unasked_weight * (self.whole / len(self.worth))

    def score(self, agreed: float, unasked: int) -> float:
        """Of a name that agrees with so much of the query and has so many words that were not asked for."""
        return agreed / (self.whole + self._unasked * unasked)

    def scores(self, numbers: list[int]) -> dict[int, float]:
        """The scores of those records whose word counts are kept, without reading a record."""
        wanted = set(numbers)
        agreed = dict.fromkeys(numbers, 0.0)
        unasked: dict[int, int] = {}
        seen: set[tuple[int, str]] = set()
        several = len(self.asked) > 1  # of which two may mean the same word, which is then matched once
        for word, meant in self.asked.items():
            closest: dict[int, tuple[float, str]] = {}
            for other, closeness, postings in meant:
                if not postings.word_counts:
                    return {}
                for number, count in _counted(postings, numbers, wanted):
                    if count and (number not in closest or closest[number] < (closeness, other)):
                        closest[number] = closeness, other
                        unasked.setdefault(number, count)
            worth = self.worth[word]
            for number, (closeness, other) in closest.items():
                agreed[number] += worth * closeness
                if not (several and (number, other) in seen):
                    unasked[number] -= 1
                    seen.add((number, other))
        return {number: _rounded(self.score(agreed[number], left)) for number, left in unasked.items()}


def _counted(postings: Postings, numbers: list[int], wanted: set[int]) -> Iterable[tuple[int, int]]:
    """Those of some records that have a word, each with the number of its words."""
    held, counts = postings
    if len(held) <= _BISECTED * len(numbers):  # behind the counts is padding
        return [pair for pair in zip(held, counts, strict=False) if pair[0] in wanted]
    places = [(number, bisect_left(held, number)) for number in numbers]
    return [(number, counts[at]) for number, at in places if at < len(held) and held[at] == number]


async def _candidates(
    asked: dict[str, list[Meaning]], worth: dict[str, float]
) -> tuple[dict[int, float], bool]:
    """The records that the words lead to, each with the worth of those it has; and whether some were left
    out."""
    weights: defaultdict[int, float] = defaultdict(float)
    passed_over = False
    turns = Turns(_POSTINGS_READ)
    for word in sorted(worth, key=lambda w: (-worth[w], w)):
        only_adds = bool(weights)
        for _, closeness, (held, _) in asked[word]:
            # A word that is but begun narrows what the others lead to; alone it leads itself.
            passed_over |= not _add(weights, held, worth[word] * closeness, only_adds and closeness < 1.0)
            await turns.step(max(len(held), len(weights)))
    return weights, passed_over


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
        known = await known_meanings(edition, MACRO_ITEMS, word, "", last=True)
        for _, _, (held, _) in known or await misspelt_meanings(edition, MACRO_ITEMS, word, ""):
            numbers.update(dict.fromkeys(held[:_COMPARED]))
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


def _add(weights: defaultdict[int, float], held: memoryview, weight: float, only_adds: bool) -> bool:
    """The rarest words make the candidates; a common one only adds to those there are.

    False where there were too many of them to read.
    """
    if weights and (only_adds or len(held) > _RARE):
        if len(held) < _BISECTED * len(weights):
            for number in held:
                if number in weights:
                    weights[number] += weight
            return True
        for number in weights:
            at = bisect_left(held, number)
            if at < len(held) and held[at] == number:
                weights[number] += weight
    else:
        for number in held[:_POSTINGS_READ]:
            weights[number] += weight
        return len(held) <= _POSTINGS_READ
    return True


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
            best = Hit(_rounded(score), named.id, reason, named.names[position], number, named.type)
    return best


def _rounded(score: float) -> float:
    return round(min(score, 0.98), 4)


_by_number: Final = itemgetter(0, 1)


def _by_id(one: tuple[float, int, Hit | None]) -> tuple[float, str]:
    return one[0], one[2].id if one[2] else ""


async def _record(edition: Edition, index: SearchIndex, number: int) -> SearchRecord:
    # Not by `raw`, which would keep where it stands, in the place of a word that many ask for.
    return _decode((await edition.blocks(index.records, str(number), 0, 1))[0][1])
