"""Every regular expression of the package reads any text in linear time (contract: ING-14)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from sankofa.model import identifiers
from sankofa.model.ocds.redaction import _number
from sankofa.model.ocds.telephones import _plans
from sankofa.model.organisations.tables import spelling
from sankofa.operations.parameter_types import whole_match
from sankofa.sources import alfred
from sankofa.web.view import _pattern
from tests.depth import deep_after
from tests.every import every
from tests.patterns import Used, growth, patterns
from tests.torture import rounds


def built(file: str, function: str) -> Iterator[re.Pattern[Any]] | None:
    """Patterns that functions make of their arguments."""
    examples: dict[tuple[str, str], list[re.Pattern[Any]]] = {
        ("ledger/generations.py", "columns_of"): [],  # of our own schema, never of outside text
        ("model/ocds/redaction.py", "_number"): [_number("825551234")],
        ("model/ocds/telephones.py", "_plans"): [
            *_plans().by_code.values(),
            _plans().national,
            _plans().word_before,
        ],
        ("model/organisations/tables.py", "spelling"): [spelling(("pty", "ltd")), spelling(("s.a.",))],
        ("model/organisations/tables.py", "parts"): [re.compile(r"(?<!\w)a/s(?!\w)")],
        ("model/organisations/tables.py", "registers"): [],  # called with no argument: held like any other
        ("model/identifiers.py", "_compiled"): [
            pattern
            for register in identifiers._registers().values()
            for rules in (register.numbers, *register.under.values())
            for pattern, _ in rules
        ],
        ("operations/parameter_types.py", "whole_match"): [whole_match("^[0-9a-f]{64}$")],
        ("sources/alfred.py", "_family"): [re.compile(pattern) for _, pattern in alfred._FAMILIES],
        ("web/view.py", "_pattern"): [_pattern("/docs/{name*}"), _pattern("/company/{service_id}/{page}")],
    }
    found = examples.get((file, function))
    return None if found is None else iter(found)


@pytest.mark.rule("ING-14")
def test_the_work_of_every_pattern_grows_with_its_input_and_no_faster() -> None:
    used = {(each.pattern, each.anywhere): each for each in patterns(built)}
    assert len(used) > 100
    some = list(used.values())[:: rounds(1, 1, here=4)]
    slow = [f"{each.where}: {each.pattern.pattern!r}: {how}" for each in some if (how := growth(each))]
    assert slow == []


@pytest.mark.parametrize(
    "pattern",
    deep_after(
        2,
        [
            r"[\w.]+@\w+",
            r"\s*([+-]?)\s*x",
            r"(a|a)*b",
            rb"\s*(<!--.*?-->\s*)*<html",
            r"(?:\w+\s?)+\Z",
            r"(?:[A-Z ]{2,12} )*B",
        ],
    ),
)
def test_a_pattern_that_backtracks_is_found(pattern: str | bytes) -> None:
    assert growth(Used("here", re.compile(pattern), True))


@every("pattern", [r"(?<!\w)\w++@", r"[a-z]{1,20}\Z", r"\d+", rb"(?<!a)a*+b"])
def test_a_pattern_that_does_not_backtrack_is_not(pattern: str | bytes) -> None:
    assert growth(Used("here", re.compile(pattern), True)) is None
