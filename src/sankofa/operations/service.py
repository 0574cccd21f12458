"""The service behind every surface: stores, access and the current edition."""

import asyncio
import logging
import os
import secrets
import subprocess  # nosec B404
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import cache, partial
from importlib.resources import files
from ipaddress import ip_address
from itertools import chain, count
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from sankofa import __version__
from sankofa.access.domains import Domains
from sankofa.access.keys import Keys, presented_key
from sankofa.access.owner import Owner
from sankofa.access.records import Cursors, SealedRecords
from sankofa.access.tiers import Addresses, Grant, Quotas, Usage
from sankofa.edition.read.edition_manager import EditionManager
from sankofa.engines.datastore import Datastore
from sankofa.engines.keyvalue import KeyValue, open_keyvalue
from sankofa.model.errors import (
    BadRequest,
    InternalError,
    Problem,
    SettingsError,
    StoreUnavailable,
    Unauthorized,
    problem_of,
)
from sankofa.model.limits import limit
from sankofa.operations.answers import API_VERSION_FIELD, AnswerCache, Headers
from sankofa.replication.follow import FollowingStore, FollowState
from sankofa.replication.stores import only_follows, open_store
from sankofa.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

COMMIT_FILE: Final = "commit.txt"
"""Written into the package when a wheel is built (`setup.py`)."""


@cache
def build_id() -> str:
    """The version and the commit of the wheel or the checkout, e.g. `sankofa-0.1.0+1b0f...`; read once."""
    file = files("sankofa").joinpath(COMMIT_FILE)
    commit = file.read_text("utf-8").strip() if file.is_file() else commit_of_checkout()
    return f"sankofa-{__version__}+{commit or 'unknown'}"


def commit_of_checkout() -> str:
    """The commit checked out here; empty without a checkout or without git."""
    folder = Path(__file__).parents[3]
    if not (folder / ".git").exists():
        return ""
    try:
        done = subprocess.run(  # nosec B603 B607
            ["git", "rev-parse", "HEAD"],  # noqa: S607 - the git in PATH
            cwd=folder,
            capture_output=True,
            text=True,
        )
    except OSError:
        return ""
    return done.stdout.strip()


LONGEST_QUERY: Final = limit("query of an address", 4096, "bytes", "414")
LONGEST_PATH: Final = limit("path of an address", 1024, "bytes", "414")
LARGEST_HEADERS: Final = limit("header fields of a request", 16 * 1024, "bytes", "431")


class UriTooLong(Problem):
    """414: longer than any valid request."""

    status, slug, title = 414, "uri-too-long", "URI too long"


class HeadersTooLarge(Problem):
    """431: more than any client needs."""

    status, slug, title = 431, "headers-too-large", "Request header fields too large"


class Head(msgspec.Struct, frozen=True, gc=False):
    """The header fields we act on."""

    keys: tuple[str, ...]
    accept_encoding: bytes
    if_none_match: bytes
    accept: bytes = b""
    edition: str | None = None
    authorizations: tuple[str, ...] = ()
    host: bytes = b""
    opens: str = ""
    """The target of the link in the address; empty if it has none."""


_APART: Final = {b"host": b"\n", b"x-api-key": b"\n", b"authorization": b"\n", b"x-edition": b", "}
"""Between the values of a field that is there more than once; a comma for all others."""


def read_head(headers: Sequence[tuple[bytes, bytes]]) -> Head:
    """The header fields. Raises HeadersTooLarge, or BadRequest without exactly one Host."""
    if 4 * len(headers) + sum(map(len, chain.from_iterable(headers))) > LARGEST_HEADERS:
        raise HeadersTooLarge(f"Header fields of at most {LARGEST_HEADERS} bytes are accepted.")
    fields = dict(headers)
    if len(fields) < len(headers):
        fields = {}
        for name, value in headers:
            before = fields.get(name)
            fields[name] = value if before is None else before + _APART.get(name, b",") + value
    host = fields.get(b"host", b"").strip(b"\n")  # the HTTP server writes an empty one for none
    if not host or b"\n" in host:
        raise BadRequest("A request needs exactly one Host header.")
    key, authorization = fields.get(b"x-api-key"), fields.get(b"authorization")
    edition = fields.get(b"x-edition")
    return Head(
        () if key is None else tuple(key.decode("latin-1").split("\n")),
        fields.get(b"accept-encoding", b""),
        fields.get(b"if-none-match", b""),
        fields.get(b"accept", b""),
        None if edition is None else edition.decode("latin-1"),
        () if authorization is None else tuple(authorization.decode("latin-1").split("\n")),
        host,
    )


class ContentTooLarge(Problem):
    """413: longer than any valid request."""

    status, slug, title = 413, "content-too-large", "Content too large"

    def __init__(self, most: int) -> None:
        super().__init__(f"A body of at most {most} bytes is accepted.")


class RequestTimeout(Problem):
    """408: the body did not arrive in time."""

    status, slug, title = 408, "request-timeout", "Request timeout"


async def read_body(receive: Receive, most: int, seconds: float) -> bytes:
    """Reads a request's body. Raises ContentTooLarge, RequestTimeout, or BadRequest if it is cut short."""
    body, more = b"", True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] != "http.request":  # the client is gone, or its chunks are malformed
                    raise BadRequest("The body of the request is cut short or not well formed.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > most:
                    raise ContentTooLarge(most)
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {seconds:.0f} seconds.") from None
    return body


async def send_stream(chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Sends as fast as the client reads; stops once the client is gone, which the server does not report."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(disconnected())
    try:
        async for chunk in chunks:
            if gone.done():
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except (
        StoreUnavailable
    ) as problem:  # the head is already sent, so close the connection before the declared end
        _requests_log.error("an answer was cut short: %s", problem.logged)
    finally:
        gone.cancel()


def check_request(scope: Mapping[str, Any]) -> Head:
    """The header fields of a request. Raises HeadersTooLarge, BadRequest or UriTooLong."""
    head = read_head(scope["headers"])
    check_target(scope)
    return head


def check_target(scope: Mapping[str, Any]) -> None:
    """Raises UriTooLong for a path or query beyond the limits."""
    if len(scope["query_string"]) > LONGEST_QUERY or len(scope["path"]) > LONGEST_PATH:
        raise UriTooLong(
            f"A path of at most {LONGEST_PATH} and a query of at most {LONGEST_QUERY} bytes is accepted."
        )


class ObservedRequest(NamedTuple):
    """An answered request, without any text from the client but its header fields."""

    operation: str
    """The name of the operation, `mcp:` and the name of a tool, `page`, `file`, `mcp` or `unknown`."""
    method: str
    status: int
    size: int
    """Bytes of the body."""
    began: float
    """Measured with `time.perf_counter`."""
    seconds: float
    grant: Grant | None
    """Rights of the key; None if no key was accepted."""
    problem: str
    """Slug of the problem in the answer; empty if there was none."""
    request_id: str
    headers: list[tuple[bytes, bytes]]
    """Header fields of the request, as the client sent them."""


Observer = Callable[[ObservedRequest], Any]


class Response(msgspec.Struct, frozen=True):
    status: int
    headers: Headers
    body: bytes = b""
    chunks: AsyncIterator[bytes] | None = None
    """A body to send in chunks instead."""
    size: int | None = None
    """Total bytes of the chunks, if known."""


class Exchange:
    """One HTTP request and its answer. Every surface creates one per request."""

    def __init__(self, service: "Service", scope: Scope, operation: str = "unknown") -> None:
        self.service, self.scope = service, scope
        self.operation = operation
        """The name to count it under; see `ObservedRequest`."""
        self.request_id = next(service.request_ids)
        self.began = time.perf_counter()
        self.site = service.domains.own
        self.usage: Usage | None = None
        self.problem = ""
        self.body_read = True
        """If false, the connection is closed: the bytes after the head are not a new request."""

    async def admit(self, grant: Grant) -> Grant:
        """Counts the request against its key, valid on this host. Raises Unauthorized or RateLimited."""
        if self.site.keys is not None:
            self.site.admit(grant)
        self.usage, refusal = await self.service.quotas.count(grant)
        if refusal is not None:
            raise refusal
        return grant

    async def answer(self, response: Response, receive: Receive, send: Send) -> None:
        """Sends the answer and notifies the observer."""
        status, is_head = response.status, self.scope["method"] == "HEAD"
        size = len(response.body) if response.chunks is None else response.size
        if (observe := self.service.observe) is not None:
            method, headers = self.scope["method"], self.scope["headers"]
            sent = 0 if is_head or status == 304 else size or 0
            seconds, grant = time.perf_counter() - self.began, self.usage.grant if self.usage else None
            about = grant, self.problem, self.request_id, headers
            observe(ObservedRequest(self.operation, method, status, sent, self.began, seconds, *about))
        headers = [API_VERSION_FIELD, (b"x-request-id", self.request_id.encode()), *response.headers]
        if status not in (204, 304) and size is not None:
            headers.append((b"content-length", b"%d" % size))
        if not self.body_read:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if is_head or response.chunks is None:
            await send({"type": "http.response.body", "body": b"" if is_head else response.body})
        else:
            await send_stream(response.chunks, receive, send)


_log = logging.getLogger("sankofa.access")
_requests_log = logging.getLogger("sankofa.requests")

_FIRST_LOOK = 5.0
_KEY_HEADERS = (b"x-api-key", b"authorization")


class Service:
    """Shared by all surfaces. A surface opens it on start and closes it on stop."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime] | None = None) -> None:
        self.settings = settings
        self.clock = clock = clock or partial(datetime.now, UTC)
        self.datastore: Datastore = open_store(settings)
        self.keystore: KeyValue = open_keyvalue(settings.keyvalue_url(settings.keystore, "keys"), "key store")
        self.usagestore: KeyValue = open_keyvalue(
            settings.keyvalue_url(settings.usagestore, "usage"),
            "usage store",
            reserve=settings.usage_reserve << 20,
        )
        self._records = SealedRecords(self.keystore, settings.keys_secrets())
        self.keys = Keys(self._records, settings, clock)
        self.owner = Owner(settings.home, self.keys, self._records, clock)
        self.domains = Domains(self._records, settings, clock)
        self.quotas = Quotas(self.usagestore, clock)
        self.cursors = Cursors(settings.cursor_secrets())
        caps = settings.per_minute_visitor, settings.per_day_visitor
        self.addresses = Addresses(self.usagestore, clock, settings.cursor_secrets()[0], *caps)
        self._proxies = settings.proxy_networks()
        self.edition = EditionManager(self.datastore, follows=only_follows(settings))
        self.answers = AnswerCache(settings.answer_cache_bytes)
        self.request_ids = map(f"{secrets.token_hex(6)}{{:08x}}".format, count(1))
        self._watching: asyncio.Task[None] | None = None
        self.observe: Observer | None = None
        """Called in the event loop with every answered request, so it must be quick."""

    async def start(self) -> None:
        """Opens the stores and the current edition, and watches for the next one.

        Starts even if a dependency is down. Opens the others early, while file descriptors are free.
        """
        with suppress(StoreUnavailable):
            try:
                await self._records.prepare()
            except SettingsError as failure:
                _log.error(failure)
        first_look = asyncio.create_task(self.edition.look())
        with suppress(StoreUnavailable):
            await self.usagestore.ping()
        await asyncio.wait({first_look}, timeout=_FIRST_LOOK)
        self._watching = asyncio.create_task(self.edition.watch(first_look))

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        await self.keystore.close()
        await self.usagestore.close()
        self.datastore.close()

    def following(self) -> tuple[FollowState, str | None] | None:
        """State of following editions, and the error if any; None if this node follows none."""
        return following(self.datastore, self.clock())

    async def probe(self) -> "Checks":
        return await probe(self.datastore, self.keystore, self.usagestore)

    def today(self) -> date:
        return self.clock().date()

    async def lock_sent(self, keys: Sequence[str], authorizations: Sequence[str]) -> date | None:
        """The day that a sent key is locked to. It applies even where no key is needed."""
        if keys or authorizations:
            with suppress(Unauthorized, StoreUnavailable):
                lock = (await self.keys.authenticate(presented_key(keys, authorizations))).lock
                return None if lock is None else lock.on(self.clock())
        return None

    async def refusal(self, failure: Exception, scope: Mapping[str, Any], request_id: str) -> Problem:
        """The Problem to answer a failed request with. Logs errors that are not Problems."""
        if isinstance(failure, Unauthorized):
            return await self.unauthorized(scope, failure)
        problem = failure if isinstance(failure, Problem) else problem_of(failure)
        if problem is not failure and isinstance(problem, InternalError):
            _requests_log.error("request %s failed", request_id, exc_info=failure)
        if problem.status >= 500:
            _requests_log.warning("request %s: %s: %s", request_id, problem.slug, problem.logged)
        return problem

    async def unauthorized(self, scope: Mapping[str, Any], problem: Unauthorized) -> Problem:
        """The error for a request without a valid key. Without any key, it is not counted as a guess."""
        if not any(name in _KEY_HEADERS and value for name, value in scope["headers"]):
            return problem
        return await self.addresses.refusal(self.address_of(scope), problem)

    def address_of(self, scope: Mapping[str, Any]) -> str:
        """The client's address: the peer, or behind trusted proxies the last address that is not a proxy."""
        peer: str = (scope.get("client") or ("",))[0]
        if not self._is_proxy(peer):
            return peer
        forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        hops = [hop.strip() for hop in forwarded.decode("latin-1").split(",")]
        return next((hop for hop in reversed(hops) if hop and not self._is_proxy(hop)), peer)

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:  # clients may write anything there
            return False
        return any(parsed in network for network in self._proxies)


def _cause(failure: BaseException) -> str:
    if isinstance(failure, StoreUnavailable):
        return failure.cause
    reason = failure.strerror if isinstance(failure, OSError) else None
    return reason or type(failure).__name__


def following(datastore: Datastore, now: datetime) -> tuple[FollowState, str | None] | None:
    """See `Service.following`."""
    if not isinstance(datastore, FollowingStore):
        return None
    state = datastore.following()
    return state, state.complaint(now)


Checks = dict[str, tuple[str | None, float]]
"""For each dependency: its error (None if healthy) and the milliseconds it took."""


async def probe(store: Datastore, keystore: KeyValue, usagestore: KeyValue, seconds: float = 1.0) -> Checks:
    """Checks each dependency the way a request uses it.

    A request looks up its key, counts in the usage store and reads the edition. A check that does not answer
    in time is abandoned, not awaited: a frozen peer may even block cancellation.
    """

    async def timed(check: Callable[[], Awaitable[None]]) -> tuple[str | None, float]:
        began = time.perf_counter()
        task = asyncio.ensure_future(check())
        done, _ = await asyncio.wait({task}, timeout=seconds)
        took = (time.perf_counter() - began) * 1000
        if not done:
            task.cancel()
            return "did not answer in time", took
        failure = task.exception()
        return (None if failure is None else _cause(failure)), took

    async def datastore() -> None:
        os.close(os.open(os.devnull, os.O_RDONLY))  # without a free descriptor no edition is read
        await store.ping()

    checks: dict[str, Callable[[], Awaitable[None]]] = {
        "datastore": datastore,
        "keystore": keystore.ping,
        "usagestore": usagestore.probe_counting,
    }
    results = await asyncio.gather(*(timed(check) for check in checks.values()))
    return dict(zip(checks, results, strict=True))
