"""Open Contracting (OCDS) releases, as portals publish them.

The content is detected by its shape: a release package, a record package, a bare release or record, a list or
JSON Lines of any of these. A record gives its embedded releases; its compiledRelease only if it embeds none.
"""

import codecs
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from typing import IO, Any, Final

import msgspec

from sankofa.model.errors import FormatError
from sankofa.model.limits import limit
from sankofa.model.records import Record, Rejected, Release, Skipped
from sankofa.sources.base import InputFile, Limits, adapter, too_much
from sankofa.sources.json_stream import TOKEN, TooLong, Truncated, at_once, json_values
from sankofa.sources.tables import peek

_LINES: Final = (".jsonl", ".ndjson")
_ENDINGS: Final = (".json", *_LINES)
_LISTS: Final = frozenset({"releases", "records"})
_OCDS: Final = frozenset({"ocid", "releases", "records", "compiledRelease"})
_NOT_OCDS: Final = "neither an OCDS package, record nor release"
_NOTHING_OCDS: Final = "nothing in it is an OCDS package, record or release"
_LONGEST_WHOLE: Final = 1_000
_MOST_LEVELS: Final = limit("levels of a release", 100, "levels", "the release is rejected")
_HOLDERS: Final = _LISTS | {"compiledRelease"}
_LONGEST_LINE: Final = 1 << 22  # limit for the first of JSON Lines; beyond it the file is one document
_BUFFER: Final = 1 << 18
_AT_ONCE: Final = 1 << 24  # packages up to this size are read into memory as a whole
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED: Final = ((b"{\0\0\0", "utf-32-le"), (b"{\0", "utf-16-le"), (b"\0{", "utf-16-be"))
_decode = msgspec.json.Decoder(float_hook=Decimal).decode


@adapter("ocds", names_people=True)
def read(file: InputFile) -> Iterator[Record]:
    """OCDS 1.0 and 1.1: release packages, record packages, bare releases and records, lists, JSON Lines."""
    for name, stream in file.documents(*_ENDINGS, expected="no JSON document in the archive"):
        position = f"{name}: " if file.is_zip else ""
        title = f"{file.name}: {name}" if file.is_zip else name
        try:
            yield from _document(_as_utf8(stream), title, position, file.limits)
        except TooLong:
            raise too_much(title, "in one value", file.limits, "line_bytes") from None
        except Truncated as failure:
            raise FormatError(f"{title}: not JSON: {failure}") from None


def _document(document: IO[bytes], name: str, position: str, limits: Limits) -> Iterator[Record]:
    stream, lines = _is_lines(document, name)
    if lines:
        yield from _lines(stream, name, position, limits.line_bytes)
        return
    anything = embedded = foreign = recognised = False
    beginning = stream.read(_AT_ONCE + 1)
    in_memory = at_once(beginning, _LISTS) if len(beginning) <= _AT_ONCE else None
    longest = limits.line_bytes
    for one in (
        json_values(stream, _LISTS, head=beginning, longest=longest) if in_memory is None else in_memory
    ):
        anything = True
        if not one.whole:
            element, fault = _value(one.raw)
            if not fault and _is_part(element):
                recognised = True
            else:
                foreign = True
            for record in _unpacked(element, fault, f"{position}{one.path}"):
                embedded = embedded or type(record) is not Skipped
                yield record
            continue
        value, fault = _value(one.raw)
        if fault or not _is_ocds(value):
            raise FormatError(f"{name}: {fault or _NOT_OCDS}")
        if foreign and not recognised and type(value) is list:
            raise FormatError(f"{name}: {_NOTHING_OCDS}")
        if type(value) is dict and not (embedded and value.keys() & _LISTS):
            yield from _releases(value, f"{position}release")
        embedded = foreign = recognised = False
    if not anything:
        raise FormatError(f"{name}: empty")


def _lines(stream: IO[bytes], name: str, position: str, longest: int) -> Iterator[Record]:
    """The values of JSON Lines. Raises TooLong, and FormatError if there are values but none is OCDS."""
    foreign = recognised = False
    for number, line in enumerate(iter(lambda: stream.readline(longest + 1), b""), 1):
        if len(line) > longest:
            raise TooLong
        if line.isspace():
            continue
        value, fault = _value(line)
        if not fault and _is_release(value):
            recognised = True
            yield Release(f"{position}line {number}", value)
            continue
        if not fault and _is_part(value):
            recognised = True
        else:
            foreign = True
        yield from _unpacked(value, fault, f"{position}line {number}")
    if foreign and not recognised:
        raise FormatError(f"{name}: {_NOTHING_OCDS}")


def _is_release(value: Any) -> bool:
    """Whether it is a plain release; most are."""
    return type(value) is dict and "ocid" in value and "tag" in value and _HOLDERS.isdisjoint(value)


def _unpacked(value: Any, fault: str, position: str) -> Iterator[Record]:
    if fault:
        yield Rejected(position, fault)
    else:
        yield from _releases(value, position)


def _releases(value: Any, position: str) -> Iterator[Record]:
    """The releases in a package, a record or a release."""
    if type(value) is not dict:
        yield Rejected(position, "not an object")
        return
    if _is_release(value):
        yield Release(position, value)
        return
    for name in value.keys() & _LISTS:
        if type(value[name]) is not list:
            yield Rejected(position, f"{name}: expected a list")
    for number, record in enumerate(_list(value, "records")):
        yield from _releases(record, f"{position}.records[{number}]")
    releases = _list(value, "releases")
    links = sum(map(_is_link, releases))
    for number, release in enumerate(releases):
        if type(release) is not dict:
            yield Rejected(f"{position}.releases[{number}]", "not an object")
        elif not _is_link(release):
            yield Release(f"{position}.releases[{number}]", release)
    compiled = value.get("compiledRelease")
    if links == len(releases) and type(compiled) is dict:
        yield Release(f"{position}.compiledRelease", compiled)
    elif links:
        yield Skipped(links)
    elif not value.keys() & _LISTS and "compiledRelease" not in value:
        yield Skipped(1) if _is_link(value) else Release(position, value)


def _list(value: dict[str, Any], name: str) -> list[Any]:
    member = value.get(name)
    return member if type(member) is list else []


def _is_link(release: Any) -> bool:
    """A record may name its releases by address only."""
    return type(release) is dict and "url" in release and "ocid" not in release and "id" not in release


def _is_ocds(value: Any) -> bool:
    """Whether a document is of this format at all: a list may be empty, an object must look like one."""
    if type(value) is not dict:
        return type(value) is list
    return bool(value.keys() & _OCDS) and all(type(value[name]) is list for name in value.keys() & _LISTS)


def _is_part(value: Any) -> bool:
    """Whether an element of a list, or a line, looks like a package, a record, a release or a link to one."""
    return type(value) is dict and (not _OCDS.isdisjoint(value) or _is_link(value))


def _whole_number(text: str) -> int | Decimal:
    """A number of any length: Python turns only so many digits into an int."""
    return int(text) if len(text) <= _LONGEST_WHOLE else Decimal(text)


def _value(raw: bytes) -> tuple[Any, str]:
    """The value, or its fault. Bytes that are not UTF-8 are read as Windows-1252, which old portals write.
    NaN and infinities pass; the cleaning reports them."""
    try:
        return _decode(raw), _too_deep(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
    try:
        value = json.loads(text, parse_float=Decimal, parse_int=_whole_number)
        msgspec.json.encode(value)  # half a surrogate pair can be written in JSON, and in nothing else
    except UnicodeEncodeError:
        return None, "not JSON: an unpaired surrogate"
    except json.JSONDecodeError as failure:
        return None, f"not JSON: {failure.msg} at character {failure.pos}"
    except (ValueError, RecursionError):
        return None, "unreadable JSON"
    return value, _too_deep(raw)


def _too_deep(raw: bytes) -> str:
    """The fault of JSON with too many levels. Brackets are counted only if there are enough of them."""
    level = deepest = 0
    if raw.count(b"[") + raw.count(b"{") > _MOST_LEVELS:
        for token in TOKEN.findall(raw):
            level += (token in (b"[", b"{")) - (token in (b"]", b"}"))
            deepest = max(deepest, level)
    return f"nested more than {_MOST_LEVELS} levels deep" if deepest > _MOST_LEVELS else ""


def _is_lines(stream: IO[bytes], name: str) -> tuple[IO[bytes], bool]:
    """Whether it is JSON Lines, by its name or its first two lines; and the stream from its start."""
    head = stream.readline(_LONGEST_LINE)
    first = head.strip()
    if first.startswith(b"{") and first.endswith(b"}") and head.endswith(b"\n"):
        head += stream.readline(_LONGEST_LINE)
    _, _, second = head.strip().partition(b"\n")
    rest = io.BufferedReader(_Replayed(head, stream), _BUFFER)
    return rest, name.lower().endswith(_LINES) or second.startswith(b"{")


def _as_utf8(stream: IO[bytes]) -> IO[bytes]:
    """A document in any of the encodings of Unicode, as UTF-8 without a mark."""
    head = peek(stream)
    marked = ((mark, code) for mark, code in _BOMS if head.startswith(mark))
    unmarked = ((b"", code) for start, code in _UNMARKED if head.startswith(start))
    mark, encoding = next(chain(marked, unmarked), (b"", "utf-8"))
    stream.read(len(mark))
    return stream if encoding == "utf-8" else codecs.EncodedFile(stream, "utf-8", encoding, "replace")


class _Replayed(io.RawIOBase):
    """Bytes already read, and then the stream they came from."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._head or self._stream.read(len(buffer))
        self._head = chunk[len(buffer) :]
        chunk = chunk[: len(buffer)]
        buffer[: len(chunk)] = chunk
        return len(chunk)
