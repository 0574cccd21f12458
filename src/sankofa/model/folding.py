"""Names without the differences that do not count: the three ways in which the service folds a text."""

import re
import unicodedata
from functools import lru_cache
from itertools import filterfalse

_ACCENTED = re.compile(r"[^\x00-\x7f]")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_UNDECOMPOSED = {0x0131: "i", 0x0142: "l", 0x00F8: "o", 0x0111: "d"}  # letters Unicode does not take apart
_CLOSED_UP = dict.fromkeys(map(ord, ".'`\u2019\u00b4\u02bc"))  # dots and every kind of apostrophe
_ASCII = {code: " " for code in range(128) if not chr(code).isalnum()} | _CLOSED_UP | {ord("&"): " and "}


def fold(text: str) -> str:
    """Lower case without accents and without characters nobody sees: as the gate reads a name."""
    text = text.casefold()
    if text.isascii():
        return text
    return _without_accents(_UNSEEN.sub("", text)).translate(_UNDECOMPOSED)


def search_form(name: str) -> str:
    """As a name is searched: lower case, no accents, `&` as "and", other punctuation as spaces.

    Dots and apostrophes are closed up.
    """
    if name.isascii():  # most often: the same, without looking at each letter
        return " ".join(name.lower().translate(_ASCII).split())
    plain = _without_accents(name.casefold().translate(_CLOSED_UP)).replace("&", " and ")
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())


def _without_accents(text: str) -> str:
    return "".join(filterfalse(unicodedata.combining, unicodedata.normalize("NFKD", text)))


def composed(text: str) -> str:
    """Every letter one character, accents and all."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold_in_place(text: str) -> str:
    """Lower case without accents, letter by letter: positions are the same as in the composed text."""
    if text.isascii():
        return text.lower()
    text = composed(text)
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that is two in lower case
        return "".join(map(_folded, text))
    return _ACCENTED.sub(lambda letter: _folded(letter.group()), lowered)


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    lowered = unicodedata.normalize("NFD", character.lower())[:1]
    if lowered == "\u03c2":  # the sigma at a word's end, whose capital is that of any other
        return "\u03c3"
    return lowered if len(lowered) == 1 else character
