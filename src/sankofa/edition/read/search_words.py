"""The words of a search index: which of them a word of a query may mean, and the records that have each."""

from typing import Final, NamedTuple

from sankofa.edition.format.search_records import LETTERS, SearchIndex, bucket
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.turns import Turns
from sankofa.model.names import near_words, neighbourhood, tolerated

_WORDS_A_TURN: Final = 256
_EVERY: Final = 2**31 - 1
_BEGUN: Final = 8
"""How many words a word that is only begun may mean."""
_MISSPELT: Final = 8
"""How many words a word that is not known may mean."""


class Postings(NamedTuple):
    """The records that have a word; views of the index."""

    numbers: memoryview
    """In order."""
    word_counts: bytes | memoryview
    """Of each record how many words its name has, as a byte; see `search_records`. Empty where not kept."""


NO_RECORDS: Final = Postings(memoryview(b"").cast("I"), b"")


class Meaning(NamedTuple):
    """A word of the index that a word of the query may mean, how close it is, and who has it."""

    word: str
    closeness: float
    postings: Postings


async def postings_of(edition: Edition, index: SearchIndex, key: str) -> Postings:
    """The records that have a word, a code, or a word in a country."""
    block = await edition.index_block(index.words, key)
    return NO_RECORDS if block is None else Postings(memoryview(block[1]).cast("I"), block[0])


async def known_meanings(
    edition: Edition, index: SearchIndex, word: str, scope: str, *, last: bool
) -> list[Meaning]:
    """The word itself where it is known, and the words it begins, where it is not or is the last one."""
    own = await postings_of(edition, index, scope + word)
    meant = [Meaning(word, 1.0, own)] if own.numbers else []
    if last or not meant:
        for other in await words_begun(edition, index, word, _BEGUN):
            postings = await postings_of(edition, index, scope + other)
            if postings.numbers:
                meant.append(Meaning(other, 0.6 + 0.39 * len(word) / len(other), postings))
    return meant


async def misspelt_meanings(edition: Edition, index: SearchIndex, word: str, scope: str) -> list[Meaning]:
    """The known words that are a slip of the pen away, the closest first."""
    allowed = tolerated(word)
    if not allowed:
        return []
    buckets = int(edition.manifest.get(index.buckets, 1))
    others: set[str] = set()
    turns = Turns(_WORDS_A_TURN)
    for number in {bucket(form, buckets) for form in neighbourhood(word)}:
        await turns.step(8)
        others.update(bytes(await edition.raw(index.near, str(number)) or b"").decode().split())
    await turns.step(len(others))
    # A bucket holds strangers too, which share no form.
    near = [pair for pair in near_words(word, others) if pair[0] <= allowed]
    meant: list[Meaning] = []
    for distance, other in sorted(near):
        postings = await postings_of(edition, index, scope + other)
        if postings.numbers:
            meant.append(Meaning(other, 1 - distance / (len(word) + 1), postings))
            if len(meant) == _MISSPELT:
                break
    return meant


async def words_begun(edition: Edition, index: SearchIndex, word: str, most: int = _EVERY) -> list[str]:
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
