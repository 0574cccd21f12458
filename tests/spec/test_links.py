"""`sankofa keys link`: addresses that open one path or one dialect, and nothing else."""

import json
import re
from urllib.parse import urlsplit

import pytest

from tests.live import Copies, LiveServer, create_key, run, succeed
from tests.spec.macro_world import live as live

SERIES = "CPI.ZA"


def link(server: LiveServer, key: str, *options: str) -> tuple[str, str]:
    """The path and the token of the printed address."""
    done = succeed(server.home, "keys", "link", key, *options, **server.settings)
    parts = urlsplit(done.stdout.strip())
    (token,) = re.findall(r"lk_[A-Za-z0-9_-]{43}", done.stdout)
    return parts.path + (f"?{parts.query}" if parts.query else ""), token


@pytest.mark.rule("DIAL-3")
def test_a_link_to_a_path_opens_that_question_and_nothing_else(live: LiveServer) -> None:
    key = live.key("starter")
    path, token = link(live, key, "--path", f"/v1/macro?series={SERIES}&limit=3")
    answer = live.get(path)
    assert answer.json() == live.get(f"/v1/macro?series={SERIES}&limit=3", key).json()
    assert "60;w=60" in answer.headers["ratelimit-policy"]
    assert live.get(f"/v1/macro?limit=3&link={token}&series={SERIES}").status_code == 200
    for other in (
        f"/v1/macro?series={SERIES}&limit=4&link={token}",
        f"/v1/macro?series={SERIES}&link={token}",
        f"/v1/series?link={token}",
        f"/at/2024-01-01/v1/macro?series={SERIES}&limit=3&link={token}",
        f"/fred/series?series_id={SERIES}&link={token}",
        f"/link/{token}/fred/series?series_id={SERIES}",
        f"/link/{token}/v1/macro?series={SERIES}&limit=3",
        f"/v1/macro?series={SERIES}&limit=3&link={key}",
        f"/link/{key}/v1/macro?series={SERIES}&limit=3",
        f"/link/{key}/fred/series?series_id={SERIES}",
    ):
        assert live.get(other).status_code == 401, other
    for headers in ({"X-API-Key": token}, {"Authorization": f"Bearer {token}"}):
        assert live.http.get(f"/v1/macro?series={SERIES}&limit=3", headers=headers).status_code == 401
        assert live.http.get("/mcp", headers=headers).status_code in (401, 405)


@pytest.mark.rule("DIAL-3")
def test_a_link_to_a_dialect_opens_it_for_any_day(live: LiveServer) -> None:
    key = live.key("starter")
    path, token = link(live, key, "--dialect", "fred", "--per-minute", "1000")
    assert path == f"/link/{token}/fred/"
    for address in (
        f"{path}series?series_id={SERIES}",
        f"/link/{token}/at/2023-12-31/fred/series?series_id={SERIES}",
        f"/at/2023-12-31/link/{token}/fred/series?series_id={SERIES}",
        f"/at/2023-12-31/fred/series?series_id={SERIES}&api_key={token}",
        f"/fred/series?series_id={SERIES}&api_key={token}",
        f"{path}series?series_id={SERIES}&api_key=anything",
    ):
        answer = live.get(address)
        assert answer.status_code == 200, (address, answer.text)
        assert f'id="{SERIES}"' in answer.text
    for address in (f"/link/{token}/v1/series", f"/v1/series?link={token}"):
        assert live.get(address).status_code == 401, address


@pytest.mark.rule("DIAL-4")
def test_a_full_key_in_a_query_is_refused_and_not_logged(copy_small: Copies) -> None:
    home = copy_small()
    key = create_key(home, "professional")
    with LiveServer(home, access_log="json") as server:
        refused = server.get(f"/fred/series?series_id=X&api_key={key}")
        assert refused.status_code == 401
        assert "link key" in refused.text
        assert key not in refused.text
        _, token = link(server, key, "--dialect", "fred")
        server.get(f"/fred/series?series_id=X&api_key={token}")
        server.stop()
        lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
        logged = [line for line in lines if line.get("operation") == "dialect:fred"]
        assert [line["link"] is not None for line in logged] == [False, True]
        assert key not in server.log
        assert token not in server.log


@pytest.mark.rule("DIAL-3")
def test_a_link_has_its_own_quota_is_listed_and_ends_with_its_key(live: LiveServer) -> None:
    key = live.key("starter")
    path, token = link(live, key, "--path", f"/v1/macro?series={SERIES}", "--per-minute", "2")
    _, other = link(live, key, "--dialect", "fred")
    statuses = [live.get(path).status_code for _ in range(3)]
    assert statuses.count(429) >= 1 or statuses == [200, 200, 200]  # a minute may end between two of them
    assert live.get("/v1/usage", key).json()["data"][0]["minute_used"] <= 2
    listed = json.loads(run(live.home, "keys", "list", "--json", **live.settings).stdout)
    own = [row for row in listed if row["opens"] == f"path:/v1/macro?series={SERIES}"]
    assert own[-1]["per_minute"] == 2
    assert own[-1]["last_used"] is not None
    assert token not in json.dumps(listed)
    succeed(live.home, "keys", "revoke", own[-1]["id"], **live.settings)
    assert live.get(path).status_code == 401
    assert live.get(f"/fred/series?series_id={SERIES}&api_key={other}").status_code == 200
    succeed(live.home, "keys", "revoke", key, **live.settings)
    assert live.get(f"/fred/series?series_id={SERIES}&api_key={other}").status_code == 401


@pytest.mark.parametrize(
    "options",
    [(), ("--path", "/v1/macro", "--dialect", "fred"), ("--path", "/health"), ("--dialect", "cobol")],
)
def test_a_link_to_nothing_or_to_everything_is_refused(live: LiveServer, options: tuple[str, ...]) -> None:
    done = run(live.home, "keys", "link", live.key("starter"), *options, **live.settings)
    assert done.returncode != 0
    assert "lk_" not in done.stdout
