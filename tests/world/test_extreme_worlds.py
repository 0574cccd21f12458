"""Whatever is accepted can be published, and then every endpoint and every page answers."""

import html
import re
from collections.abc import Awaitable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from sankofa.model.identifiers import service_id
from sankofa.operations.service import Receive, Scope, Send, Service
from sankofa.rest.app import RestApp
from sankofa.rest.pages import open_pages
from sankofa.web.app import WebApp
from tests.live import create_key
from tests.loop import wait
from tests.torture import rounds
from tests.world.desk import Desk
from tests.world.extreme_world import CIK, FIRST, ISSUERS, SERIES, SOURCES, TODAY, World, worlds

_DAYS = ("0001-01-01", FIRST.isoformat(), "2000-02-29", TODAY.isoformat())
_LINK = re.compile(r'href="(/[^"#]*)')
_PAGES_AT_MOST = 120
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to make a world smaller takes minutes
_ORGANISATIONS = [service_id(one) for one in (*ISSUERS, "ticker:JSE:XTR", f"registry:US-SEC-CIK:{CIK}")]
_NEEDED: dict[str, list[dict[str, str]]] = {
    "/v1/check": [
        {"subject": one, "measure": "revenue", "period": "2023", "value": "1"} for one in _ORGANISATIONS[:1]
    ],
    "/v1/proof": [{"record_ref": f"entities:{one}"} for one in _ORGANISATIONS],
    "/v1/panel": [{"metrics": "net_margin", "from": "2020-01-01", "every": "year"}],
    "/v1/fundamentals/{service_id}/matrix": [{"line_item": "revenue"}, {"line_item": "profit"}],
    "/v1/cross-rates": [{"base": "ZAR", "quote": "XAU"}, {"base": "ZAR", "quote": "XAU", "via": "USD"}],
    "/v1/crosswalk": [{"id_type": "ticker", "id_value": "JSE:XTR"}],
    "/v1/macro": [{}, *({"series": series} for series, *_ in SERIES), {"indicator": "X.Y"}],
    "/v1/search": [{"q": words} for words in ("ltd", "\u202e", "x.y", "fx")],
    "/v1/screen": [{"metric": metric} for metric in ("net_margin", "revenue_growth", "receivable_days")],
    "/v1/shared/facts": [
        *({"entity_id": one, "dataset": sku} for one in _ORGANISATIONS for sku in ("AF-FUND", "AF-TENDER")),
        *({"country": "ZAF", "dataset": dataset} for dataset in ("AF-TENDER", "AF-MACRO")),
    ],
    "/v1/tenders": [
        {},
        {"query": "city"},
        {"detail": "compact"},
        {"min_value": "1", "closing_to": "2999-12-31"},
    ],
    "/v1/tender-parties": [{}, {"role": "supplier"}],
}
"""The questions that an endpoint is asked beside its days and forms; without an entry, none."""
_IN_PATH = {
    "service_id": _ORGANISATIONS,
    "series": [series for series, *_ in SERIES],
    "sku": ["AF-FUND", "AF-TENDER", "AF-MACRO"],
}


@pytest.mark.deep
@pytest.mark.rule("PUB-9")
@settings(
    max_examples=rounds(1, 4, 20), deadline=None, phases=_PHASES, suppress_health_check=list(HealthCheck)
)
@given(worlds())
def test_what_is_accepted_is_published_and_every_endpoint_and_page_answers(world: World) -> None:
    with TemporaryDirectory(prefix="extreme-") as folder:
        desk = Desk(Path(folder) / "home", TODAY)
        desk.home.mkdir(exist_ok=True)
        (desk.home / "sources.toml").write_text(SOURCES)
        for source, path in world.write(desk.inbox):
            summary = desk.take(source, path)
            assert not summary.failures, (summary.failures, summary.reasons)
            assert summary.counts.appended
        desk.publish().close()
        wait(_assert_all_answer(desk))


async def _assert_all_answer(desk: Desk) -> None:
    key = create_key(desk.home, "professional", "--per-minute", "1000000")
    service = Service(desk.settings)
    web, api = WebApp(service), RestApp(service, open_pages(service))

    def app(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return (web if web.answers(scope) else api)(scope, receive, send)

    await service.start()
    try:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost:8000", headers={"x-api-key": key}
        ) as client:
            await _ask_endpoints(client)
            await _visit_pages(client)
    finally:
        await service.stop()


async def _ask_endpoints(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()
    panels = (await client.get("/v1/export")).json()["data"]
    releases = [await client.get(f"/v1/tenders?country={one}&detail=compact&limit=5") for one in ("ZA", "KE")]
    in_path = {
        **_IN_PATH,
        "ocid": sorted({row["ocid"] for page in releases for row in page.json()["data"]}),
        "signal_key": [row["signal_key"] for row in panels if row["signal_key"]],
        "file": [row["url"].rsplit("/", 1)[-1] for row in panels],
    }
    for path, methods in described["paths"].items():
        names = {one["name"] for one in methods["get"].get("parameters", ())}
        statuses = set()
        for address in _addresses(path, names, in_path):
            answer = await client.get(address)
            statuses.add(answer.status_code)
            assert answer.status_code < 500, (address, answer.text)
        served = 404 if path == "/v1/proof" else 200  # these editions are built without a log
        assert served in statuses or not in_path["ocid"], (path, statuses)


def _addresses(path: str, names: set[str], in_path: dict[str, list[str]]) -> Iterator[str]:
    """An endpoint with each thing it is about, on each day, in each form."""
    parameter = re.search(r"\{(\w+)\}", path)
    places = (
        [path.replace(parameter[0], quote(one, safe="")) for one in in_path[parameter[1]]]
        if parameter
        else [path]
    )
    for place in places:
        for question in _NEEDED.get(path, [{}]):
            asked: list[dict[str, str]] = [question]
            asked += [{**question, "as_of": day} for day in _DAYS if "as_of" in names]
            asked += [{**question, "from": day} for day in _DAYS if "from" in names]
            asked += [{**question, "format": form} for form in ("csv", "arrow") if "format" in names]
            if "vintages" in names:
                asked.append({**question, "vintages": "all"})
            if "shape" in names:
                asked.append({**question, "shape": "wide"})
            yield from (f"{place}?{urlencode(one)}" if one else place for one in asked)


async def _visit_pages(client: httpx.AsyncClient) -> None:
    """Follow the links from the first page on; and every page on other days."""
    waiting = ["/", *(f"/company/{one}" for one in _ORGANISATIONS)]
    waiting += [f"/macro/series/{series}" for series, *_ in SERIES] + ["/macro/indicator/X.Y"]
    waiting += [f"{place}?as_of={day}" for place in waiting[1:] for day in _DAYS]
    seen = set(waiting)
    visited = 0
    while waiting and visited < _PAGES_AT_MOST:
        address = waiting.pop(0)
        answer = await client.get(address, headers={"accept": "text/html"})
        visited += 1
        assert answer.status_code < 500, (address, answer.text)
        for link in map(html.unescape, _LINK.findall(answer.text)):
            if link not in seen and not link.startswith(("/assets", "/docs", "/v1", "/open")):
                seen.add(link)
                waiting.append(link)
