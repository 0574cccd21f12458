"""The verifier of `test_edition_log.py`, written from the RFCs and the C2SP texts, agrees with ours on
many rows and refuses altered ones.
"""

import hashlib
import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature

from sankofa.client import verify
from sankofa.model.signed_notes import consistency_path
from tests.live import LiveServer, run
from tests.spec.test_edition_log import check_growth, check_proof, tree_hash

_REFUSALS = (AssertionError, AttributeError, InvalidSignature, LookupError, TypeError, ValueError)
_ROWS = 10_000


@pytest.mark.ci
@pytest.mark.rule("LOG-5")
def test_both_verifiers_agree_on_10_000_rows(server: LiveServer, sample_home: Path, paid_key: str) -> None:
    vkey = run(sample_home, "editions", "key").stdout.strip()
    rows = 0
    for series in ("FX.EUR.ZAR", "FX.EUR.USD"):
        text = server.get(f"/v1/macro?series={series}&limit=10000&proof=true", paid_key).text
        assert verify(text, vkey) == json.loads(text)["edition"]
        rows += check_proof(text, vkey)
    assert rows >= _ROWS


@pytest.mark.ci
@pytest.mark.rule("LOG-5")
def test_both_verifiers_refuse_every_flipped_byte_and_the_second_a_swapped_row(
    server: LiveServer, sample_home: Path, paid_key: str
) -> None:
    vkey = run(sample_home, "editions", "key").stdout.strip()
    content = server.get("/v1/tenders?country=KE&limit=1&proof=true", paid_key).content
    assert check_proof(content.decode(), vkey) == 1
    for first, last in ((b'"data":', b',"count"'), (b'"proof":', b"}")):
        for at in range(content.index(first), content.rindex(last) + 1):
            flipped = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            with pytest.raises(_REFUSALS):
                check_proof(flipped.decode(), vkey)
            with pytest.raises(ValueError, match=r"."):
                verify(flipped, vkey)
    body = server.get("/v1/tenders?country=KE&limit=2&proof=true", paid_key).json()
    assert check_proof(json.dumps(body), vkey) == 2
    body["data"].reverse()
    with pytest.raises(AssertionError):
        check_proof(json.dumps(body), vkey)


@pytest.mark.rule("LOG-6")
def test_the_second_verifier_refuses_a_dropped_edition_and_a_rewritten_past() -> None:
    entries = [f"edition {number}".encode() for number in range(14)]
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in entries]
    for size in range(2, len(leaves) + 1):
        now = tree_hash(leaves[:size])
        for first in range(1, size):
            path, before = consistency_path(leaves[:size], first), tree_hash(leaves[:first])
            check_growth(first, size, before, now, path)
            dropped = [*leaves[: first - 1], *leaves[first : size + 1]]
            for past in (dropped, [*leaves[: first - 1], leaves[0] + b"x", *leaves[first:size]]):
                for steps in (path, consistency_path(past, first)):
                    with pytest.raises((AssertionError, IndexError)):
                        check_growth(first, size, before, tree_hash(past), steps)
