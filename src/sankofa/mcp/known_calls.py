"""Calls of a kind that the SDK has accepted before: answered without handing them to it again.

Served statelessly, what the SDK puts around the result of a tool depends on the header fields of the message
and on its members besides `id`, tool and arguments: its `shape`. To take a message through the SDK costs ten
times what the answer does, so it is done once for each shape. The envelope it wrote is kept,
and the next call of that shape goes into it. Anything unusual, and every error, is the SDK's to answer.
"""

from typing import Any, Final, NamedTuple

import msgspec

from sankofa.edition.read.edition import BoundedCache
from sankofa.operations.answers import Headers

_MOST: Final = 512
_MOST_ANSWERS: Final = 64
_LONGEST_SHAPE: Final = 4096
_LARGEST_ID: Final = 2**53
_NAME_FIELD: Final = b"mcp-name"
_OF_NO_MATTER: Final = frozenset(
    (
        *(b"host", b"x-api-key", b"authorization", b"content-length", b"user-agent", b"connection"),
        *(b"accept-encoding", b"accept-language", b"origin", b"referer", _NAME_FIELD),
    )
)
"""Header fields that are ours to read, or nobody's: the SDK's answer is the same whatever they say."""


class _Params(msgspec.Struct, rename={"meta": "_meta"}, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | None = None
    meta: msgspec.Raw = msgspec.Raw(b"")


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: str
    id: int | str
    method: str
    params: _Params


_read: Final = msgspec.json.Decoder(_Message).decode


class PlainCall(NamedTuple):
    """A call of a tool without anything unusual."""

    shape: tuple[object, ...]
    id: bytes
    """As JSON."""
    name: str
    arguments: dict[str, Any]


class Envelope(NamedTuple):
    """What the SDK wrote around a result: the pieces before and after the id, the text and the structure."""

    before_id: bytes
    before_text: bytes
    before_structure: bytes
    end: bytes


def plain_call(headers: Headers, body: bytes) -> PlainCall | None:
    """The call in a message; None where it is another message, or one only the SDK should read."""
    try:
        message = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    params = message.params
    if message.method != "tools/call" or message.jsonrpc != "2.0" or not _is_plain_id(message.id):
        return None
    named = [value for name, value in headers if name == _NAME_FIELD]
    if named not in ([], [params.name.encode()]):
        return None
    arguments = params.arguments or {}
    if not all(_is_plain(value) for value in arguments.values()):
        return None
    shape = (*[field for field in headers if field[0] not in _OF_NO_MATTER], bool(named), bytes(params.meta))
    return PlainCall(shape, msgspec.json.encode(message.id), params.name, arguments)


def _is_plain_id(value: int | str) -> bool:
    if isinstance(value, int):
        return abs(value) < _LARGEST_ID
    return len(value) <= 64 and value.isascii() and value.isprintable() and not {'"', "\\"} & set(value)


def _is_plain(value: object) -> bool:
    """Whether every reader of JSON has the same value for it: no fraction, and no number beyond 2^53."""
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) < _LARGEST_ID)


class _FreeMessage(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: str
    id: int | str
    method: str
    params: msgspec.Raw = msgspec.Raw(b"")


_read_free: Final = msgspec.json.Decoder(_FreeMessage).decode


class PlainMessage(NamedTuple):
    """A message whose answer depends on nothing but itself: a handshake, a ping, a list."""

    shape: tuple[object, ...]
    id: bytes
    """As JSON."""


def plain_message(headers: Headers, body: bytes, methods: frozenset[str]) -> PlainMessage | None:
    """The message where it is plain and of one of these methods; else only the SDK should read it."""
    try:
        message = _read_free(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if message.method not in methods or message.jsonrpc != "2.0" or not _is_plain_id(message.id):
        return None
    fields = [field for field in headers if field[0] not in _OF_NO_MATTER]
    return PlainMessage((*fields, message.method, bytes(message.params)), msgspec.json.encode(message.id))


class KnownAnswers:
    """What the SDK answered to plain messages, around their ids."""

    def __init__(self) -> None:
        self._answers: BoundedCache[tuple[object, ...], tuple[bytes, bytes]] = BoundedCache(_MOST_ANSWERS)

    def answer(self, message: PlainMessage) -> bytes | None:
        known = self._answers.get(message.shape)
        return None if known is None else message.id.join(known)

    def learn(self, message: PlainMessage, answer: bytes) -> None:
        name = b'"id":' + message.id
        if answer.count(name) != 1 or b'"result":' not in answer or len(repr(message.shape)) > _LONGEST_SHAPE:
            return
        before, _, behind = answer.partition(name)
        self._answers.put(message.shape, (before + b'"id":', behind))


class KnownCalls:
    """The envelopes by shape."""

    def __init__(self) -> None:
        self._envelopes: dict[tuple[object, ...], Envelope] = {}

    def envelope(self, call: PlainCall) -> Envelope | None:
        return self._envelopes.get(call.shape)

    def learn(self, call: PlainCall, answer: bytes, text: bytes, structure: bytes) -> None:
        """Keep what the SDK wrote for a call, given what stands in it for the text and for the structure."""
        name = b'"id":' + call.id
        before_structure, structure_mark, end = answer.partition(structure)
        before_text, text_mark, before_structure = before_structure.partition(text)
        before_id, id_mark, before_text = before_text.partition(name)
        once = answer.count(name) == 1 and answer.count(structure) == 1
        if not (once and structure_mark and text_mark and id_mark):
            return  # the places are in another order: left to the SDK for good
        if len(repr(call.shape)) > _LONGEST_SHAPE:
            return
        if len(self._envelopes) >= _MOST:
            self._envelopes.clear()
        self._envelopes[call.shape] = Envelope(before_id + b'"id":', before_text, before_structure, end)
