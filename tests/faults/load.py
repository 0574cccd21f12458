"""Clients that send requests without a pause, and record everything that went wrong."""

import random
import threading
import time
from collections import Counter
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.live import LiveServer
from tests.patience import PATIENCE

__all__ = ["PATIENCE", "Load", "ask", "wait_for_edition", "workers"]

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?period_type=FY&as_of=2022-01-01"


def ask(server: LiveServer, key: str, connection: HTTPConnection | None = None) -> tuple[int, str]:
    """The status of one request and the edition of its answer, on a fresh connection if none is given."""
    link = connection or HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        link.request("GET", ISSUER, headers={"X-API-Key": key})
        answer = link.getresponse()
        body = answer.read()
    finally:
        if connection is None:
            link.close()
    _, _, rest = body.partition(b'"edition":"')
    return answer.status, rest.partition(b'"')[0].decode()


class Clients:
    """Clients in threads, numbered from 0, that send requests until the `with` block ends."""

    def __init__(self, clients: int) -> None:
        self.editions: Counter[str] = Counter()
        self._over = threading.Event()
        self._clients = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]

    def _run(self, number: int) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        for client in self._clients:
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for client in self._clients:
            client.join()


class Load(Clients):
    """`with Load(server, key) as load: ...`: keep-alive connections and fresh ones, side by side."""

    def __init__(self, server: LiveServer, key: str, clients: int = 3) -> None:
        super().__init__(clients)
        self.failures: list[str] = []
        self._server, self._key = server, key

    def _run(self, number: int) -> None:
        reuses_connection = number % 2 == 0
        link = HTTPConnection("127.0.0.1", self._server.port, timeout=PATIENCE) if reuses_connection else None
        while not self._over.is_set():
            try:
                status, edition = ask(self._server, self._key, link)
            except (OSError, HTTPException) as failure:
                self.failures.append(repr(failure))
            else:
                if status == 200:
                    self.editions[edition] += 1
                else:
                    self.failures.append(f"status {status}")
            time.sleep(0.002)
        if link is not None:
            link.close()


def wait_for_edition(server: LiveServer, key: str, edition: str) -> None:
    """Wait until twenty fresh connections in a row are answered from this edition, by any worker."""
    deadline = time.monotonic() + PATIENCE
    in_a_row = 0
    while in_a_row < 20:
        answer = ask(server, key)
        in_a_row = in_a_row + 1 if answer == (200, edition) else 0
        assert time.monotonic() < deadline, answer
        time.sleep(0 if in_a_row else 0.05)


def workers(server: LiveServer) -> list[psutil.Process]:
    return [process for process in psutil.Process(server.pid).children() if _alive(process)]


def _alive(process: psutil.Process) -> bool:
    """The process may end during the check."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def flip_a_bit(path: Path, picked: random.Random) -> str:
    """Flip one bit of a file; returns a description."""
    content = bytearray(path.read_bytes())
    at, bit = picked.randrange(len(content)), picked.randrange(8)
    content[at] ^= 1 << bit
    path.chmod(0o600)
    path.write_bytes(content)
    return f"bit {bit} of byte {at} of {path.name}"


def cut_short(path: Path, picked: random.Random) -> str:
    """Cut off the end of a file; returns the remaining size."""
    size = picked.randrange(path.stat().st_size)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:size])
    return f"{path.name} cut to {size} bytes"
