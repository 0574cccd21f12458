"""Names of organisations as people search for them: without accents, punctuation and legal forms."""

from collections.abc import Iterator
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


def are_near(word: str, other: str) -> bool:
    """Whether two words share a form of their neighbourhoods, without making these."""
    if word == other:
        return True
    if len(word) < len(other):
        word, other = other, word
    longer = len(word) - len(other)
    if len(word) < _LONG_ENOUGH or longer > 1:
        return False
    if not longer and len(other) < _LONG_ENOUGH:
        return False
    end = len(other)
    start = 0
    while start < end and word[start] == other[start]:
        start += 1
    while end > start and word[end + longer - 1] == other[end - 1]:
        end -= 1
    if longer:
        return start == end
    one, two = word[start:end], other[start:end]
    return end - start <= 1 or one[1:] == two[:-1] or one[:-1] == two[1:]


def slips(word: str, other: str) -> int:
    """How many typing errors apart two words are (a letter added, left out, changed, or two swapped)."""
    before, row = list[int](), list(range(len(other) + 1))
    for i, a in enumerate(word, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and word[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def tolerated(word: str) -> int:
    """How many typing errors a word of this length may have and still match."""
    return 0 if len(word) < _LONG_ENOUGH else 1 if len(word) < 9 else 2
