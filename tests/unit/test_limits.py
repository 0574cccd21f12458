"""Every limit of docs/reference/limits.md has a test that goes beyond it."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from sankofa.model.limits import limit
from sankofa.settings import PREFIX, Settings
from tools.reference_pages.limits_page import BEYOND_SETTINGS, NO_BOUNDS, all_limits

TESTS = Path(__file__).parent.parent


def marked() -> set[str]:
    """The names of the limits that a test goes beyond."""
    names: set[str] = set()
    for path in TESTS.rglob("*.py"):
        if "mark.limit(" in (text := path.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.limit":
                    names |= {ast.literal_eval(argument) for argument in node.args}
    return names


@pytest.mark.rule("LIM-1")
def test_every_limit_has_a_test_that_goes_beyond_it() -> None:
    known = {*all_limits(), *(PREFIX + name.upper() for name in BEYOND_SETTINGS)}
    assert known - marked() == set()
    assert marked() - known == set(), "a test names a limit that is not there"


@pytest.mark.rule("LIM-1")
def test_a_setting_that_is_a_number_is_a_limit_or_said_to_be_none() -> None:
    numbers = {f.name for f in fields(Settings) if isinstance(f.default, int)}
    assert numbers == BEYOND_SETTINGS.keys() | NO_BOUNDS


def test_two_limits_cannot_have_one_name() -> None:
    name = next(iter(all_limits()))
    with pytest.raises(ValueError, match="two limits"):
        limit(name, 1, "bytes", "400")
