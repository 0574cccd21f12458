"""Go's own implementation of logs in tiles (golang.org/x/mod/sumdb) reads the log of editions."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sankofa.engines.edition_log import EditionLog, LoggedErasure
from sankofa.engines.publication import signers_of
from tests.services import missing
from tests.spec import market
from tests.spec.market import Desk, package, release

plain_desk = market.plain_desk
_GO_PATH = Path("/usr/share/gocode")
"""Where Debian's golang-golang-x-mod-dev puts its files."""
_MISSING = shutil.which("go") is None or not (_GO_PATH / "src/golang.org/x/mod/sumdb/tlog").exists()


@pytest.mark.deep
@pytest.mark.rule("LOG-1", "LOG-6")
def test_the_log_is_read_by_the_packages_of_the_checksum_database(plain_desk: Desk, tmp_path: Path) -> None:
    if _MISSING:
        missing("Go does not read the log: apt install golang-go golang-golang-x-mod-dev")
    desk, program = plain_desk, tmp_path / "read_log"
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": str(_GO_PATH), "GOCACHE": f"{tmp_path}/go"}
    source = Path(__file__).with_name("read_log.go")
    subprocess.run(["go", "build", "-o", program, source], env=environment, check=True, cwd=tmp_path)
    desk.ingest("portal-za", "a.json", package(release("a")))
    edition = desk.publish()
    key = desk.command("editions", "key").stdout.strip()
    log = EditionLog(desk.home / "editions")

    def read(since: int) -> subprocess.CompletedProcess[str]:
        with desk.serve() as asked:
            answer = asked.server.get(f"/v1/proof?record_ref={ref}&since_size={since}", asked.key)
            proof = json.dumps({**answer.json()["proof"], "since": since})
            called = [str(program), asked.server.url, key]
            return subprocess.run(called, input=proof, capture_output=True, text=True, check=False)

    ref = 'tenders:["ZA","ocds-test-a","a-1","2025-06-01T10:00:00Z"]'
    assert read(1).stdout == "1\n"
    # More than one tile, then more than two.
    for count, since in ((299, 7), (256, 256)):
        entries = [LoggedErasure(f"2026-01-01T00:00:{number:02}Z", [edition]) for number in range(count)]
        log.append(entries, signers_of(desk.home))
        said = read(since)
        assert said.stdout == f"{len(log.tree().entries)}\n", said.stderr
    content = log.tree().bundle()
    (desk.home / "editions" / "log" / "entries").write_bytes(content.replace(b"00:07Z", b"00:08Z", 1))
    said = read(1)
    assert (said.returncode, said.stdout) == (1, ""), "a log that is not the one that was signed"
