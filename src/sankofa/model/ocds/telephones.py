"""Words of `contacts.toml` that introduce a person in free text, and telephone numbers.

Telephone numbers are distinguished from dates, amounts and reference numbers by their format.

A number with a country code is always a telephone number. A national number is one if it is in an
African numbering plan and begins with a zero or is written in pairs. Any other number is one only
after a word such as `tel`, or next to a contact person.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from sankofa.model.organisations.tables import tables
from sankofa.model.text import fold_in_place, toml_table

WORD = re.compile(
    r"(?<!\w)(?:[^\W\d_]/[^\W\d_]|[wW\u1200-\u137f]/[^\W\d_]{2,3})(?!\w)"
    r"|[^\W\d_\u00aa\u00ba]+(?:['\u2019\u02bc-][^\W\d_]+)*+|\d+"
)
_ARABIC_PREFIXES: Final = ("", "\u0628", "\u0648", "\u0641")
_WORDS: Final = bytes(code | 32 if chr(code).isalpha() else 32 for code in range(128)) + bytes([32]) * 128
_DIGITS: Final = bytes(48 if 48 <= code < 58 else 32 for code in range(256))
_BETWEEN_DIGITS: Final = bytes(code for code in range(256) if not (code < 128 and chr(code).isalnum()))
_DIGITS_IN_A_ROW: Final = b"0" * 6
_LETTERS = re.compile(r"[^\W\d_\u00aa\u00ba]+")
_OTHER_DIGITS = re.compile("[\u0660-\u0669\u06f0-\u06f9]")


class Vocabulary:
    """The words of `contacts.toml`."""

    def __init__(self) -> None:
        table = toml_table("sankofa.model.ocds", "contacts")
        kinds: dict[tuple[str, ...], str] = {}
        for kind in ("offices", "authors", "contacts", "doubtful_titles", "titles"):
            for phrase in _phrases(table[kind]):
                kinds[phrase] = kind
                if kind.endswith("titles") and phrase[0].startswith("\u0627\u0644"):
                    for prefix in _ARABIC_PREFIXES:
                        kinds[(prefix + phrase[0], *phrase[1:])] = kind
                    kinds[("\u0644" + phrase[0][1:], *phrase[1:])] = kind
        self.phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        """Phrases by their first word, longest first, each with its kind."""
        for phrase in sorted(kinds, key=len, reverse=True):
            self.phrases.setdefault(phrase[0], []).append((phrase, kinds[phrase]))
        self.dotted = frozenset(_phrases(table["dotted_titles"]))
        self.fillers = _folded(table["fillers"])
        self.institutions = _folded(table["institutions"])
        self.before = _folded(table["before"])
        self.brands = frozenset(_phrases(table["brands"]))
        self.plain = _folded(table["plain"])
        self.joiners = _folded(table["joiners"])
        self.of_streets = _folded(table["of_streets"])
        self.hints = _hints(kinds)
        """The longest word of each phrase, as text and as bytes."""
        self.names = tables().names


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary()


def _folded(text: str) -> frozenset[str]:
    return frozenset(fold_in_place(text).split())


def _hints(phrases: Iterable[tuple[str, ...]]) -> frozenset[str | bytes]:
    longest = {max(_LETTERS.findall(" ".join(phrase)), key=len) for phrase in phrases}
    return frozenset([*longest, *(word.encode() for word in longest)])


def _phrases(text: str) -> list[tuple[str, ...]]:
    return [
        tuple(m.group() for m in WORD.finditer(fold_in_place(part)))
        for part in text.split(";")
        if part.strip()
    ]


def may_name_a_person(text: str) -> bool:
    """Whether a text may name somebody outright: a quick test that never misses one."""
    return has_address(text) or has_hint(text) or has_digits(text)


def has_address(text: str) -> bool:
    """Whether a text may have an e-mail address."""
    return "@" in text or "at)" in text or "at]" in text or " dot " in text


def has_hint(text: str) -> bool:
    """Whether a text has a title, or a word of a phrase after which people are named."""
    words: Iterable[str | bytes] = (
        text.encode().translate(_WORDS).split() if text.isascii() else _LETTERS.findall(fold_in_place(text))
    )
    return not vocabulary().hints.isdisjoint(words)


def has_digits(text: str) -> bool:
    """Whether a text has as many digits, with any separators, as the shortest telephone number."""
    if not text.isascii() and _OTHER_DIGITS.search(text):
        return True
    return _DIGITS_IN_A_ROW in text.encode().translate(_DIGITS, _BETWEEN_DIGITS)


_DASHES: Final = "\\-\u2010-\u2015"
_CANDIDATE = re.compile(rf"[+(]{{0,2}}\d(?:[\s().{_DASHES}/]{{0,3}}\+?\d)*+")
_GROUP = re.compile(r"\d+")
_SENTENCE = re.compile(r"[a-z]{3}[.!?]\s{1,3}[A-Z]|\n\n")
_LETTER_BEFORE = re.compile(r"(?<!\w)(?:[^\W\d_]|[^\W\d_a-z\u00e0-\u00ff]\s)\Z")
"""A letter and a number, as in `B 4471120`; a small letter before a blank is a word."""
_SHORTEST, _LONGEST = 6, 15
_PLAIN, _UNBROKEN, _NANP = 7, 10, 11
_NEAR: Final = 70
_LOOK_BACK: Final = 40
_DATE = re.compile(
    r"(?<!\d)(?<!\d[./-])(?:(?:0?[1-9]|[12]\d|3[01])[./-](?:0?[1-9]|1[0-2])[./-](?:19|20)?\d\d"
    r"|(?:19|20)\d\d[./-](?:0?[1-9]|1[0-2])[./-]\d{1,2})(?![./-]?\d)"
)
_YEAR_OF = re.compile(
    r"(?<!\d)(?:19|20)\d\d[/-]\d\d(?!\d)|[/-](?:19|20)\d\d(?!\d)|(?<!\d)(?:19|20)\d\d/|/\d\d/\d\d(?!\d)|(?<!\d)\d\d/\d{4}(?!\d)"
)
_EXTENSION = re.compile(
    r"[\s,;]{0,3}(?:(?:ext(?:ension)?|extn|poste|ramal|x)[\s.:]{0,3}\d{1,6}\b)|(?:\s?/\s?\d{1,4}\b(?![/.,-]?\d))+",
    re.IGNORECASE,
)
_NUMBERED = (
    r"(?:\s{0,2}(?:no|nos|nr|num|number|numbers|numero|n|details|us|us on|on|nambari|namba|al|au|le|para"
    r"|ya\s\w{1,10}|\(\w{1,12}\)))?"
)
_CLOSE = r"[\s.:;()/#\u00b0\u00ba=+*_|\u2013-]{0,6}\Z"
_REFERENCE = re.compile(
    r"(?<!\w)(?:no|nos|nr|n|num|numero|ref|reference|number|bid|tender|rfq|rfp|rfb|contract|order|po|invoice|account|acc|lots?|lote|items?"
    r"|erf|stand|plot|vote|isbn|issn|id|code|codigo|vat|registration|reg|tax|file|project|serial|model|part|cpv|unspsc|case|receipt|box|iban"
    r"|marche|contrat|contrato|licitacion|expediente|oficio|folio|rooms?|phases?|gps|lat|long|latitude|longitude|coordinates|coordonnees"
    r"|version|figure|table|section|clause|article|page|pages|wards?|years?|from|between|budget|mscoa|requisicion|requisition|siret|ifu|nif|nuit|tin|ice|rccm)"
    + _CLOSE
)
_MONEY_BEFORE = re.compile(
    r"(?:(?<!\w)(?:r|n|k|p|e|m|d|us|usd|zar|kes|kshs?|ugx|ugs|ushs?|tzs|tshs?|rwf|frw|ghs|gh|ngn|xof|xaf|f?cfa|mad|dhs?|dzd|da|tnd|dt|egp|le|etb|birr"
    r"|mzn|mt|mzm|aoa|kz|bwp|zmw|zk|mwk|mk|nad|lsl|szl|mur|rs|scr|eur|gbp|brl|inr|cny|aed|gmd|sll|sle|lrd|gnf|mga|ar|bif|cdf|fc|sdg|ssp|lyd|ern|djf|kmf|cve|stn)"
    r"|[$\u20ac\u00a3\u20a6\u20b5\u00a2\u20b9])[\s.:]{0,2}\Z"
)
_MONEY_AFTER = re.compile(
    r"[\s]{0,2}(?:%|\$|\u20ac|[.,]\d{2}(?!\d)|(?:f\.?\s?cfa|cfa|francs?|fcfa|usd|eur|zar|kes|rand|shillings?|naira|cedis?|dirhams?|dinars?|kwacha"
    r"|meticais|kwanzas?|euros?|dollars?|m2|m3|km|kg|kwh|kva|kv|litres?|units?|unites?|habitants)(?!\w))"
)


class _Plans(NamedTuple):
    by_code: Mapping[str, re.Pattern[str]]
    national: re.Pattern[str]
    """Every national number as dialled inside its country."""
    elsewhere: frozenset[str]
    word_before: re.Pattern[str]


@cache
def _plans() -> _Plans:
    table = toml_table("sankofa.model.ocds", "phones")
    words = toml_table("sankofa.model.ocds", "contacts")["telephones"].split()
    trunk = frozenset(table["trunk"].split())
    known = "|".join(sorted((re.escape(fold_in_place(word)) for word in words), key=len, reverse=True))
    return _Plans(
        {code: re.compile(shape) for code, shape in table["plans"].items()},
        re.compile(
            "|".join(f"{'0' if code in trunk else ''}(?:{shape})" for code, shape in table["plans"].items())
        ),
        frozenset(" ".join(table["elsewhere"].values()).split()),
        re.compile(
            rf"(?:(?<!\w)(?:(?:{known})s?|contact(?:o|os|s)?|contato|enquiries)|(?:tel|cell|fax|mobile)){_NUMBERED}{_CLOSE}|(?<![\w/.])\(?[tcfm]\)?[:.)]\s{{0,2}}\(?\Z"
        ),
    )


class _Context(NamedTuple):
    after_word: bool
    near_contact: bool
    reference: bool


def telephones(text: str, contacts: list[int]) -> Iterator[tuple[int, int]]:
    """The spans of telephone numbers in a text; `contacts`: the ends of phrases that introduce contacts."""
    for candidate in _CANDIDATE.finditer(text):
        groups = [(m.group(), m.start(), m.end()) for m in _GROUP.finditer(text, *candidate.span())]
        if sum(len(group[0]) for group in groups) >= _SHORTEST:
            yield from _numbers(text, groups, contacts)


def _numbers(text: str, groups: list[tuple[str, int, int]], contacts: list[int]) -> Iterator[tuple[int, int]]:
    first, behind = 0, -1
    while first < len(groups):
        start = groups[first][1]
        last = _last_of_number(text, groups, first, _around(text, start, contacts, behind))
        if last is None:
            first += 1
            continue
        end = groups[last][2]
        while start and text[start - 1] in "+(":
            start -= 1
        if text[end : end + 1] == ")" and "(" in text[start:end] and ")" not in text[start:end]:
            end += 1
        if extension := _EXTENSION.match(text, end):
            end = extension.end()
        yield start, end
        behind = end
        first = last + 1
        while first < len(groups) and groups[first][1] < end:
            first += 1


def _around(text: str, start: int, contacts: list[int], behind: int) -> _Context:
    before = fold_in_place(text[max(0, start - _LOOK_BACK) : start])
    follows = 0 <= start - behind <= len(" or ") + 2 and behind >= 0
    within = contacts[bisect_left(contacts, start - _NEAR) : bisect_right(contacts, start)]
    near = any(not _SENTENCE.search(text, end, start) for end in within[-2:])
    after_word = _plans().word_before.search(before) is not None
    return _Context(after_word or follows, near, not after_word and _REFERENCE.search(before) is not None)


def _last_of_number(
    text: str, groups: list[tuple[str, int, int]], first: int, around: _Context
) -> int | None:
    """The last group of the number that begins with the first group; None if none begins."""
    start = groups[first][1]
    lead = text[max(0, start - 2) : start]
    before = text[max(0, start - 1) : start]
    plus = "+" in lead and lead.rstrip("( ").endswith("+")
    if not plus and (before.isalnum() or before == "_") and not around.after_word:
        return None
    joined = before in "/.-,:#" and before and text[max(0, start - 2) : start - 1].isalnum()
    if not plus and joined and not around.after_word and not around.near_contact:
        return None
    if not plus and not around.after_word and _LETTER_BEFORE.search(text[max(0, start - 3) : start]):
        return None  # a letter and a number: a reference
    if not around.after_word and _MONEY_BEFORE.search(fold_in_place(text[max(0, start - 8) : start])):
        return None
    digits, end, exact = "", None, False
    for last in range(first, min(first + 9, len(groups))):
        group, begins, ends = groups[last]
        between = text[groups[last - 1][2] : begins] if last > first else ""
        if last > first and ("\n" in between or "+" in between):
            break
        if not (plus and group == "0" and between.endswith("(")):
            digits += "".join(str(int(digit)) for digit in group)
        if len(digits) > _LONGEST:
            break
        part = groups[first : last + 1]
        following = text[ends : ends + 1]
        if following.isalpha() or following == "_" or (not plus and _dated(text[start:ends])):
            continue
        proof = _proof(digits, part, plus=plus, around=around, slashed="/" in text[start:ends])
        if proof == 0 or (proof == 1 and exact):
            continue
        if not plus and not around.after_word and _MONEY_AFTER.match(fold_in_place(text[ends : ends + 14])):
            continue
        end, exact = last, exact or proof > 1
    if end is not None and around.after_word and not plus:
        whole = text[start : groups[-1][2]]
        count = sum(len(group[0]) for group in groups[first:])
        rest = sum(len(group[0]) for group in groups[end + 1 :])
        if rest in (3, 4) and count <= _LONGEST - 2 and "\n" not in whole and not _dated(whole):
            return len(groups) - 1  # the plan of another country: `(11) 95555-0192`
    return end


def _proof(
    digits: str, part: list[tuple[str, int, int]], *, plus: bool, around: _Context, slashed: bool
) -> int:
    """2: a complete number of a numbering plan. 1: possibly a number. 0: no number."""
    plans = _plans()
    doubled = part[0][0].startswith("00") and len(part[0][0]) != len("000")
    abroad = digits if plus else digits[2:] if doubled else ""
    if abroad:
        for size in (1, 2, 3):
            code, rest = abroad[:size], abroad[size:]
            if code in plans.by_code:
                if plans.by_code[code].fullmatch(rest) or plans.by_code[code].fullmatch(
                    rest.removeprefix("0")
                ):
                    return 2
                return 1 if plus and len(rest) >= _PLAIN else 0
            if code in plans.elsewhere:
                if code == "1":
                    return 2 if len(abroad) == _NANP and rest[:1] not in "01" else 0
                return 1 if len(rest) >= _PLAIN and (plus or (rest[0] != "0" and not around.reference)) else 0
        return 1 if around.after_word and len(digits) >= _PLAIN else 0
    sizes = [len(group[0]) for group in part]
    national = plans.national.fullmatch(digits) is not None
    if around.after_word:
        if national or _has_code(digits):
            return 2
        return 1 if _SHORTEST <= len(digits) <= _LONGEST - 2 else 0
    if around.reference or len(digits) < _PLAIN:
        return 0
    if digits[0] == "0" != digits[1] and national:
        whole = len(digits) >= _UNBROKEN or (len(part) > 1 and len(digits) == _UNBROKEN - 1)
        if whole and (len(part) == 1 or sizes[0] > 1):
            return 2
    if national and not slashed and _in_pairs(part, sizes):
        return 2
    thousands = sizes[0] <= 3 and all(size == 3 for size in sizes[1:])
    if around.near_contact and digits[0] != "0" and len(part) > 1 and thousands and not national:
        return 0
    if around.near_contact and len(digits) <= _LONGEST - 2:
        return 2 if national or _has_code(digits) else 1
    return 0


def _has_code(digits: str) -> bool:
    plans = _plans()
    return any(
        digits[:size] in plans.by_code and plans.by_code[digits[:size]].fullmatch(digits[size:])
        for size in (2, 3)
    )


def _in_pairs(part: list[tuple[str, int, int]], sizes: list[int]) -> bool:
    """`77 123 45 67`, `84 123 4567`: a grouping of numbers without a trunk prefix that amounts never have."""
    if sizes == [2, 3, 4]:
        return True
    values = [int(group[0]) for group in part]
    rising = all(later - earlier in (1, 2) for earlier, later in pairwise(values))
    return len(part) > 3 and sizes[-2:] == [2, 2] and min(sizes[1:]) > 1 and max(sizes) <= 3 and not rising


def _dated(text: str) -> bool:
    """Whether it contains a date or budget years, as many reference numbers do."""
    return _DATE.search(text) is not None or _YEAR_OF.search(text) is not None
