"""Names of organisations as people search for them: without accents, punctuation and legal forms."""

from collections.abc import Iterable, Iterator
from typing import Final

from sankofa.model.folding import search_form

LEGAL_FORMS: Final = frozenset(
    (
        "ab ad ag as asa bhd bv bvba cc cia cie co company coop cooperative corp corporation cv de doo "
        "ead eeig eirl gie gmbh gte inc incorporated jsc kft kg kgaa kk lda limitada limited limitee llc "
        "llp lp lpp ltd ltda nv oao ohg ojsc ooo oy oyj pao pcl pjsc plc private pt pte pty public pvt "
        "rf rl sa sab sac saci sae saeca saica sal sale saoc saog sapi sarl sarlau sas sasu sca scl scs "
        "sdn se sgps sicav sl slu snc soc sp spa srl sro ste tbk trust uab ug unlimited xk zao zoo "
    ).split()
)
"""Words that say what kind of body it is, as they look after folding. Dropped for searching only."""

_LONG_ENOUGH = 4


def words(name: str) -> list[str]:
    """The words a name is indexed by; the legal form only where there is nothing else."""
    every = search_form(name).split()
    return [word for word in every if word not in LEGAL_FORMS and word != "and"] or every


def code_words(text: str) -> list[str]:
    """The words of a code or of what it stands for: `FX.EUR.ZAR` is three. None is a legal form there."""
    return search_form(text.replace(".", " ")).split()


def neighbourhood(word: str) -> Iterator[str]:
    """The word, and the word with one letter left out: two words one error apart share one of these."""
    yield word
    if len(word) >= _LONG_ENOUGH:
        for position in range(len(word)):
            yield word[:position] + word[position + 1 :]


def slips_between(word: str, other: str) -> int | None:
    """How many typing errors apart two words are that share a form of their neighbourhoods; else None.

    An error is a letter added, left out or changed, or two neighbours swapped.
    """
    if word == other:
        return 0
    if len(word) < len(other):
        word, other = other, word
    longer = len(word) - len(other)
    if longer > 1 or len(word) < _LONG_ENOUGH:
        return None
    start, end = 0, len(other)
    while start < end and word[start] == other[start]:
        start += 1
    while end > start and word[end + longer - 1] == other[end - 1]:
        end -= 1
    if longer or end - start <= 1:
        return 1 if end - start <= 1 - longer else None
    one, two = word[start:end], other[start:end]
    if one == two[::-1] and len(one) == 2:
        return 1
    return 2 if one[1:] == two[:-1] or one[:-1] == two[1:] else None


def near_words(word: str, others: Iterable[str]) -> list[tuple[int, str]]:
    """Those of some words that share a form with a word, each after how many errors it is away."""
    if not word:
        return [(0, other) for other in others if not other]
    size, first, last, tail, head = len(word), word[0], word[-1], word[1:], word[:-1]
    near = []
    for other in others:
        # Most are strangers that only came with them. What differs at both ends is at most a rotation.
        if -2 < len(other) - size < 2 and (
            other[:1] == first or other[-1:] == last or other[1:] == head or other[:-1] == tail
        ):
            distance = slips_between(word, other)
            if distance is not None:
                near.append((distance, other))
    return near


def tolerated(word: str) -> int:
    """How many typing errors a word of this length may have and still match."""
    return 0 if len(word) < _LONG_ENOUGH else 1 if len(word) < 9 else 2
