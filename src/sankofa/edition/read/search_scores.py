"""The scores of candidates: which records the words of a query lead to, and how well each agrees with it."""

import asyncio
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from sankofa.edition.read.search_words import Meanings

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

    @cached_property
    def closenesses(self) -> dict[str, dict[str, float]]:
        """Of each word of the query the words it may mean, each with how close it is."""
        return {word: {one.word: one.closeness for one in meant.words} for word, meant in self.asked.items()}

    @cached_property
    def _lookups(self) -> list[list[tuple[str, float, Callable[[int], int | None]]]]:
        """By word of the query, the closest meaning first: the word, what it is worth, and who has it."""
        return [
            [
                (other, worth * closeness, postings.count_of)
                for other, closeness, postings in meant.closest_first
            ]
            for worth, meant in zip(self.worth.values(), self.asked.values(), strict=True)
        ]

    def score(self, agreed: float, unasked: int) -> float:
        """Of a name that agrees with so much of the query and has so many words that were not asked for."""
        return agreed / (self.whole + self._unasked * unasked)

    def scores(self, numbers: list[int]) -> dict[int, float]:
        """The scores of those records whose word counts are kept, without reading a record."""
        for meant in self.asked.values():
            if not meant.counted:
                return {}
        scores: dict[int, float] = {}
        for number in numbers:
            agreed = 0.0
            words = 0
            matched: set[str] = set()  # two words of the query may mean the same, which is then matched once
            for lookups in self._lookups:
                for other, gain, count_of in lookups:
                    if count := count_of(number):
                        agreed += gain
                        words = count
                        matched.add(other)
                        break
            if words:
                scores[number] = rounded(self.score(agreed, words - len(matched)))
        return scores

    async def candidates(self) -> tuple[dict[int, float], bool]:
        """The records that the words lead to, each with the worth of those it has; and whether some were left
        out."""
        weights: dict[int, float] = {}
        passed_over = False
        worth = self.worth
        left = _POSTINGS_READ
        for word in sorted(worth, key=lambda w: (-worth[w], w)) if len(worth) > 1 else worth:
            only_adds = bool(weights)
            for _, closeness, postings in self.asked[word].words:
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
