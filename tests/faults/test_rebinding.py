"""Names and redirects that lead elsewhere: a resolver, a public address and a cloud's own, all on loopback.

The command runs in a network namespace whose only interface has a public address, a private one and that of a
cloud's metadata service; its only resolver answers what the test says, and something else the next time.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.depth import deep_after
from tests.live import COMMAND
from tests.services import missing
from tests.spec.test_collect import table
from tests.tls import certificate

PUBLIC, PRIVATE, METADATA = "93.184.215.14", "10.1.2.3", "169.254.169.254"
NAME = "ny.gdp.mktp.cd.csv"

INSIDE = """
import json, os, socket, ssl, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tests.depth import deep_after
plan = json.loads(sys.argv[1])
run = lambda *words: subprocess.run(words, check=True)
run("ip", "link", "set", "lo", "up")
for address in plan["addresses"]:
    run("ip", "addr", "add", address + "/32", "dev", "lo")
run("mount", "--bind", plan["resolv"], "/etc/resolv.conf")
asked, reached = {}, []

def resolve():
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind(("127.0.0.1", 53))
    while True:
        question, client = line.recvfrom(4096)
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        name, kind = ".".join(labels), question[at + 1:at + 3]
        body = question[12:at + 5]
        answers = []
        if kind == b"\\0\\1" and name in plan["names"]:
            times = asked[name] = asked.get(name, 0) + 1
            several = plan["names"][name]
            answers = several[min(times, len(several)) - 1]
        records = b"".join(b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\0\\0\\4" + socket.inet_aton(a) for a in answers)
        head = question[:2] + b"\\x81\\x80\\0\\1" + len(answers).to_bytes(2, "big") + b"\\0\\0\\0\\0"
        line.sendto(head + body + records, client)

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        reached.append([self.connection.getsockname()[0], self.path])
        target = plan["redirects"].get(self.path)
        content = b"" if target else plan["content"].encode()
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    def log_message(self, *_): pass

threading.Thread(target=resolve, daemon=True).start()
for port in (443, 80):
    server = ThreadingHTTPServer(("0.0.0.0", port), Handler)
    if port == 443:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*plan["chain"])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
done = subprocess.run(plan["command"], capture_output=True, text=True, timeout=100)
said = done.stdout + done.stderr
print(json.dumps({"code": done.returncode, "said": said, "reached": reached, "asked": asked}))
"""


class Seen(NamedTuple):
    code: int
    said: str
    reached: list[list[str]]
    """The address and path of each request that arrived anywhere."""
    asked: dict[str, int]


class World:
    """Collects inside the namespace."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._certificate = certificate(folder / "tls", "publisher.test", "elsewhere.test")
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
        (folder / "home").mkdir()

    def collect(
        self,
        *urls: str,
        names: dict[str, list[list[str]]],
        redirects: dict[str, str] | None = None,
        allow_private: bool = False,
    ) -> Seen:
        """`names`: for each, the addresses of the first answer, of the second, and so on."""
        (self._folder / "home" / "sources.toml").write_text(
            '[sources.bank]\nadapter = "worldbank"\nsku = "AF-MACRO"\nlicense_class = "cc-by"\n'
            "commercial_redistribution = true\n[sources.bank.collect]\nrate = 1000\n"
            f"urls = {json.dumps(urls)}\nallow_private = {json.dumps(allow_private)}\n"
        )
        plan = {
            "addresses": [PUBLIC, PRIVATE, METADATA],
            "resolv": str(self._folder / "resolv.conf"),
            "names": names,
            "redirects": redirects or {},
            "content": table(1, 2),
            "chain": [str(self._certificate.chain), str(self._certificate.key)],
            "command": [str(COMMAND), "collect", "bank"],
        }
        environment = {
            **os.environ,
            "SANKOFA_HOME": str(self._folder / "home"),
            "SANKOFA_COLLECT_ATTEMPTS": "2",
            "SSL_CERT_FILE": str(self._certificate.authority),
        }
        command = ["unshare", "-rnm", sys.executable, "-c", INSIDE, json.dumps(plan)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                output, _ = process.communicate(timeout=120)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, output
        seen: dict[str, Any] = json.loads(output)
        return Seen(**seen)


@pytest.fixture
def world(tmp_path: Path) -> World:
    for tool in ("unshare", "ip", "mount"):
        if shutil.which(tool) is None:
            missing(f"{tool}, for a network of the test's own")
    if subprocess.run(["unshare", "-rnm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives no network namespace")
    return World(tmp_path)


@pytest.mark.ci
@pytest.mark.rule("COL-3")
def test_the_address_that_was_checked_is_the_address_connected_to(world: World) -> None:
    for later in (["127.0.0.1"], [METADATA], [PRIVATE]):
        seen = world.collect(f"https://publisher.test/{NAME}", names={"publisher.test": [[PUBLIC], later]})
        assert (seen.code, seen.asked) == (0, {"publisher.test": 1}), seen
        assert seen.reached == [[PUBLIC, f"/{NAME}"]]


@pytest.mark.deep
@pytest.mark.rule("COL-3")
def test_a_name_that_leads_elsewhere_at_the_next_connection_is_refused(world: World) -> None:
    for later in (["127.0.0.1"], [METADATA], [PRIVATE], [PUBLIC, METADATA]):
        seen = world.collect(
            f"https://publisher.test/{NAME}",
            names={"publisher.test": [[PUBLIC], later]},
            redirects={f"/{NAME}": f"https://publisher.test/second/{NAME}"},
        )
        assert seen.code == 1
        assert "not an address of the public internet" in seen.said, seen
        assert seen.reached == [[PUBLIC, f"/{NAME}"]]


@pytest.mark.deep
@pytest.mark.rule("COL-3")
@pytest.mark.parametrize("scheme", deep_after(1, ["https", "http"]))
def test_what_may_be_private_never_leads_to_a_metadata_service(world: World, scheme: str) -> None:
    """By its name at once, by the second answer for a name, by a redirect to a name, and to an address."""
    names = {"publisher.test": [[PRIVATE], [METADATA]], "elsewhere.test": [[METADATA]]}
    target = {"elsewhere": f"{scheme}://elsewhere.test/meta", "address": f"http://{METADATA}/meta"}
    first = f"{scheme}://publisher.test/{NAME}"
    for url, redirects in (
        (f"{scheme}://elsewhere.test/{NAME}", {}),
        (first, {f"/{NAME}": f"{scheme}://publisher.test/again.csv"}),
        (first, {f"/{NAME}": target["elsewhere"]}),
        (first, {f"/{NAME}": target["address"]}),
    ):
        seen = world.collect(url, names=names, redirects=redirects, allow_private=True)
        assert seen.code == 1
        assert f"leads to {METADATA}, which is never fetched from" in seen.said, seen
        assert METADATA not in [address for address, _ in seen.reached], seen


@pytest.mark.deep
def test_what_may_be_private_is_fetched_from_a_private_address(world: World) -> None:
    seen = world.collect(
        f"http://publisher.test/{NAME}", names={"publisher.test": [[PRIVATE]]}, allow_private=True
    )
    assert (seen.code, seen.reached) == (0, [[PRIVATE, f"/{NAME}"]]), seen
