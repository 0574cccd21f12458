"""Runs of words in a text that are long enough to be a withheld name."""

import re
from collections.abc import Iterator, Set
from typing import Final

Token = tuple[str, tuple[int, int]]
"""A word of a text in lower case without accents, and where it stands."""
Name = frozenset[str]
"""A name by its words."""

WORD: Final = re.compile(r"[^\W_]+")
LEAST_SINGLE: Final = 4
"""Letters of a word that may stand for a name alone."""
TITLES: Final = frozenset(
    "mr mrs ms miss mme mlle dr drs prof adv eng ing lic sr sra srta don dona rev hon me maitre arq abg cpa "
    "chief alhaji hajia engr sir madam".split()
)
PARTICLES: Final = frozenset(
    "de del la las los da das do dos e y van der den von di el al bin ben ibn le du".split()
)


def words_needed(name: Name) -> int:
    """How many words of a name must stand side by side to be taken for it."""
    return min(2, len(name - PARTICLES))


def initials_of(name: Name) -> set[str]:
    """The letters that may stand for a word of the name."""
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
