"""Witnesses cosign the checkpoint of the log. The witness here is written from the C2SP texts
(tlog-witness, tlog-cosignature) and keeps its own state.
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sankofa.client import verify
from tests.live import run
from tests.nodes.commands import follow
from tests.publisher import answering_posts, slowly
from tests.spec import market
from tests.spec.market import Desk, package, release
from tests.spec.test_edition_log import check_growth, opened_checkpoint

plain_desk = market.plain_desk


class Witness:
    """Cosigns checkpoints of one log that only grows."""

    def __init__(
        self, log_key: str = "", fixed_answer: str = "", twist: Callable[[str], str] = lambda line: line
    ) -> None:
        self.log_key, self.size, self.root = log_key, 0, hashlib.sha256().digest()
        self.answers: list[int] = []
        self._fixed_answer = fixed_answer
        self._twist = twist
        self._key = Ed25519PrivateKey.generate()
        self.public = self._key.public_key().public_bytes_raw()
        self.hash = hashlib.sha256(b"witness.example\n\x04" + self.public).digest()[:4]
        key = base64.b64encode(b"\x04" + self.public).decode()
        self.vkey = f"witness.example+{self.hash.hex()}+{key}"

    def add_checkpoint(self, body: str) -> tuple[int, str]:
        if self._fixed_answer == "silent":
            time.sleep(20)
        if self._fixed_answer:
            return 200, self._fixed_answer
        head, _, note = body.partition("\n\n")
        old, *proof = head.split("\n")
        _, size, root = opened_checkpoint(note.encode(), self.log_key)
        if int(old.removeprefix("old ")) != self.size:
            return 409, f"{self.size}\n"
        if not is_consistent(self.size, size, self.root, root, [base64.b64decode(one) for one in proof]):
            return 422, ""
        self.size, self.root = size, root
        now = int(time.time())
        text = note.partition("\n\n")[0] + "\n"
        signature = self._key.sign(f"cosignature/v1\ntime {now}\n{text}".encode())
        payload = base64.b64encode(self.hash + now.to_bytes(8) + signature).decode()
        return 200, self._twist(f"— witness.example {payload}\n")

    def check(self, note: bytes) -> None:
        """Check its cosignature on the note. Raises InvalidSignature or ValueError."""
        text, _, lines = note.decode().partition("\n\n")
        (line,) = [one for one in lines.splitlines() if one.startswith("— witness.example ")]
        payload = base64.b64decode(line.rpartition(" ")[2])
        assert payload[:4] == self.hash
        signed = f"cosignature/v1\ntime {int.from_bytes(payload[4:12])}\n{text}\n"
        Ed25519PublicKey.from_public_bytes(self.public).verify(payload[12:], signed.encode())

    @contextmanager
    def serve(self) -> Iterator[str]:
        with answering_posts(self._answer) as address:
            yield f"{address}/one {self.vkey}"

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        assert request.path == "/one/add-checkpoint"
        status, answer = self.add_checkpoint(body.decode())
        self.answers.append(status)
        return status, answer.encode()


def is_consistent(old: int, new: int, old_root: bytes, new_root: bytes, proof: list[bytes]) -> bool:
    """RFC 9162, 2.1.4.2, for sizes with something to prove."""
    if old in (0, new):
        return not proof and (old == 0 or old_root == new_root)
    try:
        check_growth(old, new, old_root, new_root, proof)
    except AssertionError:
        return False
    return True


@pytest.mark.ci
@pytest.mark.rule("LOG-11")
def test_a_witness_cosigns_the_log_as_it_grows(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "first.json", package(release("first")))
    desk.publish()
    vkey = desk.command("editions", "key").stdout.strip()
    checkpoint = desk.home / "editions" / "log" / "checkpoint"
    witness = Witness(vkey)
    with witness.serve() as address:
        desk.settings["log_witnesses"] = address
        for name in ("b", "c"):
            desk.ingest("portal-za", f"{name}.json", package(release(name)))
            desk.publish()
            witness.check(checkpoint.read_bytes())
        assert (witness.size, witness.answers) == (3, [200, 409, 200])
        cosigned = checkpoint.read_bytes()
        # A cosignature that comes after its edition reaches nodes before the next edition.
        checkpoint.write_text(cosigned.decode().rpartition("— witness.example")[0])
        store, node = f"file://{tmp_path / 'store'}", tmp_path / "node"
        assert desk.command("push", tmp_path / "store").returncode == 0
        follow(node, store, trusted_keys=vkey)
        late = desk.publish()
        assert desk.command("push", tmp_path / "store").returncode == 0
        follow(node, store, trusted_keys=vkey)
        assert late in (node / "editions" / "CURRENT").read_text()
        cosigned = checkpoint.read_bytes()
        witness.check(cosigned)
        assert (node / "editions" / "log" / "checkpoint").read_bytes() == cosigned
        del witness.answers[3:]
        desk.publish()
        assert (checkpoint.read_bytes(), len(witness.answers)) == (cosigned, 3), "it is not asked again"
        assert desk.command("editions", "verify").returncode == 0
        with desk.serve() as caller:
            assert caller.server.http.get("/log/checkpoint").content == cosigned
            answer = caller.server.get("/v1/tenders?country=ZA&proof=true", caller.key).text
        assert verify(answer, vkey) == json.loads(answer)["edition"]
        # Another log of the same name and key, which forgot its first entry.
        shorter = Witness(vkey)
        shorter.size, shorter.root = 1, b"another past".ljust(32)
        with shorter.serve() as other:
            desk.settings["log_witnesses"] = other
            done = desk.command("publish")
    assert (done.returncode, shorter.answers) == (0, [409, 422])
    assert checkpoint.read_bytes() == cosigned


@pytest.mark.rule("LOG-11")
def test_a_malformed_cosignature_does_not_break_the_checkpoint(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "a.json", package(release("a")))
    desk.publish()
    vkey = desk.command("editions", "key").stdout.strip()
    checkpoint = desk.home / "editions" / "log" / "checkpoint"
    ways = {"dash": lambda line: line.removeprefix("— "), "bits": with_spare_bits_set}
    for name, twist in ways.items():
        witness = Witness(vkey, twist=twist)
        with witness.serve() as address:
            desk.settings["log_witnesses"] = address
            desk.ingest("portal-za", f"{name}.json", package(release(name)))
            desk.publish()
        assert opened_checkpoint(checkpoint.read_bytes(), vkey)[1] == witness.size
        assert desk.command("editions", "verify").returncode == 0
        if name == "bits":
            witness.check(checkpoint.read_bytes())  # in the alphabet of base64


def with_spare_bits_set(line: str) -> str:
    """A line whose base64 ends in unused bits that are set."""
    assert line.endswith("==\n")
    return line[:-4] + chr(ord(line[-4]) + 1) + "==\n"


@pytest.mark.ci
@pytest.mark.rule("LOG-11")
@pytest.mark.limit("answer of a witness", "time for an answer of a witness")
def test_a_missing_or_wrong_witness_stops_nothing(plain_desk: Desk) -> None:
    desk = plain_desk
    wrong = [
        Witness(fixed_answer="silent"),
        Witness(fixed_answer="— x " + "A" * 20_000),
        Witness(fixed_answer="— witness.example AA==\n"),
    ]
    with (
        wrong[0].serve() as one,
        wrong[1].serve() as two,
        wrong[2].serve() as three,
        answering_posts(slowly) as slow,
    ):
        others = [f"{address} {wrong[0].vkey}" for address in ("http://127.0.0.1:9", slow)]
        desk.settings["log_witnesses"] = ", ".join((one, two, three, *others))
        desk.ingest("portal-za", "a.json", package(release("a")))
        done = desk.command("publish")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no cosignature of witness.example") == 5, done.stderr
    assert "more than 16384 bytes" in done.stderr
    assert done.stderr.count("no answer in 5 s") == 2, done.stderr
    checkpoint = (desk.home / "editions" / "log" / "checkpoint").read_bytes()
    assert opened_checkpoint(checkpoint, desk.command("editions", "key").stdout.strip())[1] == 1
    refused = run(desk.home, "publish", log_witnesses="https://witness.example x+1+y")
    assert (refused.returncode, "is not a witness" in refused.stderr) == (1, True), refused.stderr
