"""Which other sites' pages a browser lets call this service (contract: CORS-1).

Off unless SANKOFA_CORS_ORIGINS names origins. This decides only what a browser may show to a page: calls
still need a key, and cookies are never sent.
"""

from collections.abc import Awaitable, MutableMapping
from typing import Any, Final

from sankofa.operations.answers import Headers
from sankofa.operations.service import Application, Receive, Scope, Send
from sankofa.settings import ANY_ORIGIN

_METHODS: Final = b"GET, HEAD, POST, OPTIONS"
_REQUEST_FIELDS: Final = ", ".join(
    (
        *("X-API-Key", "Authorization", "Accept", "Content-Type", "X-Edition"),
        *("If-None-Match", "If-Match", "If-Range", "Range"),
        *("MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID"),
    )
).encode()
_RESPONSE_FIELDS: Final = ", ".join(
    (
        *("ETag", "Link", "RateLimit", "RateLimit-Policy", "Retry-After", "WWW-Authenticate", "Allow"),
        *("X-Service-API-Version", "X-Request-Id", "X-Upgrade-URL", "Deprecation", "Sunset"),
        *("Accept-Ranges", "Content-Range", "Content-Length", "Content-Disposition", "Mcp-Session-Id"),
        *("X-License", "X-Edition", "X-Count", "X-Truncated", "X-As-Of", "X-Next-Cursor"),
    )
).encode()
_ALLOW_ORIGIN: Final = b"access-control-allow-origin"
_SECONDS: Final = b"7200"


class Cors:
    """An ASGI application in front of another: adds the CORS header fields."""

    def __init__(self, inner: Application, origins: frozenset[str]) -> None:
        self._inner = inner
        self._any = ANY_ORIGIN in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        origin = asked = b""
        for name, value in scope["headers"]:
            if name == b"origin":
                origin = value
            elif name == b"access-control-request-method":
                asked = value
        fields = self._fields(origin, is_preflight=bool(asked) and scope["method"] == "OPTIONS")

        async def with_fields(message: MutableMapping[str, Any]) -> None:
            # Open files are open to every page; they set their own header fields.
            if message["type"] == "http.response.start" and _ALLOW_ORIGIN not in dict(message["headers"]):
                message = {**message, "headers": [*message["headers"], *fields]}
            await send(message)

        return self._inner(scope, receive, with_fields)

    def _fields(self, origin: bytes, *, is_preflight: bool) -> Headers:
        vary: Headers = [] if self._any else [(b"vary", b"Origin")]
        if not origin or not (self._any or origin.lower() in self._origins):
            return vary
        fields = [*vary, (_ALLOW_ORIGIN, b"*" if self._any else origin)]
        if not is_preflight:
            return [*fields, (b"access-control-expose-headers", _RESPONSE_FIELDS)]
        return [
            *fields,
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _REQUEST_FIELDS),
            (b"access-control-max-age", _SECONDS),
        ]
