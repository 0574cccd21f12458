"""Similarity of two names of organisations, for any spelling of legal forms and common words.

A name is split into its words and its legal form. Two names with the same words may differ in the form. Long
words may differ by a typing error. Names with an additional word or another number are different.
Pure logic, measured by tests/spec/test_party_matching.py. See contract: ENT-8.
"""

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

from rapidfuzz.distance import OSA

from sankofa.model.countries import country_name
from sankofa.model.organisations.tables import DOT, SURE, WEAK, longest_phrase, parts, tables
from sankofa.model.text import fold

_SPELLED: Final = {
    "nig": "nigeria", "rsa": "south africa", "intl": "international", "govt": "government",
    "dept": "department", "univ": "university", "natl": "national", "mgt": "management",
    "mgmt": "management", "svc": "service", "svcs": "service", "mfg": "manufacturing",
    "constr": "construction", "corp": "corporation", "bros": "brothers", "hosp": "hospital",
    "center": "centre", "labor": "labour", "organization": "organisation", "defense": "defence",
    "program": "programme", "co": "", "company": "", "cie": "", "cia": "", "soc": "", "metropolitan": "",
    "messrs": "",
}  # fmt: skip
"""Abbreviations and second spellings; empty for words that portals add and leave out."""
_ARTICLES: Final = frozenset("the of and for de la le les des du del et y e da do di & l d".split())
_NUMERALS: Final = frozenset("i ii iii iv v vi vii viii ix x xi xii one two three four five six".split())
_MESSRS: Final = re.compile(r"\Am/s\.?\s")

_PART_OF_FORM: Final = 0.03
_OTHER_FORM: Final = 0.07
_OTHER_ORDER: Final = 0.02
_NO_COUNTRY: Final = 0.02
_MORE_WORDS: Final = 0.2
_LETTERS_PER_SLIP: Final = 6
_MOST_SLIPS: Final = 2
_LONGEST_FORM: Final = 6
_PLURAL: Final = 4
_ENOUGH_WORDS: Final = 2


class NameWords(NamedTuple):
    """A name split into folded words in one spelling and the words of the legal form."""

    words: tuple[str, ...]
    form: frozenset[str]

    @property
    def joined(self) -> str:
        """Equal for names that differ only in form and blanks."""
        return "".join(self.words)


@lru_cache(maxsize=1 << 16)
def name_words(name: str, country: str = "") -> NameWords:
    """Split a name. In countries where initials follow surnames, a final `SA` is South Africa, not a
    legal form."""
    known = tables()
    groups = parts(_MESSRS.sub("", fold(name)))
    if len(groups) > 1 and len(groups[-1]) == 1 and _abbreviates(groups[-1][0], groups[:-1]):
        groups = groups[:-1]
    words = [word for group in groups for word in group]
    if country == "ZA":
        words = [new for w in words for new in (("south", "africa") if w in ("sa", "sa.") else (w,))]
    start, end = 0, len(words)
    forms: list[tuple[str, ...]] = []
    first = (
        longest_phrase(known.forms, words, 0) or longest_phrase(known.leading, words, 0) if words else None
    )
    if first and len(first) < end and (known.strength.get(first) == SURE or first[0] in known.opening):
        forms, start = [first], len(first)
    while end > start + 1 and (form := _closing_form(words, start, end)):
        if (
            end < len(words) and known.strength[form] == WEAK
        ):  # `Mandala Capital AG Limited`: part of the name
            break
        forms.append(form)
        end -= len(form)
    plain = [word.replace(DOT, "") for word in words]
    chosen = [one for w in plain[start:end] if w not in _ARTICLES for one in _SPELLED.get(w, w).split()]
    if "city" in chosen:
        chosen = [word for word in chosen if word != "municipality"]
    return NameWords(
        tuple(map(_singular, chosen or plain)), frozenset(w for f in forms for w in _one_form(f))
    )


def _one_form(form: tuple[str, ...]) -> list[str]:
    spelled, words = tables().spelled, [word.replace(DOT, "") for word in form]
    return spelled.get(" ".join(words), " ".join(spelled.get(word, word) for word in words)).split()


def _closing_form(words: list[str], start: int, end: int) -> tuple[str, ...] | None:
    """The longest legal form that ends here, with a word before it."""
    for at in range(max(start + 1, end - _LONGEST_FORM), end):
        form = longest_phrase(tables().forms, words, at)
        if form and at + len(form) == end:
            return form
    return None


def _abbreviates(word: str, groups: list[list[str]]) -> bool:
    """`(SANRAL)` after `South African National Roads Agency Limited`: some of the initials, in order."""
    letters, initials = word.replace(DOT, ""), iter("".join(w[0] for group in groups for w in group))
    rest = "".join(w for group in groups for w in group)
    return len(letters) > 1 and (all(letter in initials for letter in letters) or letters in rest)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > _PLURAL and word.endswith("s") and not word.endswith("ss") else word


def similarity(one: NameWords, other: NameWords, country: str = "") -> float:
    """From 0 to 1; 0 for names that differ in more than spelling, form, or words that one of them adds."""
    score = _words_alike(one.words, other.words, _words_of(country))
    if score and one.form != other.form:
        score -= _PART_OF_FORM if one.form < other.form or other.form < one.form else _OTHER_FORM
    return round(max(score, 0.0), 3)


@cache
def _words_of(country: str) -> frozenset[str]:
    return frozenset(map(_singular, fold(country_name(country) or "").split()))


def _words_alike(one: tuple[str, ...], other: tuple[str, ...], country: frozenset[str]) -> float:
    if one == other:
        return 1.0
    if "".join(one) == "".join(other):
        return 1.0 - _OTHER_ORDER
    left, rest = list(one), list(other)
    for word in one:
        if word in rest:
            left.remove(word)
            rest.remove(word)
    if not left and not rest:
        return 1.0 - _OTHER_ORDER
    if not left or not rest:
        return _with_more_words(one, other, left or rest, country)
    slips = _slips(left, rest)
    return 0.0 if slips is None else 1.0 - slips / max(len("".join(one)), len("".join(other)))


def _with_more_words(
    one: tuple[str, ...], other: tuple[str, ...], more: list[str], country: frozenset[str]
) -> float:
    """One name continues the other: the same if it adds its own country, else a candidate for review."""
    short, long = sorted((one, other), key=len)
    if len(short) < _ENOUGH_WORDS or long[: len(short)] != short or any(map(_is_number, more)):
        return 0.0
    return 1.0 - (_NO_COUNTRY if country == set(more) and len(short) > _ENOUGH_WORDS else _MORE_WORDS)


def _slips(left: list[str], rest: list[str]) -> int | None:
    """The number of letters that differ in the words not shared; None if too many for a typing error."""
    if len(left) != len(rest):
        return None
    total = 0
    for word, other in zip(left, rest, strict=True):
        slips = OSA.distance(word, other)
        if slips > min(len(word), len(other)) // _LETTERS_PER_SLIP or _is_number(word) or _is_number(other):
            return None
        total += slips
    return total if total <= _MOST_SLIPS else None


def _is_number(word: str) -> bool:
    return word in _NUMERALS or any(map(str.isdigit, word))
