"""The protocol, which the official SDK owns in both its eras: the `initialize` handshake up to 2025-11-25 and
the self-contained requests of 2026-07-28.

Importing the SDK takes longer than everything else of a worker together: `surface` loads this
module in a thread, and no other module may import it or the SDK.
"""

import logging
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.types import Receive, Scope

from sankofa import __version__
from sankofa.mcp.exchange import LARGEST_BODY, MARK, Exchange
from sankofa.mcp.tools import Tool, ToolCalls, UnknownTool, answer_schema, instructions
from sankofa.model.errors import InternalError, Problem, StoreUnavailable
from sankofa.settings import Settings

Context = ServerRequestContext[Any, Request]

_log = logging.getLogger("sankofa.mcp")
_EXCHANGE: Final = "sankofa.exchange"
_PUBLIC_HOUR: Final = CacheHint(ttl_ms=3_600_000, scope="public")


class Protocol:
    """The SDK's server, stateless, with our tools."""

    def __init__(self, settings: Settings, calls: ToolCalls) -> None:
        self._calls = calls
        self._listing = types.ListToolsResult(tools=[_described(tool) for tool in calls.tools.values()])
        server: Server[Any] = Server(
            "sankofa",
            title="Sankofa",
            version=__version__,
            instructions=instructions(settings),
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
        """Once per process, entered and left by one task."""
        return self._manager.run()

    async def answer(self, exchange: Exchange, scope: Scope, receive: Receive) -> None:
        """Have the SDK read a message and answer it through the exchange."""
        scope[_EXCHANGE] = exchange
        await self._manager.handle_request(scope, receive, exchange.from_sdk)

    async def _list(self, _ctx: Context, _params: object) -> types.ListToolsResult:
        return self._listing

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        exchange = _exchange_of(ctx)
        arguments = params.arguments or {}
        tool = self._calls.tools.get(params.name)
        if tool is not None:
            exchange.operation = f"mcp:{params.name}"
        try:
            exchange.tool_body = await self._calls.perform(exchange, params.name, arguments)
        except StoreUnavailable as problem:  # an HTTP answer, never a tool error (contract: MCP-3)
            _log.warning("request %s: %s: %s", exchange.request_id, problem.slug, problem.logged)
            exchange.refusal = problem
            return _error(exchange, problem, None)
        except Problem as problem:
            return _error(exchange, problem, None if tool is None else tool.instance(arguments))
        except UnknownTool:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}") from None
        except Exception:  # the SDK would send its text to a client of an older revision
            _log.exception("request %s: tool %s failed", exchange.request_id, params.name)
            return _error(exchange, InternalError(), None)
        return types.CallToolResult(content=[types.TextContent(text=MARK)], structured_content={MARK: 0})


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=answer_schema(tool.operation),
        # What only reads can be repeated: no hint is needed for that.
        annotations=types.ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False),
    )


def _error(exchange: Exchange, problem: Problem, instance: str | None) -> types.CallToolResult:
    """The problem as text only: clients check structuredContent against outputSchema even on an error."""
    text = exchange.fail(problem, instance)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _exchange_of(ctx: Context) -> Exchange:
    if ctx.request is None:
        raise RuntimeError("served over HTTP only")
    exchange: Exchange = ctx.request.scope[_EXCHANGE]
    return exchange
