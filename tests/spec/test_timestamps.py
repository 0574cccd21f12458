"""An authority stamps the checkpoint of the log (RFC 3161). The one here is `openssl ts` behind HTTP."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.live import run
from tests.nodes.commands import follow
from tests.posts import answering_posts
from tests.services import MISSING
from tests.spec import market
from tests.spec.market import Desk, package, release

pytest.importorskip("rfc3161_client", reason="rfc3161-client is not installed: make setup EXTRAS=1")
if shutil.which("openssl") is None:
    pytest.skip(f"{MISSING}time stamps (no openssl in PATH)", allow_module_level=True)

plain_desk = market.plain_desk
_CONFIG = """
[tsa]
default_tsa = own
[own]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
[usage]
extendedKeyUsage = critical,timeStamping
"""


def openssl(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=False)


class Authority:
    """Its certificates, and what it says in the place of a stamp."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.says, self.count = folder, b"", 0
        folder.mkdir()
        (folder / "tsa.cnf").write_text(_CONFIG.format(folder=folder))
        (folder / "serial").write_text("01\n")
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout")
        root = self.root = folder / "root.pem"
        openssl("req", "-x509", *key, folder / "root.key", "-out", root, "-subj", "/CN=Root", "-days", "9")
        openssl("req", *key, folder / "tsa.key", "-out", folder / "tsa.csr", "-subj", "/CN=Authority")
        signed = openssl(
            *("x509", "-req", "-in", folder / "tsa.csr", "-CA", root, "-CAkey", folder / "root.key"),
            *("-CAcreateserial", "-out", folder / "tsa.pem", "-days", "9"),
            *("-extfile", folder / "tsa.cnf", "-extensions", "usage"),
        )
        assert signed.returncode == 0, signed.stderr

    def reply(self, query: bytes) -> bytes:
        self.count += 1
        (self.folder / "query").write_bytes(query)
        out = self.folder / "reply"
        config, asked = self.folder / "tsa.cnf", self.folder / "query"
        made = openssl("ts", "-reply", "-config", config, "-section", "own", "-queryfile", asked, "-out", out)
        assert made.returncode == 0, made.stderr
        return out.read_bytes()

    @contextmanager
    def serve(self) -> Iterator[str]:
        with answering_posts(self._answer) as address:
            yield f"{address}/stamp"

    def _answer(self, request: BaseHTTPRequestHandler, query: bytes) -> tuple[int, bytes]:
        assert request.headers["content-type"] == "application/timestamp-query"
        if self.says == b"silent":
            time.sleep(20)
        return 200, self.says or self.reply(query)


@pytest.mark.rule("LOG-13")
def test_an_authority_stamps_the_checkpoint_and_anybody_can_check_it(plain_desk: Desk, tmp_path: Path):
    desk, authority = plain_desk, Authority(tmp_path / "authority")
    with authority.serve() as address:
        desk.settings["log_timestamp_url"] = address
        desk.ingest("portal-za", "a.json", package(release("a")))
        desk.publish()
        desk.publish()
        assert authority.count == 1, "it is not asked again for the same checkpoint"
    vkey = desk.command("editions", "key").stdout.strip()
    assert desk.command("push", tmp_path / "store").returncode == 0
    node = tmp_path / "node"
    follow(node, f"file://{tmp_path / 'store'}", trusted_keys=vkey)
    answer, stamp, text = tmp_path / "answer.json", tmp_path / "checkpoint.tsr", tmp_path / "text"
    with desk.serve() as asked:
        http = asked.server.http
        served = http.get("/log/checkpoint.tsr")
        assert served.headers["content-type"] == "application/timestamp-reply"
        stamp.write_bytes(served.content)
        answer.write_text(asked.server.get("/v1/tenders?country=ZA&proof=true", asked.key).text)
        text.write_text(http.get("/log/checkpoint").text.partition("\n\n")[0] + "\n")
        url = f"{asked.server.url}/v1/tenders?country=ZA&proof=true"
        ours = ("--key", vkey, "--roots", authority.root)
        fetched = run(node, "verify", url, *ours, "--api-key", asked.key)
    assert (fetched.returncode, "and was stamped at 20" in fetched.stdout) == (0, True), fetched.stderr
    assert (node / "editions" / "log" / "checkpoint.tsr").read_bytes() == stamp.read_bytes()
    theirs = openssl("ts", "-verify", "-data", text, "-in", stamp, "-CAfile", authority.root)
    assert theirs.returncode == 0, theirs.stderr
    assert run(node, "verify", answer, *ours, "--timestamp", stamp).returncode == 0
    # Another authority, a damaged stamp, a stamp that is not there, and a later checkpoint.
    other = ("--key", vkey, "--roots", Authority(tmp_path / "other").root, "--timestamp", stamp)
    assert "No trusted authority stamped" in run(node, "verify", answer, *other).stderr
    content = stamp.read_bytes()
    (tmp_path / "damaged").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    damaged = run(node, "verify", answer, *ours, "--timestamp", tmp_path / "damaged")
    assert (damaged.returncode, "No trusted authority" in damaged.stderr) == (1, True), damaged.stderr
    assert run(node, "verify", answer, *ours).returncode != 0
    desk.settings["log_timestamp_url"] = "http://127.0.0.1:9"
    desk.ingest("portal-za", "b.json", package(release("b")))
    desk.publish()
    with desk.serve() as asked:
        assert asked.server.http.get("/log/checkpoint.tsr").status_code == 404
        answer.write_text(asked.server.get("/v1/tenders?country=ZA&proof=true", asked.key).text)
    assert run(node, "verify", answer, *ours, "--timestamp", stamp).returncode == 1


@pytest.mark.rule("LOG-13")
@pytest.mark.parametrize("says", [b"silent", b"no stamp", b"x" * 20_000])
def test_an_authority_that_is_silent_or_wrong_stops_nothing(says: bytes, plain_desk: Desk, tmp_path: Path):
    desk, authority = plain_desk, Authority(tmp_path / "authority")
    authority.says = says
    with authority.serve() as address:
        desk.settings["log_timestamp_url"] = address
        desk.ingest("portal-za", "a.json", package(release("a")))
        said = desk.command("publish")
    assert said.returncode == 0, said.stderr
    assert "the log is without the stamp of" in said.stderr
    assert not (desk.home / "editions" / "log" / "checkpoint.tsr").exists()
