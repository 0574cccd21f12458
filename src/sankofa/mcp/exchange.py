"""One HTTP request to the MCP endpoint, from its body to its answer.

A tool answers with the JSON bytes REST would send. They never pass through the SDK's models, which
would print every number anew: the SDK answers with a placeholder, and the bytes take its place on
the way out.
"""

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import msgspec
from starlette.types import Message, Receive, Send

from sankofa.access.tiers import Grant, Quotas, Usage
from sankofa.edition.read.yield_points import CALL_BYTES, in_thread_if_large
from sankofa.mcp.guard import (
    ContentTooLarge,
    Envelope,
    KnownCalls,
    PlainCall,
    RequestTimeout,
    refusal_of_the_sdk,
)
from sankofa.model.errors import BadRequest, InvalidParameter, Problem, RateLimited
from sankofa.model.limits import limit
from sankofa.operations.answers import (
    JSON,
    NO_STORE,
    PRIVATE,
    PROBLEM_JSON,
    RESOURCE_METADATA,
    Headers,
    common_headers,
    problem_body,
    problem_headers,
)

LARGEST_BODY: Final = limit("MCP message", 1024 * 1024, "bytes", "413")
"""No call of a tool is longer; the SDK takes a quarter of a second to read a megabyte."""
_BODY_SECONDS: Final = limit("time for the body of an MCP message", 10.0, "seconds", "408")
_encode: Final = msgspec.json.Encoder().encode
MARK: Final = secrets.token_hex(16)
"""The SDK writes it where the body goes: as the text of a result, and as a member of its structure.

Random in each process and never sent (it is always replaced), so no client can write one in its id.
"""
_TEXT: Final = f'"{MARK}"'.encode()
_STRUCTURED: Final = f'{{"{MARK}":0}}'.encode()


@dataclass(slots=True)
class Exchange:
    """The state of one request, and what is sent beside the SDK's envelope."""

    send: Send
    method: str
    path: str
    request_id: str
    base_url: str
    mcp_url: str = ""
    at: date | None = None
    """The day that the address is locked to."""
    body_read: bool = False
    grant: Grant = field(init=False)
    usage: Usage | None = None
    over_quota: RateLimited | None = None
    unread: InvalidParameter | None = None
    """Why the arguments were not handed to the SDK; see `long_calls`."""
    tool_headers: Headers = field(default_factory=list)
    tool_body: bytes | None = None
    """The answer of a tool; `from_sdk` puts it where the SDK has `MARK`."""
    failed: Problem | None = None
    """The problem of a call that was performed before the SDK saw it."""
    sdk_answer: bytes | None = None
    """The SDK's answer, with a mark where the body of the tool goes."""
    refusal: Problem | None = None
    answered: bool = False
    operation: str = "mcp"
    """The name under which the request is counted."""
    problem: str = ""
    status: int = 0
    size: int = 0
    _start: Message | None = None
    _parts: list[bytes] = field(default_factory=list)

    async def read(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body; one that announces itself as too large is not read. Raises Problem."""
        announced = next((value for name, value in headers if name == b"content-length"), b"0")
        if not announced.isdigit() or len(announced) > 18 or int(announced) > LARGEST_BODY:
            raise _too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while not self.body_read:
                    message = await receive()
                    if message["type"] != "http.request":  # gone, or it sent chunks that are none
                        raise BadRequest("The body of the message is cut short or not well formed.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > LARGEST_BODY:
                        raise _too_large()
                    self.body_read = not message.get("more_body", False)
        except TimeoutError:
            raise RequestTimeout(f"The body did not arrive within {_BODY_SECONDS:.0f} seconds.") from None
        return b"".join(parts)

    async def count(self, quotas: Quotas) -> None:
        """Charge the call to the key, once. Raises StoreUnavailable."""
        if self.usage is None:
            self.usage, self.over_quota = await quotas.count(self.grant)

    def fail(self, problem: Problem, instance: str | None) -> str:
        """The problem as the text of a tool error, with its header fields."""
        self.tool_headers = problem_headers(problem)
        self.problem = problem.slug
        return problem_body(problem, self.base_url, instance or self.path, self.request_id).decode()

    async def from_sdk(self, message: Message) -> None:
        """The ASGI `send` given to the SDK: holds its answer until all of it is there."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._parts.append(message.get("body", b""))
        if message.get("more_body", False) or self._start is None:
            return
        status: int = self._start["status"]
        media_type = dict(self._start["headers"]).get(b"content-type", b"")
        body = b"".join(self._parts)
        if self.refusal is not None:
            await self.refuse(self.refusal)
        elif status >= 400 and not media_type.startswith(b"application/json"):
            await self.refuse(refusal_of_the_sdk(status, body.decode()))
        else:
            self.sdk_answer = body if status == 200 else None
            if self.tool_body is not None:
                body = await in_thread_if_large(len(self.tool_body), _spliced, body, self.tool_body)
            content_type = [(b"content-type", media_type)] if body else []
            await self.answer(status, [*content_type, *self.tool_headers], body)

    def learn(self, known: KnownCalls, call: PlainCall) -> None:
        """Have the next call of this shape answered by `answer_at_once`."""
        if self.sdk_answer is not None and self.tool_body is not None:
            known.learn(call, self.sdk_answer, _TEXT, _STRUCTURED)

    async def answer_at_once(self, envelope: Envelope, call_id: bytes, body: bytes) -> None:
        """The answer of a tool in an envelope that the SDK wrote for another."""
        parts = (
            *(envelope.before_id, call_id, envelope.before_text),
            *_as_text(body),
            *(envelope.before_structure, body, envelope.end),
        )
        await self.answer(200, [JSON], b"".join(parts))

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem as HTTP does, not as a tool result."""
        self.problem = problem.slug
        body = problem_body(problem, self.base_url, self.path, self.request_id)
        metadata = f"{self.mcp_url or self.base_url}{RESOURCE_METADATA}{self.path}"
        await self.answer(problem.status, [PROBLEM_JSON, *problem_headers(problem, metadata)], body)

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        self.answered = True
        self.status, self.size = status, len(body)
        start = [*common_headers(self.request_id), *headers]
        start += [NO_STORE] if self.usage is None else [PRIVATE, *self.usage.headers]
        if status != 204:
            start.append((b"content-length", b"%d" % len(body)))
        if not self.body_read:  # else a client that keeps the connection is cut off at its next request
            start.append((b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": status, "headers": start})
        await self.send({"type": "http.response.body", "body": b"" if self.method == "HEAD" else body})


def _too_large() -> ContentTooLarge:
    return ContentTooLarge(f"A message of at most {LARGEST_BODY} bytes is accepted.")


def _spliced(envelope: bytes, body: bytes) -> bytes:
    """The SDK's answer with the body in both places; untouched where it answered something else."""
    head, separator, rest = envelope.partition(_TEXT)
    middle, _, tail = rest.partition(_STRUCTURED)
    return b"".join((head, *_as_text(body), middle, body, tail)) if separator else envelope


def _as_text(body: bytes) -> Iterator[bytes]:
    """JSON as a JSON string, in pieces: one call for a large body would block the interpreter.

    Encoded JSON has no control characters, so only backslash and quote need escaping. A body that is one
    piece is left to the encoder, which takes two thirds of the time.
    """
    if len(body) <= CALL_BYTES:
        yield _encode(body.decode())
        return
    yield b'"'
    for start in range(0, len(body), CALL_BYTES):
        yield body[start : start + CALL_BYTES].replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    yield b'"'
