"""The MCP surface: the tools, served statelessly on the official SDK at one path.

The SDK owns the protocol, in both its eras: the `initialize` handshake up to 2025-11-25 and the
self-contained requests of 2026-07-28. Ours is what is around it: who is calling, what a call costs
and the body of the answer.

See contract: MCP-2, MCP-3, MCP-4.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import mcp_types as types
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from sankofa import __version__
from sankofa.mcp.bounded import bounded_body, call_name
from sankofa.mcp.exchange import LARGEST_BODY, Exchange
from sankofa.mcp.guard import Guard, key_of
from sankofa.mcp.instructions import instructions
from sankofa.mcp.known_calls import KnownCalls, PlainCall, plain_call
from sankofa.mcp.long_calls import LONGEST_CALL, without_arguments
from sankofa.mcp.tools import Arguments, Tool, tools
from sankofa.model.errors import (
    InternalError,
    InvalidParameter,
    MethodNotAllowed,
    NotFound,
    Problem,
    StoreUnavailable,
    Unauthorized,
    problem_of,
)
from sankofa.operations.answer_cache import CachedAnswer
from sankofa.operations.contract import Call
from sankofa.operations.nearest import ID_PARAMETER, explained_id
from sankofa.operations.observing import ObservedRequest
from sankofa.operations.service import Service

Context = ServerRequestContext[Any, Request]

_log = logging.getLogger("sankofa.mcp")
_EXCHANGE: Final = "sankofa.exchange"
_ALLOW: Final = "POST, OPTIONS"
_FREE: Final = frozenset(
    (
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    )
)
_FREE_BYTES: Final = 16 * 1024
_PUBLIC_HOUR: Final = CacheHint(ttl_ms=3_600_000, scope="public")


class McpSurface:
    """An ASGI application for one path, to be called while `running()` is open."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = Guard(service.settings, service.domains)
        self._known_calls = KnownCalls()
        self._tools: Mapping[str, Tool] = tools()
        self._listing = types.ListToolsResult(tools=[tool.describe() for tool in self._tools.values()])
        server: Server[Any] = Server(
            "sankofa",
            title="Sankofa",
            version=__version__,
            instructions=instructions(service.settings),
            on_list_tools=self._list,
            on_call_tool=self._call,
            cache_hints={"tools/list": _PUBLIC_HOUR, "server/discover": _PUBLIC_HOUR},
            # No argument is mirrored in an Mcp-Param header; unset, every call would list the tools to know.
            get_tool_input_schema=lambda _name: None,
        )
        server.middleware.clear()  # OpenTelemetry only: spans nobody exports
        logging.getLogger("mcp").setLevel(logging.WARNING)  # below it, lines on every request
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=LARGEST_BODY
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """Once per process, entered and left by the task that owns the ASGI lifespan."""
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        exchange = Exchange(
            send, scope["method"], scope["path"], scope["sankofa.request_id"], self._service.settings.base_url
        )
        try:
            body = await self._admit(exchange, scope, receive)
            if body is None:
                return
            call = plain_call(scope["headers"], body) if exchange.unread is None else None
            if call is not None and await self._answered_at_once(exchange, call):
                return
            scope[_EXCHANGE] = exchange
            await self._manager.handle_request(scope, _replayed(body, receive), exchange.from_sdk)
            if call is not None:
                exchange.learn(self._known_calls, call)
        except Problem as problem:
            if isinstance(problem, Unauthorized):
                problem = await self._service.unauthorized(scope, problem)
            if problem.status >= 500:
                self._log_problem(problem, exchange)
            await exchange.refuse(problem)
        except Exception as failure:
            unexpected = problem_of(failure)
            if isinstance(unexpected, InternalError):
                _log.exception("request %s failed", exchange.request_id)
            if not exchange.answered:
                await exchange.refuse(unexpected)
        finally:
            if self._service.observe is not None:
                self._service.observe(_observed(exchange, began, scope))

    async def _admit(self, exchange: Exchange, scope: Scope, receive: Receive) -> bytes | None:
        """The body for the SDK; None where the answer is given already. Raises Problem."""
        headers = scope["headers"]
        # First: a page in a browser is told nothing, not even whether a key is good.
        site = await self._guard.check(headers)
        exchange.base_url, exchange.mcp_url = site.base_url, site.settings.public_mcp_url
        if exchange.method == "OPTIONS":
            await exchange.answer(204, [(b"allow", _ALLOW.encode())], b"")
            return None
        if exchange.method != "POST":  # the SDK would hold a GET open for ever, with nothing to say on it
            raise MethodNotAllowed(_ALLOW)
        exchange.grant = await self._service.keys.authenticate(key_of(headers))
        site.admit(exchange.grant)
        body = await exchange.read(headers, receive)
        # Counted here, whatever comes of it: the SDK refuses a malformed message without asking us.
        if len(body) > _FREE_BYTES:
            await exchange.count(self._service.quotas)
        if len(body) > LONGEST_CALL:
            body, exchange.unread = without_arguments(body)
        method = _method(body)
        if not (method in _FREE or method.startswith("notifications/")):
            await exchange.count(self._service.quotas)
        if exchange.over_quota is not None and method != "tools/call":  # which has a tool error for it
            raise exchange.over_quota
        return body

    async def _answered_at_once(self, exchange: Exchange, call: PlainCall) -> bool:
        """Whether the call was answered in an envelope known already; an error is the SDK's to write."""
        envelope, tool = self._known_calls.envelope(call), self._tools.get(call.name)
        if envelope is None or tool is None:
            return False
        try:
            body = await self._perform(exchange, tool, call.name, call.arguments)
        except Problem as problem:
            exchange.failed = problem
            return False
        await exchange.answer_at_once(envelope, call.id, body)
        return True

    async def _list(self, _ctx: Context, _params: object) -> types.ListToolsResult:
        return self._listing

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        exchange = _exchange_of(ctx)
        arguments = params.arguments or {}
        tool = self._tools.get(params.name)
        if tool is not None:
            exchange.operation = f"mcp:{params.name}"
        try:
            return exchange.tool_result(await self._perform(exchange, tool, params.name, arguments))
        except StoreUnavailable as problem:  # an HTTP answer, never a tool error (contract: MCP-3)
            self._log_problem(problem, exchange)
            exchange.refusal = problem
            return exchange.tool_error(problem, None)
        except Problem as problem:
            return exchange.tool_error(problem, None if tool is None else tool.instance(arguments))
        except MCPError:
            raise
        except Exception:  # the SDK would send its text to a client of an older revision
            _log.exception("request %s: tool %s failed", exchange.request_id, params.name)
            return exchange.tool_error(InternalError(), None)

    async def _perform(self, exchange: Exchange, tool: Tool | None, name: str, arguments: Arguments) -> bytes:
        """The body REST has for the same call, as far as it fits.

        Raises Problem, or MCPError for a tool there is not.
        """
        if exchange.failed is not None:
            raise exchange.failed
        await exchange.count(self._service.quotas)  # for a body that only the SDK could read
        if exchange.over_quota is not None:
            raise exchange.over_quota
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")
        if exchange.unread is not None:
            raise exchange.unread
        operation, today = tool.operation, self._service.today()
        try:
            read = tool.read(arguments, today)
        except (InvalidParameter, NotFound) as problem:
            given = arguments.get(ID_PARAMETER) if tool.takes_id else None
            raise await explained_id(self._service, exchange.grant, problem, given) from None
        with tool.translated_names():
            operation.admit(exchange.grant, read)
        edition = self._service.edition.get()
        service = self._service
        call = Call(
            edition,
            exchange.grant,
            today,
            service.cursors,
            service.edition.for_cursor,
            exchange.base_url,
            usage=exchange.usage,
        )
        budget = service.settings.mcp_answer_bytes
        question = call_name(operation, call, read, budget)
        if (known := service.answers.get(question)) is not None:
            return known.body
        with tool.translated_names():
            body = await bounded_body(operation, call, read, budget)
        if not operation.live and read.get("cursor") is None:
            service.answers.offer(question, CachedAnswer([], body))
        return body

    def _log_problem(self, problem: Problem, exchange: Exchange) -> None:
        _log.warning("request %s: %s: %s", exchange.request_id, problem.slug, problem.logged)


def _observed(exchange: Exchange, began: float, scope: Scope) -> ObservedRequest:
    return ObservedRequest(
        exchange.operation,
        exchange.method,
        exchange.status,
        exchange.size,
        began,
        time.perf_counter() - began,
        exchange.usage.grant if exchange.usage else None,
        exchange.problem,
        exchange.request_id,
        scope["headers"],
    )


def _exchange_of(ctx: Context) -> Exchange:
    if ctx.request is None:
        raise RuntimeError("served over HTTP only")
    exchange: Exchange = ctx.request.scope[_EXCHANGE]
    return exchange


class _Peek(msgspec.Struct):
    method: str = ""


_peek = msgspec.json.Decoder(_Peek)


def _method(body: bytes) -> str:
    """The method a message names; empty where it is no message, of which the SDK says what is wrong."""
    try:
        return _peek.decode(body).method
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body already read, then goes on with the connection."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
