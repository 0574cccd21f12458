"""Indexes of withheld names and literals, for releases that withhold thousands.

The cost of a text depends on its length, not on the number of names. The result is the same as searching for
every name and every literal in turn.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from itertools import islice
from typing import Final

Token = tuple[str, tuple[int, int]]
"""A word of a text in lower case without accents, and its position."""
Name = frozenset[str]
"""A name by its words."""

WORD: Final = re.compile(r"[^\W_]+")
LEAST_SINGLE: Final = 4
"""The least length of a word that alone may be a name."""
TITLES: Final = frozenset(
    "mr mrs ms miss mme mlle dr drs prof adv eng ing lic sr sra srta don dona rev hon me maitre arq abg cpa "
    "chief alhaji hajia engr sir madam".split()
)
PARTICLES: Final = frozenset(
    "de del la las los da das do dos e y van der den von di el al bin ben ibn le du".split()
)


def words_needed(name: Name) -> int:
    """How many adjacent words of a name are taken for the name."""
    return min(2, len(name - PARTICLES))


def initials_of(name: Name) -> set[str]:
    """The initials of the words of the name."""
    return {word[0] for word in name} - name


def runs(
    tokens: list[Token], stretch: range, name: Name, capitals: Set[int], alone: Set[str], ordinary: Set[str]
) -> Iterator[tuple[int, int]]:
    """Runs of words, among the tokens of a stretch, that are all of one name and long enough to be that name.

    `capitals` are the places of single capital letters: initials, where a word of the name begins so.
    `alone` are the words that tell of a name without any other; `ordinary` ones tell of nobody, unless the
    name has no others.
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
            elif len(name) > 1 and matched >= name:  # short as it is, it is the whole name
                yield tokens[first][1][0], tokens[number - 1][1][1]
            length, single = 0, ""
            matched.clear()


_GRAM: Final = 6
_NONE: Final[frozenset[Name]] = frozenset()

Holders = defaultdict[str, set[Name]]


class NameIndex:
    """Names by their words.

    In a given text most names behave alike: only which of its words and initials they have, and what
    `name_runs` asks of any name, makes a difference. So one name of each such group is looked for. The groups
    are told apart by intersections of sets, which cost as much as the smaller one.
    """

    def __init__(self, names: Iterable[Name], ordinary: Set[str]) -> None:
        self._ordinary = ordinary
        self._names = frozenset(names)
        self._alike: defaultdict[tuple[int, bool], tuple[Holders, Holders]] = defaultdict(
            lambda: (defaultdict(set), defaultdict(set))
        )
        """By what is asked of a name: the names that have a word, and those that an initial may stand for."""
        self.words: set[str] = set()
        """Every word of every name."""
        self._initials: set[str] = set()
        for name in self._names:
            by_word, by_initial = self._alike[words_needed(name), name <= ordinary]
            for word in name:
                by_word[word].add(name)
            for letter in initials_of(name):
                by_initial[letter].add(name)
                self._initials.add(letter)
            self.words |= name

    def spans(self, tokens: list[Token], capitals: Set[int], alone: Set[str]) -> Iterator[tuple[int, int]]:
        """Where the tokens of a text repeat a name."""
        for stretch in self._stretches(tokens, capitals):
            there = {tokens[number][0] for number in stretch}
            letters = {w for w, (start, _) in (tokens[number] for number in stretch) if start in capitals}
            for name in self._one_of_each(there & self.words, letters & self._initials):
                yield from runs(tokens, stretch, name, capitals, alone, self._ordinary)

    def _stretches(self, tokens: list[Token], capitals: Set[int]) -> Iterator[range]:
        """The longest stretches of tokens that may be of some name: no run crosses their ends."""
        first = -1
        for number, (word, (start, _)) in enumerate(tokens):
            if word in self.words or (start in capitals and word in self._initials):
                first = number if first < 0 else first
            elif first >= 0:
                yield range(first, number)
                first = -1
        if first >= 0:
            yield range(first, len(tokens))

    def _one_of_each(self, words: Set[str], letters: Set[str]) -> Iterator[Name]:
        """Names enough that each group is among them; particles alone are no name's run."""
        significant = words - PARTICLES
        for by_word, by_initial in self._alike.values():
            groups: list[Set[Name]] = []
            earlier: list[Set[Name]] = []
            for word in significant:
                if members := by_word.get(word):
                    groups = [*_split(groups, members), members.difference(*earlier) if earlier else members]
                    earlier.append(members)
            for word in words & PARTICLES:
                groups = _split(groups, by_word.get(word, _NONE))
            for letter in letters:
                groups = _split(groups, by_initial.get(letter, _NONE))
            for group in groups:
                for name in islice(group, 2):  # two: one of them may be there as a whole, unlike the others
                    whole = name & words
                    if whole != name and whole in self._names:
                        yield whole
                    yield name


def _split(groups: list[Set[Name]], members: Set[Name]) -> list[Set[Name]]:
    """Each group in two: those that are members, and those that are not."""
    split: list[Set[Name]] = []
    for group in groups:
        inside = group & members
        if inside and len(inside) < len(group):
            split += (inside, group - inside)
        else:
            split.append(group)
    return split


class LiteralIndex:
    """Literals by a few of their characters, those that the fewest others have."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._by_size: dict[int, dict[str, list[tuple[int, str]]]] = {}
        grouped: defaultdict[int, list[str]] = defaultdict(list)
        for literal in literals:
            grouped[min(_GRAM, len(literal))].append(literal)
        for size, alike in grouped.items():
            common = Counter(gram for literal in alike for gram in set(_grams(literal, size)))
            index: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
            for literal in alike:
                gram = min(_grams(literal, size), key=lambda gram: common[gram])
                index[gram].append((literal.index(gram), literal))
            self._by_size[size] = dict(index)

    def spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """Where a folded text repeats one."""
        for size, index in self._by_size.items():
            for position, gram in enumerate(_grams(folded, size)):
                for offset, literal in index.get(gram, ()):
                    start = position - offset
                    if start >= 0 and folded.startswith(literal, start):
                        yield start, start + len(literal)


def _grams(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(len(text) - size + 1)]
