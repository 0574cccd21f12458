"""The scores of candidates: which records the words of a query lead to, and how well each agrees with it."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

from sankofa.edition.read.search_words import ClosestMeaning, Meaning, Meanings

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
