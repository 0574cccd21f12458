"""Text: cleaned to be stored, folded to be compared, split into words to be searched."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from itertools import filterfalse
from typing import Any, Final

_ACCENTED = re.compile(r"[^\x00-\x7f]")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_UNDECOMPOSED = {0x0131: "i", 0x0142: "l", 0x00F8: "o", 0x0111: "d"}  # Unicode does not decompose these
_CLOSED_UP = dict.fromkeys(map(ord, ".'`\u2019\u00b4\u02bc"))  # dots and every kind of apostrophe
_ASCII = {code: " " for code in range(128) if not chr(code).isalnum()} | _CLOSED_UP | {ord("&"): " and "}


def toml_table(package: str, name: str) -> dict[str, Any]:
    """A table stored beside the code of a package."""
    return tomllib.loads(files(package).joinpath(f"{name}.toml").read_text("utf-8"))


@cache
def page_text(package: str, name: str) -> str:
    """A page in Markdown that is stored beside the code of a package; braces mark what is filled in."""
    return files(package).joinpath(f"{name}.md").read_text("utf-8")


def fold(text: str) -> str:
    """Lower case without accents or invisible characters: how the gate reads a name."""
    text = text.casefold()
    if text.isascii():
        return text
    return _without_accents(_UNSEEN.sub("", text)).translate(_UNDECOMPOSED)


def search_form(name: str) -> str:
    """A name prepared for search: lower case, no accents, `&` as "and", other punctuation as spaces.

    Dots and apostrophes are closed up.
    """
    if name.isascii():  # the usual case, without looking at each letter
        return " ".join(name.lower().translate(_ASCII).split())
    plain = _without_accents(name.casefold().translate(_CLOSED_UP)).replace("&", " and ")
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())


def _without_accents(text: str) -> str:
    return "".join(filterfalse(unicodedata.combining, unicodedata.normalize("NFKD", text)))


def composed(text: str) -> str:
    """Composes each letter and its accents into one character."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold_in_place(text: str) -> str:
    """Lower case without accents, letter by letter: positions are the same as in the composed text."""
    if text.isascii():
        return text.lower()
    text = composed(text)
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that becomes two in lower case
        return "".join(map(_folded, text))
    return _ACCENTED.sub(lambda letter: _folded(letter.group()), lowered)


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    lowered = unicodedata.normalize("NFD", character.lower())[:1]
    if lowered == "\u03c2":  # the sigma at a word's end, whose capital is that of any other
        return "\u03c3"
    return lowered if len(lowered) == 1 else character


# NUL and its kin cannot be stored on every engine; a lone surrogate cannot be written as UTF-8, and the last
# two not as XML.
# Format characters (the marks of right-to-left names) are text and stay.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_SHOWN = 40
_SHORT = 3


def harmless(text: str) -> str:
    """A value in quotes if it cannot be somebody's name; else empty.

    Figures, dates, codes and a word in lower case can be repeated to the operator. A capital letter in a
    longer word, or two longer words, may name a person.
    """
    words = [word for word in _WORD.findall(text) if len(word) > _SHORT]
    fits = 0 < len(text) <= _LONGEST_SHOWN and text.isascii() and text.isprintable()
    return repr(text) if fits and len(words) < 2 and all(word.islower() for word in words) else ""


def fit(text: str) -> bool:
    """Whether the text can be stored and printed on one line unchanged."""
    return _UNFIT.search(text) is None


def one_line(text: str) -> str:
    """The text trimmed, with each run of white space as one blank."""
    return " ".join(text.split())


def name(text: str) -> str | None:
    """A name with a blank for every character that cannot be stored. None if nothing is left."""
    return one_line(_UNFIT.sub(" ", text)) or None


LEGAL_FORMS: Final = frozenset(
    (
        "ab ad ag as asa bhd bv bvba cc cia cie co company coop cooperative corp corporation cv de doo "
        "ead eeig eirl gie gmbh gte inc incorporated jsc kft kg kgaa kk lda limitada limited limitee llc "
        "llp lp lpp ltd ltda nv oao ohg ojsc ooo oy oyj pao pcl pjsc plc private pt pte pty public pvt "
        "rf rl sa sab sac saci sae saeca saica sal sale saoc saog sapi sarl sarlau sas sasu sca scl scs "
        "sdn se sgps sicav sl slu snc soc sp spa srl sro ste tbk trust uab ug unlimited xk zao zoo "
    ).split()
)
"""Folded words for the kind of body. Dropped for searching only."""

_LONG_ENOUGH = 4


def words(name: str) -> list[str]:
    """The words a name is indexed by; the legal form only if there is nothing else."""
    every = search_form(name).split()
    return [word for word in every if word not in LEGAL_FORMS and word != "and"] or every


def code_words(text: str) -> list[str]:
    """The words of a code or of its name: `FX.EUR.ZAR` is three. Legal forms count as words here."""
    return search_form(text.replace(".", " ")).split()


def neighbourhood(word: str) -> Iterator[str]:
    """The word, and the word with one letter left out: two words one error apart share one of these."""
    yield word
    if len(word) >= _LONG_ENOUGH:
        for position in range(len(word)):
            yield word[:position] + word[position + 1 :]


def slips_between(word: str, other: str) -> int | None:
    """The number of typing errors between two words with a common neighbour; else None.

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
    """The words that share a form with a word, each after its number of errors."""
    if not word:
        return [(0, other) for other in others if not other]
    size, first, last, tail, head = len(word), word[0], word[-1], word[1:], word[:-1]
    near = []
    for other in others:
        # Most share only a form. Words that differ at both ends can only be a rotation.
        if -2 < len(other) - size < 2 and (
            other[:1] == first or other[-1:] == last or other[1:] == head or other[:-1] == tail
        ):
            distance = slips_between(word, other)
            if distance is not None:
                near.append((distance, other))
    return near


def tolerated(word: str) -> int:
    """Most typing errors with which a word of this length still matches."""
    return 0 if len(word) < _LONG_ENOUGH else 1 if len(word) < 9 else 2


def snake_case(name: str) -> str:
    """`AccountsPayableUSD2` and `Accounts payable USD2` as `accounts_payable_usd2`."""
    return _BETWEEN_WORDS.sub("_", _WORD_START.sub("_", name)).strip("_").lower()
