"""Every regular expression of the package reads any text in linear time (contract: ING-14)."""

import ast
import functools
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sankofa
from sankofa.dialects.contract import _roots
from sankofa.model import identifiers
from sankofa.model.ocds.redaction import _number
from sankofa.model.ocds.telephones import _plans
from sankofa.model.organisations.tables import spelling
from sankofa.operations.parameter_types import whole_match
from sankofa.sources import central_banks
from sankofa.web.view import _pattern
from tests.depth import deep_after
from tests.every import every
from tests.torture import rounds

FOLDER = Path(sankofa.__file__).parent
sre: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
METHODS = ("match", "fullmatch", "search", "findall", "finditer", "split", "sub", "subn")
FROM_THE_START = frozenset({"match", "fullmatch"})
LARGEST = 8_192
_MANY = 16
_SUSPECT = 0.02
"""Seconds below which nothing is suspected: a linear pattern reads the largest input in a tenth of that."""
_STEPS = (16, 64, 512, LARGEST // 4, LARGEST)
"""How often an input is repeated."""
_TIMEOUT = 2.0
"""Seconds allowed for one input: some patterns take twice as long for one repeat more."""
_GROWTH = 8
"""Four times the input takes four times as long where work is linear, sixteen times where it is quadratic."""
_CHARACTERS = "aA0 -._@!\n\x00\u00e9"
_CATEGORIES = {
    sre.CATEGORY_DIGIT: "0",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: "-",
}


class Used(NamedTuple):
    """A pattern of the package."""

    where: str
    pattern: re.Pattern[Any]
    anywhere: bool
    """True if it is searched at every position of a text."""


class Call(NamedTuple):
    """A call of the `re` module in the source of the package."""

    where: str
    function: str
    method: str
    text: ast.expr


def patterns(built: Callable[[str, str], Iterator[re.Pattern[Any]] | None]) -> Iterator[Used]:
    """Patterns of modules and classes, cached functions, calls and schemas.

    `built` gives examples of patterns that a function builds from its arguments, or None if it knows none.
    """
    names: dict[str, set[str]] = {}
    sources = [(path, *_read(path, names)) for path in sorted(FOLDER.rglob("*.py"))]
    for module in _modules():
        for name, value in vars(module).items():
            for pattern in _patterns_in(value, module.__name__):
                used = names.get(name, set(METHODS))
                yield Used(f"{module.__name__}.{name}", pattern, not used <= FROM_THE_START)
    for path, calls, keywords in sources:
        for call in calls:
            constant = _constant(call.text)
            anywhere = call.method not in FROM_THE_START
            if constant is not None:
                if call.method != "compile":
                    yield Used(call.where, re.compile(constant), anywhere)
            elif call.function:
                examples = built(call.where.partition(":")[0], call.function)
                assert examples is not None, f"{call.where}: {call.function} makes a pattern; add an example"
                for pattern in examples:
                    yield Used(call.where, pattern, anywhere)
        for keyword in keywords:
            if (text := _constant(keyword.value)) is not None:
                yield Used(f"{path.name}:{keyword.value.lineno}", re.compile(text), True)


def _modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(sankofa.__path__, "sankofa."):
        if not module.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # the extra is not installed
                yield importlib.import_module(module.name)


def _patterns_in(value: Any, module: str, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth < 4:
        for inner in list(value.values()):
            yield from _patterns_in(inner, module, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth < 4:
        for inner in value:
            yield from _patterns_in(inner, module, depth + 1)
    elif isinstance(value, type) and value.__module__ == module:
        yield from _patterns_in(dict(vars(value)), module, depth + 1)
    elif isinstance(value, functools._lru_cache_wrapper) and value.__module__ == module:
        code = value.__wrapped__.__code__
        if not code.co_argcount and "Pattern" in str(value.__wrapped__.__annotations__.get("return")):
            yield from _patterns_in(value(), module, depth + 1)


def _read(path: Path, names: dict[str, set[str]]) -> tuple[list[Call], list[ast.keyword]]:
    """The calls of `re` in a file and its keywords `pattern`; records which methods are called by which
    name.
    """
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    calls, file = [], path.relative_to(FOLDER).as_posix()
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            holder = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            if isinstance(holder, ast.Name):
                names.setdefault(holder.id, set()).add(node.attr)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in ("compile", *METHODS)
        ):
            inside = [f.name for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
            where = inside[-1] if inside else ""
            calls.append(Call(f"{file}:{node.lineno}", where, node.func.attr, node.args[0]))
    return calls, [node for node in nodes if isinstance(node, ast.keyword) and node.arg == "pattern"]


def _constant(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str | bytes) else None


def growth(used: Used) -> str | None:
    """An input for which the pattern takes too long; None if its work is linear in all of them."""
    pattern = used.pattern
    is_text = isinstance(pattern.pattern, str)
    for before, pump, after in _attacks(pattern):
        earlier = 0.0
        for times in _STEPS:
            text = before + pump * min(times, LARGEST // len(pump)) + after
            subject: Any = text if is_text else text.encode("latin-1", "replace")
            try:
                with _limited():
                    took = _seconds(used, subject)
            except TimeoutError:
                return (
                    f"over {_TIMEOUT} s for {len(text):,} characters: {before!r} + {pump!r} * n + {after!r}"
                )
            if took > _SUSPECT:
                took = min(took, _seconds(used, subject), _seconds(used, subject))
                if took > _SUSPECT and took > _GROWTH * earlier:
                    return f"{took:.3f} s for {len(text):,} characters: {before!r} + {pump!r} * n + {after!r}"
            earlier = took
    return None


def _seconds(used: Used, text: Any) -> float:
    began = time.process_time()
    if used.anywhere:
        for _ in used.pattern.finditer(text):
            pass
    else:
        used.pattern.match(text)
        used.pattern.fullmatch(text)
    return time.process_time() - began


@contextmanager
def _limited() -> Iterator[None]:
    """Raises TimeoutError after so many seconds of this process; matching stops for a signal."""

    def stop(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _TIMEOUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _attacks(pattern: re.Pattern[Any]) -> set[tuple[str, str, str]]:
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    repeats: set[tuple[str, str]] = set()
    _repeats(tree, "", repeats)
    alphabet = {c for _, pump in repeats for c in pump}
    repeats |= {(before, c) for before, _ in list(repeats) for c in sorted(alphabet)[: rounds(3, 12)]}
    pairs = sorted(alphabet)[: rounds(2, 6)]
    repeats |= {("", a + b) for a in pairs for b in pairs if a != b}
    return {(before, pump, after) for before, pump in repeats for after in ("", "\x00", pump[0] * 2)}


def _repeats(tree: Any, before: str, repeats: set[tuple[str, str]]) -> None:
    """The texts that lead to each repeat of a pattern, and texts that it repeats."""
    for number, (code, argument) in enumerate(tree):
        lead = before + _sample(list(tree)[:number], 0)
        for inner in _inner(code, argument):
            _repeats(inner, lead, repeats)
        if code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and argument[1] >= _MANY:
            for more in (0, 1, 2):
                if pump := _sample(argument[2], more):
                    repeats.add((lead, pump))
                    repeats.add(("", pump))


def _inner(code: Any, argument: Any) -> list[Any]:
    if code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [argument[2]]
    if code is sre.SUBPATTERN:
        return [argument[3]]
    if code is sre.BRANCH:
        return list(argument[1])
    if code in (sre.ASSERT, sre.ASSERT_NOT):
        return [argument[1]]
    return [argument] if code is sre.ATOMIC_GROUP else []


def _sample(tree: Any, more: int) -> str:
    """A text that matches, with `more` repetitions than needed, and other characters."""
    text = ""
    for code, argument in tree:
        if code is sre.LITERAL:
            text += chr(argument)
        elif code is sre.NOT_LITERAL:
            text += next(c for c in _CHARACTERS if ord(c) != argument)
        elif code is sre.ANY:
            text += "a"
        elif code is sre.IN:
            text += _member(argument, more)
        elif code is sre.BRANCH:
            text += _sample(argument[1][more % len(argument[1])], more)
        elif code is sre.SUBPATTERN:
            text += _sample(argument[3], more)
        elif code is sre.ATOMIC_GROUP:
            text += _sample(argument, more)
        elif code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            text += _sample(argument[2], more) * min(argument[0] + more, argument[1])
    return text


def _member(members: list[tuple[Any, Any]], number: int) -> str:
    """A character of a set; another one for another number."""
    if members[0][0] is sre.NEGATE:
        excluded = re.compile(f"[{''.join(_written(m) for m in members[1:])}]")
        allowed = [c for c in _CHARACTERS if not excluded.match(c)]
        return allowed[number % len(allowed)] if allowed else "~"
    code, argument = members[number % len(members)]
    if code is sre.LITERAL:
        return chr(argument)
    return chr(argument[0]) if code is sre.RANGE else _CATEGORIES.get(argument, "a")


def _written(member: tuple[Any, Any]) -> str:
    code, argument = member
    if code is sre.LITERAL:
        return re.escape(chr(argument))
    if code is sre.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    letters = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}
    name = str(argument).removeprefix("CATEGORY_").removeprefix("UNI_")
    return f"\\{letters[name.removeprefix('NOT_')].upper() if 'NOT_' in name else letters[name]}"


def built(file: str, function: str) -> Iterator[re.Pattern[Any]] | None:
    """Patterns that functions build from their arguments."""
    examples: dict[tuple[str, str], list[re.Pattern[Any]]] = {
        ("dialects/contract.py", "_roots"): [_roots()],
        ("ledger/generations.py", "columns_of"): [],  # from our own schema, never from outside text
        ("model/ocds/redaction.py", "_number"): [_number("825551234")],
        ("model/ocds/telephones.py", "_plans"): [
            *_plans().by_code.values(),
            _plans().national,
            _plans().word_before,
        ],
        ("model/organisations/tables.py", "spelling"): [spelling(("pty", "ltd")), spelling(("s.a.",))],
        ("model/organisations/tables.py", "parts"): [re.compile(r"(?<!\w)a/s(?!\w)")],
        ("model/organisations/tables.py", "registers"): [],  # called without arguments: a constant
        ("model/identifiers.py", "_compiled"): [
            pattern
            for register in identifiers._registers().values()
            for rules in (register.numbers, *register.under.values())
            for pattern, _ in rules
        ],
        ("model/organisations/tables.py", "people_too"): [],
        ("operations/parameter_types.py", "whole_match"): [whole_match("^[0-9a-f]{64}$")],
        ("sources/central_banks.py", "_family"): [
            re.compile(pattern) for _, pattern in central_banks._FAMILIES
        ],
        ("web/view.py", "_pattern"): [_pattern("/docs/{name*}"), _pattern("/company/{service_id}/{page}")],
    }
    listed = examples.get((file, function))
    return None if listed is None else iter(listed)


@pytest.mark.rule("ING-14")
def test_the_work_of_every_pattern_is_linear_in_its_input() -> None:
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
def test_a_pattern_that_does_not_backtrack_passes(pattern: str | bytes) -> None:
    assert growth(Used("here", re.compile(pattern), True)) is None
