"""The log of editions and the proofs of rows on a node that follows a store."""

from pathlib import Path
from typing import Any

import pytest

from sankofa.client import verify
from tests.faults.conftest import publish_another
from tests.live import LiveServer, run, succeed
from tests.nodes.commands import follow, refused, state
from tests.nodes.conftest import push
from tests.nodes.servers import PlainServer

COMPANY = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"


@pytest.mark.rule("LOG-8")
@pytest.mark.parametrize("is_pushed", [True, False])
def test_a_node_proves_rows_as_the_publisher_does(
    is_pushed: bool, home: Path, key: str, destination: Path, tmp_path: Path
) -> None:
    vkey = run(home, "editions", "key").stdout.strip()
    settings: dict[str, Any] = {
        "keystore": f"embedded:{home}/keys",
        "keys_secret": (home / "keys-secret").read_text().strip(),
        "trusted_keys": vkey,
    }
    node = tmp_path / "node"
    with PlainServer(destination if is_pushed else home / "editions") as origin:
        follow(node, origin.url, **settings)
        everything = state(node)["pulled_bytes"]
        edition = publish_another(home, 2)
        if is_pushed:
            push(home, destination)
        follow(node, origin.url, **settings)
        if is_pushed:
            assert state(node)["pulled_bytes"] <= everything / 10
        rows = {path.name for path in (node / "editions" / "log" / "rows").iterdir()}
        assert rows == {path.name for path in (home / "editions" / "log" / "rows").iterdir()}
        succeed(node, "editions", "verify", editions=origin.url, **settings)
        with LiveServer(home) as publisher, LiveServer(node, editions=origin.url, **settings) as live:
            ref = publisher.get(COMPANY, key).json()["data"][0]["record_ref"]
            for path in (
                "/log/checkpoint",
                "/log/tile/0/000.p/3",
                "/log/tile/entries/000.p/3",
                f"{COMPANY}?proof=true",
                f"/v1/proof?record_ref={ref}&since_size=1",
                "/v1/tenders?country=KE&limit=500&proof=true",
            ):
                here, there = live.get(path, key), publisher.get(path, key)
                assert here.status_code == 200, here.text
                assert here.content == there.content, path
            older = live.get(f"/v1/proof?record_ref={ref}&edition={min(rows)}", key)
            assert verify(older.text, vkey) == min(rows) != edition


@pytest.mark.rule("LOG-8")
def test_unsigned_row_hashes_are_refused(destination: Path, home: Path, tmp_path: Path):
    url = f"file://{destination}"
    note = destination / "log" / "rows.note"
    content = note.read_bytes()
    note.write_bytes(content.replace(b'",', b'" ,', 1))
    assert "log: refused" in refused(tmp_path / "forged", url)
    note.write_bytes(content)
    follow(tmp_path / "whole", url)
    (largest, *_) = sorted(
        (tmp_path / "whole" / "editions" / "log" / "rows").iterdir(), key=lambda path: -path.stat().st_size
    )
    (copy,) = [
        path
        for path in (destination / "pool").rglob("*")
        if path.is_file() and path.read_bytes() == largest.read_bytes()
    ]
    copy.write_bytes(copy.read_bytes()[:-1] + b"X")
    assert "not what was published" in refused(tmp_path / "damaged", url)
    assert not (tmp_path / "damaged" / "editions" / "log" / "rows" / largest.name).exists()
