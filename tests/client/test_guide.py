"""Each step of the guides prints the output that they show."""

import contextlib
import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sankofa.client import Client
from tests.live import LiveServer
from tests.services import REPOSITORY
from tests.unit.test_docs import blocks


def steps(page: str, mark: str) -> Iterator[tuple[str, str]]:
    """Each step with this mark, and the output shown after it."""
    for step, output in pairwise(blocks(REPOSITORY / "docs" / page)):
        if step.mark == mark:
            assert output.language == "text", step.text
            yield step.text, output.text


def printed_by(step: str, server: LiveServer, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(step.replace("http://127.0.0.1:8000", server.url), names)  # noqa: S102 - our own guide, run as a reader would
    return printed.getvalue()


def test_the_guide_prints_its_outputs(server: LiveServer) -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    guide = list(steps("how-to/python-client.md", "run"))
    assert len(guide) > 5
    try:
        for step, output in guide:
            assert printed_by(step, server, names) == output
    finally:
        names["client"].close()


def test_the_steps_of_the_guide_read_licensed_files(
    server: LiveServer, paid_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Client(paid_key, server.url) as client:
        ((step, output),) = steps("how-to/python-client.md", "licensed")
        assert printed_by(step, server, {"__name__": "guide", "client": client}) == output


def test_the_guide_for_agents_prints_its_outputs(server: LiveServer) -> None:
    ((step, output),) = steps("how-to/agents.md", "run")
    assert printed_by(step, server, {"__name__": "guide"}) == output
