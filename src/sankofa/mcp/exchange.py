"""One HTTP request to the MCP endpoint: the checks before reading its message, its body and its answer."""

from datetime import date
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from sankofa.access.domains import Domains, Site
from sankofa.access.tiers import Grant
from sankofa.model.errors import BadRequest, Problem, RateLimited
from sankofa.model.limits import limit
from sankofa.operations.answers import (
    NO_STORE,
    PRIVATE,
    PROBLEM_JSON,
    RESOURCE_METADATA,
    Headers,
    problem_body,
    problem_headers,
)
from sankofa.operations.locked import AT
from sankofa.operations.service import ContentTooLarge, Exchange, Receive, Response, Scope, Service, read_body
from sankofa.settings import Settings


class OriginNotAllowed(Problem):
    """403: a page of an origin the operator did not allow is calling."""

    status, slug, title = 403, "origin-not-allowed", "Origin not allowed"


class NotAcceptable(Problem):
    """406: MCP answers in JSON, which the client does not accept."""

    status, slug, title = 406, "not-acceptable", "Not acceptable"


class MisdirectedRequest(Problem):
    """421: the request names a host that this server does not answer to."""

    status, slug, title = 421, "misdirected-request", "Misdirected request"


_ACCEPTED: Final = ("*/*", "application/*", "application/json")


def check_content(headers: Headers) -> None:
    """Raises BadRequest or NotAcceptable unless the client sends and accepts JSON."""
    fields = dict(headers)
    if not fields.get(b"content-type", b"").lower().startswith(b"application/json"):
        raise BadRequest("Invalid Content-Type header")
    if not _accepts_json(fields.get(b"accept", b"")):
        raise NotAcceptable("Accept application/json.")


@lru_cache(maxsize=64)
def _accepts_json(accept: bytes) -> bool:
    kinds = accept.decode("latin-1").lower().split(",")
    return any(kind.partition(";")[0].strip() in _ACCEPTED for kind in kinds)


_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_ANY = "*"


class Guard:
    """The allowed hosts and origins. A host without a port means every port."""

    def __init__(self, settings: Settings, domains: Domains) -> None:
        self._domains = domains
        allowed = _listed(settings.mcp_allowed_hosts)
        own_hosts = (_host_of(url) for url in (settings.base_url, settings.public_mcp_url))
        self._hosts = frozenset((*_LOCAL, *own_hosts, *(name.removesuffix(":*") for name in allowed)))
        named = (origin.rstrip("/") for origin in _listed(settings.mcp_allowed_origins))
        self._origins = frozenset(named) | settings.cors_allowed()

    async def check(self, host: bytes, headers: Headers) -> Site:
        """The site of the request. Raises MisdirectedRequest or OriginNotAllowed.

        A customer's domain is a name of this server, and its own pages may ask. No Origin means no browser.
        """
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


def _listed(text: str) -> list[str]:
    return [part.strip().lower() for part in text.split(",") if part.strip()]


def _host_of(url: str) -> str:
    return _without_port(urlsplit(url).netloc.rpartition("@")[2].lower())


def _without_port(authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdigit() else authority


LARGEST_BODY: Final = limit("MCP message", 512 * 1024, "bytes", "413")
_BODY_SECONDS: Final = limit("time for the body of an MCP message", 10.0, "seconds", "408")


class McpExchange(Exchange):
    """One HTTP request to the MCP endpoint and its answer."""

    grant: Grant

    def __init__(self, service: Service, scope: Scope) -> None:
        super().__init__(service, scope, "mcp")
        self.method: str = scope["method"]
        self.at: date | None = scope.get(AT)
        """The day that the address is locked to."""
        self.path = scope["path"] if self.at is None else f"/at/{self.at}{scope['path']}"
        self.base_url = self.mcp_url = service.settings.base_url
        self.over_quota: RateLimited | None = None
        self.tool_headers: Headers = []
        self.body_read = False

    async def read(self, receive: Receive) -> bytes:
        """The whole body; not read if its announced length is too large. Raises Problem."""
        headers = self.scope["headers"]
        announced = next((value for name, value in headers if name == b"content-length"), b"0")
        if not announced.isdigit() or len(announced) > 18 or int(announced) > LARGEST_BODY:
            raise ContentTooLarge(LARGEST_BODY)
        body = await read_body(receive, LARGEST_BODY, _BODY_SECONDS)
        self.body_read = True
        return body

    async def count(self) -> None:
        """Charge the call to the key, once. Raises StoreUnavailable."""
        if self.usage is None:
            self.usage, self.over_quota = await self.service.quotas.count(self.grant)

    def fail(self, problem: Problem, instance: str | None) -> str:
        """The problem as the text of a tool error, with its header fields."""
        self.tool_headers = problem_headers(problem)
        self.problem = problem.slug
        return problem_body(problem, self.base_url, instance or self.path, self.request_id).decode()

    def refuse(self, problem: Problem) -> Response:
        """A problem as an HTTP answer instead of a tool result."""
        self.problem = problem.slug
        body = problem_body(problem, self.base_url, self.path, self.request_id)
        metadata = f"{self.mcp_url}{RESOURCE_METADATA}{self.path}"
        return self.reply(problem.status, [PROBLEM_JSON, *problem_headers(problem, metadata)], body)

    def reply(self, status: int, headers: Headers, body: bytes = b"") -> Response:
        counted = [NO_STORE] if self.usage is None else [PRIVATE, *self.usage.headers]
        return Response(status, [*headers, *counted], body)
