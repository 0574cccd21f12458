"""Company registers: the spellings of each register's name, and of the numbers it issues."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

_Rewrites = tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
"""Patterns, each with what a number that matches it becomes: texts and the numbers of groups in turn."""
_GROUP = re.compile(r"\\(\d)")


class _Register(NamedTuple):
    code: str
    numbers: _Rewrites
    under: Mapping[str, _Rewrites]
    """Rules for one spelling of the register only; they are tried before `numbers`."""


def register_code(spelling: str) -> str:
    """The code of a register, however it is spelled; an unknown register keeps the given spelling."""
    written = _folded(spelling)
    register = _registers().get(written)
    return register.code if register else written


@lru_cache(maxsize=1 << 16)  # a buyer is a party of thousands of releases
def one_spelling(spelling: str, number: str) -> tuple[str, str]:
    """A register and a number (in upper case, single spaces) in canonical form."""
    written = _folded(spelling)
    register = _registers().get(written)
    if register is None:
        return written, number
    for pattern, replacement in (*register.under.get(written, ()), *register.numbers):
        if match := pattern.fullmatch(number):
            texts = (match[int(part)] if at % 2 else part for at, part in enumerate(replacement))
            return register.code, "".join(texts)
    return register.code, number


def _folded(spelling: str) -> str:
    return " ".join(spelling.split()).upper()


@cache
def _registers() -> Mapping[str, _Register]:
    """Every register by each of its spellings, its code among them."""
    table = tomllib.loads(files("sankofa.model").joinpath("registers.toml").read_text("utf-8"))
    by_spelling: dict[str, _Register] = {}
    for code, entry in table.items():
        under = {_folded(name): _compiled(rules) for name, rules in entry.get("under", {}).items()}
        register = _Register(code, _compiled(entry.get("numbers", [])), under)
        for spelling in (code, *entry["spellings"]):
            if by_spelling.setdefault(_folded(spelling), register) is not register:
                raise ValueError(f"registers.toml: {spelling} is two registers")
    return by_spelling


def _compiled(rules: list[list[str]]) -> _Rewrites:
    # `Match.expand` would read the replacement anew for each number.
    return tuple((re.compile(pattern), tuple(_GROUP.split(replacement))) for pattern, replacement in rules)
