"""Files of an edition are truncated or overwritten while served: no worker dies and no answer is wrong."""

import os
import time
from pathlib import Path

import httpx

from tests.faults.conftest import Serve
from tests.faults.load import ISSUER, ask
from tests.live import LiveServer
from tests.patience import PATIENCE
from tests.tampering import part_of
from tests.torture import Trial


def writable(path: Path) -> Path:
    path.chmod(0o600)
    return path


def degraded(live: LiveServer) -> list[str]:
    return list(live.get("/v1/status").json()["degraded"])


def test_random_bytes_written_into_a_served_edition_are_never_served(
    serve: Serve, key: str, home: Path, editions: tuple[str, str], trial: Trial
) -> None:
    chance = trial.chance
    live = serve()
    answers = {edition: live.get(f"{ISSUER}&edition={edition}", key).content for edition in editions}
    path = writable(part_of(home / "editions" / editions[1]))
    with path.open("r+b", buffering=0) as file:
        for _ in range(200):
            file.seek(chance.randrange(path.stat().st_size - 64))
            file.write(chance.randbytes(64))
            trial.saw("not served")
    deadline = time.monotonic() + PATIENCE
    while ask(live, key) != (200, editions[0]):
        assert time.monotonic() < deadline, live.log
    for _ in range(20):
        answer = live.get(ISSUER, key)
        assert answer.status_code == 200
        assert answer.content == answers[editions[0]]
    assert degraded(live) == ["datastore"]
    refused = live.get(f"{ISSUER}&edition={editions[1]}", key)
    assert refused.status_code in (410, 503)


def largest_file(live: LiveServer, paid: str) -> tuple[str, int]:
    row = max(live.get("/v1/export", paid).json()["data"], key=lambda one: one["size_bytes"])
    return httpx.URL(row["url"]).raw_path.decode(), row["size_bytes"]


def test_a_truncated_parquet_file_is_a_503_and_not_a_short_answer(
    serve: Serve, home: Path, editions: tuple[str, str]
) -> None:
    live = serve()
    paid = live.key("starter")
    path, size = largest_file(live, paid)
    file = home / "editions" / editions[1] / "files" / Path(path).name
    os.truncate(writable(file), size - 10)
    answer = live.get(path, paid)
    assert answer.status_code in (503, 200)
    if answer.status_code == 200:  # of the previous edition, once it is served
        assert answer.headers["etag"] != f'"{size}"'
        assert int(answer.headers["content-length"]) == len(answer.content)
    assert f"edition {editions[1]}" in live.log
