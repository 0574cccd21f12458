"""Objects of a static web server, or of a CDN before one. See `engines.object_store`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx

from sankofa.engines.object_store import CONNECT_SECONDS, READ_SECONDS, ObjectError, ObjectMissing

_MISSING: Final = (404, 410)
_MOST_CONNECTIONS: Final = 16


class HttpObjects:
    """See `ObjectSource`. A user and password in the URL are sent as basic authentication."""

    def __init__(self, url: str) -> None:
        self._base = url.rstrip("/")
        self._client = httpx.Client(
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=_MOST_CONNECTIONS),
            follow_redirects=True,
            headers={"user-agent": "sankofa", "accept-encoding": "identity"},
        )

    def read(self, path: str, most: int) -> bytes:
        """Always asked of the origin: a cache on the way may have the pointer of yesterday."""
        content = bytearray()
        with self._answer(path, {"cache-control": "no-cache"}) as answer:
            for chunk in answer.iter_raw():
                content += chunk
                if len(content) > most:
                    raise ObjectError(f"{path}: more than {most} bytes")
        return bytes(content)

    @contextmanager
    def stream(self, path: str, start: int, size: int) -> Iterator[Iterator[bytes]]:
        headers = {"range": f"bytes={start}-{size - 1}"} if start else {}
        with self._answer(path, headers) as answer:
            if start and answer.status_code != 206:  # it knows no ranges: the beginning is passed over
                yield _without_beginning(answer.iter_raw(), start)
                return
            if start and not answer.headers.get("content-range", "").startswith(f"bytes {start}-"):
                raise ObjectError(f"{path}: another range than the one asked for")
            yield answer.iter_raw()  # as it comes: what was gathered before a cut would be lost

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
                    raise ObjectError(f"{path}: answered in an encoding that was not asked for")
                yield answer
        except httpx.InvalidURL as failure:
            raise ObjectError(f"not an address: {failure}") from None
        except httpx.HTTPError as failure:
            raise ObjectError(f"{path}: {str(failure) or type(failure).__name__}") from failure


def _without_beginning(chunks: Iterator[bytes], skipped: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[skipped:]
        skipped = max(skipped - len(chunk), 0)
