"""Stores that hold objects by path: a folder, a bucket, a static web server, two tables of a database.

`open_source` and `open_destination` pick a store by URL and import its driver only then.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from sankofa.engines.private_files import replacing
from sankofa.model.errors import SankofaError, SettingsError
from sankofa.model.limits import limit

CHUNK: Final = 1 << 20
"""Most bytes of one object in memory at a time."""
CONNECT_SECONDS: Final = limit("connecting to an object store", 5.0, "seconds", "tried again later")
READ_SECONDS: Final = limit("silence of an object store", 10.0, "seconds", "tried again later")
SMALL_SECONDS: Final = limit("time for a small object of a store", 60.0, "seconds", "tried again later")
FILE_SECONDS: Final = 3600 * limit("time for a file of a store", 6, "hours", "tried again, from there")
RATE_SECONDS: Final = 20
LEAST_RATE: Final = limit("least rate of a store", 4096, "bytes a second", "tried again, from there")
"""Measured over RATE_SECONDS."""
_CLOUD: Final = ("s3", "gs", "az")


class ObjectError(SankofaError):
    """An object could not be read or written; a retry may succeed. Names no credentials."""


class ObjectMissing(ObjectError):
    """There is no such object."""


class StoredObject(NamedTuple):
    path: str
    size: int
    modified: datetime


class ObjectSource(Protocol):
    """Readable objects. Every call has a time limit and may come from any thread."""

    def read(self, path: str, most: int) -> bytes:
        """A small object. Raises ObjectMissing, or ObjectError, also if it has more than `most` bytes."""

    def stream(self, path: str, start: int, size: int) -> AbstractContextManager[Iterator[bytes]]:
        """The bytes [start, size) of an object of that size; fewer if it is truncated."""

    def close(self) -> None:
        return  # nothing to close by default


class ObjectDestination(ObjectSource, Protocol):
    """Objects to be read and written."""

    def write(self, path: str, content: bytes, *, immutable: bool) -> None:
        """Writes in one step: readers see the old content or the new. `immutable` sets the cache headers."""

    def upload(self, path: str, file: Path) -> None:
        """Writes a file's content, which never changes, in one step."""

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Everything below a prefix that ends with a slash."""

    def delete(self, paths: Iterable[str]) -> None: ...

    def batch(self) -> AbstractContextManager[None]:
        """Writes inside appear together if the store has transactions, otherwise one after another."""
        return nullcontext()


def open_source(url: str) -> ObjectSource:
    """Raises SettingsError if the address is invalid."""
    if urlsplit(url).scheme in ("http", "https"):
        from sankofa.engines.object_http import HttpObjects

        return HttpObjects(url)
    try:
        return open_destination(url)
    except SettingsError as failure:
        also = str(failure).replace("expected ", "expected https://host/path, ", 1)
        raise SettingsError(also) from None


def open_destination(url: str) -> ObjectDestination:
    """Raises SettingsError if the address cannot be written to."""
    address = urlsplit(url)
    if address.scheme == "file" or (not address.scheme and url):
        return FolderObjects(Path(unquote(address.path) if address.scheme else url))
    if address.scheme in _CLOUD and address.netloc:
        try:
            from sankofa.engines.object_cloud import CloudObjects
        except ImportError:
            raise SettingsError(
                f"{address.scheme}:// needs a driver: make setup EXTRAS=1, or install sankofa[objects]"
            ) from None
        return CloudObjects(url)
    if address.scheme in ("postgresql", "postgres"):
        from sankofa.engines.object_postgres import PostgresObjects

        return PostgresObjects(url)
    raise SettingsError("expected a folder, file:///folder, s3://bucket/path, gs://, az:// or postgresql://")


class FolderObjects(ObjectDestination):
    """Files in a folder, with the umask's permissions, so that a web server can read them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str, most: int) -> bytes:
        with _object_errors(path), (self._folder / path).open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ObjectError(f"{path}: more than {most} bytes")
        return content

    @contextmanager
    def stream(self, path: str, start: int, size: int) -> Iterator[Iterator[bytes]]:
        with _object_errors(path):
            file = (self._folder / path).open("rb")
            file.seek(start)
        with file:
            yield _chunks(file, path)

    def write(self, path: str, content: bytes, *, immutable: bool) -> None:
        """Sets no cache headers: the web server does (docs/how-to/operating.md has a configuration)."""
        with self._replacing(path) as stream:
            stream.write(content)

    def upload(self, path: str, file: Path) -> None:
        with self._replacing(path) as stream, file.open("rb") as content:
            shutil.copyfileobj(content, stream, CHUNK)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        for folder, _, names in os.walk(self._folder / prefix):
            for name in names:
                file = Path(folder, name)
                with suppress(FileNotFoundError):
                    status = file.stat()
                    modified = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield StoredObject(file.relative_to(self._folder).as_posix(), status.st_size, modified)

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with _object_errors(path):
                (self._folder / path).unlink(missing_ok=True)
                with suppress(OSError):  # not empty
                    (self._folder / path).parent.rmdir()

    @contextmanager
    def _replacing(self, path: str) -> Iterator[BinaryIO]:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _object_errors(path), replacing(target, private=False) as stream:
            yield stream


def _chunks(file: BinaryIO, path: str) -> Iterator[bytes]:
    with _object_errors(path):
        while chunk := file.read(CHUNK):
            yield chunk


@contextmanager
def _object_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise ObjectMissing(f"{path}: not there") from None
    except OSError as failure:
        raise ObjectError(f"{path}: {failure.strerror or failure}") from failure
