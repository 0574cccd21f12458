"""Tool answers that fit an agent: at most so many bytes of JSON, the rest a cursor away (contract: MCP-9).

The rows are those that the endpoint gives for a smaller `limit`, so what does not fit is never put together.
Where the rows of the call itself fit, the answer is the endpoint's, byte for byte.
"""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sankofa.edition.read.edition import Selection
from sankofa.mcp.exchange import Exchange
from sankofa.mcp.tools import Arguments, tools
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.operations.answers import CachedAnswer, envelope, may_be_kept
from sankofa.operations.contract import Answer, Call, Operation
from sankofa.operations.locked import explained, locked, narrower, perform
from sankofa.operations.nearest import explained_id
from sankofa.operations.service import Service

_SMALLEST_ROW: Final = 150
"""Bytes that a row has at the least: it names its source, its licence and its time."""
_CURSOR: Final = 256
"""Bytes kept free for a cursor, which is not known before the rows are; one that is longer costs a row."""
_raws: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Placed(msgspec.Struct):
    """The REST address of a release."""

    country: str = ""
    release_date: str = ""
    ocid: str = ""


async def bounded_body(operation: Operation, call: Call, arguments: dict[str, Any], budget: int) -> bytes:
    """The body of a tool's answer. Raises what the operation raises."""
    if "limit" not in operation.parameters:  # one record, or a few: never cut
        answer = await perform(operation, call, arguments)
        body = envelope(answer, call.edition, operation)
        too_large = operation.agent.compact is not None and len(body) > budget
        return _one_row(operation, call, answer, budget) if too_large else body
    asked: int | None = arguments["limit"]
    limit = asked if call.grant.sample else _at_most(operation, asked, budget // _SMALLEST_ROW)
    answer = await perform(operation, call, {**arguments, "limit": limit})
    selection = answer.selection
    size = sum(map(len, selection.slices))
    if size <= budget and (limit == asked or not selection.truncated):
        body = envelope(answer, call.edition, operation)
        if len(body) <= budget:
            return body
    hint = _hint(operation, call, budget)
    room = budget - len(_body(operation, call, replace(answer, selection=_NOTHING), hint)) - _CURSOR
    if _takes_overflow(operation, arguments):
        arguments = {**arguments, **operation.agent.overflow}
        # A guess from the rows of the other order, a little short: one too many costs a second reading.
        rows = max(1, room * selection.count * 97 // (max(size, 1) * 100))
        answer = await perform(operation, call, {**arguments, "limit": rows})
    rows = _rows_within(answer.selection, room)
    return await _cut(operation, call, {**arguments, "limit": rows}, answer, budget)


def call_name(operation: Operation, call: Call, arguments: dict[str, Any], budget: int) -> tuple[object, ...]:
    """All that the answer to a call depends on."""
    grant = call.grant
    own = (operation.name, call.edition.id, call.today, grant.sample, grant.row_cap, budget, call.base_url)
    return (*own, *arguments.values())


_NOTHING: Final = Selection((), 0, truncated=False)


def _at_most(operation: Operation, asked: int | None, most: int) -> int | None:
    """The `limit` to ask with: no more rows than can fit, where the endpoint would give more."""
    if asked is None:
        return most if operation.parameters["limit"].all_by_default else None
    return min(asked, most)


def _takes_overflow(operation: Operation, arguments: dict[str, Any]) -> bool:
    """Whether the rows to begin with are the tool's to choose: nothing in the call says which."""
    free = (*operation.agent.overflow, "limit", "cursor")
    return bool(operation.agent.overflow) and all(arguments.get(name) is None for name in free)


def _rows_within(selection: Selection, room: int) -> int:
    """How many of the rows fit into so many bytes."""
    if sum(map(len, selection.slices)) + selection.count <= room:
        return selection.count
    rows = 0
    for size in _sizes(selection):
        room -= size + 1
        if room < 0:
            break
        rows += 1
    return rows


def _sizes(selection: Selection) -> Iterator[int]:
    """The bytes of each row."""
    if len(selection.slices) == selection.count:
        yield from map(len, selection.slices)
        return
    for piece in selection.lists():
        yield from (len(bytes(row)) for row in _raws(piece))


async def _cut(
    operation: Operation, call: Call, arguments: dict[str, Any], answer: Answer, budget: int
) -> bytes:
    """The answer with as many rows as fit; with one, however large, if none does."""
    rows: int = arguments["limit"]
    while True:
        if rows != answer.selection.count:
            answer = await perform(operation, call, {**arguments, "limit": max(rows, 1)})
        usable = answer.members.get("next_cursor") is not None
        body = _body(operation, call, answer, _hint(operation, call, budget, usable=usable))
        if len(body) <= budget:
            return body
        if rows <= 1:
            return _one_row(operation, call, answer, budget)
        rows -= 1 + rows * (len(body) - budget) // len(body)


def _one_row(operation: Operation, call: Call, answer: Answer, budget: int) -> bytes:
    """A row that alone is too large, without the part that makes it so, and where the whole of it is."""
    shrink = operation.agent.compact
    row = next(answer.selection.lists())[1:-1]
    if shrink is None:
        return _body(operation, call, answer, _hint(operation, call, budget))
    placed = msgspec.json.decode(row, type=_Placed)
    selection = replace(answer.selection, slices=(shrink(row),), between=b",", slices_per_row=1)
    rest = f"{call.base_url}{operation.path}?country={placed.country}&from={placed.release_date[:10]}"
    if "{ocid}" in operation.path:
        rest = f"{call.base_url}{operation.path.format(ocid=quote(placed.ocid, safe=''))}"
    hint = f"The whole of this row is larger than {budget:,} bytes: GET {rest} over REST has it."
    return _body(operation, call, replace(answer, selection=selection), hint)


def _hint(operation: Operation, call: Call, budget: int, *, usable: bool = True) -> str:
    """One sentence: what is missing, and how to have it."""
    names = " or ".join(f"`{name}`" for name in operation.agent.narrow_by) or "`limit`"
    left_out = f"Rows beyond {budget:,} bytes are left out"
    if usable:
        return f"{left_out}: pass `next_cursor` as `cursor` for the rest, or narrow by {names}."
    if call.grant.sample and "cursor" in operation.parameters:
        up = call.grant.upgrade_url
        return f"{left_out}: narrow by {names}, or walk on by cursor with a paid key ({up})."
    return f"{left_out}: narrow by {names}."


def _body(operation: Operation, call: Call, answer: Answer, hint: str) -> bytes:
    hinted = replace(answer, members={**answer.members, "hint": hint})
    return envelope(hinted, call.edition, operation)


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
        operation, now = tool.operation, service.clock()
        lock = narrower(exchange.at, exchange.grant, now)
        today = lock or now.date()
        try:
            read: dict[str, Any] = tool.read(arguments, today)
        except (InvalidParameter, NotFound) as problem:
            refusal = await explained_id(service, exchange.grant, operation, problem, arguments, lock)
            raise explained(refusal, lock) from None
        with tool.translated_names():
            operation.admit(exchange.grant, read)
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
        question = call_name(operation, call, read, budget)
        is_kept = may_be_kept(operation, read)
        if is_kept and (known := service.answers.get(question)) is not None:
            return known.body
        with tool.translated_names():
            body = await bounded_body(operation, call, read, budget)
        if is_kept:
            service.answers.offer(question, CachedAnswer([], body))
        return body
