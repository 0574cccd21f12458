"""A call of a tool: what it costs, what it reads, and the body of the answer."""

from typing import Any

from sankofa.mcp.bounded import bounded_body, call_name
from sankofa.mcp.exchange import Exchange
from sankofa.mcp.tools import Arguments, tools
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.operations.answer_cache import CachedAnswer, may_be_kept
from sankofa.operations.contract import Call
from sankofa.operations.nearest import explained_id
from sankofa.operations.service import Service


class UnknownTool(Exception):
    """There is no tool of that name: an error of the protocol, and the SDK's to write."""


class ToolCalls:
    """Performs calls of the tools against the current edition."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.tools = tools()

    async def perform(self, exchange: Exchange, name: str, arguments: Arguments) -> bytes:
        """The body REST has for the same call, as far as it fits. Raises Problem or UnknownTool."""
        service = self._service
        if exchange.failed is not None:
            raise exchange.failed
        await exchange.count(service.quotas)  # for a body that only the SDK could read
        if exchange.over_quota is not None:
            raise exchange.over_quota
        tool = self.tools.get(name)
        if tool is None:
            raise UnknownTool(name)
        if exchange.unread is not None:
            raise exchange.unread
        operation, today = tool.operation, service.today()
        try:
            read: dict[str, Any] = tool.read(arguments, today)
        except (InvalidParameter, NotFound) as problem:
            raise await explained_id(service, exchange.grant, operation, problem, arguments) from None
        with tool.translated_names():
            operation.admit(exchange.grant, read)
        call = Call(
            service.edition.get(),
            exchange.grant,
            today,
            service.cursors,
            service.edition.for_cursor,
            exchange.base_url,
            usage=exchange.usage,
        )
        budget = service.settings.mcp_answer_bytes
        question = call_name(operation, call, read, budget)
        is_kept = may_be_kept(operation, call.edition, read)
        if is_kept and (known := service.answers.get(question)) is not None:
            return known.body
        with tool.translated_names():
            body = await bounded_body(operation, call, read, budget)
        if is_kept:
            service.answers.offer(question, CachedAnswer([], body))
        return body
