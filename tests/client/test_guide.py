"""The guide to the client is true: each of its steps prints what is shown after it."""

import contextlib
import io
from itertools import pairwise
from typing import Any

from tests.live import LiveServer
from tests.services import REPOSITORY
from tests.unit.test_docs import blocks


def test_the_guide_prints_what_it_shows(server: LiveServer) -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    steps = [(a, b) for a, b in pairwise(blocks(REPOSITORY / "docs" / "python-client.md")) if a.mark == "run"]
    assert len(steps) > 5
    try:
        for step, shown in steps:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(step.text.replace("http://127.0.0.1:8000", server.url), names)  # noqa: S102
            assert printed.getvalue() == shown.text
    finally:
        names["client"].close()
