"""Objects in a folder, as a static web server would serve them. See `engines.object_store`."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from sankofa.engines.object_store import CHUNK, ObjectError, ObjectMissing, StoredObject

_PARTIAL = ".partial-"


class FolderObjects:
    """See `ObjectDestination`. What it creates has the permissions of the umask: a web server reads it."""

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
        """A web server has its own words for caches: docs/operating.md has a configuration."""
        with _object_errors(path), self._replacing(path) as partial:
            partial.write_bytes(content)

    def upload(self, path: str, file: Path) -> None:
        with _object_errors(path), self._replacing(path) as partial:
            shutil.copyfile(file, partial)

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

    def batch(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def _replacing(self, path: str) -> Iterator[Path]:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{_PARTIAL}{os.getpid()}-{target.name}")
        try:
            yield partial
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


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
