"""The nginx example of docs/how-to/operating.md before a real service, with the test's own certificate."""

import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.live import LiveServer, free_port, succeed
from tests.patience import PATIENCE
from tests.services import REPOSITORY, missing

HOST = "data.customer.example"
GUIDE = REPOSITORY / "docs" / "how-to" / "operating.md"


def example() -> str:
    (block,) = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return str(block)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for the domain, its key beside it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        missing("a proxy (no openssl in PATH)")
    pem = tmp_path / "tls.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}"]
    command += [
        "-addext",
        f"subjectAltName=DNS:{HOST}",
        "-keyout",
        str(pem.with_suffix(".key")),
        "-out",
        str(pem),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return pem


@pytest.fixture
def proxied(
    sample_home: Path, tmp_path: Path, certificate: Path
) -> Iterator[tuple[LiveServer, httpx.Client]]:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if nginx is None:
        missing("a proxy (no nginx in PATH)")
    home = Path(shutil.copytree(sample_home, tmp_path / "home"))
    with LiveServer(home) as server:
        port = free_port()
        written = example()
        for there, here in (
            ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
            (f"/etc/sankofa/tls/{HOST}.pem", str(certificate)),
            (f"/etc/sankofa/tls/{HOST}.key", str(certificate.with_suffix(".key"))),
            ("http://127.0.0.1:8000", server.url),
        ):
            assert there in written, "the example is another one by now"
            written = written.replace(there, here)
        settings = f"daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/nginx.log; events {{}}"
        paths = "".join(
            f"{name}_temp_path {tmp_path}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(f"{settings} http {{ access_log off; {paths}\n{written}}}\n")
        process = subprocess.Popen([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        try:
            trusted = ssl.create_default_context(cafile=str(certificate))
            with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted) as client:
                wait_for(client, process)
                yield server, client
        finally:
            process.terminate()
            process.wait(10)


def get(client: httpx.Client, path: str, key: str | None = None, **headers: str) -> httpx.Response:
    fields = {"host": HOST, **headers} | ({} if key is None else {"x-api-key": key})
    return client.get(path, headers=fields, extensions={"sni_hostname": HOST})


def wait_for(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            assert get(client, "/health").status_code == 200
        except httpx.TransportError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


@pytest.mark.deep
def test_the_domain_answers_its_owner_through_the_proxy(proxied: tuple[LiveServer, httpx.Client]) -> None:
    server, client = proxied
    key = server.key("professional")
    succeed(server.home, "domains", "add", HOST, "--key", key)
    time.sleep(1.1)
    page = get(client, "/v1/tenders?limit=1", key)
    following = page.links["next"]["url"]
    assert following.startswith(f"https://{HOST}/v1/tenders?")
    assert get(client, following.removeprefix(f"https://{HOST}"), key).status_code == 200
    assert get(client, "/v1/tenders", "sankofa-sandbox").status_code == 401
    assert get(client, "/openapi.json").json()["servers"][0]["url"] == f"https://{HOST}"
    (part,) = (
        row for row in get(client, "/v1/export", key).json()["data"] if row["signal_key"] == "macro-momentum"
    )
    opened = get(client, part["url"].removeprefix(f"https://{HOST}"), range="bytes=0-3")
    assert (opened.status_code, opened.content) == (206, b"PAR1")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    fields = {"host": HOST, "authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
    listed = client.post("/mcp", json=body, headers=fields, extensions={"sni_hostname": HOST})
    assert listed.status_code == 200
