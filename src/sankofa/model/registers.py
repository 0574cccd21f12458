"""One register under several spellings is one scheme: its spellings, and the ways to write a number."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_Rewrites = tuple[tuple[re.Pattern[str], str], ...]


class _Register(NamedTuple):
    code: str
    numbers: _Rewrites
    under: Mapping[str, _Rewrites]
    """By spelling, before the others."""


def register_code(spelling: str) -> str:
    """The code under which numbers of a register are served, however it is spelled; else what was given."""
    written = _folded(spelling)
    found = _registers().get(written)
    return found.code if found else written


def one_spelling(spelling: str, number: str) -> tuple[str, str]:
    """A register and a number (in upper case, single spaces) in the one way both are kept."""
    written = _folded(spelling)
    found = _registers().get(written)
    if found is None:
        return written, number
    for pattern, kept in (*found.under.get(written, ()), *found.numbers):
        if match := pattern.fullmatch(number):
            return found.code, match.expand(kept)
    return found.code, number


def _folded(spelling: str) -> str:
    return " ".join(spelling.split()).upper()


@cache
def _registers() -> Mapping[str, _Register]:
    """Every register by each of its spellings, its code among them."""
    table = tomllib.loads(files("sankofa.model").joinpath("registers.toml").read_text("utf-8"))
    found: dict[str, _Register] = {}
    for code, told in table.items():
        under = {_folded(name): _compiled(rules) for name, rules in told.get("under", {}).items()}
        register = _Register(code, _compiled(told.get("numbers", [])), under)
        for spelling in (code, *told["spellings"]):
            if found.setdefault(_folded(spelling), register) is not register:
                raise ValueError(f"registers.toml: {spelling} is two registers")
    return found


def _compiled(rules: list[list[str]]) -> _Rewrites:
    return tuple((re.compile(pattern), kept) for pattern, kept in rules)
