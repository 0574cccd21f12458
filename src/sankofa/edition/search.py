"""Search by name: the rarest words of a query lead to candidates, which are then weighed against it whole."""

import math
from array import array
from collections import defaultdict
from typing import NamedTuple

import msgspec

from sankofa.edition.datasets.names import Named, bucket
from sankofa.edition.reading import Edition
from sankofa.model.names import neighbourhood, slips, tolerated, words

_POSTINGS_READ = 20_000
_WEIGHED = 60
_LEAST_SCORE = 0.35
_decode = msgspec.json.Decoder(Named).decode


class Hit(NamedTuple):
    """An organisation found: why, by which of its names, and how well (1 is perfect)."""

    score: float
    service_id: str
    matched_on: str
    matched_value: str


class _Meant(NamedTuple):
    """A word of the index that a word of the query may mean."""

    word: str
    closeness: float
    holders: "array[int]"


async def search_names(edition: Edition, query: str, country: str | None, most: int) -> list[Hit]:
    """The best hits for a name, best first; ties by service_id."""
    asked = list(dict.fromkeys(words(query)))[:12]
    meanings = [await _meanings(edition, word, country) for word in asked]
    size = max(int(edition.manifest.get("indexes", {}).get("named", 1)), 1)
    worth = [math.log(1 + size / min((len(m.holders) for m in meant), default=1)) for meant in meanings]
    found: defaultdict[int, float] = defaultdict(float)
    rarest_first = sorted(zip(worth, meanings, strict=True), key=lambda pair: -pair[0])
    for weight, meant in rarest_first:
        known = bool(found)
        for meaning in meant:
            if len(meaning.holders) > _POSTINGS_READ and known:
                for number in found.keys() & set(meaning.holders):
                    found[number] += weight * meaning.closeness
            else:
                for number in meaning.holders[:_POSTINGS_READ]:
                    found[number] += weight * meaning.closeness
    best = sorted(found, key=lambda number: (-found[number], number))[: max(_WEIGHED, most)]
    hits = [await _weigh(edition, number, asked, dict(zip(asked, worth, strict=True))) for number in best]
    return sorted((h for h in hits if h.score >= _LEAST_SCORE), key=lambda h: (-h.score, h.service_id))[:most]


async def search_symbol(edition: Edition, symbol: str, country: str | None) -> list[Hit]:
    """Every listing of a bare ticker symbol, whatever the exchange."""
    hits = []
    for number in await _holders(edition, f"${symbol.strip().upper()}"):
        named = await _named(edition, number)
        if country is None or named.country == country:
            ticker = next(t for t in named.tickers if t.partition(":")[2] == symbol.strip().upper())
            hits.append(Hit(0.99, named.service_id, "ticker", ticker))
    return hits


async def _meanings(edition: Edition, word: str, country: str | None) -> list[_Meant]:
    """The word itself where it is known; else the known words a slip of the pen away."""
    scope = f"{country}|" if country else ""
    holders = await _holders(edition, scope + word)
    if holders:
        return [_Meant(word, 1.0, holders)]
    buckets = int(edition.manifest.get("name_buckets", 1))
    allowed = tolerated(word)
    near: set[str] = set()
    if allowed:
        for place in {bucket(form, buckets) for form in neighbourhood(word)}:
            near.update((await edition.raw("near", str(place)) or b"").decode().split())
    meant = []
    for other in sorted(near):
        if abs(len(other) - len(word)) <= allowed and (distance := slips(word, other)) <= allowed:
            holders = await _holders(edition, scope + other)
            if holders:
                meant.append(_Meant(other, 1 - distance / (len(word) + 1), holders))
    return sorted(meant, key=lambda m: (-m.closeness, m.word))[:8]


async def _weigh(edition: Edition, number: int, asked: list[str], worth: dict[str, float]) -> Hit:
    """How well the best of an organisation's names agrees with the query, either way round."""
    named = await _named(edition, number)
    best = Hit(0.0, named.service_id, "name", "")
    for position, name in enumerate(named.names):
        own = words(name)
        agreed = 0.0
        matched = set[str]()
        for word in asked:
            closeness, mate = max(((_closeness(word, other), other) for other in own), default=(0.0, ""))
            agreed += worth[word] * closeness
            if closeness:
                matched.add(mate)
        everything = sum(worth.values()) + 0.35 * sum(
            _plain_worth(worth) for other in own if other not in matched
        )
        score = agreed / everything if everything else 0.0
        if score > best.score:
            reason = "legal_name" if position == 0 else "other_name"
            best = Hit(round(min(score, 0.98), 4), named.service_id, reason, name)
    return best


def _closeness(word: str, other: str) -> float:
    if word == other:
        return 1.0
    allowed = tolerated(word)
    if not allowed or abs(len(word) - len(other)) > allowed:
        return 0.0
    distance = slips(word, other)
    return 1 - distance / (len(word) + 1) if distance <= allowed else 0.0


def _plain_worth(worth: dict[str, float]) -> float:
    """A word of the name that was not asked for weighs like an average one that was."""
    return sum(worth.values()) / len(worth) if worth else 0.0


async def _holders(edition: Edition, key: str) -> "array[int]":
    holders = array("I")
    holders.frombytes(await edition.raw("word", key) or b"")
    return holders


async def _named(edition: Edition, number: int) -> Named:
    found = await edition.raw("named", str(number))
    assert found is not None, "the index names only what is there"  # noqa: S101 - checked when it was built
    return _decode(found)
