"""The adapter contract, and the input file that an adapter reads."""

import gzip
import importlib
import io
import math
import pkgutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import sankofa.sources
from sankofa.engines.private_files import UNPACKED_TIMES, most_unpacked
from sankofa.model.errors import FormatError
from sankofa.model.limits import limit
from sankofa.model.records import Record
from sankofa.settings import Settings

_ZIP_START = b"PK\x03\x04"
_BUFFER = 1 << 18
_XLSX = "xl/workbook.xml"
_WORKBOOKS = {
    _XLSX: "an Excel workbook (xlsx)",
    "xl/workbook.bin": "an Excel workbook (xlsb)",
    "content.xml": "an OpenDocument file (ods)",
}
"""By a member that only such a file has."""
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = 0x1  # of a member's flags
_MOST_MEMBERS = limit("members of an archive", 1_000_000, "members", "the file is refused")
_LEAST_HEAD = 30  # bytes before a member's content


class Limits(NamedTuple):
    """Limits on a file; each is a setting."""

    file_bytes: int = Settings.ingest_file_bytes
    document_bytes: int = Settings.ingest_document_bytes
    line_bytes: int = Settings.ingest_line_bytes
    text_length: int = Settings.ingest_text_length
    xbrl_seconds: int = Settings.ingest_xbrl_seconds
    xbrl_memory_bytes: int = Settings.ingest_xbrl_memory_bytes

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        return cls(*(getattr(settings, f"ingest_{name}") for name in cls._fields))


class InputFile:
    """One file as given: plain, .gz or .zip. Adapters see its documents, decompressed, as streams.

    A stream raises FormatError if the file, a line, or a document read as a whole is over the limits.
    """

    def __init__(self, path: Path, limits: Limits = Limits()) -> None:  # noqa: B008 - immutable
        self.path = path
        self.name = path.name
        self.limits = limits
        self.bytes_read = 0
        self.most_unpacked: float = math.inf
        self._ends: dict[int, int] | None = None

    def documents(self, *endings: str, expected: str = "") -> Iterator[tuple[str, IO[bytes]]]:
        """Each document inside: the file itself, or the members of a zip with one of the endings.

        Hidden members, such as those a Mac adds, are skipped, as in a folder. Raises FormatError if a zip has
        no member and one is `expected`.
        """
        if workbook := self._workbook():
            advice = ": save the sheet as CSV (UTF-8) and ingest that" if ".csv" in endings else ""
            raise FormatError(f"{self.name}: {workbook}{advice}")
        if self.is_zip:
            any_document = False
            with self.archive() as archive:
                for member in archive.infolist():
                    hidden = any(part.startswith((".", "__MACOSX")) for part in member.filename.split("/"))
                    named = member.filename.lower().endswith(endings or ("",))
                    if named and not hidden and not member.is_dir():
                        any_document = True
                        with self.opened(archive, member) as stream:
                            yield member.filename, BoundedStream(stream, self)
            if expected and not any_document:
                raise FormatError(f"{self.name}: {expected}")
        elif self.name.lower().endswith(".gz"):
            self._bound_unpacked()
            with gzip.open(self.path) as stream:
                yield self.name[:-3], BoundedStream(stream, self)
        else:
            with self.path.open("rb", buffering=0) as stream:
                yield self.name, BoundedStream(stream, self)

    @contextmanager
    def member(self, name: str) -> Iterator[IO[bytes]]:
        """One named member of a zip, at any depth. Raises FormatError if it is missing."""
        with self.archive() as archive:
            members = [m for m in archive.infolist() if m.filename.rsplit("/", 1)[-1].lower() == name]
            if len(members) != 1:
                raise FormatError(f"{self.name}: expected one {name} in the archive, found {len(members)}")
            with self.opened(archive, members[0]) as stream:
                yield BoundedStream(stream, self)

    @property
    def is_xlsx(self) -> bool:
        return self._workbook() == _WORKBOOKS[_XLSX]

    def archive(self) -> zipfile.ZipFile:
        """Raises FormatError if it has too many members."""
        archive = zipfile.ZipFile(self.path)
        if len(archive.filelist) > _MOST_MEMBERS:
            archive.close()
            raise FormatError(f"{self.name}: more than {_MOST_MEMBERS:,} members in the archive")
        return archive

    def _workbook(self) -> str:
        """Which kind of spreadsheet it is; empty for any other file."""
        if not self.is_zip:
            with self.path.open("rb") as stream:
                old = stream.read(len(_OLD_WORKBOOK)) == _OLD_WORKBOOK
            return "an old Excel workbook (xls), or a workbook with a password" if old else ""
        with self.archive() as archive:
            names = set(archive.namelist())
        return next((kind for member, kind in _WORKBOOKS.items() if member in names), "")

    def opened(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
        """A member as a stream without limits. Raises FormatError."""
        if member.flag_bits & _ENCRYPTED:
            raise FormatError(f"{self.name}: {member.filename} is encrypted")
        self._refuse_overlap(archive, member)
        self._bound_unpacked()
        return archive.open(member)

    def _refuse_overlap(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        """Members that share their bytes are a zip bomb. Later versions of Python refuse them too."""
        if self._ends is None:
            starts = sorted(other.header_offset for other in archive.infolist())
            following = list(pairwise([*starts, archive.start_dir]))
            self._ends = dict(reversed(following))  # of two at the same place the first counts
        end = member.header_offset + _LEAST_HEAD + member.compress_size
        if end > self._ends[member.header_offset]:
            raise FormatError(f"{self.name}: {member.filename} overlaps another member")

    def _bound_unpacked(self) -> None:
        self.most_unpacked = most_unpacked(self.path.stat().st_size)

    @property
    def is_zip(self) -> bool:
        """Whether it is an archive: by its end or, if truncated, by its beginning."""
        with self.path.open("rb") as stream:
            return stream.read(len(_ZIP_START)) == _ZIP_START or zipfile.is_zipfile(self.path)


class _Counted(io.RawIOBase):
    """The bytes of a document, counted as they arrive, for the file and for the line."""

    def __init__(self, stream: "IO[bytes] | gzip.GzipFile", file: InputFile) -> None:
        self._stream = stream
        self._file = file
        self.by_line = True
        """Whether the document is read line by line, so far."""
        self._line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._stream.read(len(buffer))
        file, limits = self._file, self._file.limits
        file.bytes_read += len(chunk)
        if file.bytes_read > file.most_unpacked:
            raise FormatError(f"{file.name}: unpacks to more than {UNPACKED_TIMES} times its size")
        if file.bytes_read > limits.file_bytes:
            raise too_much(file.name, "decompressed", limits, "file_bytes")
        if self.by_line:
            begins = chunk.find(b"\n") + 1
            if self._line + (begins - 1 if begins else len(chunk)) > limits.line_bytes:
                raise too_much(file.name, "in one line", limits, "line_bytes")
            self._line = len(chunk) - chunk.rfind(b"\n") - 1 if begins else self._line + len(chunk)
        buffer[: len(chunk)] = chunk
        return len(chunk)


class BoundedStream(io.BufferedReader):
    """A document of a file, within its limits."""

    def __init__(self, stream: "IO[bytes] | gzip.GzipFile", file: InputFile) -> None:
        self._counted = _Counted(stream, file)
        self._input = file
        super().__init__(self._counted, _BUFFER)

    def read(self, size: int | None = -1, /) -> bytes:
        self._counted.by_line = False
        if size is not None and size >= 0:
            return super().read(size)
        most = self._input.limits.document_bytes
        parts: list[bytes] = []
        held = 0
        while part := super().read(_BUFFER):
            parts.append(part)
            held += len(part)
            if held > most:
                raise too_much(self._input.name, "in one document", self._input.limits, "document_bytes")
        return b"".join(parts)


def too_much(name: str, where: str, limits: Limits, limit: str) -> FormatError:
    """The error for a file over one of its limits."""
    setting = f"SANKOFA_INGEST_{limit.upper()}"
    return FormatError(f"{name}: more than {getattr(limits, limit):,} bytes {where} ({setting})")


Read = Callable[[InputFile], Iterator[Record]]


class Adapter(NamedTuple):
    """A named reader of one publisher's format."""

    name: str
    read: Read
    summary: str
    rounds_dates: bool = False
    """Whether the publisher rounds the dates of periods to month ends."""
    names_people: bool = False
    """Whether files of this format name natural persons: the vault then stores no plain bytes of them."""


_ADAPTERS: dict[str, Adapter] = {}


def adapter(name: str, *, rounds_dates: bool = False, names_people: bool = False) -> Callable[[Read], Read]:
    """Declare the function below as the adapter of this name; its docstring says what it reads."""

    def declare(read: Read) -> Read:
        def guarded(file: InputFile) -> Iterator[Record]:
            with _format_errors(file):
                yield from read(file)

        summary = (read.__doc__ or "").strip().splitlines()[0]
        _ADAPTERS[name] = Adapter(name, guarded, summary, rounds_dates, names_people)
        return read

    return declare


@contextmanager
def _format_errors(file: InputFile) -> Iterator[None]:
    """An archive found damaged, whenever that shows, is a file that is not of its format."""
    try:
        yield
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, NotImplementedError) as failure:
        raise FormatError(f"{file.name}: damaged or unsupported archive: {failure}") from failure
    except RecursionError:
        raise FormatError(f"{file.name}: nested too deeply") from None


@cache
def adapters() -> dict[str, Adapter]:
    """Every adapter, by name: each module of this package declares its own."""
    for module in pkgutil.iter_modules(sankofa.sources.__path__):
        importlib.import_module(f"sankofa.sources.{module.name}")
    return dict(sorted(_ADAPTERS.items()))
