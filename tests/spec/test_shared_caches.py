"""What a cache between the service and everybody may keep, and what it must not."""

from pathlib import Path

import httpx
import pytest

from tests.every import every
from tests.live import LiveServer
from tests.nodes.servers import Nginx
from tests.patience import until
from tests.ports import free_port

DOCUMENTS = """
    /openapi.json /llms.txt /.well-known/oauth-protected-resource /problems/not-found
    /methodology/net_margin-v1 /docs /docs/api /docs/readme
""".split()
FILE = "/open/macro-momentum.parquet"


def found(server: LiveServer, path: str) -> str:
    """The path of a methodology has a version, which the index of problems does not tell."""
    if not path.startswith("/methodology/"):
        return path
    row = server.get("/v1/screen?metric=net_margin&limit=1", "sankofa-sandbox").json()["data"][0]
    return f"/methodology/{row['methodology_ref']}"


@pytest.mark.rule("CDN-1")
@every("path", DOCUMENTS)
def test_documents_may_be_kept_by_all_and_asked_for_again_by_their_tag(server: LiveServer, path: str) -> None:
    path = found(server, path)
    answer = server.get(path)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert "Accept-Encoding" in answer.headers["vary"]
    assert "set-cookie" not in answer.headers
    again = server.get(path, if_none_match=answer.headers["etag"])
    assert again.status_code == 304
    assert again.headers["cache-control"] == "public, max-age=300"
    assert server.get(path, accept_encoding="identity", if_none_match='"another"').text == answer.text


@pytest.mark.rule("CDN-1")
def test_nothing_that_is_given_to_a_visitor_or_a_key_is_public(server: LiveServer, paid_key: str) -> None:
    for path, key, headers in (
        ("/docs", None, {"cookie": "sankofa_lang=fr"}),
        ("/docs", paid_key, {}),
        ("/docs?lang=fr", None, {}),
        ("/", None, {}),
        ("/status", None, {}),
        ("/v1/screen?metric=net_margin", paid_key, {}),
        ("/v1/status", None, {}),
        ("/v1/entities/none", None, {}),
    ):
        assert "public" not in server.get(path, key, **headers).headers.get("cache-control", ""), path


@pytest.mark.rule("CDN-1")
def test_a_shared_cache_answers_documents_and_open_files_by_itself_and_passes_keys_on(
    server: LiveServer, paid_key: str, tmp_path: Path
) -> None:
    """nginx with its cache on, as it comes: it obeys what the service says and nothing else."""
    port = free_port()
    configuration = f"""
proxy_cache_path {tmp_path}/kept keys_zone=kept:1m;
server {{
  listen 127.0.0.1:{port};
  location / {{
    proxy_pass {server.url}; proxy_cache kept; proxy_cache_revalidate on; proxy_set_header Host $http_host;
    add_header X-Kept $upstream_cache_status always;
  }}
}}"""
    pinned = f"{FILE}?edition={server.get('/v1/status').json()['edition']}"
    with Nginx(tmp_path / "nginx", configuration), httpx.Client(base_url=f"http://127.0.0.1:{port}") as cache:

        def kept(path: str, **headers: str) -> str:
            return str(cache.get(path, headers=headers).headers["x-kept"])

        def listens() -> bool:
            try:
                return cache.get("/health").status_code == 200
            except httpx.TransportError:
                return False

        until(listens)
        for path in ("/openapi.json", "/llms.txt", "/docs", "/problems/not-found", pinned):
            assert [kept(path), kept(path)] == ["MISS", "HIT"], path
        assert cache.get(pinned).content == server.get(pinned).content
        key = {"x-api-key": paid_key}
        for path in ("/v1/screen?metric=net_margin", "/docs/api"):
            assert {kept(path, **key), kept(path, **key)} == {"MISS"}, path
