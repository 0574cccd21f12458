"""Keys and tiers, and the order of the checks of a request."""

from collections.abc import Callable

import httpx
import pytest

from tests.every import every
from tests.live import Copies, LiveServer, run, succeed
from tests.wire import exchange, request, statuses

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
NOBODY = "/v1/fundamentals/DC000000000000000000000000"
SANDBOX = "sankofa-sandbox"


@pytest.mark.rule("KEY-3")
@every("path", [ISSUER, ENTITY])
@every("key", [None, "", "unknown", "sk_" + "A" * 43, "a" * 257, "sankofa-sandbox\t."])
def test_a_missing_or_unknown_key_is_401(server: LiveServer, path: str, key: str | None) -> None:
    answer = server.get(path, key)
    assert answer.status_code == 401
    assert answer.json()["title"] == "Missing or invalid API key"
    assert answer.headers["WWW-Authenticate"].startswith("ApiKey")
    assert "RateLimit" not in answer.headers


@every("key", [b"sankofa-sandb\xf6x", "\N{CYRILLIC SMALL LETTER ES}ankofa-sandbox".encode()])
def test_a_key_that_is_not_ascii_is_401(server: LiveServer, key: bytes) -> None:
    fields = request(ENTITY, "Host: x").replace(b"Host: x", b"Host: x\r\nX-API-Key: " + key)
    assert statuses(exchange(server.port, fields)) == [401]


@pytest.mark.rule("KEY-16")
@every("name", ["X-API-Key", "x-api-key", "api_key", "key", "apikey", "access_token"])
def test_a_key_in_the_query_string_is_401(server: LiveServer, name: str) -> None:
    answer = server.get(f"{ENTITY}?{name}={SANDBOX}")
    assert answer.status_code == 401
    assert SANDBOX not in answer.text


@pytest.mark.rule("KEY-1")
@every("scheme", ["Bearer", "bearer", "BEARER"])
@every("path", [ENTITY, "/v1/export/files/af-fund-fundamentals.parquet"])
def test_a_bearer_token_is_the_key(server: LiveServer, path: str, scheme: str) -> None:
    by_key, by_token = server.get(path, SANDBOX), server.get(path, authorization=f"{scheme} {SANDBOX}")
    assert by_token.status_code == by_key.status_code in (200, 402)
    if by_key.status_code == 200:
        assert by_token.content == by_key.content
        assert by_token.headers["ETag"] == by_key.headers["ETag"]
        assert "Authorization" in by_token.headers["Vary"]
    assert "RateLimit" in by_token.headers


@every("text", ["ApiKey {}", "Basic {}", "{}", "Bearer", "Bearer{}", "Bearer {}x"])
def test_other_authorization_schemes_are_ignored(server: LiveServer, text: str) -> None:
    answer = server.get(ENTITY, authorization=text.format(SANDBOX))
    assert answer.status_code == 401
    assert "Bearer" in answer.headers["WWW-Authenticate"]


@pytest.mark.rule("KEY-1")
@every(
    "fields",
    [
        *((f"X-API-Key: {SANDBOX}", f"x-api-key: {key}") for key in (SANDBOX, "unknown")),
        (f"X-API-Key: {SANDBOX}", f"Authorization: Bearer {SANDBOX}"),
        (f"X-API-Key: {SANDBOX}", "Authorization: Bearer unknown"),
        (f"Authorization: Bearer {SANDBOX}", f"Authorization: Bearer {SANDBOX}"),
        (f"Authorization: Bearer {SANDBOX}", "Authorization: Basic dXNlcjpwYXNz"),
    ],
)
def test_a_key_in_both_headers_or_twice_is_401(server: LiveServer, fields: tuple[str, ...]) -> None:
    assert statuses(exchange(server.port, request(ENTITY, "Host: x", *fields))) == [401]


def test_a_proxys_authorization_beside_the_key_is_ignored(server: LiveServer) -> None:
    assert server.get(ENTITY, SANDBOX, authorization="Basic dXNlcjpwYXNz").status_code == 200


@pytest.mark.rule("KEY-3")
def test_a_revoked_key_is_401_at_the_next_request(server: LiveServer) -> None:
    key = server.key("starter", "--label", "to be revoked")
    assert server.get(ENTITY, key).status_code == 200
    listed = run(server.home, "keys", "list").stdout
    (key_id,) = (line.split()[0] for line in listed.splitlines() if line.endswith("to be revoked"))
    succeed(server.home, "keys", "revoke", key_id)
    assert server.get(ENTITY, key).status_code == 401


@pytest.mark.rule("KEY-2")
@every("path", ["/health", "/v1/status", "/openapi.json"])
@every("key", [None, "unknown", SANDBOX])
def test_open_paths_need_no_key_and_ignore_one(server: LiveServer, path: str, key: str | None) -> None:
    answer = server.get(path, key)
    assert answer.status_code == 200
    assert "RateLimit" not in answer.headers


@pytest.mark.rule("KEY-15")
def test_the_sandbox_key_is_a_real_sample_tier_key(server: LiveServer, sample_key: str) -> None:
    sandbox, sample = server.get(ISSUER, SANDBOX), server.get(ISSUER, sample_key)
    assert sandbox.status_code == 200
    assert sandbox.content == sample.content
    assert sandbox.headers["RateLimit-Policy"] == sample.headers["RateLimit-Policy"]
    (listed,) = (
        line for line in run(server.home, "keys", "list").stdout.splitlines() if line.endswith("sandbox")
    )
    assert listed.split()[1] == "sample"


@pytest.mark.rule("CLI-6")
def test_the_server_prints_its_address_and_the_sandbox_key(server: LiveServer) -> None:
    assert f"Sankofa at {server.url} (MCP at {server.url}/mcp), edition " in server.log
    assert f"Sandbox key: {SANDBOX}\n" in server.log


@pytest.mark.rule("FUND-2")
def test_every_paid_tier_gets_everything(server: LiveServer, paid_key: str) -> None:
    starter, professional = server.get(ISSUER, paid_key), server.get(ISSUER, server.key("professional"))
    assert starter.content == professional.content


def test_caps_and_the_sandbox_key_are_settings(copy_sample: Copies) -> None:
    with LiveServer(copy_sample(), rows_sample="3", sandbox_key="another-sandbox") as live:
        answer = live.get(ISSUER, "another-sandbox")
    assert (answer.json()["count"], answer.json()["truncated"]) == (3, True)
    assert answer.headers["RateLimit-Policy"].startswith('"minute";q=60;w=60, "month";q=5000;')


@pytest.fixture(scope="module")
def exhausted(server: LiveServer) -> str:
    key = server.key("sample", "--per-month", "1")
    assert server.get(ENTITY, key).status_code == 200
    return key


PAID_LOOKUP = "/v1/crosswalk?id_type=registry&id_value=ZA-CIPC:1"
WRONG, LATER = "?as_of=tomorrow", "/v1/entities/no-such-id?limit=1"


@pytest.mark.rule("KEY-7")
@every(
    ("of", "status", "paths"),
    [
        ("unknown", 401, (ISSUER + WRONG, NOBODY, NOBODY + WRONG, PAID_LOOKUP)),
        (None, 401, (ISSUER + WRONG, NOBODY, NOBODY + WRONG)),
        ("exhausted", 429, (ISSUER, ISSUER + WRONG, NOBODY, NOBODY + WRONG, PAID_LOOKUP)),
        ("paid", 400, (NOBODY + WRONG, LATER, NOBODY + "?x=1")),
        ("sample", 400, (f"{PAID_LOOKUP}&x=1", "/v1/crosswalk?id_type=registry")),
    ],
)
def test_401_429_and_400_come_before_402_and_404_in_that_order(
    server: LiveServer, exhausted: str, of: str | None, status: int, paths: tuple[str, ...]
) -> None:
    keys = {"exhausted": exhausted, "paid": server.key("starter"), "sample": server.key("sample")}
    for path in paths:
        assert server.get(path, keys.get(of, of) if of else None).status_code == status, path
    both = request(ENTITY, "Host: x", f"X-API-Key: {exhausted}", "X-API-Key: unknown")
    assert statuses(exchange(server.port, both)) == [401], "before the 429 of the first"


@pytest.mark.rule("ERR-2")
@pytest.mark.parametrize(
    "path", "/v1 /v1/ /v1/nothing /v1/fundamentals /v1/fundamentals/ /v1/entities/A/B /v2/entities/A".split()
)
@pytest.mark.parametrize("which", ["none", "unknown", "valid", "exhausted"])
def test_an_unknown_path_is_404_with_or_without_a_key(
    server: LiveServer, paid_key: str, exhausted: str, path: str, which: str
) -> None:
    key = {"none": None, "unknown": "unknown", "valid": paid_key, "exhausted": exhausted}[which]
    assert server.get(path, key).status_code == 404


REMOVED_EDITION = "20010101T000000Z-00001-0123456789"
"""The id of an edition that never was."""
MUCH = 1_000_000
REFUSED = [
    (PAID_LOOKUP, 402),
    (f"/v1/changes?since={REMOVED_EDITION}", 402),
    (f"{NOBODY.replace('fundamentals', 'metrics')}?limit={MUCH}", 402),
    (f"/v1/macro?limit={MUCH}", 402),
    (f"/v1/macro?series_type=fx&limit={MUCH}", 400),
    ("/v1/macro?series=FX.EUR.ZAR&from=2020", 400),
    ("/v1/macro?series=FX.EUR.ZAR&indicator=NY.GDP.MKTP.CD", 400),
    (f"/v1/shared/facts?limit={MUCH}", 400),
    ("/v1/shared/facts?country=ZAF&dataset=AF-FUND", 400),
    ("/v1/crosswalk?id_type=ticker&id_value=NPN", 400),
    (NOBODY, 404),
]


@pytest.mark.rule("KEY-7")
@every(("path", "status"), REFUSED)
def test_400_and_402_come_before_an_edition_is_looked_for(
    server: LiveServer, sample_key: str, path: str, status: int
) -> None:
    assert server.get(path, sample_key).status_code == status
    of_removed_edition = f"{path}{'&' if '?' in path else '?'}edition={REMOVED_EDITION}"
    assert server.get(of_removed_edition, sample_key).status_code == status
    assert server.get(path, sample_key, x_edition=REMOVED_EDITION).status_code == status


@pytest.mark.rule("KEY-7")
@every(
    ("tool", "arguments", "status"),
    [
        ("get_entity", {"service_id": NOBODY.rpartition("/")[2]}, 404),
        ("get_resolved_parties", {"limit": MUCH}, 402),
        ("get_macro", {"series_type": "fx", "limit": MUCH}, 400),
        ("get_macro", {"series": "FX.EUR.ZAR", "from_date": "2020"}, 400),
        ("get_macro", {"limit": MUCH}, 402),
        ("search_entities", {"query": "sample", "limit": MUCH}, 402),
    ],
)
def test_a_tool_checks_in_the_same_order(
    server: LiveServer, sample_key: str, tool: str, arguments: dict[str, object], status: int
) -> None:
    assert server.tool(tool, sample_key, arguments)["status"] == status


Attempt = Callable[[LiveServer, str], object]
ATTEMPTS: dict[str, Attempt] = {
    "answered": lambda s, key: s.get(ISSUER, key),
    "not found": lambda s, key: s.get(NOBODY, key),
    "bad parameter": lambda s, key: s.get(f"{ISSUER}?as_of=x", key),
    "in the query": lambda s, key: s.get(f"{ISSUER}?key={key}", key),
    "in the query alone": lambda s, key: s.get(f"{ISSUER}?key={key}"),
    "not quite": lambda s, key: s.get(ISSUER, key + "x"),
    "refused method": lambda s, key: s.http.post(ISSUER, headers={"X-API-Key": key}, content=key),
    "malformed": lambda s, key: exchange(s.port, f"GET {key}\r\nX-API-Key: {key}\r\n\r\n".encode()),
    "tool": lambda s, key: s.tool("get_entity", key, {"service_id": ENTITY.rpartition("/")[2]}),
    "another tool": lambda s, key: s.tool("get_entity", key, {"service_id": "A", "api_key": key}),
    "arguments": lambda s, key: s.http.post("/mcp", json={"params": [key]}, headers={"X-API-Key": key}),
    "broken message": lambda s, key: s.http.post("/mcp", content=f'{{"{key}"', headers={"X-API-Key": key}),
    "foreign page": lambda s, key: s.http.post(
        "/mcp", json={}, headers={"X-API-Key": key, "Origin": "https://evil.example"}
    ),
    "two keys": lambda s, key: s.http.post(
        "/mcp", json={}, headers={"X-API-Key": key, "Authorization": f"Bearer {key}x"}
    ),
    "twice": lambda s, key: exchange(
        s.port, request(ISSUER, "Host: x", f"X-API-Key: {key}", f"X-API-Key: {key}")
    ),
}


@pytest.mark.rule("KEY-4", "KEY-16")
def test_a_key_is_in_no_file_no_log_and_no_error(copy_sample: Copies) -> None:
    with LiveServer(copy_sample(), log_level="debug") as chatty:
        key = chatty.key("starter", "--label", "kept secret")
        for name, attempt in ATTEMPTS.items():
            answer = attempt(chatty, key)
            text = answer.text if isinstance(answer, httpx.Response) else str(answer)
            assert key not in text, name
        assert "Sankofa at" in chatty.log
    assert key not in chatty.log
    assert key not in run(chatty.home, "keys", "list").stdout
    for path in chatty.home.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path.name
