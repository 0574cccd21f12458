"""The tables behind the gate, read once, the reading of a name as folded words, split into parts, and the
marks of a person in a name: titles, trading names, merchants who are people (contract: GATE-3).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

from sankofa.model.text import fold, toml_table

DOT = "."
"""Ends the folded form of a dotted abbreviation: `S.A.` is read as `sa.`, and `SA` as `sa`."""

_ABBREVIATION = r"\w\.(?:\w\.)+\w?(?!\w)|\w\.\w(?!\w)|\w\.(?:\s\w\.)+(?!\w)"
_QUOTES = "['\u2019`\u00b4\u02bc\u05f4\"]"  # every kind of apostrophe, and the mark of Hebrew abbreviations
_WORD = rf"[^\W_]+(?:{_QUOTES}[^\W_]+)*"
_TOKEN = re.compile(rf"{_ABBREVIATION}|{_WORD}|[,;:|/\\(\u2013\u2014]|(?<!\w)@|\s-(?=\s)|[&+]")
_BREAKS = frozenset(",;:|/\\(@\u2013\u2014")
_TOGETHER = re.compile(
    r"(?<!\w)(?:in )?(?:jv|joint venture|association with|consortium with|partnership with)(?!\w)"
)
"""Words between several parties in one name; each party must be proven."""
_ADDRESSED = re.compile(r"\s*(?:m\s?/\s?s\b|messrs\b)[.:]?\s*")
"""A form of address for firms: `M/s Mojaaba Limited`. It proves nothing and is not part of the name."""
_STROKES = (("a/s", "a.s."), ("s/a", "s.a."), ("n/v", "n.v."), ("p/l", "pty ltd"))
_QUOTE = re.compile(_QUOTES)
_ELIDED = re.compile(rf"(?<![^\W_])([dl]){_QUOTES}(?=[aeiouh])")
"""An article without its vowel is a word: `l'Urbanisme`. Surnames such as `N'Guessan` stay whole."""


def parts(folded: str) -> list[list[str]]:
    """The words of a folded name, part by part. A bracket starts a new part only at the end of the name."""
    addressed = _ADDRESSED.match(folded)
    text = folded[addressed.end() :] if addressed else folded
    if "'" in text or not text.isascii():
        text = _ELIDED.sub(r"\1 ", text)
    if "/" in text:
        for stroke, dotted in _STROKES:
            text = re.sub(rf"(?<!\w){stroke}(?!\w)", dotted, text)
    if "(" in text:
        text = _inner_brackets_opened(text)
    if "jv" in text or " venture" in text or "ip with" in text or "ion with" in text or "ium with" in text:
        text = _TOGETHER.sub(";", text)
    result: list[list[str]] = [[]]
    add = result[-1].append
    for sign in _TOKEN.findall(text):
        if sign.isalnum():
            add(sign)
        elif sign in _BREAKS or sign[-1] == "-":
            result.append([])
            add = result[-1].append
        elif DOT in sign:
            add("".join(sign.replace(DOT, "").split()) + DOT)
        else:
            add("&" if sign in "&+" else _QUOTE.sub("", sign))
    return [part for part in result if part]


def phrase(folded: str) -> tuple[str, ...]:
    """A phrase of a table, split like a name."""
    return tuple(word for part in parts(folded) for word in part)


def _inner_brackets_opened(text: str) -> str:
    """`Siemens (Kenya) Ltd` is one part, and so is `X (Pty) Ltd`; `X Ltd (Head Office)` is two."""
    last = text.rfind("(") if text.rstrip(' .,"').endswith(")") else len(text)
    return text[:last].replace("(", " ").replace(")", " ") + text[last:]


SURE: Final = 4
"""Proof after any words."""
DOTTED: Final = 3
"""Proof if the rest does not look like a person's name."""
WORDY: Final = 2
"""Proof if the name has a business word."""
WEAK: Final = 1
"""Proof directly after a business word."""
LOCAL: Final = 0
"""Proof in some countries alone."""

Phrases = dict[str, list[tuple[str, ...]]]
"""Phrases by their first word, the longest first."""

_LETTERS = 4
TWO = 2


class Tables:
    """Everything the gate looks up; words are folded as `parts` folds them. Read in a few milliseconds."""

    def __init__(self) -> None:
        forms, people, public = (toml_table(__package__, name) for name in ("forms", "people", "public"))
        words = resources.files(__package__).joinpath("words.txt").read_text("utf-8")
        known = _listed(public["known"])
        self.strength = _strengths(forms)
        self.forms = _by_first(self.strength)
        self.spelled = {
            " ".join(phrase(fold(full))): one.strip()
            for one, _, fulls in (entry.partition("=") for entry in _entries(forms["spelled"]))
            for full in fulls.split("|")
        }
        """One spelling of each form that has several."""
        self.opening = _words(forms["opening"])
        """Forms that may precede a name, though they prove little there."""
        self.sure = frozenset(f[0] for f, proof in self.strength.items() if proof == SURE and len(f) == 1)
        self.accented = frozenset(
            fold(form)
            for form in _entries(";".join(forms[key] for key in ("sure", "likely", "weak")))
            if not form.isascii()
        )
        """Forms that are written with accents; all others are not."""
        self.openers = _words(forms["openers"])
        self.public_groups = frozenset(_listed(public["heads_before_no_name"]))
        self.groups = _by_first([*_listed(forms["groups"]), *self.public_groups])
        self.own_person = _by_first(_also_dotted(_listed(forms["own_person"])))
        self.own_person_in = frozenset(forms["own_person_in"].split())
        self.undotted = _by_country(forms["undotted"])
        self.leading_in = _by_country(forms["leading_in"])
        self.not_in = _by_country(forms["not_in"])
        self.cc_in = frozenset(forms["cc_in"].split())
        self.ends = tuple(fold(form) for form in _entries(forms["ends"]))
        self.starts = tuple(fold(form) for form in _entries(forms["starts"]))
        self.leading, self.bodies, self.heads, self.tails = (
            _by_first(_also_dotted(_listed(table[key])))
            for table, key in ((forms, "leading"), (forms, "bodies"), (public, "heads"), (public, "tails"))
        )
        self.holders = frozenset(_listed(public["holders"]))
        self.impersonal = _words(public["impersonal"])
        self.offices = dict.fromkeys(_words(public["offices"]), 1)
        """The words of administration that must precede each word."""
        self.offices |= dict.fromkeys(_words(public["offices_after_two"]), TWO)
        self.nouns = _words(public["nouns"])
        self.qualifiers = _words(public["qualifiers"])
        self.of_a_state = _words(public["of_a_state"])
        self.private_use = _words(public["private_use"])
        self.strong_qualifiers = _words(public["strong_qualifiers"])
        self.known = frozenset(" ".join(name).replace("&", "and") for name in known)
        self.before = _words(public["before"])
        self.persons = _by_first(_listed(people["traders"]) + _listed(people["links"]))
        self.outer_traders = frozenset(word for (word,) in _listed(people["outer_traders"]))
        self.several = _words(people["several"]) | {"&"}
        self.initials_last = frozenset(people["initials_last"].split())
        self.titles = frozenset(" ".join(title) for title in _listed(people["titles"]))
        self.citizens_in = frozenset(people["citizens_in"].split())
        self.particles = _words(people["particles"])
        self.names = frozenset(fold(people["names"]).split()) - self.particles
        self.business = frozenset(words.split("\n\n")[-1].split())
        self.explaining = self.business | _words(public["explaining"])
        self.doubtful = self.nouns | _words(public["doubtful"]) | _words(public["tails"])
        phrases = (self.forms, self.groups, self.leading, self.bodies, self.heads, self.tails, self.nouns)
        others = ("eirl", "eirl.", "eireli", "eireli.", "empresa", *(name[0] for name in known))
        self.hints = frozenset(others).union(self.offices, *phrases, *self.leading_in.values())
        """A name without any of these words proves nothing: most people leave the gate here."""


@cache
def tables() -> Tables:
    return Tables()


@cache
def registers() -> Mapping[str, re.Pattern[str]]:
    """The shape of a company's number by the code of its register."""
    shapes = toml_table(__package__, "registers")
    shapes.pop("people")
    ohada = shapes.pop("rccm")
    shapes |= {f"{country}-RCCM": ohada["shape"] for country in ohada["countries"].split()}
    return {code: re.compile(shape) for code, shape in shapes.items()}


@cache
def people_too() -> Sequence[tuple[re.Pattern[str], re.Pattern[str]]]:
    """Registers that also have numbers of people, with the shapes of these numbers."""
    people = toml_table(__package__, "registers")["people"]
    return [
        (re.compile(rf"\A(?s:{codes})\Z"), re.compile(rf"\A(?s:{shape})\Z"))
        for codes, shape in people.items()
    ]


def _strengths(forms: Mapping[str, str]) -> dict[tuple[str, ...], int]:
    """The strength of each spelling of a form: single words with dots, without dots, and as letters."""
    strengths: dict[tuple[str, ...], int] = {}
    for key, plain, dotted in (
        ("local", LOCAL, LOCAL),
        ("weak", WEAK, DOTTED),
        ("likely", WORDY, DOTTED),
        ("sure", SURE, SURE),
    ):
        for form in _listed(forms[key]):
            if max(map(len, form)) == 1:  # single letters: written together they may be a word
                strengths[form] = plain
                strengths[("".join(form) + DOT,)] = dotted
                continue
            strengths[form] = plain
            if len(form) == 1:
                word = form[0]
                strengths[(word + DOT,)] = dotted
                if word.isascii() and len(word) <= _LETTERS:
                    strengths.setdefault(tuple(word), min(plain, WEAK if len(word) == TWO else WORDY))
    return strengths


def _also_dotted(phrases: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Single words may be abbreviations; those of up to three letters are then initials."""
    return phrases + [(form[0] + DOT,) for form in phrases if len(form) == 1 and len(form[0]) >= _LETTERS]


def _by_first(phrases: Iterable[tuple[str, ...]]) -> Phrases:
    by_first: Phrases = {}
    for form in sorted(set(phrases), key=lambda form: (-len(form), form)):
        by_first.setdefault(form[0], []).append(form)
    return by_first


def _entries(text: str) -> list[str]:
    return [entry for line in text.split(";") if (entry := " ".join(line.split()))]


def _listed(text: str) -> list[tuple[str, ...]]:
    return [phrase(entry) for entry in _entries(fold(text))]


def _by_country(text: str) -> dict[str, frozenset[str]]:
    """Lists of words, each with its countries."""
    by_country: dict[str, frozenset[str]] = {}
    for countries, _, listed in (entry.partition(":") for entry in _entries(text)):
        for country in countries.split():
            by_country[country] = by_country.get(country, frozenset()) | _words(listed)
    return by_country


def _words(text: str) -> frozenset[str]:
    """Every word of a list separated by blanks or semicolons."""
    return frozenset(fold(text).replace(";", " ").split())


def longest_phrase(phrases: Phrases, words: list[str], start: int) -> tuple[str, ...] | None:
    """The longest phrase that begins at this word. Within phrases of several words dots do not matter."""
    first = words[start]
    plain = first.replace(DOT, "")
    for phrase in phrases.get(plain, ()):
        length = len(phrase)
        if 1 < length <= len(words) - start and all(
            words[start + offset].replace(DOT, "") == phrase[offset] for offset in range(1, length)
        ):
            return phrase
    return (first,) if (first,) in phrases.get(first, ()) else None


@cache
def spelling(form: tuple[str, ...]) -> re.Pattern[str]:
    letters = (r"\.?\s?".join(map(re.escape, word.replace(DOT, ""))) for word in form)
    return re.compile(r"\(?(?<!\w)" + r"[\W_]+".join(letters) + r"(?!\w)[.)]?", re.IGNORECASE)


def as_written(name: str, form: tuple[str, ...]) -> str:
    """The form in this name's spelling, without the rest of the name; folded if accents hide it."""
    matches = list(spelling(form).finditer(name))
    return matches[-1][0].strip() if matches else " ".join(form).replace(DOT, "")


Words = list[str]

# A person and the name they trade under, a person and where they are reached, a person and their kin; and the
# Armenian and Georgian marks of an individual entrepreneur.
_PERSON_STROKE: Final = re.compile(
    r"(?<!\w)(?:[tcodwhif][/\\]\s?[aobk]|s[/\\]\s?o|d[/\\]b[/\\]a|[af][/\\]k[/\\]a"
    r"|a[/\\]dz|\u0561[/\\]\u0571|\u10d8[/\\]\u10db)(?!\w)"
)
_CITIZEN: Final = re.compile(r"\s*cc?\.\s?(?!y\s)\w{2}")
_NAMED_AFTER_DOCTORS: Final = frozenset({"municipality", "hospital"})
"""Institutions named after a person: `Dr Beyers Naudé Local Municipality`."""
_TRADING_AS: Final = "ta"  # t/a without its stroke


def marked_as_person(folded: str, parts: list[Words], country: str = "") -> bool:
    """Whether the name marks itself as a person's: a title, a trading name, a family relation."""
    known = tables()
    if ("/" in folded or "\\" in folded) and _PERSON_STROKE.search(folded):
        return True
    if country in known.citizens_in and _CITIZEN.match(folded):
        return True
    is_titled = any(part[0] in known.titles or part[-1] in known.titles for part in parts)
    if is_titled and not (len(parts) == 1 and parts[0][-1] in _NAMED_AFTER_DOCTORS):
        return True
    words = parts[0] if len(parts) == 1 else [word for part in parts for word in part]
    for start, word in enumerate(words):
        mark = longest_phrase(known.persons, words, start) if word in known.persons else None
        if mark and not _is_form_here(mark, words, start, country):
            return True
        if word in known.outer_traders and start in (0, len(words) - 1):
            return True
        if word == _TRADING_AS and 0 < start < len(words) - 1:
            return True
    return False


def _is_form_here(mark: tuple[str, ...], words: Words, start: int, country: str) -> bool:
    """Whether a merchant's mark is part of a company's form: `E.A.S. Unipersonal`, `E.I.R.L.` in Peru."""
    known = tables()
    if mark != ("unipersonal",):
        return country in known.own_person_in and longest_phrase(known.own_person, words, start) is not None
    forms = ((at, longest_phrase(known.forms, words, at)) for at in range(max(1, start - 3), start))
    return any(form and at + len(form) > start for at, form in forms)
