"""Search by name: the rarest words of a query lead to candidates, which are then weighed against it whole."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import islice, takewhile
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.search_records import (
    LETTERS,
    MACRO_ITEMS,
    MACRO_SPANS,
    ORGANISATIONS,
    SearchIndex,
    SearchRecord,
    bucket,
    code_key,
)
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.turns import Turns
from sankofa.model.names import are_near, neighbourhood, slips, tolerated

_POSTINGS_READ = 4_000
_RARE = 400
_WEIGHED = 20
_WEIGHED_A_TURN = 128
_WORDS_A_TURN = 256
_MOST_WORDS = 12
_LEAST_SCORE = 0.35
_ROUNDED = 0.0001  # what a score may gain by being rounded
_UNASKED: Final = {ORGANISATIONS: 0.35, MACRO_ITEMS: 0.04}
"""What a word of the name that was not asked for weighs, of an average one that was: indicators are wordy."""
_COMPARED: Final = 200
"""How many codes a mistaken one is compared with."""
_EVERY: Final = 2**31 - 1
_BEGUN: Final = 8
"""How many words a word that is only begun may mean."""
_decode = msgspec.json.Decoder(SearchRecord).decode

Holders = memoryview
"""The numbers of the records that have a word, in order; a view of the index."""
Meaning = tuple[str, float, Holders]
"""A word of the index that a word of the query may mean, how close it is, and who has it."""
Meanings = dict[str, float]
"""The words of the index that a word of the query may mean, and how close each is."""


class Hit(NamedTuple):
    """What was found: why, by which of its names, and how well (1 is perfect)."""

    score: float
    id: str
    matched_on: str
    matched_value: str
    number: int = -1
    """Its number in the index, where it is a series or an indicator."""
    type: str = "organisation"


async def search_names(
    edition: Edition,
    index: SearchIndex,
    query_words: Iterable[str],
    country: str | None,
    most: int,
    admits: Callable[[int], bool] | None = None,
    type: str | None = None,
    *,
    forgiving: bool = True,
) -> tuple[list[Hit], bool]:
    """The best hits for the words of a name, best first, ties by id; and whether there are others.

    `admits` tells by its number whether a record may be found at all; `type` keeps those of one type. Slips
    of the pen are looked for where another word of the query is known, else only where it is `forgiving`.
    """
    asked: dict[str, Meanings] = {}
    worth: dict[str, float] = {}
    holders: dict[str, list[tuple[float, Holders]]] = {}
    records = int(edition.manifest.get("indexes", {}).get(index.records, 1))
    if not records:
        return [], False
    size = max(records, 1)
    asked_words = list(islice(dict.fromkeys(query_words), _MOST_WORDS))
    scope = f"{country}|" if country else ""
    meanings = {
        word: await _known(edition, index, word, scope, last=word == asked_words[-1]) for word in asked_words
    }
    if not (forgiving or any(meanings.values())):
        return [], False
    for word, known in meanings.items():
        meant = known or await _slips(edition, index, word, scope)
        asked[word] = {other: closeness for other, closeness, _ in meant}
        holders[word] = [(closeness, held) for _, closeness, held in meant]
        exact = [len(held) for closeness, held in holders[word] if closeness == 1.0]
        fewest = min(exact or (len(held) for _, held in holders[word]), default=1)
        worth[word] = math.log(1 + size / fewest)
    weights: defaultdict[int, float] = defaultdict(float)
    passed_over = False
    turns = Turns(_POSTINGS_READ)
    for word in sorted(worth, key=lambda w: (-worth[w], w)):
        only_adds = bool(weights)
        for closeness, held in holders[word]:
            # A word that is but begun narrows what the others lead to; alone it leads itself.
            passed_over |= not _add(weights, held, worth[word] * closeness, only_adds and closeness < 1.0)
            await turns.step(max(len(held), len(weights)))
    best = sorted(weights, key=lambda number: (-weights[number], number))
    # What was found of a name is the most it can score: behind the first that falls short, all do.
    least = (_LEAST_SCORE - _ROUNDED) * sum(worth.values())
    hits: list[Hit] = []
    turns = Turns(_WEIGHED_A_TURN)
    for rank, number in enumerate(takewhile(lambda number: weights[number] >= least, best)):
        if len(hits) > most and rank >= max(_WEIGHED, most + 1):
            break
        await turns.step()
        if admits is not None and not admits(number):
            continue
        hit = _weigh(await _record(edition, index, number), number, asked, worth, _UNASKED[index])
        if hit.score >= _LEAST_SCORE and type in (None, hit.type):
            hits.append(hit)
    hits.sort(key=lambda h: (-h.score, h.id))
    return hits[:most], passed_over or len(hits) > most


async def search_code(edition: Edition, code: str) -> list[Hit]:
    """The series and the indicator of a code."""
    hits = []
    for number in await _holders(edition, MACRO_ITEMS, code_key(code)):
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
        own = set(await _holders(edition, MACRO_ITEMS, word))
        for other in await _begun(edition, MACRO_ITEMS, word):
            own.update(await _holders(edition, MACRO_ITEMS, other))
        named = own if named is None else named & own
    spans = await macro_spans(edition)
    return [(spans[2 * number], spans[2 * number + 1]) for number in sorted(named or ())]


async def codes_sharing_words(edition: Edition, query_words: Iterable[str]) -> list[str]:
    """Some codes of series and indicators that share a word with a query, or a word a slip away."""
    numbers: dict[int, None] = {}
    for word in islice(dict.fromkeys(query_words), _MOST_WORDS):
        known = await _known(edition, MACRO_ITEMS, word, "", last=True)
        for _, _, held in known or await _slips(edition, MACRO_ITEMS, word, ""):
            numbers.update(dict.fromkeys(held[:_COMPARED]))
    return [(await _record(edition, MACRO_ITEMS, n)).id for n in islice(numbers, _COMPARED)]


async def search_symbol(edition: Edition, symbol: str) -> list[Hit]:
    """Every listing of a bare ticker symbol, whatever the exchange."""
    symbol = symbol.strip().upper()
    hits = []
    for number in (await _holders(edition, ORGANISATIONS, code_key(symbol)))[:_WEIGHED]:
        named = await _record(edition, ORGANISATIONS, number)
        ticker = next(t for t in named.tickers if t.partition(":")[2] == symbol)
        hits.append(Hit(0.99, named.id, "ticker", ticker))
    return hits


def _add(weights: defaultdict[int, float], held: Holders, weight: float, only_adds: bool) -> bool:
    """The rarest words make the candidates; a common one only adds to those there are.

    False where there were too many of them to read.
    """
    if weights and (only_adds or len(held) > _RARE):
        for number in weights:
            at = bisect_left(held, number)
            if at < len(held) and held[at] == number:
                weights[number] += weight
    else:
        for number in held[:_POSTINGS_READ]:
            weights[number] += weight
        return len(held) <= _POSTINGS_READ
    return True


async def _known(edition: Edition, index: SearchIndex, word: str, scope: str, *, last: bool) -> list[Meaning]:
    """The word itself where it is known, and the words it begins, where it is not or is the last one."""
    held = await _holders(edition, index, scope + word)
    meant = [(word, 1.0, held)] if held else []
    if last or not held:
        for other in await _begun(edition, index, word, _BEGUN):
            if other_holders := await _holders(edition, index, scope + other):
                meant.append((other, 0.6 + 0.39 * len(word) / len(other), other_holders))
    return meant


async def _slips(edition: Edition, index: SearchIndex, word: str, scope: str) -> list[Meaning]:
    """The known words that are a slip of the pen away."""
    allowed = tolerated(word)
    if not allowed:
        return []
    buckets = int(edition.manifest.get(index.buckets, 1))
    meant: list[Meaning] = []
    forms = set(neighbourhood(word))
    near: set[str] = set()
    turns = Turns(_WORDS_A_TURN)
    for number in {bucket(form, buckets) for form in forms}:
        await turns.step(8)
        near.update(bytes(await edition.raw(index.near, str(number)) or b"").decode().split())
    for other in sorted(near):  # a bucket holds strangers too: they share no form
        await turns.step()
        if are_near(word, other) and (distance := slips(word, other)) <= allowed:
            held = await _holders(edition, index, scope + other)
            if held:
                meant.append((other, 1 - distance / (len(word) + 1), held))
    return sorted(meant, key=lambda m: (-m[1], m[0]))[:8]


def _weigh(
    named: SearchRecord,
    number: int,
    asked: dict[str, Meanings],
    worth: dict[str, float],
    unasked_weight: float,
) -> Hit:
    """How well the best of a record's names agrees with the query, either way round."""
    best = Hit(0.0, named.id, "name", "")
    whole = sum(worth.values())
    average = whole / len(worth)
    for position, own in enumerate(named.words):
        agreed = 0.0
        matched = set[str]()
        for word, meanings in asked.items():
            meant = [(meanings[other], other) for other in own if other in meanings]
            if meant:
                closeness, mate = max(meant)
                agreed += worth[word] * closeness
                matched.add(mate)
        unasked = len(own) - sum(map(matched.__contains__, own))
        score = agreed / (whole + unasked_weight * average * unasked)
        if score > best.score:
            reason = "legal_name" if position == 0 else "other_name"
            score = round(min(score, 0.98), 4)
            best = Hit(score, named.id, reason, named.names[position], number, named.type)
    return best


async def _begun(edition: Edition, index: SearchIndex, word: str, most: int = _EVERY) -> list[str]:
    """The first known words that begin with a word and go on, those that most records have first."""
    if len(word) < LETTERS:
        return []
    listed = b" %b " % bytes(await edition.raw(index.beginnings, word[:LETTERS]) or b"")
    begun: list[str] = []
    beginning = b" " + word.encode()
    at = listed.find(beginning)
    while at >= 0 and len(begun) < most:
        end = listed.index(b" ", at + 1)
        if end - at > len(beginning):
            begun.append(listed[at + 1 : end].decode())
        at = listed.find(beginning, end)
    return begun


async def _holders(edition: Edition, index: SearchIndex, key: str) -> Holders:
    return memoryview(await edition.raw(index.words, key) or b"").cast("I")


async def _record(edition: Edition, index: SearchIndex, number: int) -> SearchRecord:
    return _decode(await edition.raw(index.records, str(number)) or b"")
