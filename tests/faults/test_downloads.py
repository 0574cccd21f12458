"""A file on its way to a slow client arrives whole, whatever is published meanwhile."""

import hashlib
import socket
import time
from pathlib import Path

import pytest

from tests.faults.conftest import Serve, publish_another
from tests.faults.load import wait_for_edition


@pytest.mark.deep
def test_a_download_under_way_finishes_on_the_edition_it_began_with(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    live = serve()
    paid = live.key("starter")
    rows = live.get("/v1/export", paid).json()["data"]
    row = max(rows, key=lambda one: one["size_bytes"])
    path = row["url"].partition(":")[2].partition("/")[2].partition("/")[2].partition("/")[2]
    with socket.create_connection(("127.0.0.1", live.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        request = f"GET /{path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {paid}\r\nConnection: close\r\n\r\n"
        client.sendall(request.encode())
        received = client.recv(1024)
        wait_for_edition(live, key, publish_another(home, 2))
        time.sleep(0.5)
        while more := client.recv(65536):
            received += more
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert hashlib.sha256(body).hexdigest() == row["sha256"]
    before = live.get(f"/{path}?edition={editions[1]}", paid)
    assert hashlib.sha256(before.content).hexdigest() == row["sha256"]
    now = {one["name"]: one["sha256"] for one in live.get("/v1/export", paid).json()["data"]}
    assert now[row["name"]] != row["sha256"]
