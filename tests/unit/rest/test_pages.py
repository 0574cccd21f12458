"""The pages that need no key."""

import asyncio
import json
import shutil
from pathlib import Path

import sankofa.mcp.exchange
from sankofa.model.errors import Problem
from sankofa.operations.service import Service
from sankofa.rest.pages import open_pages, problems
from sankofa.rest.request import read_head
from sankofa.rest.response import Response
from sankofa.settings import Settings


def test_every_problem_of_every_surface_is_explained() -> None:
    assert sankofa.mcp.exchange.ContentTooLarge in problems()
    assert all(problem.__doc__ and problem.__doc__.startswith(str(problem.status)) for problem in problems())


def test_no_two_problems_share_a_page() -> None:
    slugs = [problem.slug for problem in problems()]
    assert len(slugs) == len(set(slugs))
    assert Problem not in problems()


def test_a_service_that_has_not_opened_its_edition_yet_is_degraded(sample_home: Path, tmp_path: Path) -> None:
    """A large one takes seconds to verify, and no data endpoint answers before."""
    home = Path(shutil.copytree(sample_home, tmp_path / "home"))  # a service creates its stores there

    async def status(*, opened: bool) -> Response:
        service = Service(Settings(home=home))
        if opened:
            await service.edition.look()
        try:
            answer = await open_pages(service)["/v1/status"].answer(read_head([(b"host", b"a")]), b"")
        finally:
            await service.stop()
        assert isinstance(answer, Response)
        return answer

    early, later = (asyncio.run(status(opened=opened)) for opened in (False, True))
    assert (early.status, json.loads(early.body)["degraded"]) == (503, ["datastore"])
    assert (later.status, json.loads(later.body)["degraded"]) == (200, [])
