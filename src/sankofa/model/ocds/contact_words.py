"""The words that tell a person in free text, read once from `contacts.toml`."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from sankofa.model.organisations.tables import tables
from sankofa.model.text import fold_in_place

WORD = re.compile(r"(?<!\w)[^\W\d_]/[^\W\d_](?!\w)|[^\W\d_\u00aa\u00ba]+(?:['\u2019\u02bc-][^\W\d_]+)*+|\d+")
_ARABIC_PREFIXES: Final = ("", "\u0628", "\u0648", "\u0641")
_WORDS: Final = bytes(code | 32 if chr(code).isalpha() else 32 for code in range(128)) + bytes([32]) * 128
_DIGITS: Final = bytes(48 if 48 <= code < 58 else 32 for code in range(256))
_BETWEEN_DIGITS: Final = bytes(code for code in range(256) if not (code < 128 and chr(code).isalnum()))
_DIGITS_IN_A_ROW: Final = b"0" * 6
_LETTERS = re.compile(r"[^\W\d_]+")
_OTHER_DIGITS = re.compile("[\u0660-\u0669\u06f0-\u06f9]")


class Vocabulary(NamedTuple):
    phrases: dict[str, list[tuple[tuple[str, ...], str]]]
    """By their first word, the longest first: each with what it is."""
    dotted: frozenset[tuple[str, ...]]
    fillers: frozenset[str]
    institutions: frozenset[str]
    before: frozenset[str]
    brands: frozenset[tuple[str, ...]]
    plain: frozenset[str]
    joiners: frozenset[str]
    of_streets: frozenset[str]
    hints: frozenset[str | bytes]
    """The longest word of each phrase, as text and as bytes."""
    names: frozenset[str]


@cache
def vocabulary() -> Vocabulary:
    table = tomllib.loads(resources.files(__package__).joinpath("contacts.toml").read_text("utf-8"))
    phrases: dict[tuple[str, ...], str] = {}
    for kind in ("offices", "authors", "contacts", "doubtful_titles", "titles"):
        for phrase in _phrases(table[kind]):
            phrases[phrase] = kind
            if kind.endswith("titles") and phrase[0].startswith("\u0627\u0644"):
                for prefix in _ARABIC_PREFIXES:
                    phrases[(prefix + phrase[0], *phrase[1:])] = kind
                phrases[("\u0644" + phrase[0][1:], *phrase[1:])] = kind
    by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for phrase in sorted(phrases, key=len, reverse=True):
        by_first.setdefault(phrase[0], []).append((phrase, phrases[phrase]))
    return Vocabulary(
        by_first,
        frozenset(_phrases(table["dotted_titles"])),
        _folded(table["fillers"]),
        _folded(table["institutions"]),
        _folded(table["before"]),
        frozenset(_phrases(table["brands"])),
        _folded(table["plain"]),
        _folded(table["joiners"]),
        _folded(table["of_streets"]),
        _hints(phrases),
        tables().names,
    )


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
    """Whether a text may hold an address of e-mail."""
    return "@" in text or "at)" in text or "at]" in text


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
