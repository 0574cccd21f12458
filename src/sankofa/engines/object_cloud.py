"""Objects of S3 and its kin, of Google Cloud Storage and Azure, through obstore. See `engines.object_store`.

Credentials, region and endpoint come from the environment as the vendor's own tools read them (AWS_..., and
so on).
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import from_url

from sankofa.engines.object_store import (
    CHUNK,
    CONNECT_SECONDS,
    FILE_SECONDS,
    READ_SECONDS,
    SMALL_SECONDS,
    ObjectDestination,
    ObjectError,
    ObjectMissing,
    StoredObject,
)
from sankofa.model.errors import SettingsError

_RANGE_BYTES: Final = 8 << 20
"""Bytes per request, because obstore limits the time of a request as a whole."""
_FOR_EVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_NEVER: Final = {"Cache-Control": "no-cache"}


class CloudObjects(ObjectDestination):
    """Objects in a bucket. obstore closes its connections itself."""

    def __init__(self, url: str) -> None:
        try:
            self._store = from_url(
                url.rstrip("/"),
                client_options={
                    "allow_http": True,  # for an http:// endpoint from the environment
                    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                    "timeout": timedelta(seconds=SMALL_SECONDS),
                },
                retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=READ_SECONDS)},
            )
        except (BaseError, ValueError) as failure:
            raise SettingsError(f"not an address of an object store: {failure}") from None

    def read(self, path: str, most: int) -> bytes:
        content = bytearray()
        with _object_errors(path):
            for chunk in obstore.get(self._store, path).stream(min_chunk_size=CHUNK):
                content += chunk
                if len(content) > most:
                    raise ObjectError(f"{path}: more than {most} bytes")
        return bytes(content)

    @contextmanager
    def stream(self, path: str, start: int, size: int) -> Iterator[Iterator[bytes]]:
        yield self._byte_ranges(path, start, size)

    def _byte_ranges(self, path: str, start: int, size: int) -> Iterator[bytes]:
        """Reads in chunks: an interrupted transfer can resume, and an endless answer is cut off."""
        until = time.monotonic() + FILE_SECONDS
        while start < size:
            end = min(start + _RANGE_BYTES, size)
            with _object_errors(path):
                before = start
                for chunk in obstore.get(self._store, path, options={"range": (start, end)}).stream(CHUNK):
                    start += len(chunk)
                    if start > end:
                        raise ObjectError(f"{path}: more bytes than requested")
                    if time.monotonic() > until:
                        raise ObjectError(f"{path}: incomplete after {FILE_SECONDS} s")
                    yield bytes(chunk)
            if start == before:
                return

    def write(self, path: str, content: bytes, *, immutable: bool) -> None:
        with _object_errors(path):
            obstore.put(self._store, path, content, attributes=_FOR_EVER if immutable else _NEVER)

    def upload(self, path: str, file: Path) -> None:
        """Uploads a large file in parts; the object appears with the last one."""
        with _object_errors(path):
            obstore.put(self._store, path, file, attributes=_FOR_EVER)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        with _object_errors(prefix):
            for page in obstore.list(self._store, prefix):
                for entry in page:
                    yield StoredObject(entry["path"], entry["size"], entry["last_modified"])

    def delete(self, paths: Iterable[str]) -> None:
        with _object_errors("delete"):
            if listed := list(paths):
                obstore.delete(self._store, listed)


@contextmanager
def _object_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (NotFoundError, FileNotFoundError):
        raise ObjectMissing(f"{path}: not there") from None
    except (BaseError, OSError) as failure:
        raise ObjectError(f"{path}: {str(failure).splitlines()[0]}") from failure
