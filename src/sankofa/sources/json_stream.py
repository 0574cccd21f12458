"""Reads JSON of any size value by value: the members of a document, or the elements of its long lists.

Only brackets and strings are scanned. The reader decodes each value, so one bad value loses no other.
Memory holds one value and one chunk.
"""

import re
import sys
from collections.abc import Iterator
from typing import IO, NamedTuple

import msgspec

_CHUNK = 1 << 18
TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
"""A string, or a bracket."""
_STRINGS = rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"%b]*+)*+'
_PAIRS = {
    b"{": re.compile(rb'[^"{}]*+' + _STRINGS % b"{}" + rb"[{}]", re.DOTALL),
    b"[": re.compile(rb'[^"\[\]]*+' + _STRINGS % rb"\[\]" + rb"[\[\]]", re.DOTALL),
}
"""To the next bracket of a kind, past the strings on the way."""
_LOOSE = re.compile(rb'[^\s,{}\[\]"]*')
_BLANK = b" \t\r\n"
_BETWEEN = 64  # quotes, colon, comma, blanks: more between two members is not for `at_once`
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Truncated(ValueError):
    """The document ends in the middle."""


class TooLong(ValueError):
    """A value of the document is longer than is allowed."""


class JsonValue(NamedTuple):
    """The bytes of a value, and its path in the document.

    After the elements of a list, the value that contained it follows as a whole, with an empty list; its path
    is "".
    """

    path: str
    raw: bytes
    whole: bool = False


def json_values(
    stream: IO[bytes],
    lists: frozenset[str],
    chunk: int = _CHUNK,
    head: bytes = b"",
    longest: int = sys.maxsize,
) -> Iterator[JsonValue]:
    """Every value of a document. A top list, or the named lists of a top object, come element by element.

    At least `chunk` bytes are read at a time; `head` was read already. Raises Truncated, and TooLong if a
    value exceeds `longest` bytes by more than the bytes already read.
    """
    yield from _Scan(stream, lists, chunk, head, longest).json_values()


def at_once(content: bytes, lists: frozenset[str]) -> list[JsonValue] | None:
    """The same for a document in memory, three times as fast; None if the stream reader must be used."""
    try:
        if content.lstrip(_BLANK)[:1] == b"[":
            return [*_cut("", _elements(content)), JsonValue("", b"[]", whole=True)]
        members = _members(content)
        if len(content) > sum((len(raw) + len(name) + _BETWEEN for name, raw in members.items()), _BETWEEN):
            return None  # a repeated name: only the last was kept
        handed_lists = []
        for name in lists.intersection(members):
            if bytes(members[name])[:1] == b"[":
                handed_lists.append((name, _elements(members[name])))
                members[name] = msgspec.Raw(b"[]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    in_order = sorted(handed_lists, key=lambda part: list(members).index(part[0]))
    handed_out = [value for name, elements in in_order for value in _cut(name, elements)]
    return [*handed_out, JsonValue("", msgspec.json.encode(members), whole=True)]


def _cut(under: str, elements: list[msgspec.Raw]) -> Iterator[JsonValue]:
    return (JsonValue(f"{under}[{number}]", bytes(raw)) for number, raw in enumerate(elements))


class _Scan:
    def __init__(
        self, stream: IO[bytes], lists: frozenset[str], chunk: int, head: bytes, longest: int
    ) -> None:
        self._longest = max(longest, len(head))
        self._stream = stream
        self._lists = lists
        self._chunk = chunk
        self._buffer = head
        self._at = 0
        self._value_start = 0
        """Start of the value being read; bytes before it may be dropped."""

    def json_values(self) -> Iterator[JsonValue]:
        while (first := self._next_byte()) is not None:
            if first == b"[":
                self._at += 1
                yield from self._elements("")
                yield JsonValue("", b"[]", whole=True)
            elif first == b"{":
                yield from self._object()
            else:
                yield JsonValue("", self._value() if first == b'"' else self._loose(), whole=True)

    def _object(self) -> Iterator[JsonValue]:
        """The members of a top object: elements of `lists` are yielded one by one, the rest together."""
        shell = bytearray()
        last = b""
        self._value_start = self._at
        self._at += 1
        while (token := self._token()) != b"}":
            if token == b"[" and (name := last[1:-1].decode("utf-8", "replace")) in self._lists:
                shell += self._buffer[self._value_start : self._at]
                yield from self._elements(name)
                self._value_start = self._at - 1  # the closing bracket
            elif token in _PAIRS:
                self._at -= 1
                self._pass_over(token)
            else:
                last = token
        shell += self._buffer[self._value_start : self._at]
        yield JsonValue("", bytes(shell), whole=True)

    def _elements(self, under: str) -> Iterator[JsonValue]:
        """The elements of a list that was just opened, up to and with its closing bracket."""
        number = 0
        while True:
            first = self._next_byte(b",")
            if first is None:
                raise Truncated("ends in the middle of a list")
            if first == b"]":
                self._at += 1
                return
            raw = self._value() if first in (b"{", b"[", b'"') else self._loose()
            yield JsonValue(f"{under}[{number}]", raw)
            number += 1

    def _value(self) -> bytes:
        """The value that begins here: an object, a list or a text."""
        self._value_start = self._at
        first = self._buffer[self._at : self._at + 1]
        if first in _PAIRS:
            self._pass_over(first)
        else:
            self._token()
        return self._buffer[self._value_start : self._at]

    def _pass_over(self, bracket: bytes) -> None:
        """To the end of the object or list that begins here: only its own kind of bracket counts."""
        following, opening = _PAIRS[bracket].match, bracket[0]
        depth, buffer, at = 0, self._buffer, self._at
        while True:
            match = following(buffer, at)
            if match is None:
                self._at = at
                if not self._fill():
                    raise Truncated("ends in the middle of a value")
                buffer, at = self._buffer, self._at
                continue
            at = match.end()
            if buffer[at - 1] == opening:
                depth += 1
            else:
                depth -= 1
                if not depth:
                    self._at = at
                    return

    def _loose(self) -> bytes:
        """A number or a word, up to its end; or an extra bracket."""
        self._value_start = self._at
        while match := _LOOSE.match(self._buffer, self._at):
            self._at = match.end()
            if self._at < len(self._buffer) or not self._fill():
                break
        if self._at == self._value_start:
            self._at += 1
        return self._buffer[self._value_start : self._at]

    def _token(self) -> bytes:
        """The next bracket or string. Raises Truncated."""
        while True:
            match = TOKEN.search(self._buffer, self._at)
            if match is not None and match.group() != b'"':
                self._at = match.end()
                return match.group()
            # a string that continues in the next chunk, or the end of this chunk
            self._at = len(self._buffer) if match is None else match.start()
            if not self._fill():
                raise Truncated("ends in the middle of a value")

    def _next_byte(self, skipped: bytes = b"") -> bytes | None:
        """The next byte that is not blank; None at the end of the document."""
        while True:
            if self._at == len(self._buffer):
                self._value_start = self._at
                if not self._fill():
                    return None
            byte = self._buffer[self._at : self._at + 1]
            if byte not in _BLANK and byte not in skipped:
                self._value_start = self._at
                return byte
            self._at += 1

    def _fill(self) -> bool:
        """Read on, dropping bytes already used. False at the end of the document."""
        unread = self._buffer[self._value_start :]
        if len(unread) > self._longest:
            raise TooLong
        chunk = self._stream.read(max(self._chunk, len(unread)))
        self._at -= self._value_start
        self._value_start = 0
        self._buffer = unread + chunk
        return bool(chunk)
