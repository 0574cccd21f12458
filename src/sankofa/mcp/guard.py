"""Messages that do not go through the MCP SDK: those refused, those too long, and those answered before."""

from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from sankofa.access.domains import Domains, Site
from sankofa.access.keys import presented_key
from sankofa.edition.read.bounded_cache import BoundedCache
from sankofa.model.errors import BadRequest, InternalError, InvalidParameter, Problem
from sankofa.model.limits import limit
from sankofa.operations.answers import Headers
from sankofa.settings import Settings


class OriginNotAllowed(Problem):
    """403: a page of an origin the operator did not allow is calling."""

    status, slug, title = 403, "origin-not-allowed", "Origin not allowed"


class NotAcceptable(Problem):
    """406: MCP is answered in JSON, which the client does not accept."""

    status, slug, title = 406, "not-acceptable", "Not acceptable"


class RequestTimeout(Problem):
    """408: the body did not arrive in time."""

    status, slug, title = 408, "request-timeout", "Request timeout"


class ContentTooLarge(Problem):
    """413: no message to this server is that long."""

    status, slug, title = 413, "content-too-large", "Content too large"


class MisdirectedRequest(Problem):
    """421: the request names a host this server does not answer to."""

    status, slug, title = 421, "misdirected-request", "Misdirected request"


_BY_STATUS: Final[dict[int, type[Problem]]] = {kind.status: kind for kind in (BadRequest, NotAcceptable)}
_DETAIL: Final = {406: "Accept application/json."}


def refusal_of_the_sdk(status: int, text: str) -> Problem:
    """A problem for what the SDK refuses with an HTTP status and at most a line of text."""
    kind = _BY_STATUS.get(status)
    return InternalError() if kind is None else kind(text or _DETAIL.get(status, kind.title))


_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_ANY = "*"


class Guard:
    """The allowed hosts and origins. A host without a port stands for every port."""

    def __init__(self, settings: Settings, domains: Domains) -> None:
        self._domains = domains
        allowed = _listed(settings.mcp_allowed_hosts)
        own_hosts = (_host_of(url) for url in (settings.base_url, settings.public_mcp_url))
        self._hosts = frozenset((*_LOCAL, *own_hosts, *(name.removesuffix(":*") for name in allowed)))
        named = (origin.rstrip("/") for origin in _listed(settings.mcp_allowed_origins))
        self._origins = frozenset(named) | settings.cors_allowed()

    async def check(self, headers: Headers) -> Site:
        """The site of the request. Raises MisdirectedRequest or OriginNotAllowed.

        A customer's domain is a name of this server, and its own pages may ask. No Origin means no browser.
        """
        host = next(value for name, value in headers if name == b"host" and value).lower()
        site = await self._domains.site(host)
        if site.keys is None and _ANY not in self._hosts and not self._is_own_host(host.decode("latin-1")):
            raise MisdirectedRequest("MCP does not answer to that Host; see SANKOFA_MCP_ALLOWED_HOSTS.")
        for origin in (value.decode("latin-1").lower() for name, value in headers if name == b"origin"):
            if _ANY in self._origins or origin in self._origins:
                continue
            if origin == site.base_url:
                continue
            scheme, _, authority = origin.partition("://")
            if scheme not in ("http", "https") or not self._is_own_host(authority):
                raise OriginNotAllowed("MCP does not answer to that Origin; see SANKOFA_MCP_ALLOWED_ORIGINS.")
        return site

    def _is_own_host(self, authority: str) -> bool:
        return authority in self._hosts or _without_port(authority) in self._hosts


def key_of(headers: Headers) -> str:
    """The key of a request. Raises Unauthorized for none, or for more than one."""
    return presented_key(_texts(headers, b"x-api-key"), _texts(headers, b"authorization"))


def _texts(headers: Headers, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def _listed(text: str) -> list[str]:
    return [part.strip().lower() for part in text.split(",") if part.strip()]


def _host_of(url: str) -> str:
    return _without_port(urlsplit(url).netloc.rpartition("@")[2].lower())


def _without_port(authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdigit() else authority


LONGEST_CALL: Final = limit(
    "MCP call of a tool", 64 * 1024, "bytes", "400, naming the longest argument of a call"
)
"""Five times the longest question that any tool takes."""
_LONGEST_NAME: Final = 64


class _LongParams(msgspec.Struct, rename={"meta": "_meta"}, omit_defaults=True):
    name: str
    arguments: dict[str, msgspec.Raw] | None = None
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _LongCall(msgspec.Struct):
    jsonrpc: msgspec.Raw
    id: msgspec.Raw
    method: str
    params: _LongParams


_read_long = msgspec.json.Decoder(_LongCall).decode


def without_arguments(body: bytes) -> tuple[bytes, InvalidParameter]:
    """The message for the SDK, and what is wrong with it.

    Raises ContentTooLarge for a message that is no call, BadRequest for what is none at all.
    """
    try:
        call = _read_long(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BadRequest("Not a call of a tool, and too long for any other message.") from None
    if call.method != "tools/call" or not call.params.arguments:
        raise ContentTooLarge(f"A message of at most {LONGEST_CALL} bytes is accepted.")
    name, _ = max(
        call.params.arguments.items(), key=lambda argument: len(argument[0]) + len(bytes(argument[1]))
    )
    call.params.arguments = None
    label = (
        name if name.isascii() and name.isprintable() and 0 < len(name) <= _LONGEST_NAME else "(an argument)"
    )
    return msgspec.json.encode(call), InvalidParameter(label, "longer than anything a tool takes")


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


class _PlainParams(msgspec.Struct, rename={"meta": "_meta"}, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | None = None
    meta: msgspec.Raw = msgspec.Raw(b"")


class _PlainCallMessage(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: str
    id: int | str
    method: str
    params: _PlainParams


_read_call: Final = msgspec.json.Decoder(_PlainCallMessage).decode


class PlainCall(NamedTuple):
    """A call of a tool without anything unusual."""

    shape: tuple[object, ...]
    id: bytes
    """As JSON."""
    name: str
    arguments: dict[str, Any]


class Envelope(NamedTuple):
    """The SDK's text around a result: the parts before and after the id, the text and the structure."""

    before_id: bytes
    before_text: bytes
    before_structure: bytes
    end: bytes


def plain_call(headers: Headers, body: bytes) -> PlainCall | None:
    """The call in a message; None if it is another message, or one only the SDK should read."""
    try:
        message = _read_call(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    params = message.params
    if message.method != "tools/call" or message.jsonrpc != "2.0" or not _is_plain_id(message.id):
        return None
    named = [value for name, value in headers if name == _NAME_FIELD]
    if named not in ([], [params.name.encode()]):
        return None
    arguments = params.arguments or {}
    if not all(map(_is_plain, arguments.values())):
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
    """The SDK's answers to plain messages, around their ids."""

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
