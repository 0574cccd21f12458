"""Objects of a static web server, or of a CDN before one. See `engines.object_store`."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any, Final

import httpcore
import httpx

from sankofa.engines.object_store import (
    CONNECT_SECONDS,
    FILE_SECONDS,
    LEAST_RATE,
    RATE_SECONDS,
    READ_SECONDS,
    SMALL_SECONDS,
    ObjectError,
    ObjectMissing,
    ObjectSource,
)

_LOOK_SECONDS: Final = 0.25
"""Seconds between two calls of `look` during a wait."""

Look = Callable[[int], None]
"""Called with the number of bytes received, which may be 0; raises to end the wait."""


class PatientStream(httpcore.NetworkStream):
    """Calls `look` before and after every read, and while it waits."""

    def __init__(self, inner: httpcore.NetworkStream, look: Look) -> None:
        self._inner = inner
        self._look = look

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        until = time.monotonic() + (timeout or 60)
        while True:
            self._look(0)
            try:
                content = self._inner.read(max_bytes, _LOOK_SECONDS)
            except httpcore.ReadTimeout:
                if time.monotonic() >= until:
                    raise httpcore.ReadTimeout("no answer in time") from None
            else:
                self._look(len(content))
                return content

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return PatientStream(self._inner.start_tls(ssl_context, server_hostname, timeout), self._look)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


_MISSING: Final = (404, 410)
_MOST_CONNECTIONS: Final = 16


class _Pace(threading.local):
    """How long a thread's request may take, and how slowly its answer may arrive."""

    def __init__(self) -> None:
        self.begin(math.inf)

    def begin(self, seconds: float) -> None:
        self._most = seconds
        self._since = self._began = time.monotonic()
        self._bytes = 0

    def look(self, received: int) -> None:
        """Count received bytes. Raises httpcore.ReadTimeout if they are too late or too few."""
        now = time.monotonic()
        self._bytes += received
        if now - self._began > self._most:
            raise httpcore.ReadTimeout(f"incomplete after {self._most:.0f} s")
        if now - self._since > RATE_SECONDS:
            if self._bytes < LEAST_RATE * RATE_SECONDS:
                raise httpcore.ReadTimeout(f"{self._bytes} bytes in {RATE_SECONDS} s")
            self._since, self._bytes = now, 0


class _PacedBackend(httpcore.SyncBackend):
    """Connections whose reads are paced."""

    def __init__(self, pace: _Pace) -> None:
        self._pace = pace

    def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        return PatientStream(super().connect_tcp(*args, **kwargs), self._pace.look)


class HttpObjects(ObjectSource):
    """Objects below an address. A user and password in the URL are sent as basic authentication."""

    def __init__(self, url: str) -> None:
        self._base = url.rstrip("/")
        self._pace = _Pace()
        self._client = httpx.Client(
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=_MOST_CONNECTIONS),
            follow_redirects=True,
            headers={"user-agent": "sankofa", "accept-encoding": "identity"},
        )
        for transport in (self._client._transport, *self._client._mounts.values()):
            if isinstance(transport, httpx.HTTPTransport):  # httpx has no parameter for this
                transport._pool._network_backend = _PacedBackend(self._pace)

    def read(self, path: str, most: int) -> bytes:
        """Bypasses caches, which may have an old pointer."""
        content = bytearray()
        self._pace.begin(SMALL_SECONDS)
        with self._answer(path, {"cache-control": "no-cache"}) as answer:
            for chunk in answer.iter_raw():
                content += chunk
                if len(content) > most:
                    raise ObjectError(f"{path}: more than {most} bytes")
        return bytes(content)

    @contextmanager
    def stream(self, path: str, start: int, size: int) -> Iterator[Iterator[bytes]]:
        headers = {"range": f"bytes={start}-{size - 1}"} if start else {}
        self._pace.begin(FILE_SECONDS)
        with self._answer(path, headers) as answer:
            if start and answer.status_code != 206:  # no support for ranges: skip the beginning
                yield _without_beginning(answer.iter_raw(), start)
                return
            if start and not answer.headers.get("content-range", "").startswith(f"bytes {start}-"):
                raise ObjectError(f"{path}: a different range than requested")
            yield answer.iter_raw()  # unbuffered: bytes in a buffer would be lost with the connection

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _answer(self, path: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        try:
            with self._client.stream("GET", f"{self._base}/{path}", headers=headers) as answer:
                if answer.status_code in _MISSING:
                    raise ObjectMissing(f"{path}: not there")
                if answer.status_code not in (200, 206):
                    raise ObjectError(f"{path}: answered {answer.status_code}")
                if "content-encoding" in answer.headers:
                    raise ObjectError(f"{path}: answered in an encoding that was not requested")
                yield answer
        except httpx.InvalidURL as failure:
            raise ObjectError(f"not an address: {failure}") from None
        except httpx.HTTPError as failure:
            raise ObjectError(f"{path}: {str(failure) or type(failure).__name__}") from failure


def _without_beginning(chunks: Iterator[bytes], skipped: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[skipped:]
        skipped = max(skipped - len(chunk), 0)
