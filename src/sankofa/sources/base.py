"""What an adapter is, and the file it is given."""

import gzip
import importlib
import io
import pkgutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

import sankofa.sources
from sankofa.model.errors import FormatError
from sankofa.model.records import Record

_ZIP_START = b"PK\x03\x04"
_ENCRYPTED = 0x1  # of a member's flags


class InputFile:
    """One file as given: plain, .gz or .zip. Adapters see its documents, decompressed, as streams."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name

    def documents(self, *endings: str) -> Iterator[tuple[str, IO[bytes]]]:
        """Each document inside: the file itself, or the members of a zip with one of the endings.

        Hidden members, as the ones a Mac adds, are passed over, as they are in a folder.
        """
        if self.is_zip:
            with zipfile.ZipFile(self.path) as archive:
                for member in archive.infolist():
                    hidden = any(part.startswith((".", "__MACOSX")) for part in member.filename.split("/"))
                    named = member.filename.lower().endswith(endings or ("",))
                    if named and not hidden and not member.is_dir():
                        with self._opened(archive, member) as stream:
                            yield member.filename, stream
        elif self.name.lower().endswith(".gz"):
            with gzip.open(self.path) as stream:
                yield self.name[:-3], io.BufferedReader(stream)
        else:
            with self.path.open("rb") as stream:
                yield self.name, stream

    @contextmanager
    def member(self, name: str) -> Iterator[IO[bytes]]:
        """One named member of a zip, at any depth. Raises FormatError when it is not there."""
        with zipfile.ZipFile(self.path) as archive:
            found = [m for m in archive.infolist() if m.filename.rsplit("/", 1)[-1].lower() == name]
            if len(found) != 1:
                raise FormatError(f"{self.name}: expected one {name} in the archive, found {len(found)}")
            with self._opened(archive, found[0]) as stream:
                yield stream

    def _opened(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
        if member.flag_bits & _ENCRYPTED:
            raise FormatError(f"{self.name}: {member.filename} is encrypted")
        return archive.open(member)

    @property
    def is_zip(self) -> bool:
        """Whether it is an archive by its end or, cut short, by its beginning."""
        with self.path.open("rb") as stream:
            return stream.read(len(_ZIP_START)) == _ZIP_START or zipfile.is_zipfile(self.path)


Read = Callable[[InputFile], Iterator[Record]]


class Adapter(NamedTuple):
    """A named reader of one publisher's format."""

    name: str
    read: Read
    summary: str
    rounds_dates: bool = False
    """Whether the publisher rounds the dates of periods to month ends."""


_ADAPTERS: dict[str, Adapter] = {}


def adapter(name: str, *, rounds_dates: bool = False) -> Callable[[Read], Read]:
    """Declare the function below as the adapter of this name; its docstring says what it reads."""

    def declare(read: Read) -> Read:
        def guarded(file: InputFile) -> Iterator[Record]:
            with _format_errors(file):
                yield from read(file)

        summary = (read.__doc__ or "").strip().splitlines()[0]
        _ADAPTERS[name] = Adapter(name, guarded, summary, rounds_dates)
        return read

    return declare


@contextmanager
def _format_errors(file: InputFile) -> Iterator[None]:
    """An archive found damaged, whenever that shows, is a file that is not of its format."""
    try:
        yield
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, NotImplementedError) as failure:
        raise FormatError(f"{file.name}: damaged or unsupported archive: {failure}") from failure


@cache
def adapters() -> dict[str, Adapter]:
    """Every adapter, by name: each module of this package declares its own."""
    for module in pkgutil.iter_modules(sankofa.sources.__path__):
        importlib.import_module(f"sankofa.sources.{module.name}")
    return dict(sorted(_ADAPTERS.items()))
