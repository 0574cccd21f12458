"""A professional customer's own domain (contract: KEY-11)."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.live import Copies, LiveServer, run, succeed
from tests.patience import Stopwatch
from tests.patience import until as wait_until
from tests.wire import exchange, request, statuses

HOST = "data.customer.example"
BASE = f"https://{HOST}"
SANDBOX = "sankofa-sandbox"
ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
SECONDS_UNTIL_ACTIVE = 2.0


class Customer(NamedTuple):
    """A running service, and a customer with a domain."""

    server: LiveServer
    key: str
    key_id: str

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(self.server.home, *arguments, **self.server.settings)

    def get(self, path: str, key: str | None = "", host: str = HOST, **headers: str) -> httpx.Response:
        return self.server.get(path, self.key if key == "" else key, host=host, **headers)

    def post(
        self, method: str, key: str, host: str = HOST, origin: str | None = None, **params: Any
    ) -> httpx.Response:
        fields = {"accept": "application/json, text/event-stream", "x-api-key": key, "host": host}
        fields |= {} if origin is None else {"origin": origin}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.server.http.post("/mcp", json=body, headers=fields)


def until(holds: Callable[[], bool]) -> None:
    with Stopwatch() as watch:
        wait_until(holds)
    assert watch.seconds < SECONDS_UNTIL_ACTIVE


def ids(home: Path) -> dict[str, str]:
    listed = json.loads(run(home, "keys", "list", "--json").stdout)
    return {row["label"]: row["id"] for row in listed}


@pytest.fixture(scope="module")
def customer(copy_sample: Copies) -> Iterator[Customer]:
    home = copy_sample()
    with LiveServer(home, workers=2, per_minute_sample="100000") as server:
        key = server.key("professional", "--label", "customer", "--per-minute", "100000")
        new = Customer(server, key, ids(home)["customer"])
        added = new.command("domains", "add", HOST, "--key", new.key_id)
        assert added.returncode == 0, added.stderr
        until(lambda: new.get(ENTITY, SANDBOX).status_code == 401)
        yield new


def links(value: Any) -> Iterator[str]:
    """Every absolute address of the service in a JSON value."""
    if isinstance(value, dict):
        for part in value.values():
            yield from links(part)
    elif isinstance(value, list):
        for part in value:
            yield from links(part)
    elif isinstance(value, str) and "://" in value and "sankofa.example" not in value:
        yield value


@pytest.mark.rule("KEY-11")
def test_every_link_of_an_answer_is_on_the_domain(customer: Customer) -> None:
    page = customer.get("/v1/tenders?limit=1")
    assert page.status_code == 200
    assert page.links["next"]["url"].startswith(f"{BASE}/v1/tenders?")
    export = customer.get("/v1/export").json()["data"]
    assert export
    assert {row["url"].split("/", 3)[2] for row in export} == {HOST}
    assert all(row["url"].startswith(f"{BASE}/") for row in export)
    assert not [
        url for url in links(customer.get("/v1/changes?limit=1").json()) if customer.server.url in url
    ]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/tenders?limit=x", 400),
        ("/v1/entities/DC0", 404),
        ("/v1/nothing", 404),
        ("/open/nothing.parquet", 404),
        ("/v1/export/files/nothing.parquet", 404),
    ],
)
def test_a_problem_leads_to_the_domain(customer: Customer, path: str, status: int) -> None:
    answer = customer.get(path)
    assert answer.status_code == status
    problem = answer.json()
    assert problem["type"] == problem["docs"]
    assert problem["docs"].startswith(f"{BASE}/problems/")
    assert customer.get(problem["docs"].removeprefix(BASE), None).status_code == 200
    assert customer.server.url not in answer.text


def test_the_description_and_the_first_page_use_the_domain(customer: Customer) -> None:
    described = customer.get("/openapi.json", None)
    assert [server["url"] for server in described.json()["servers"]] == [BASE]
    assert customer.server.url not in described.text
    nobody = customer.get("/", None)
    assert nobody.status_code == 401, "there is no sandbox there"
    page = customer.get("/", None, cookie=f"__Host-sankofa_key={customer.key}")
    assert page.status_code == 200
    assert BASE in page.text
    for text in (nobody.text, page.text):
        assert customer.server.url not in text
        assert SANDBOX not in text, "it is not answered there"
    own = customer.server.get("/openapi.json").json()
    assert [server["url"] for server in own["servers"]] == [customer.server.url]


@pytest.mark.rule("CDN-1")
@pytest.mark.parametrize(
    "path", ["/docs", "/docs/api", "/openapi.json", "/llms.txt", "/.well-known/oauth-protected-resource"]
)
def test_no_shared_cache_may_store_answers_that_name_a_customers_host(customer: Customer, path: str) -> None:
    answer, own = customer.get(path, None), customer.server.get(path)
    assert answer.status_code == 200
    assert answer.headers["cache-control"].startswith("private")
    assert own.headers["cache-control"] == "public, max-age=300"
    assert HOST not in own.text
    for headers in (answer.headers, own.headers):
        assert "Host" in headers["vary"].split(", ")


@pytest.mark.rule("WEB-6")
def test_the_cookie_of_a_key_on_https_is_limited_to_its_host(customer: Customer) -> None:
    sent = {"host": HOST, "sec-fetch-site": "same-origin"}
    answer = customer.server.http.post("/key", data={"key": customer.key}, headers=sent)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"__Host-sankofa_key={customer.key};")
    assert "Secure" in cookie
    assert "Path=/;" in cookie
    assert "Domain" not in cookie
    # A sibling host could set this one.
    assert customer.get("/", None, cookie=f"sankofa_key={customer.key}").status_code == 401
    expired = customer.server.http.post("/key", data={"action": "forget"}, headers=sent).headers["set-cookie"]
    assert expired.startswith("__Host-sankofa_key=;")


@pytest.mark.rule("KEY-11")
@pytest.mark.parametrize("path", [ENTITY, "/v1/export", "/v1/export/files/af-fund-fundamentals.parquet"])
def test_the_domain_accepts_only_keys_of_its_owner(customer: Customer, path: str) -> None:
    other = customer.server.key("professional", "--label", f"other {path}")
    assert customer.get(path).status_code == 200
    for key in (SANDBOX, other, "unknown", None):
        answer = customer.get(path, key)
        assert answer.status_code == 401, key
        assert answer.json()["docs"].startswith(BASE)
        assert "RateLimit" not in answer.headers
    assert customer.server.get(path, other).status_code == 200, "elsewhere it is as good as ever"
    assert customer.server.get(path, customer.key).status_code == 200


def test_mcp_is_on_the_domain_too(customer: Customer) -> None:
    arguments: dict[str, Any] = {"name": "search_tenders", "arguments": {"limit": 1}}
    assert (
        customer.post("tools/call", customer.key, **arguments).json()["result"]["structuredContent"]["count"]
        == 1
    )
    refused = customer.post("tools/call", SANDBOX, **arguments)
    assert refused.status_code == 401
    assert refused.json()["docs"].startswith(f"{BASE}/problems/")
    wrong: dict[str, Any] = {"name": "search_tenders", "arguments": {"limit": 0}}
    text = customer.post("tools/call", customer.key, **wrong).json()["result"]["content"][0]["text"]
    assert json.loads(text)["docs"].startswith(f"{BASE}/problems/")
    assert customer.post("tools/list", customer.key, origin=BASE).status_code == 200
    assert customer.post("tools/list", customer.key, origin="https://evil.example").status_code == 403
    assert customer.post("tools/list", customer.key, host="not.customer.example").status_code == 421


@pytest.mark.parametrize(
    ("host", "base"),
    [(HOST.upper(), BASE), (f"{HOST}.", BASE), (f"{HOST}:443", BASE), (f"{HOST}:8443", f"{BASE}:8443")],
)
def test_a_host_is_recognised_in_any_spelling(customer: Customer, host: str, base: str) -> None:
    answer = customer.get("/v1/tenders?limit=1", host=host)
    assert answer.links["next"]["url"].startswith(f"{base}/v1/")
    assert customer.get(ENTITY, SANDBOX, host=host).status_code == 401


@pytest.mark.parametrize(
    "field", ["X-Forwarded-Proto: http", f"X-Forwarded-Host: {HOST}", "Forwarded: proto=http"]
)
def test_forwarding_headers_are_ignored(customer: Customer, field: str) -> None:
    page = request("/v1/tenders?limit=1", f"Host: {HOST}", f"X-API-Key: {customer.key}", field)
    assert f"<{BASE}/v1/tenders".encode() in exchange(customer.server.port, page)
    own = request(
        "/v1/tenders?limit=1", f"Host: 127.0.0.1:{customer.server.port}", f"X-API-Key: {SANDBOX}", field
    )
    answer = exchange(customer.server.port, own)
    assert statuses(answer) == [200]
    assert f"<{customer.server.url}/v1/tenders".encode() in answer


@pytest.mark.parametrize(
    "host", ["other.example", "customer.example", f"x.{HOST}", f"{HOST}.evil.example", "[::1]", "@"]
)
def test_an_unknown_host_reaches_the_service_itself(customer: Customer, host: str) -> None:
    answer = customer.get("/v1/tenders?limit=1", SANDBOX, host=host)
    assert answer.status_code == 200
    assert answer.links["next"]["url"].startswith(customer.server.url)


@pytest.mark.rule("KEY-21")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        (f"domain={HOST}", 200),
        (f"domain={HOST.upper()}.", 200),
        ("domain=127.0.0.1", 200),  # the service's own
        ("domain=other.example", 404),
        (f"domain={HOST}.evil.example", 404),
        (f"domain={HOST}:443", 404),
        ("domain=%2Fetc%2Fpasswd%00", 404),
        ("domain=", 400),
        ("", 400),
        (f"domain={HOST}&domain=other.example", 400),
        (f"domain={HOST}&as_of=2024-01-01", 400),
    ],
)
def test_a_proxy_can_ask_for_which_hosts_to_get_a_certificate(
    customer: Customer, query: str, status: int
) -> None:
    answer = customer.get(f"/tls-permission?{query}", None, host="api.internal:8000")
    assert answer.status_code == status
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == (
        "application/json" if status == 200 else "application/problem+json"
    )
    assert status != 400 or answer.json()["parameter"] in ("domain", "as_of")


@pytest.mark.ci
def test_adding_and_removing_a_domain_needs_no_restart(customer: Customer) -> None:
    host = "later.customer.example"
    assert customer.get(ENTITY, SANDBOX, host=host).status_code == 200
    assert customer.get(f"/tls-permission?domain={host}", None).status_code == 404
    assert customer.command("domains", "add", f"{host.upper()}.", "--key", customer.key_id).returncode == 0
    until(lambda: all(customer.get(ENTITY, SANDBOX, host=host).status_code == 401 for _ in range(8)))
    assert customer.get("/v1/export", host=host).json()["data"][0]["url"].startswith(f"https://{host}/")
    assert host in customer.command("domains", "list").stdout
    until(lambda: customer.get(f"/tls-permission?domain={host}", None).status_code == 200)
    assert customer.command("domains", "remove", host).returncode == 0
    until(lambda: all(customer.get(ENTITY, SANDBOX, host=host).status_code == 200 for _ in range(8)))
    assert host not in customer.command("domains", "list").stdout
    again = customer.command("domains", "remove", host)
    assert (again.returncode, len(again.stderr.splitlines())) == (1, 1)
    assert customer.command("domains", "add", host, "--key", customer.key_id).returncode == 0
    until(lambda: customer.get(ENTITY, SANDBOX, host=host).status_code == 401)
    customer.command("domains", "remove", host)


@pytest.mark.rule("CLI-4")
def test_a_customer_may_have_several_keys_and_a_revoked_one_is_401(customer: Customer) -> None:
    host = "several.customer.example"
    keys = [customer.server.key("professional", "--label", f"several {n}") for n in range(2)]
    key_ids = ids(customer.server.home)
    customer.command("domains", "add", host, "--key", key_ids["several 0"])
    added = customer.command("domains", "add", host, "--key", keys[1])
    assert added.returncode == 0, "the key itself will do for its id"
    assert keys[1] not in added.stdout
    until(lambda: all(customer.get(ENTITY, key, host=host).status_code == 200 for key in keys * 4))
    customer.command("keys", "revoke", key_ids["several 0"])
    assert [customer.get(ENTITY, key, host=host).status_code for key in keys] == [401, 200]
    customer.command("keys", "revoke", key_ids["several 1"])
    for key in (*keys, SANDBOX, customer.key):
        assert customer.get(ENTITY, key, host=host).status_code == 401
    rows = {row["host"]: row for row in json.loads(customer.command("domains", "list", "--json").stdout)}
    assert rows[host]["keys"] == rows[host]["revoked_keys"] == [key_ids["several 0"], key_ids["several 1"]]
    assert rows[HOST]["revoked_keys"] == []
    customer.command("domains", "remove", host)


@pytest.mark.rule("CLI-7")
def test_the_key_must_be_professional_and_valid(customer: Customer) -> None:
    for tier in ("sample", "starter"):
        customer.server.key(tier, "--label", f"bound {tier}")
    customer.server.key("professional", "--label", "bound revoked")
    key_ids = ids(customer.server.home)
    customer.command("keys", "revoke", key_ids["bound revoked"])
    for key, word in (
        (key_ids["bound sample"], "professional"),
        (key_ids["bound starter"], "professional"),
        (key_ids["bound revoked"], "revoked"),
        ("nothing", "nothing"),
    ):
        refused = customer.command("domains", "add", "refused.example", "--key", key)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
        assert word in refused.stderr
    assert "refused.example" not in customer.command("domains", "list").stdout


@pytest.mark.parametrize(
    "host",
    [
        "",
        "a b",
        "https://x.example",
        "x.example:80",
        "x.example/",
        "x-.example",
        "*.x.example",
        "x..example",
        "a" * 64,
    ],
)
def test_a_malformed_host_is_refused(customer: Customer, host: str) -> None:
    refused = customer.command("domains", "add", host, "--key", customer.key_id)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
    assert "host name" in refused.stderr


@pytest.mark.rule("CLI-7")
def test_the_host_of_the_service_cannot_be_a_domain(customer: Customer) -> None:
    refused = run(
        customer.server.home,
        *("domains", "add", "api.sankofa.test", "--key", customer.key_id),
        **customer.server.settings,
        base_url="https://api.sankofa.test",
    )
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)


@pytest.mark.deep
def test_the_scheme_of_links_is_a_setting(copy_sample: Copies) -> None:
    home = copy_sample()
    with LiveServer(home, domain_scheme="http") as server:
        key = server.key("professional")
        succeed(home, "domains", "add", "inner.example", "--key", key)
        answer = server.get("/v1/tenders?limit=1", key, host="inner.example:8080")
        assert answer.links["next"]["url"].startswith("http://inner.example:8080/v1/")
        followed = server.get(answer.links["next"]["url"].removeprefix("http://inner.example:8080"), key)
        assert followed.status_code == 200
