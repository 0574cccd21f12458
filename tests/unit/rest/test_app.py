"""Cases that no real endpoint has: a paid refusal among the checks, and a deprecated endpoint."""

import asyncio
import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from sankofa.edition.format.keys import ORGANISATIONS
from sankofa.model.errors import NotFound, Problem, SettingsError
from sankofa.model.rows import EntityRow
from sankofa.operations import contract
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.parameters import Limit, ServiceId
from sankofa.operations.service import ContentTooLarge, Response, Service, read_head
from sankofa.rest import app as rest_app
from sankofa.rest.app import RestApp
from sankofa.rest.pages import open_pages, problems
from sankofa.rest.request import Deprecation
from sankofa.settings import Settings

PATH = "/v1/imagined/{service_id}"


class Edition:
    lock = None
    id = "imagined"
    manifest: ClassVar = {"indexes": {ORGANISATIONS.records: 0}}

    async def index_block(self, *arguments: object) -> None:
        return None

    async def select(self, *arguments: object, **filters: object) -> None:
        return None


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: dict[str, Any]


Ask = Callable[..., Got]


async def imagined(call: Call, *, service_id: ServiceId, limit: Limit = None) -> Answer:
    """An endpoint without records."""
    call.grant.rows(limit)
    raise NotFound(f"No organisation with service_id {service_id}.")


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(contract, "_OPERATIONS", {})
    operation(PATH, row=EntityRow)(imagined)
    declared = tuple(contract._OPERATIONS.values())
    monkeypatch.setattr(rest_app, "endpoints", lambda: declared)
    service = Service(Settings(home=tmp_path, per_month_sample=3))
    monkeypatch.setattr(service.edition, "get", Edition)
    return service


@pytest.fixture
def ask(service: Service) -> Ask:
    """Call the application in this process, as an HTTP server would."""
    app = RestApp(service, open_pages(service))

    async def exchange(target: str, key: str | None, method: str) -> Got:
        path, _, query = target.partition("?")
        headers = [(b"host", b"x")] + ([(b"x-api-key", key.encode())] if key else [])
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": headers,
        }
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("no body is read")

        await app(scope, receive, send)
        await service.keystore.close()
        await service.usagestore.close()
        fields = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Got(sent[0]["status"], fields, json.loads(sent[1]["body"]))

    return lambda target, key="sankofa-sandbox", method="GET": asyncio.run(exchange(target, key, method))


@pytest.mark.rule("ERR-5")
def test_a_defect_is_500_without_its_details(
    ask: Ask, service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("inner workings")

    monkeypatch.setattr(service.edition, "get", fail)
    got = ask("/v1/imagined/A")
    assert got.status == 500
    assert "inner workings" not in json.dumps(got.body)
    assert "inner workings" in caplog.text
    assert got.body["request_id"] in caplog.text
    assert "sankofa-sandbox" not in caplog.text


@pytest.mark.rule("ERR-3")
def test_a_deprecated_endpoint_says_so(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {PATH: Deprecation(date(2026, 1, 1), date(2027, 1, 1), "https://api.example/v2")}
    monkeypatch.setattr(rest_app, "DEPRECATIONS", table)
    assert RestApp(service, {})._deprecated.keys() == {PATH}


def test_a_deprecation_at_short_notice_stops_the_start(service: Service, monkeypatch: pytest.MonkeyPatch):
    table = {PATH: Deprecation(date(2026, 1, 1), date(2026, 6, 29), "https://api.example/v2")}
    monkeypatch.setattr(rest_app, "DEPRECATIONS", table)
    with pytest.raises(SettingsError, match="180 days"):
        RestApp(service, {})


def test_every_problem_of_every_surface_is_explained() -> None:
    assert ContentTooLarge in problems()
    assert all(problem.__doc__ and problem.__doc__.startswith(str(problem.status)) for problem in problems())


def test_no_two_problems_share_a_page() -> None:
    slugs = [problem.slug for problem in problems()]
    assert len(slugs) == len(set(slugs))
    assert Problem not in problems()


def test_a_service_that_has_not_opened_its_edition_yet_is_degraded(sample_home: Path, tmp_path: Path) -> None:
    """A large edition takes seconds to verify; until then no data endpoint answers."""
    home = Path(shutil.copytree(sample_home, tmp_path / "home"))  # a service creates its stores there

    async def status(*, opened: bool) -> Response:
        service = Service(Settings(home=home))
        if opened:
            await service.edition.look()
        try:
            answer = await open_pages(service)["/v1/status"](read_head([(b"host", b"a")]), b"")
        finally:
            await service.stop()
        assert isinstance(answer, Response)
        return answer

    early, later = (asyncio.run(status(opened=opened)) for opened in (False, True))
    assert (early.status, json.loads(early.body)["degraded"]) == (503, ["datastore"])
    assert (later.status, json.loads(later.body)["degraded"]) == (200, [])
