"""For another identifier instead of a service_id, or an unknown name, the problem suggests the right one."""

from urllib.parse import quote

import pytest

from tests.live import LiveServer
from tests.spec import register
from tests.spec.register import BANK, BREWER, HELD, sid

live, sample, paid = register.live, register.sample, register.paid

PATHS = {
    "/v1/fundamentals/{}": 400,
    "/v1/statements/{}": 404,
    "/v1/entities/{}": 404,
    "/v1/crosswalk/{}": 404,
    "/v1/metrics/{}": 400,
    "/v1/tender-parties?service_id={}": 400,
    "/v1/shared/facts?entity_id={}": 400,
}
"""Paths that take an organisation, and the status for a malformed id (contract: PAR-8)."""
UNKNOWN = {
    "/v1/metrics/{}": 200,
    "/v1/tender-parties?service_id={}": 200,
    "/v1/shared/facts?entity_id={}": 400,
}
"""The status for a well-formed id without an owner, where it is not 404."""
NAME = "Thornveld Breweries (Pty) Ltd"


@pytest.mark.rule("ERR-7", "PAR-8")
@pytest.mark.parametrize("path", PATHS)
def test_a_ticker_or_lei_instead_of_an_id_is_refused_with_the_service_id(
    live: LiveServer, sample: str, path: str
) -> None:
    parameter = "entity_id" if "entity_id" in path else "service_id"
    for text in ("JSE:THV", "xjse:thv", BREWER, "THV", NAME, NAME.upper()):
        answer = live.get(path.format(quote(text)), sample)
        assert (answer.status_code, answer.json().get("parameter")) == (400, parameter), text
        assert sid(f"lei:{BREWER}") in answer.json()["detail"]
        assert answer.json()["error"] == answer.json()["detail"]
    assert live.get(path.format("JSE:NOBODY"), sample).status_code == PATHS[path]


@pytest.mark.rule("ERR-7", "KEY-9")
@pytest.mark.parametrize("path", PATHS)
def test_only_paid_keys_see_paid_identifiers(live: LiveServer, sample: str, paid: str, path: str):
    assert sid(f"lei:{BANK}") in live.get(path.format(HELD), paid).json()["detail"]
    refused = live.get(path.format(HELD), sample)
    assert refused.status_code == UNKNOWN.get(path, 404)
    assert sid(f"lei:{BANK}") not in refused.text


@pytest.mark.rule("ERR-7")
def test_the_tools_say_the_same(live: LiveServer, sample: str, paid: str) -> None:
    for tool in ("get_entity", "get_fundamentals", "get_statement", "get_metrics", "get_resolved_parties"):
        for text in ("JSE:THV", BREWER, "THV", NAME):
            problem = live.tool(tool, sample, {"service_id": text})
            assert (problem["status"], problem["parameter"]) == (400, "service_id")
            assert sid(f"lei:{BREWER}") in problem["detail"]
        assert sid(f"lei:{BANK}") not in str(live.tool(tool, sample, {"service_id": HELD}))
        assert sid(f"lei:{BANK}") in str(live.tool(tool, paid, {"service_id": HELD}))


@pytest.mark.rule("ERR-8")
def test_an_unknown_name_is_answered_with_similar_ones(server: LiveServer, sample_key: str) -> None:
    for path, nearest in (
        ("/v1/screen?metric=revenue_grwth", "nearest: revenue_growth"),
        ("/v1/screen?metric=Net_Margin", "nearest: net_margin"),
        ("/v1/series/CPI.SA/vintages", "Nearest: CPI.ZA"),
        ("/v1/series/NY.GDP.MKTP.CN/vintages", "NY.GDP.MKTP.CD"),
    ):
        assert nearest in server.get(path, sample_key).json()["detail"], path


@pytest.mark.rule("ERR-8")
def test_an_empty_answer_names_similar_ones(server: LiveServer, sample_key: str) -> None:
    for path, nearest in (
        ("/v1/macro?series=CPI.ZB", "CPI.ZA"),
        ("/v1/macro?indicator=NY.GDP.MKTP.CN", "NY.GDP.MKTP.CD"),
    ):
        body = server.body(path, sample_key)
        assert body["count"] == 0
        assert body["nearest"][0] == nearest
    assert "nearest" not in server.body("/v1/macro?series=CPI.ZA&as_of=1990-01-01", sample_key)
    assert "nearest" not in server.body("/v1/macro?country=AQ", sample_key)
    arguments = {"service_id": "DC46AF1B1AAA424B58D1368176", "line_items": ["revenu", "profits"]}
    body = server.tool("get_fundamentals", sample_key, arguments)
    assert body["count"] == 0
    assert {"revenue", "profit"} <= set(body["nearest"])


@pytest.mark.rule("ERR-8")
def test_a_code_of_the_other_mode_is_answered_with_its_parameter(server: LiveServer, sample_key: str) -> None:
    for path, hint in (
        ("/v1/macro?series=fp.cpi.totl.zg", "an annual indicator: pass it as `indicator`"),
        ("/v1/macro?indicator=CPI.ZA", "series: pass it as `series`"),
    ):
        body = server.body(path, sample_key)
        assert body["count"] == 0
        assert hint in body["hint"]
        assert "nearest" not in body
    assert hint in server.tool("get_macro", sample_key, {"indicator": "CPI.ZA"})["hint"]
    early = server.body("/v1/macro?series=FP.CPI.TOTL.ZG&country=ZA&as_of=1990-01-01", sample_key)
    assert "nothing of ZA was known on that day" in early["hint"]
    assert "add `country`" not in early["hint"], "it was passed"
    assert "hint" not in server.body("/v1/macro?series=CPI.ZA&as_of=1990-01-01", sample_key)
    assert "hint" not in server.body("/v1/macro?indicator=FP.CPI.TOTL.ZG&country=AQ", sample_key)
