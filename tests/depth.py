"""Leaves out tests marked `deep`, and outside of .ci/run those marked `ci`.

A test is deep if it is expensive and a cheaper test covers its rule too. It is for CI if it is expensive and
few changes break it. Both run where every round runs (TEST_ALL_ROUNDS=1, as in `make test-all` and `make
torture`), and where the command line names the file, the test or the mark. tests/unit/test_contract.py checks
what may be left out.
"""

import ast
from collections.abc import Sequence
from typing import Any

import pytest

from tests.torture import ALL_ROUNDS, IN_CI

_LEFT_OUT = pytest.StashKey[int]()


def deep_after(count: int, values: Sequence[Any]) -> list[Any]:
    """Values for a parametrized test: the first few run always, the others are deep."""
    assert count > 0
    return [*values[:count], *(_deep(value) for value in values[count:])]


def _deep(value: Any) -> Any:
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, id=value.id, marks=(*value.marks, pytest.mark.deep))
    return pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.deep)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove these tests from the collection, and count them."""
    config.stash[_LEFT_OUT] = 0
    if ALL_ROUNDS or "deep" in config.option.markexpr:
        return
    named_files = {
        (config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args
    }
    marks = ["deep"] if IN_CI else ["deep", "ci"]
    left_out = [
        item for item in items if any(map(item.get_closest_marker, marks)) and item.path not in named_files
    ]
    if left_out:
        config.stash[_LEFT_OUT] = len(left_out)
        config.hook.pytest_deselected(items=left_out)
        removed = set(left_out)
        items[:] = [item for item in items if item not in removed]


def is_marked(module: ast.Module, statement: ast.stmt, *names: str) -> bool:
    """Whether the source marks a test or its whole file with one of these marks."""
    marks = list(getattr(statement, "decorator_list", []))
    for other in module.body:
        if isinstance(other, ast.Assign) and [ast.unparse(name) for name in other.targets] == ["pytestmark"]:
            marks += other.value.elts if isinstance(other.value, ast.List) else [other.value]
    return any(ast.unparse(mark) in {f"pytest.mark.{name}" for name in names} for mark in marks)


class Remark:
    """Says at the end of a run how many tests were left out. Each of several processes collects them all."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left_out = 0

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left_out"] = session.config.stash.get(_LEFT_OUT, 0)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._left_out = max(self._left_out, getattr(node, "workeroutput", {}).get("left_out", 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        count = max(self._left_out, self._config.stash.get(_LEFT_OUT, 0))
        if count:
            line = f"left out: {count} tests, deep or ci; `make test-all` runs them (docs/how-to/testing.md)"
            terminalreporter.write_line(line, yellow=True, bold=True)
