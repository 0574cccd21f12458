"""The MCP surface: the tools at one path, under the keys, quotas and locks of REST.

See contract: MCP-2 to MCP-4.
"""

import logging
from datetime import date
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from sankofa.access.domains import Domains, Site
from sankofa.access.keys import presented_key
from sankofa.access.tiers import Grant
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.mcp.messages import (
    INVALID_PARAMS,
    CallParams,
    McpRequest,
    McpServer,
    ProtocolError,
    decoded,
    error_answer,
    method_of,
    read_request,
)
from sankofa.mcp.tools import Arguments, Tool, bounded_body, instructions, tools
from sankofa.model.errors import (
    BadRequest,
    InternalError,
    InvalidParameter,
    MethodNotAllowed,
    NotFound,
    Problem,
    RateLimited,
    StoreUnavailable,
)
from sankofa.model.limits import limit
from sankofa.operations.answers import (
    JSON,
    NO_STORE,
    PRIVATE,
    PROBLEM_JSON,
    RESOURCE_METADATA,
    CachedAnswer,
    Headers,
    problem_body,
    problem_headers,
    weights_in,
)
from sankofa.operations.contract import Call
from sankofa.operations.locked import AT, explained, locked, narrower
from sankofa.operations.nearest import explained_id
from sankofa.operations.service import (
    ContentTooLarge,
    Exchange,
    Receive,
    Response,
    Scope,
    Send,
    Service,
    check_request,
    read_body,
)
from sankofa.settings import Settings, listed

_log = logging.getLogger("sankofa.mcp")
_ALLOW: Final = "POST, OPTIONS"
_CALL: Final = "tools/call"
_FREE: Final = frozenset(
    "initialize server/discover ping tools/list prompts/list resources/list resources/templates/list".split()
)
_FREE_BYTES: Final = limit("uncounted MCP message", 16 * 1024, "bytes", "it counts as a request")


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
    return not weights_in(accept).keys().isdisjoint(_ACCEPTED)


_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_ANY = "*"


class Guard:
    """The allowed hosts and origins. A host without a port means every port."""

    def __init__(self, settings: Settings, domains: Domains) -> None:
        self._domains = domains
        allowed = listed(settings.mcp_allowed_hosts.lower())
        own_urls = (settings.base_url, settings.public_mcp_url)
        own_hosts = (_without_port(urlsplit(url).netloc.rpartition("@")[2].lower()) for url in own_urls)
        self._hosts = frozenset((*_LOCAL, *own_hosts, *(name.removesuffix(":*") for name in allowed)))
        named = (origin.rstrip("/") for origin in listed(settings.mcp_allowed_origins.lower()))
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


def _without_port(authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdigit() else authority


LARGEST_BODY: Final = limit("MCP message", 512 * 1024, "bytes", "413")
_BODY_SECONDS: Final = limit("time for the body of an MCP message", 10.0, "seconds", "408")


class McpExchange(Exchange):
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


class McpSurface:
    """An ASGI application for one path."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = Guard(service.settings, service.domains)
        self._tools = tools()
        described = [tool.described() for tool in self._tools.values()]
        self._server = McpServer(instructions(service.settings), described)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = McpExchange(self._service, scope)
        try:
            response = await self._answer(exchange, receive)
        except Exception as failure:
            response = exchange.refuse(await self._service.refusal(failure, scope, exchange.request_id))
        await exchange.answer(response, receive, send)

    async def _answer(self, exchange: McpExchange, receive: Receive) -> Response:
        """Raises Problem for what HTTP refuses."""
        headers = exchange.scope["headers"]
        await self._admit(exchange)
        if exchange.method == "OPTIONS":
            return exchange.reply(204, [(b"allow", _ALLOW.encode())])
        message = await self._counted_message(exchange, await exchange.read(receive))
        check_content(headers)
        try:
            request = read_request(message, headers)
            if request is None:  # a notification
                return exchange.reply(202, [])
            call = request.method == _CALL
            body = await self._call(exchange, request) if call else self._server.answer(request)
        except ProtocolError as error:
            status, body = error_answer(error, message, headers)
            return exchange.reply(status, [JSON], body)
        return exchange.reply(200, [JSON, *exchange.tool_headers], body)

    async def _admit(self, exchange: McpExchange) -> None:
        """Check the head of a request and its key. Raises Problem."""
        head = check_request(exchange.scope)
        # First: a foreign page must learn nothing, not even whether a key is valid.
        site = await self._guard.check(head.host.lower(), exchange.scope["headers"])
        prefix = "" if exchange.at is None else f"/at/{exchange.at}"
        exchange.base_url, exchange.mcp_url = site.base_url + prefix, site.settings.public_mcp_url
        if exchange.method == "OPTIONS":
            return
        if exchange.method != "POST":
            raise MethodNotAllowed(_ALLOW)
        key = presented_key(head.keys, head.authorizations)
        exchange.grant = await self._service.keys.authenticate(key)
        site.admit(exchange.grant)

    async def _counted_message(self, exchange: McpExchange, body: bytes) -> object:
        """The JSON of a body. Every message is counted, except small known ones."""
        if len(body) > _FREE_BYTES:
            await exchange.count()
        message = decoded(body)
        method = method_of(message)
        if not (method in _FREE or method.startswith("notifications/")):
            await exchange.count()
        if exchange.over_quota is not None and method != _CALL:  # a call gets a tool error instead
            raise exchange.over_quota
        return message

    async def _call(self, exchange: McpExchange, request: McpRequest) -> bytes:
        """The answer to a call of a tool. Raises ProtocolError, or StoreUnavailable for a 503 over HTTP."""
        params = request.read(CallParams)
        tool = self._tools.get(params.name)
        if tool is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        exchange.operation = f"mcp:{params.name}"
        arguments: Arguments = params.arguments or {}
        instance = None
        try:
            body = await self._performed(exchange, tool, arguments)
        except StoreUnavailable:
            raise
        except Problem as failure:
            problem, instance = failure, tool.instance(arguments)
        except Exception:
            _log.exception("request %s: tool %s failed", exchange.request_id, params.name)
            problem = InternalError()
        else:
            return await in_thread_if_large(len(body), request.tool_result, body)
        # As text only: clients check structuredContent against outputSchema even on an error.
        text = exchange.fail(problem, instance)
        return request.result(content=[{"text": text, "type": "text"}], isError=True)

    async def _performed(self, exchange: McpExchange, tool: Tool, arguments: Arguments) -> bytes:
        """The REST body for the same call, as far as it fits. Raises Problem."""
        service = self._service
        if exchange.over_quota is not None:
            raise exchange.over_quota
        operation, now = tool.operation, service.clock()
        lock = narrower(exchange.at, exchange.grant, now)
        today = lock or now.date()
        try:
            read: dict[str, Any] = tool.read(arguments, today, exchange.grant)
        except (InvalidParameter, NotFound) as problem:
            refusal = await explained_id(service, exchange.grant, operation, problem, arguments, lock)
            raise explained(refusal, lock) from None
        call = Call(
            locked(service.edition.get(), lock),
            exchange.grant,
            today,
            service.cursors,
            service.edition.for_cursor,
            exchange.base_url,
            usage=exchange.usage,
        )
        budget = service.settings.mcp_answer_bytes
        grant = call.grant
        limits = grant.sample, grant.row_cap, budget
        question = operation.name, call.edition.id, today, *limits, call.base_url, *read.values()
        is_cacheable = not operation.live and read.get("cursor") is None
        if is_cacheable and (known := service.answers.get(question)) is not None:
            return known.body
        try:
            body = await bounded_body(operation, call, read, budget)
        except InvalidParameter as problem:
            raise tool.translated(problem) from None
        if is_cacheable:
            service.answers.offer(question, CachedAnswer([], body))
        return body
