"""The MCP surface: the tools at one path, under the keys, quotas and locks of REST.

See contract: MCP-2 to MCP-4.
"""

import logging
from typing import Final

from sankofa.access.keys import presented_key
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.mcp.exchange import Guard, McpExchange, check_content
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
from sankofa.mcp.tools import Arguments, ToolCalls, instructions
from sankofa.model.errors import InternalError, MethodNotAllowed, Problem, StoreUnavailable
from sankofa.model.limits import limit
from sankofa.operations.answers import JSON
from sankofa.operations.service import Receive, Response, Scope, Send, Service, check_request

_log = logging.getLogger("sankofa.mcp")
_ALLOW: Final = "POST, OPTIONS"
_CALL: Final = "tools/call"
_FREE: Final = frozenset(
    "initialize server/discover ping tools/list prompts/list resources/list resources/templates/list".split()
)
_FREE_BYTES: Final = limit("uncounted MCP message", 16 * 1024, "bytes", "it counts as a request")


class McpSurface:
    """An ASGI application for one path."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = Guard(service.settings, service.domains)
        self._calls = ToolCalls(service)
        described = [tool.described() for tool in self._calls.tools.values()]
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
        tool = self._calls.tools.get(params.name)
        if tool is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        exchange.operation = f"mcp:{params.name}"
        arguments: Arguments = params.arguments or {}
        instance = None
        try:
            body = await self._calls.perform(exchange, tool, arguments)
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
