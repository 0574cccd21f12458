"""Clients that mean harm, on loopback and in bounded numbers, and one that pays and takes the time."""

import selectors
import socket
import statistics
import threading
import time
from http.client import HTTPConnection, HTTPException
from types import TracebackType

from tests.faults.load import ISSUER
from tests.live import LiveServer
from tests.patience import PATIENCE, Stopwatch, until

BOUND = 0.250

KINDS = {
    "never reads a small answer": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "never reads a large answer": b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n",
    "never reads a refusal": b"GET /v1/screen HTTP/1.1\r\nHost: x\r\nX-API-Key: guess\r\n\r\n",
    "sends half a header": b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "sends nothing": b"",
}
_PIPELINED = 64 * 1024


class Crowd:
    """`with Crowd(server, kind, count): ...`: every connection sends as much as it can and reads nothing."""

    def __init__(self, server: LiveServer, kind: str, count: int) -> None:
        self._port = server.port
        request = KINDS[kind]
        whole = request.endswith(b"\r\n\r\n")
        self._request = request * (_PIPELINED // len(request)) if whole else request
        self._pipelined = whole
        self._count = count
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.opened = self.cut_off = 0

    def __enter__(self) -> "Crowd":
        self._thread.start()
        until(lambda: self.opened >= self._count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            links = [self._open(selector) for _ in range(self._count)]
            while not self._over.is_set():
                for chosen, _ in selector.select(0.1):
                    self._go_on(selector, chosen)
            for link in links:
                link.close()

    def _open(self, selector: selectors.DefaultSelector) -> socket.socket:
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.setblocking(False)
        link.connect_ex(("127.0.0.1", self._port))
        selector.register(link, selectors.EVENT_WRITE, None)
        return link

    def _go_on(self, selector: selectors.DefaultSelector, chosen: selectors.SelectorKey) -> None:
        link = chosen.fileobj
        assert isinstance(link, socket.socket)
        try:
            if chosen.data is None:
                self.opened += 1
            if chosen.data is None or self._pipelined:
                sent = link.send(self._request) if self._request else 0
                waits = selectors.EVENT_WRITE if self._pipelined else selectors.EVENT_READ
                selector.modify(link, waits, sent)
            elif not link.recv(4096):
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            self.cut_off += 1
            selector.unregister(link)


def paying_client(server: LiveServer, key: str, seconds: float = 2.0) -> tuple[float, list[str]]:
    """The median time of an answer, on fresh connections and a kept one by turns, and whatever failed."""
    took: list[float] = []
    failures: list[str] = []
    kept = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(took) < 10:
        fresh = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        for link in (fresh, kept):
            with Stopwatch() as watch:
                try:
                    link.request("GET", ISSUER, headers={"X-API-Key": key})
                    answer = link.getresponse()
                    answer.read()
                    if answer.status != 200:
                        failures.append(f"status {answer.status}")
                except (OSError, HTTPException) as failure:
                    failures.append(repr(failure))
                    link.close()
            took.append(watch.seconds)
        fresh.close()
        time.sleep(0.01)
    kept.close()
    return statistics.median(took), failures
