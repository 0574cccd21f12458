"""Removes the words of free text that repeat withheld data or name somebody (GATE-4, GATE-8).

A withheld name is recognised by at least two of its words side by side, in any order; one may be an initial.
One word is enough if the name has only one, if a title precedes it, or if it is spelled like a name and is
not an ordinary word. An address must match literally. A number of nine digits or more matches in any
grouping, with or without its country code. People named in a text (`contacts`) and telephone numbers
(`telephones`) are always cut, whether anything was withheld or not.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final

from sankofa.model.countries import country_names
from sankofa.model.ocds.contacts import persons
from sankofa.model.ocds.fields import free_fields
from sankofa.model.ocds.telephones import may_name_a_person
from sankofa.model.organisations.tables import tables
from sankofa.model.text import composed, fold_in_place

Token = tuple[str, tuple[int, int]]
"""A word of a text in lower case without accents, and its position."""
Name = frozenset[str]
"""A name by its words."""

WORD: Final = re.compile(r"[^\W_]+")
LEAST_SINGLE: Final = 4
"""The shortest word that may be a name by itself."""
TITLES: Final = frozenset(
    "mr mrs ms miss mme mlle dr drs prof adv eng ing lic sr sra srta don dona rev hon me maitre arq abg cpa "
    "chief alhaji hajia engr sir madam".split()
)
PARTICLES: Final = frozenset(
    "de del la las los da das do dos e y van der den von di el al bin ben ibn le du".split()
)


def words_needed(name: Name) -> int:
    """The number of adjacent words of a name that count as the name."""
    return min(2, len(name - PARTICLES))


def initials_of(name: Name) -> set[str]:
    return {word[0] for word in name} - name


def runs(
    tokens: list[Token], stretch: range, name: Name, capitals: Set[int], alone: Set[str], ordinary: Set[str]
) -> Iterator[tuple[int, int]]:
    """Runs of tokens that all belong to one name and are long enough to count as it.

    `capitals` are the positions of single capital letters, which may be initials of the name. `alone` are the
    words that identify a name by themselves. `ordinary` words identify nobody, unless the name has no others.
    """
    needed = words_needed(name)
    common: Set[str] = ordinary if not name <= ordinary else frozenset()
    initials = initials_of(name)
    start, length, single, before = 0, 0, "", ""
    first, matched = 0, set[str]()
    for number in range(stretch.start, stretch.stop + 1):
        word, span = tokens[number] if number < stretch.stop else ("", (0, 0))
        if word in name or (word in initials and span[0] in capitals):
            if not matched:
                first = number
            matched.add(word)
            if not length:
                start, before = number, tokens[number - 1][0] if number else ""
            if word not in PARTICLES:
                length += 1
                single = max(single, word, key=len)
        elif matched:
            enough = (
                length >= needed and (length > 1 or len(single) >= LEAST_SINGLE) and not matched <= common
            )
            titled = before in TITLES and len(single) > 1
            if single in alone or (length and single in name and (enough or titled)):
                last = number - 1
                while tokens[last][0] in PARTICLES:
                    last -= 1
                yield tokens[start][1][0], tokens[last][1][1]
            elif len(name) > 1 and matched >= name:  # short, but the whole name
                yield tokens[first][1][0], tokens[number - 1][1][1]
            length, single = 0, ""
            matched.clear()


_INDEXED: Final = 6


class NameIndex:
    """Names by their words.

    In a given text most names behave alike: they differ only in the text's words and initials that they
    have, and in the properties that `runs` checks. So only one name of each such group is searched.
    """

    def __init__(self, names: Iterable[Name], ordinary: Set[str]) -> None:
        self._ordinary = ordinary
        self._properties = {
            name: (initials_of(name), words_needed(name), name <= ordinary) for name in frozenset(names)
        }
        self._holders: defaultdict[str, list[Name]] = defaultdict(list)
        for name in self._properties:
            for word in name:
                self._holders[word].append(name)
        self.words: Set[str] = self._holders.keys()
        """Every word of every name."""
        self._initials = {letter for initials, *_ in self._properties.values() for letter in initials}

    def spans(self, tokens: list[Token], capitals: Set[int], alone: Set[str]) -> Iterator[tuple[int, int]]:
        """Where the tokens of a text repeat a name."""
        for stretch in self._stretches(tokens, capitals):
            there = {tokens[number][0] for number in stretch}
            letters = {w for w, (start, _) in (tokens[number] for number in stretch) if start in capitals}
            for name in self._one_of_each(there, letters):
                yield from runs(tokens, stretch, name, capitals, alone, self._ordinary)

    def _stretches(self, tokens: list[Token], capitals: Set[int]) -> Iterator[range]:
        """The longest stretches of tokens that may belong to names; no run crosses their ends."""
        first = -1
        for number, (word, (start, _)) in enumerate(tokens):
            if word in self.words or (start in capitals and word in self._initials):
                first = number if first < 0 else first
            elif first >= 0:
                yield range(first, number)
                first = -1
        if first >= 0:
            yield range(first, len(tokens))

    def _one_of_each(self, words: Set[str], letters: Set[str]) -> Iterable[Name]:
        """Enough names to represent every group; particles alone never make a run."""
        groups: dict[tuple[object, ...], Name] = {}
        for name in {name for word in words - PARTICLES for name in self._holders.get(word, ())}:
            initials, needed, common = self._properties[name]
            groups[name & words, name <= words, frozenset(initials & letters), needed, common] = name
        return groups.values()


class LiteralIndex:
    """Literals by their first characters."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._by_size: defaultdict[int, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for literal in literals:
            start = literal[:_INDEXED]
            self._by_size[len(start)][start].append(literal)

    def spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """The spans where a folded text repeats a literal."""
        for size, index in self._by_size.items():
            for at in range(len(folded) - size + 1):
                for literal in index.get(folded[at : at + size], ()):
                    if folded.startswith(literal, at):
                        yield at, at + len(literal)


CUT: Final = "[withheld]"

_ADDRESS = re.compile(r"(?:https?:|ftp:|//|www\.)", re.IGNORECASE)
_ADDRESS_FIELDS: Final = frozenset({"streetAddress", "locality", "region", "countryName"})
_ENCODED = re.compile(r"%[0-9a-f]{2}|&(?:[a-z]{2,8}|#x?[0-9a-f]{1,6});")
"""Encoded blanks in addresses and in HTML: `%20`, `&nbsp;`."""
_NUMBER = re.compile(r"[0-9](?:[\s().-]{0,3}[0-9]){8,}")
_BETWEEN_DIGITS: Final = r"[\s().-]{0,3}"
_OF_A_NUMBER: Final = 9
"""The last digits of a telephone number, after a country code or a zero."""
_GROUPED = re.compile(rf"[0-9](?=((?:{_BETWEEN_DIGITS}[0-9]){{{_OF_A_NUMBER - 1}}})(?!\d))")
_NO_DIGIT = re.compile(r"[^0-9]")
_OF_OFFICES: Final = frozenset(
    "accountant achats acting adquisiciones assistant cellule chain clerk commissioner contrataciones "
    "deputy desk encargado enquiries general help helpdesk legal officer passation permanent principal "
    "publics registrar responsable service services support".split()
)
"""Words for contact persons and offices; some are surnames too."""
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LEAST_DIGITS: Final = 5
_LEAST_JOINED: Final = 8
_LEAST_PART: Final = 2
_LEAST_INFLECTED, _LONGEST_ENDING = 5, 3
_INFLECTED = re.compile("[\u0400-\u052f\u0531-\u0587]+\\Z")
"""Cyrillic and Armenian, whose names have cases."""
_VOWELS: Final = "аеиоуыэюяіїєйьը"
_MANY: Final = 32
"""Number of secrets from which an index is worthwhile."""


class _Words:
    """The words of all names, and their other spellings."""

    def __init__(self, known: Set[str]) -> None:
        self._known = known
        self._plain = known & _ordinary()
        self._starts = {word[:_LEAST_PART] for word in known}
        self.stems = {_stem(word) for word in known if len(word) > 1}
        self.inflected = {_stem(word): word for word in known if _INFLECTED.match(word)}
        """Words of languages with cases, by their stem."""

    def uninflected(self, word: str) -> str:
        """The word of a name whose inflected form this is; else the word."""
        if word not in self._known:
            for end in range(len(word), max(_LEAST_INFLECTED, len(word) - _LONGEST_ENDING) - 1, -1):
                if named := self.inflected.get(word[:end]):
                    return named
        return word

    def joined_in(self, word: str) -> bool:
        """Whether a word joins several words of names, at least one of them not ordinary."""
        return (
            word[:_LEAST_PART] in self._starts
            and word not in self._known
            and _is_joined(word, self._known)
            and not _is_joined(word, self._plain)
        )


def _is_joined(word: str, known: Set[str]) -> bool:
    ends = [0]
    for end in range(_LEAST_PART, len(word) + 1):
        if any(end - start >= _LEAST_PART and word[start:end] in known for start in ends):
            ends.append(end)
    return ends[-1] == len(word)


def _stem(word: str) -> str:
    """A word of a language with cases without its ending: `Ибраимова`, `Ибраимовой`."""
    if len(word) < _LEAST_INFLECTED or not _INFLECTED.match(word):
        return word
    return word.rstrip(_VOWELS) or word


class Secrets:
    """Withheld names and literals, which the rest of a release must not repeat."""

    def __init__(self) -> None:
        self._names: dict[Name, None] = {}
        self._literals: dict[str, None] = {}
        self._numbers: set[str] = set()
        """The last digits of each number."""
        self._public: set[str] = set()
        self._letters = False
        """Whether a name has single letters, which match only as whole words."""
        self._indexes: tuple[NameIndex, LiteralIndex] | None = None
        self._written: _Words | None = None

    def __bool__(self) -> bool:
        return bool(self._names or self._literals)

    def add(self, text: str) -> None:
        """Add a name, a number or an address."""
        literal, words = _read(text)
        self._indexes = self._written = None
        if literal:
            self._literals[literal] = None
            self._numbers.update(_numbers(literal))
            if words:  # in a script without blanks: also written as one word
                self._literals["".join(literal.split())] = None
        if words:
            self._names[words] = None
            self._letters = self._letters or min(map(len, words)) == 1

    def add_contact(self, text: str) -> None:
        """Add the text of a field about people, unless it is an office or a telephone extension."""
        words = _read(text)[1]
        if not (words <= _offices() or (text.isdigit() and len(text) < _LEAST_DIGITS)) or not words:
            self.add(text)

    def include(self, other: "Secrets") -> None:
        self._indexes = self._written = None
        self._names |= other._names
        self._literals |= other._literals
        self._numbers |= other._numbers
        self._letters = self._letters or other._letters

    def covers(self, other: "Secrets") -> bool:
        return self._names.keys() >= other._names.keys() and self._literals.keys() >= other._literals.keys()

    def spare(self, name: str) -> None:
        """Do not cut single words of this organisation's or place's name, which is served anyway."""
        self._public.update(WORD.findall(fold_in_place(name)))

    def may_repeat(self, text: str) -> bool:
        """Whether a text may repeat a secret: a quick test that never misses one."""
        if self._many:
            return True
        folded = fold_in_place(text)
        for literal in self._literals:
            if literal in folded:
                return True
        for stem in self._words().stems:
            if stem in folded:
                return True
        return bool(self._numbers) and bool(self._numbers_in(folded))

    def repeats(self, text: str) -> bool:
        named = may_name_a_person(text)
        return (named or self.may_repeat(text)) and any(
            True for _ in self._spans(composed(text), named=named, numbers=False)
        )

    def cut(self, text: str, *, numbers: bool = True, address: bool = False) -> str:
        """The text with every secret in it, and everybody it names, replaced by `CUT`.

        `numbers`: also telephone numbers, for free text; codes and identifiers have none. `address`: streets
        may be named after people, with titles.
        """
        named = may_name_a_person(text)
        likely = self._letters or named or self.may_repeat(text)
        text = composed(text)
        if not likely:
            return text
        parts: list[str] = []
        behind = 0
        for start, end in self._spans(text, named=named, numbers=numbers, address=address):
            parts += (text[behind:start], CUT)
            behind = end
        return "".join((*parts, text[behind:]))

    def cut_all(self, value: Any, spared: Set[int], field: str = "") -> Any:
        """Cut every text in a JSON value; `spared` are the objects (by id) whose own name stays."""
        if type(value) is str:
            free = " " in value or field in free_fields() or field.rpartition("_")[0] in free_fields()
            redacted = self.cut(value, numbers=free, address=field in _ADDRESS_FIELDS)
            return None if redacted != value and _ADDRESS.match(value) else redacted
        if type(value) is list:
            return [self.cut_all(inner, spared, field) for inner in value]
        if type(value) is dict:
            whole = id(value) in spared
            return {
                key: inner if whole and key == "name" else self.cut_all(inner, spared, key)
                for key, inner in value.items()
            }
        return value

    @property
    def _many(self) -> bool:
        """Whether there are enough secrets to search texts with an index."""
        return len(self._names) + len(self._literals) > _MANY

    def _spans(
        self, text: str, *, named: bool, numbers: bool, address: bool = False
    ) -> Iterator[tuple[int, int]]:
        spans = (
            list(persons(text, _ordinary(), self._public, numbers=numbers, address=address)) if named else []
        )
        if not self:
            return _joined(spans)
        folded = fold_in_place(text)
        for digits in self._numbers_in(folded):
            spans += (match.span() for match in _number(digits).finditer(folded))
        spans += self._literal_spans(folded)
        plain = (
            _ENCODED.sub(lambda match: " " * len(match.group()), folded)
            if _ENCODED.search(folded)
            else folded
        )
        tokens = [(match.group(), match.span()) for match in WORD.finditer(plain)]
        words = self._words()
        spans += (span for word, span in tokens if len(word) >= _LEAST_JOINED and words.joined_in(word))
        if words.inflected:
            tokens = [(words.uninflected(word), span) for word, span in tokens]
        spans += self._name_spans(text, tokens)
        return _joined(spans)

    def _words(self) -> "_Words":
        if self._written is None:
            self._written = _Words(frozenset().union(*self._names))
        return self._written

    def _literal_spans(self, folded: str) -> Iterator[tuple[int, int]]:
        if self._many:
            yield from self._index()[1].spans(folded)
            return
        for literal in self._literals:
            start = folded.find(literal)
            while start >= 0:
                yield start, start + len(literal)
                start = folded.find(literal, start + 1)

    def _name_spans(self, text: str, tokens: list[Token]) -> Iterator[tuple[int, int]]:
        capitals = {span[0] for word, span in tokens if len(word) == 1 and text[span[0]].isupper()}
        if self._many:
            names = self._index()[0]
            yield from names.spans(tokens, capitals, self._alone(text, tokens, names.words))
            return
        present = {word for word, _ in tokens}
        for name in self._names:
            if not name.isdisjoint(present):
                alone = self._alone(text, tokens, name)
                yield from runs(tokens, range(len(tokens)), name, capitals, alone, _ordinary())

    def _index(self) -> tuple[NameIndex, LiteralIndex]:
        if self._indexes is None:
            self._indexes = NameIndex(self._names, _ordinary()), LiteralIndex(self._literals)
        return self._indexes

    def _numbers_in(self, folded: str) -> set[str]:
        """The numbers in a text, in any grouping."""
        if not self._numbers:
            return set()
        candidates = (match.group() + match.group(1) for match in _GROUPED.finditer(folded))
        return {_NO_DIGIT.sub("", digits) for digits in candidates} & self._numbers

    def _alone(self, text: str, tokens: list[Token], known: Set[str]) -> frozenset[str]:
        """The words that each identify a name by themselves in this text."""
        names = {
            word
            for word, span in tokens
            if word in known
            and len(word) >= LEAST_SINGLE
            and word not in self._public
            and _proper(text, span[0])
        }
        return frozenset(names - _ordinary())


def unspaced(text: str) -> bool:
    """Whether it is in a script without blanks, where a whole name may have two letters."""
    return len(text) > 1 and _UNSPACED.search(text) is not None


def names_somebody(text: str) -> bool:
    """Whether a text names any person, withheld or not."""
    return may_name_a_person(text) and any(
        True for _ in persons(composed(text), _ordinary(), frozenset(), numbers=True)
    )


def _proper(text: str, start: int) -> bool:
    """Whether a word is spelled like a name; in a text without capitals any word may be a name.

    Georgian names begin with small letters that have no capital.
    """
    letter = text[start]
    return not letter.islower() or letter.title() == letter or (" " in text and text.islower())


@cache
def _ordinary() -> frozenset[str]:
    """Words common in texts and in the names of firms, and hardly anyone's surname."""
    known = tables()
    countries = {word for name in country_names() for word in WORD.findall(fold_in_place(name))}
    of_tenders = resources.files(__package__).joinpath("ordinary.txt").read_text().split("\n\n", 1)[1].split()
    return known.business | known.nouns | known.qualifiers | known.explaining | countries | {*of_tenders}


@cache
def _offices() -> frozenset[str]:
    """Words in the names of offices."""
    return _ordinary() | _OF_OFFICES | PARTICLES | tables().particles


@lru_cache(maxsize=65536)
def _read(text: str) -> tuple[str, frozenset[str]]:
    """How a text is recognised: literally, by the words of a name, or both. Cached: the same people recur."""
    text = fold_in_place(text.strip())
    if _ADDRESS.match(text) and "@" not in text:  # web addresses identify sites, not people
        return "", frozenset()
    if "@" in text or sum(c.isdigit() for c in text) >= _LEAST_DIGITS:
        return text if len(text) > 1 else "", frozenset()
    if _UNSPACED.search(text):  # literally, and by its words where it has several
        words = frozenset(WORD.findall(text))
        return text if len(text) > 1 else "", words if len(words) > 1 else frozenset()
    words = frozenset(WORD.findall(text)) - TITLES
    return "", words if words - PARTICLES else frozenset()


@lru_cache(maxsize=65536)
def _numbers(literal: str) -> list[str]:
    """The last digits of the numbers in a text that has only numbers."""
    if any(map(str.isalpha, literal)):
        return []
    return [_NO_DIGIT.sub("", number)[-_OF_A_NUMBER:] for number in _NUMBER.findall(literal)]


@lru_cache(maxsize=4096)
def _number(digits: str) -> re.Pattern[str]:
    """A number in any grouping, with any prefix before its last digits."""
    return re.compile(rf"(?<!\d)\+?(?:\(?\d{{1,5}}{_BETWEEN_DIGITS})?{_BETWEEN_DIGITS.join(digits)}(?!\d)")


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans in order, overlapping ones merged."""
    span: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if span is not None and start <= span[1]:
            span = span[0], max(span[1], end)
            continue
        if span is not None:
            yield span
        span = start, end
    if span is not None:
        yield span
