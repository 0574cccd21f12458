"""The MCP surface: the tools, served statelessly on the official SDK at one path.

The SDK owns the protocol (`protocol`). Ours is what is around it: who is calling, what a call costs and the
body of the answer. The SDK is loaded in a thread while the service answers already; a message for it waits.

See contract: MCP-2, MCP-3, MCP-4.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.types import Message, Receive, Scope, Send

from sankofa.mcp.exchange import Exchange
from sankofa.mcp.guard import (
    LONGEST_CALL,
    Guard,
    KnownAnswers,
    KnownCalls,
    PlainCall,
    key_of,
    plain_call,
    plain_message,
    without_arguments,
)
from sankofa.mcp.tools import ToolCalls
from sankofa.model.errors import (
    MethodNotAllowed,
    Problem,
    StoreUnavailable,
)
from sankofa.model.limits import limit
from sankofa.operations.answers import JSON
from sankofa.operations.locked import AT
from sankofa.operations.service import ObservedRequest, Service, check_request

if TYPE_CHECKING:
    from sankofa.mcp.protocol import Protocol

_log = logging.getLogger("sankofa.mcp")
_ALLOW: Final = "POST, OPTIONS"
_CALL: Final = "tools/call"
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
_FREE_BYTES: Final = limit("uncounted MCP message", 16 * 1024, "bytes", "it counts as a request")
_LOAD_SECONDS: Final = 20.0
"""How long a message waits for the SDK, which is loaded in one or two seconds."""
_RETRY_SECONDS: Final = 5.0
_SWITCH_SECONDS: Final = 0.0005
"""How long the event loop waits for its turn while the SDK is loaded; usually ten times as long."""


class McpSurface:
    """An ASGI application for one path, to be called while `running()` is open."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = Guard(service.settings, service.domains)
        self._known_calls = KnownCalls()
        self._known_answers = KnownAnswers()
        self._calls = ToolCalls(service)
        self._protocol: asyncio.Future[Protocol | None] | None = None
        """Set once the SDK is loaded; to None if it could not be."""

    @asynccontextmanager
    async def running(self, loaded: Callable[[], object] = lambda: None) -> AsyncIterator[None]:
        """Once per process. The SDK is loaded meanwhile; `loaded` is called when it is."""
        self._protocol = asyncio.get_running_loop().create_future()
        stopped = asyncio.Event()
        serving = asyncio.create_task(self._run_protocol(stopped, loaded))
        try:
            yield
        finally:
            stopped.set()
            if not self._protocol.done():  # still loading: nobody waits for it any more
                serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    async def _run_protocol(self, stopped: asyncio.Event, loaded: Callable[[], object]) -> None:
        """Load the SDK and run its tasks: all in one task, as they require."""
        while not stopped.is_set():
            try:
                protocol = await self._loading()
            except Exception:  # no file descriptor free, for example
                _log.exception("the MCP SDK cannot be loaded; trying again in %.0f s", _RETRY_SECONDS)
                self._resolve(None)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), _RETRY_SECONDS)
                continue
            loaded()
            async with protocol.running():
                self._resolve(protocol)
                await stopped.wait()

    def _resolve(self, protocol: "Protocol | None") -> None:
        if self._protocol is None or self._protocol.done():  # by a failure
            self._protocol = asyncio.get_running_loop().create_future()
        self._protocol.set_result(protocol)

    async def _loading(self) -> "Protocol":
        """In a thread that does not outlive a worker: one that is told to stop never waits for it."""
        loaded: Future[Protocol] = Future()
        loaded.set_running_or_notify_cancel()

        def load() -> None:
            try:
                loaded.set_result(self._load_protocol())
            except Exception as failure:
                loaded.set_exception(failure)

        threading.Thread(target=load, name="mcp-sdk", daemon=True).start()
        return await asyncio.wrap_future(loaded)

    def _load_protocol(self) -> "Protocol":
        usual = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        try:
            from sankofa.mcp.protocol import Protocol

            return Protocol(self._service.settings, self._calls)
        finally:
            sys.setswitchinterval(usual)

    async def _loaded_protocol(self) -> "Protocol":
        """Raises StoreUnavailable if the SDK is not loaded in time."""
        if self._protocol is None:
            raise RuntimeError("called outside of running()")
        try:
            async with asyncio.timeout(_LOAD_SECONDS):
                protocol = await asyncio.shield(self._protocol)
        except TimeoutError:
            raise StoreUnavailable("MCP surface", "the SDK is not loaded yet") from None
        if protocol is None:
            raise StoreUnavailable("MCP surface", "the SDK cannot be loaded")
        return protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        at = scope.get(AT)
        path = scope["path"] if at is None else f"/at/{at}{scope['path']}"
        exchange = Exchange(
            send, scope["method"], path, scope["sankofa.request_id"], self._service.settings.base_url, at=at
        )
        try:
            body, call = await self._admit(exchange, scope, receive)
            if body is None:
                return
            if call is not None and await self._answered_at_once(exchange, call):
                return
            plain = plain_message(scope["headers"], body, _FREE) if call is None else None
            if plain is not None and (known := self._known_answers.answer(plain)) is not None:
                await exchange.answer(200, [JSON], known)
                return
            protocol = await self._loaded_protocol()
            await protocol.answer(exchange, scope, _replayed(body, receive))
            if call is not None:
                exchange.learn(self._known_calls, call)
            elif plain is not None and exchange.sdk_answer is not None:
                self._known_answers.learn(plain, exchange.sdk_answer)
        except Exception as failure:
            problem = await self._service.refusal(failure, scope, exchange.request_id)
            if not exchange.answered:
                await exchange.refuse(problem)
        finally:
            if self._service.observe is not None:
                self._service.observe(_observed(exchange, began, scope))

    async def _admit(
        self, exchange: Exchange, scope: Scope, receive: Receive
    ) -> tuple[bytes | None, PlainCall | None]:
        """The body for the SDK, None if the answer is given already; and the plain call that it is, if it is
        one. Raises Problem."""
        check_request(scope)
        headers = scope["headers"]
        # First: a page in a browser is told nothing, not even whether a key is good.
        site = await self._guard.check(headers)
        prefix = "" if exchange.at is None else f"/at/{exchange.at}"
        exchange.base_url, exchange.mcp_url = site.base_url + prefix, site.settings.public_mcp_url
        if exchange.method == "OPTIONS":
            await exchange.answer(204, [(b"allow", _ALLOW.encode())], b"")
            return None, None
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
        call = plain_call(headers, body) if exchange.unread is None else None
        method = _method(body) if call is None else _CALL
        if not (method in _FREE or method.startswith("notifications/")):
            await exchange.count(self._service.quotas)
        if exchange.over_quota is not None and method != _CALL:  # which has a tool error for it
            raise exchange.over_quota
        return body, call

    async def _answered_at_once(self, exchange: Exchange, call: PlainCall) -> bool:
        """Whether the call was answered in an envelope known already; an error is the SDK's to write."""
        envelope = self._known_calls.envelope(call)
        if envelope is None or call.name not in self._calls.tools:
            return False
        try:
            body = await self._calls.perform(exchange, call.name, call.arguments)
        except Problem as problem:
            exchange.failed = problem
            return False
        await exchange.answer_at_once(envelope, call.id, body)
        return True


def _observed(exchange: Exchange, began: float, scope: Scope) -> ObservedRequest:
    grant = exchange.usage.grant if exchange.usage else None
    answer = exchange.operation, exchange.status, exchange.size
    return ObservedRequest.of(scope, *answer, began, grant, exchange.problem, exchange.request_id)


class _Peek(msgspec.Struct):
    method: str = ""


_peek = msgspec.json.Decoder(_Peek)


def _method(body: bytes) -> str:
    """The method a message names; empty if it is no message, of which the SDK says what is wrong."""
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
