"""The Model Context Protocol: reading messages and writing answers.

Each message is answered on its own; no state is kept. Clients of revisions up to 2025-11-25 start with
`initialize`. Requests of 2026-07-28 contain their version, and their header fields repeat it. See
docs/decisions/mcp.md.
"""

import json
from base64 import b64decode, b64encode
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from sankofa import __version__
from sankofa.operations.answers import Headers

NEWEST: Final = "2026-07-28"
HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions whose clients begin with `initialize`."""
SERVER: Final = {"name": "sankofa", "title": "Sankofa", "version": __version__}
_META: Final = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES = f"{_META}protocolVersion", f"{_META}clientCapabilities"
_METHOD_FIELD, _NAME_FIELD, _VERSION_FIELD = b"mcp-method", b"mcp-name", b"mcp-protocol-version"
_HANDSHAKE_FIELDS: Final = frozenset((None, *(revision.encode() for revision in HANDSHAKES)))
_FOR_AN_HOUR: Final = {"cacheScope": "public", "ttlMs": 3_600_000}
_encode: Final = msgspec.json.Encoder().encode
_SIGNED: Final = b',"_meta":%b}}' % _encode({f"{_META}serverInfo": SERVER})
P = TypeVar("P", bound="Params")

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022


class ProtocolError(Exception):
    """An error of JSON-RPC; a tool that fails answers with a result instead."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Params(msgspec.Struct, rename="camel"):
    """The parameters of a method; unknown ones are ignored."""

    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="_meta")


class _Page(Params):
    cursor: str | None = None


class CallParams(Params, kw_only=True):
    name: str
    arguments: dict[str, Any] | None = None


class _Named(msgspec.Struct):
    name: str
    version: str


class _Initialize(Params, kw_only=True):
    protocol_version: str
    capabilities: dict[str, Any]
    client_info: _Named


class _Envelope(msgspec.Struct):
    """The members of `_meta` in a request of 2026-07-28."""

    capabilities: dict[str, Any] = msgspec.field(name=_CAPABILITIES)
    client: _Named | None = msgspec.field(default=None, name=f"{_META}clientInfo")
    log_level: Literal[
        "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", None
    ] = msgspec.field(default=None, name=f"{_META}logLevel")


def decoded(body: bytes) -> Any:
    """The JSON of a body; UNSET if it has none."""
    try:
        return json.loads(body.decode())  # with bytes, it would guess the encoding, which takes longer
    except (ValueError, RecursionError):
        return msgspec.UNSET


def method_of(message: Any) -> str:
    """The method of a message; empty if the body is not a message."""
    method = message.get("method") if isinstance(message, dict) else None
    return method if isinstance(method, str) else ""


class McpRequest(NamedTuple):
    id: int | str
    method: str
    params: dict[str, Any]
    is_newest: bool
    """Whether it follows revision 2026-07-28."""

    def read(self, kind: type[P]) -> P:
        """Its parameters. Raises ProtocolError."""
        try:
            if self.is_newest:
                msgspec.convert(self.params["_meta"], _Envelope)
            return msgspec.convert(self.params, kind)
        except msgspec.ValidationError:
            raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "") from None

    def result(self, **members: object) -> bytes:
        """The answer with a result that has these members."""
        if self.is_newest:
            members = {**members, "resultType": "complete"}
        return b"".join((self._head, _encode(dict(sorted(members.items())))[1:-1], self._end))

    def tool_result(self, body: bytes) -> bytes:
        """The answer of a tool: a body of JSON as text and as structure, byte for byte."""
        kind = b'"resultType":"complete",' if self.is_newest else b""
        text = b'"content":[{"text":', _encode(body.decode()), b',"type":"text"}],"isError":false,'
        return b"".join((self._head, *text, kind, b'"structuredContent":', body, self._end))

    @property
    def _head(self) -> bytes:
        own_id = b"%d" % self.id if isinstance(self.id, int) else json.dumps(self.id).encode()
        return b'{"jsonrpc":"2.0","id":%b,"result":{' % own_id

    @property
    def _end(self) -> bytes:
        return _SIGNED if self.is_newest else b"}}"


def read_request(message: Any, headers: Headers) -> McpRequest | None:
    """The request in a message; None for a notification. Raises ProtocolError."""
    if message is msgspec.UNSET:
        raise ProtocolError(PARSE_ERROR, "Parse error")
    version = _version(headers)
    is_newest = version not in _HANDSHAKE_FIELDS
    is_envelope = isinstance(message, dict) and message.get("jsonrpc") == "2.0"
    params = message.get("params") if is_envelope else None
    if not is_envelope or not isinstance(params, (dict, type(None))) or not method_of(message):
        if is_envelope and not is_newest and {"result", "error"} & message.keys():
            return None  # an answer to a server that asks its clients
        raise ProtocolError(INVALID_REQUEST, "Body must be a single JSON-RPC request or notification object")
    if "id" not in message:
        if is_newest and version != NEWEST.encode():
            raise _unsupported(version)
        return None
    if type(message["id"]) not in (int, str):
        raise ProtocolError(INVALID_REQUEST, "The id of a request must be a whole number or text")
    request = McpRequest(message["id"], message["method"], params or {}, is_newest)
    if is_newest:
        _check_envelope(request, params, headers)
    return request


def _check_envelope(request: McpRequest, params: Any, headers: Headers) -> None:
    """Check the version and capabilities of a request, and that its header fields repeat them."""
    for own_field in (_VERSION_FIELD, _METHOD_FIELD, _NAME_FIELD):
        if sum(name == own_field for name, _ in headers) > 1:
            raise ProtocolError(HEADER_MISMATCH, f"{own_field.decode()} header appears more than once")
    meta = None if params is None else params.get("_meta")
    if not isinstance(meta, dict):
        raise ProtocolError(
            INVALID_PARAMS,
            "params._meta must be an object carrying the required "
            f"{_VERSION!r} and {_CAPABILITIES!r} envelope keys",
        )
    if missing := [name for name in (_VERSION, _CAPABILITIES) if name not in meta]:
        problem = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        raise ProtocolError(INVALID_PARAMS, problem)
    name = request.params.get("name") if request.method == "tools/call" else None
    for repeated, own, member in (
        (_VERSION_FIELD, meta[_VERSION], "request envelope's protocol version"),
        (_METHOD_FIELD, request.method, "request body's method"),
        (_NAME_FIELD, name, "request body's 'name' parameter"),
    ):
        if (own is not None or repeated != _NAME_FIELD) and _field(headers, repeated) != own:
            raise ProtocolError(HEADER_MISMATCH, f"{repeated.decode()} header does not match the {member}")
    if meta[_VERSION] != NEWEST:
        raise _unsupported(_version(headers))


def _version(headers: Headers) -> bytes | None:
    for name, value in headers:
        if name == _VERSION_FIELD:
            return value
    return None


def _unsupported(version: bytes | None) -> ProtocolError:
    data = {"supported": [NEWEST], "requested": (version or b"").decode("latin-1")}
    return ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _field(headers: Headers, name: bytes) -> str | None:
    """The value of a header field; a name may be written in base64, as `=?base64?...?=`."""
    text = next((value.decode("latin-1") for field, value in headers if field == name), None)
    if text is None or name != _NAME_FIELD or not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    payload = text[len("=?base64?") : -len("?=")]
    try:
        plain = b64decode(payload, validate=True)
        return plain.decode() if b64encode(plain).decode() == payload else None
    except ValueError:
        return None


class McpServer:
    """The methods with the same answer for everybody."""

    def __init__(self, instructions: str, tools: list[dict[str, Any]]) -> None:
        self._about = {"capabilities": {"tools": {"listChanged": False}}, "instructions": instructions}
        self._tools = msgspec.Raw(_encode(tools))

    def answer(self, request: McpRequest) -> bytes:
        """The answer to any request except a tool call. Raises ProtocolError."""
        hints = _FOR_AN_HOUR if request.is_newest else {}
        if request.method == "tools/list":
            request.read(_Page)
            return request.result(tools=self._tools, **hints)
        if request.is_newest and request.method == "server/discover":
            request.read(Params)
            return request.result(supportedVersions=[NEWEST], **self._about, **hints)
        if not request.is_newest and request.method == "ping":
            request.read(Params)
            return request.result()
        if not request.is_newest and request.method == "initialize":
            version = request.read(_Initialize).protocol_version
            agreed = version if version in HANDSHAKES else HANDSHAKES[-1]
            return request.result(protocolVersion=agreed, serverInfo=SERVER, **self._about)
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", request.method)


def error_answer(error: ProtocolError, message: Any, headers: Headers) -> tuple[int, bytes]:
    problem: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        problem["data"] = error.data
    is_request = isinstance(message, dict) and "id" in message and error.code != INVALID_REQUEST
    body = {"jsonrpc": "2.0", "id": message["id"] if is_request else None, "error": problem}
    status = 404 if error.code == METHOD_NOT_FOUND else 400
    if is_request and _version(headers) in _HANDSHAKE_FIELDS:
        status = 200
    return status, json.dumps(body, separators=(",", ":")).encode()
