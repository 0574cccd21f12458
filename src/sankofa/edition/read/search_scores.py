"""The scores of candidates: which records the words of a query lead to, and how well each agrees with it."""

import asyncio
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Final

from sankofa.edition.read.search_words import Meaning, Postings

LEAST_SCORE: Final = 0.35
_ROUNDED: Final = 0.0001  # what a score may gain by being rounded
_POSTINGS_READ: Final = 4_000
_RARE: Final = 400
_BISECTED: Final = 8
"""How many times as many a list must be before each of some numbers is looked for in it by halves."""
_by_closeness: Final = itemgetter(1, 0)


class Scoring:
    """What each word of a query is worth, and the scores of records by the words that they have."""

    def __init__(self, asked: Mapping[str, list[Meaning]], records: int, unasked_weight: float) -> None:
        self.asked = asked
        self.worth: dict[str, float] = {}
        for word, meant in asked.items():
            exact = [len(one.postings.numbers) for one in meant if one.closeness == 1.0]
            fewest = min(exact or [len(one.postings.numbers) for one in meant], default=1)
            self.worth[word] = math.log(1 + records / fewest)
        self.whole = sum(self.worth.values())
        self._unasked = unasked_weight * (self.whole / len(self.worth))

    @cached_property
    def closenesses(self) -> dict[str, dict[str, float]]:
        """Of each word of the query the words it may mean, each with how close it is."""
        return {word: {one.word: one.closeness for one in meant} for word, meant in self.asked.items()}

    def score(self, agreed: float, unasked: int) -> float:
        """Of a name that agrees with so much of the query and has so many words that were not asked for."""
        return agreed / (self.whole + self._unasked * unasked)

    def scores(self, numbers: list[int]) -> dict[int, float]:
        """The scores of those records whose word counts are kept, without reading a record."""
        wanted = set(numbers)
        agreed: dict[int, float] = {}
        unasked: dict[int, int] = {}
        several = len(self.asked) > 1  # of which two may mean the same word, which is then matched once
        matched: set[tuple[int, str]] = set()
        for word, meant in self.asked.items():
            worth = self.worth[word]
            scored: set[int] = set()
            # The closest word of a name counts, so it comes first.
            for other, closeness, postings in sorted(meant, key=_by_closeness, reverse=True):
                if not postings.word_counts:
                    return {}
                gain = worth * closeness
                for number, count in _counted(postings, numbers, wanted):
                    if not count or number in scored:
                        continue
                    scored.add(number)
                    agreed[number] = agreed.get(number, 0.0) + gain
                    left = unasked.get(number, count)
                    if several:
                        if (number, other) in matched:
                            left += 1
                        matched.add((number, other))
                    unasked[number] = left - 1
        return {number: rounded(self.score(agreed[number], left)) for number, left in unasked.items()}

    async def candidates(self) -> tuple[dict[int, float], bool]:
        """The records that the words lead to, each with the worth of those it has; and whether some were left
        out."""
        weights: dict[int, float] = {}
        passed_over = False
        worth = self.worth
        left = _POSTINGS_READ
        for word in sorted(worth, key=lambda w: (-worth[w], w)) if len(worth) > 1 else worth:
            only_adds = bool(weights)
            for _, closeness, postings in self.asked[word]:
                # A word that is but begun narrows what the others lead to; alone it leads itself.
                gain = worth[word] * closeness
                if not _add(weights, postings.numbers, gain, only_adds and closeness < 1.0):
                    passed_over = True
                left -= max(len(postings.numbers), len(weights))
                if left <= 0:  # others have a turn
                    left = _POSTINGS_READ
                    await asyncio.sleep(0)
        return weights, passed_over

    def best_first(self, weights: dict[int, float]) -> list[int]:
        """The candidates that may be hits, those with most of the query first, then by number."""
        # What was found of a name is the most it can score: behind the first that falls short, all do.
        least = (LEAST_SCORE - _ROUNDED) * self.whole
        best = sorted([number for number, weight in weights.items() if weight >= least])
        best.sort(key=weights.__getitem__, reverse=True)
        return best


def _counted(postings: Postings, numbers: list[int], wanted: set[int]) -> Iterable[tuple[int, int]]:
    """Those of some records that have a word, each with the number of its words."""
    held = postings.numbers
    if (few := postings.counts_by_record) is not None:
        return [(number, few[number]) for number in wanted & few.keys()]
    counts = postings.word_counts
    if len(held) <= _BISECTED * len(numbers):  # behind the counts is padding
        return [pair for pair in zip(held, counts, strict=False) if pair[0] in wanted]
    places = [(number, bisect_left(held, number)) for number in numbers]
    return [(number, counts[at]) for number, at in places if at < len(held) and held[at] == number]


def _add(weights: dict[int, float], held: memoryview, weight: float, only_adds: bool) -> bool:
    """The rarest words make the candidates; a common one only adds to those there are.

    False where there were too many of them to read.
    """
    if not weights:
        weights.update(dict.fromkeys(held[:_POSTINGS_READ], weight))
        return len(held) <= _POSTINGS_READ
    if only_adds or len(held) > _RARE:
        if len(held) < _BISECTED * len(weights):
            for number in weights.keys() & held:
                weights[number] += weight
            return True
        for number in weights:
            at = bisect_left(held, number)
            if at < len(held) and held[at] == number:
                weights[number] += weight
        return True
    for number in held:
        weights[number] = weights.get(number, 0.0) + weight
    return True


def rounded(score: float) -> float:
    return round(min(score, 0.98), 4)
