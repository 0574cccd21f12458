"""Search by name: the rarest words of a query lead to candidates, which are then weighed against it whole."""

import asyncio
import math
from bisect import bisect_left
from collections import defaultdict
from itertools import takewhile
from typing import NamedTuple

import msgspec

from sankofa.edition.format.search_records import SearchRecord, bucket
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.turns import Turns
from sankofa.model.names import neighbourhood, slips, tolerated, words

_POSTINGS_READ = 4_000
_RARE = 400
_WEIGHED = 20
_WEIGHED_A_TURN = 128
_WORDS_A_TURN = 256
_MOST_WORDS = 12
_LEAST_SCORE = 0.35
_ROUNDED = 0.0001  # what a score may gain by being rounded
_UNASKED = 0.35  # what a word of the name that was not asked for weighs, of an average one that was
_decode = msgspec.json.Decoder(SearchRecord).decode

Holders = memoryview
"""The numbers of the organisations that have a word, in order; a view of the index."""
Meanings = dict[str, float]
"""The words of the index that a word of the query may mean, and how close each is."""


class Hit(NamedTuple):
    """An organisation found: why, by which of its names, and how well (1 is perfect)."""

    score: float
    service_id: str
    matched_on: str
    matched_value: str


async def search_names(
    edition: Edition, query: str, country: str | None, most: int
) -> tuple[list[Hit], bool]:
    """The best hits for a name, best first, ties by service_id; and whether there are others."""
    asked: dict[str, Meanings] = {}
    worth: dict[str, float] = {}
    holders: dict[str, list[tuple[float, Holders]]] = {}
    size = max(int(edition.manifest.get("indexes", {}).get("named", 1)), 1)
    for word in dict.fromkeys(words(query)[:_MOST_WORDS]):
        meant = await _meanings(edition, word, country)
        asked[word] = {other: closeness for other, closeness, _ in meant}
        holders[word] = [(closeness, held) for _, closeness, held in meant]
        worth[word] = math.log(1 + size / min((len(held) for _, held in holders[word]), default=1))
    weights: defaultdict[int, float] = defaultdict(float)
    passed_over = False
    for word in sorted(worth, key=lambda w: -worth[w]):
        for closeness, held in holders[word]:
            passed_over |= not _add(weights, held, worth[word] * closeness)
            await asyncio.sleep(0)
    best = sorted(weights, key=lambda number: (-weights[number], number))
    # What was found of a name is the most it can score: behind the first that falls short, all do.
    least = (_LEAST_SCORE - _ROUNDED) * sum(worth.values())
    hits: list[Hit] = []
    turns = Turns(_WEIGHED_A_TURN)
    for rank, number in enumerate(takewhile(lambda number: weights[number] >= least, best)):
        if len(hits) > most and rank >= max(_WEIGHED, most + 1):
            break
        hit = _weigh(await _named(edition, number), asked, worth)
        if hit.score >= _LEAST_SCORE:
            hits.append(hit)
        await turns.step()
    hits.sort(key=lambda h: (-h.score, h.service_id))
    return hits[:most], passed_over or len(hits) > most


async def search_symbol(edition: Edition, symbol: str) -> list[Hit]:
    """Every listing of a bare ticker symbol, whatever the exchange."""
    symbol = symbol.strip().upper()
    hits = []
    for number in (await _holders(edition, f"${symbol}"))[:_WEIGHED]:
        named = await _named(edition, number)
        ticker = next(t for t in named.tickers if t.partition(":")[2] == symbol)
        hits.append(Hit(0.99, named.service_id, "ticker", ticker))
    return hits


def _add(weights: defaultdict[int, float], held: Holders, weight: float) -> bool:
    """The rarest words make the candidates; a common one only adds to those there are.

    False where there were too many of them to read.
    """
    if weights and len(held) > _RARE:
        for number in weights:
            at = bisect_left(held, number)
            if at < len(held) and held[at] == number:
                weights[number] += weight
    else:
        for number in held[:_POSTINGS_READ]:
            weights[number] += weight
        return len(held) <= _POSTINGS_READ
    return True


async def _meanings(edition: Edition, word: str, country: str | None) -> list[tuple[str, float, Holders]]:
    """The word itself where it is known; else the known words a slip of the pen away."""
    scope = f"{country}|" if country else ""
    held = await _holders(edition, scope + word)
    if held:
        return [(word, 1.0, held)]
    allowed = tolerated(word)
    if not allowed:
        return []
    buckets = int(edition.manifest.get("name_buckets", 1))
    forms = set(neighbourhood(word))
    near: set[str] = set()
    turns = Turns(_WORDS_A_TURN)
    for number in {bucket(form, buckets) for form in forms}:
        await turns.step(8)
        near.update(bytes(await edition.raw("near", str(number)) or b"").decode().split())
    meant = []
    for other in sorted(near):  # a bucket holds strangers too: they share no form
        await turns.step()
        if not forms.isdisjoint(neighbourhood(other)) and (distance := slips(word, other)) <= allowed:
            held = await _holders(edition, scope + other)
            if held:
                meant.append((other, 1 - distance / (len(word) + 1), held))
    return sorted(meant, key=lambda m: (-m[1], m[0]))[:8]


def _weigh(named: SearchRecord, asked: dict[str, Meanings], worth: dict[str, float]) -> Hit:
    """How well the best of an organisation's names agrees with the query, either way round."""
    best = Hit(0.0, named.service_id, "name", "")
    whole = sum(worth.values())
    average = whole / len(worth)
    for position, own in enumerate(named.words):
        agreed = 0.0
        matched = set[str]()
        for word, meanings in asked.items():
            closeness, mate = max(((meanings.get(other, 0.0), other) for other in own), default=(0.0, ""))
            if closeness:
                agreed += worth[word] * closeness
                matched.add(mate)
        unasked = sum(other not in matched for other in own)
        score = agreed / (whole + _UNASKED * average * unasked)
        if score > best.score:
            reason = "legal_name" if position == 0 else "other_name"
            best = Hit(round(min(score, 0.98), 4), named.service_id, reason, named.names[position])
    return best


async def _holders(edition: Edition, key: str) -> Holders:
    return memoryview(await edition.raw("word", key) or b"").cast("I")


async def _named(edition: Edition, number: int) -> SearchRecord:
    return _decode(await edition.raw("named", str(number)) or b"")
