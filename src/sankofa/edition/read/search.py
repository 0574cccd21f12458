"""Search by name: the rarest words of a query lead to candidates, which are then weighed against it whole."""

import asyncio
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
from sankofa.edition.read.bounded_cache import BoundedCache
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.search_scores import LEAST_SCORE, Scoring, rounded
from sankofa.edition.read.search_words import (
    Meanings,
    kept_meanings,
    known_meanings,
    misspelt_meanings,
    postings_of,
    words_begun,
)
from sankofa.edition.read.turns import Turns
from sankofa.model.limits import limit

_WEIGHED = 20
_WEIGHED_A_TURN = 128
_SCORED_A_TURN = 512
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
        turns = Turns(_WEIGHED_A_TURN)
        for first in range(0, len(best), at_once):
            some = best[first : first + at_once]
            scores: dict[int, float] = {}
            for start in range(0, len(some), _SCORED_A_TURN):
                if start:
                    await asyncio.sleep(0)
                scores |= scoring.scores(some[start : start + _SCORED_A_TURN])
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
                    await turns.step()
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
        turns = Turns(_WEIGHED_A_TURN)
        for score, number, hit in hits:
            if hit is None:
                if (named := cache.get(number)) is None:
                    await turns.step()
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
