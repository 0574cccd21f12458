"""What both sessions do, as coroutines, and the forms its methods take: awaited, waiting, by page, by row."""

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from string import Formatter
from types import GenericAlias
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, get_args

import httpx

from sankofa.client import frames
from sankofa.client.answers import Answer, next_page
from sankofa.client.errors import Unauthorized, UpgradeRequired
from sankofa.client.exchange import (
    COLUMNS,
    JSON,
    KEY_FIELD,
    PAGE,
    Endpoint,
    Outcome,
    Reply,
    Request,
    Retries,
    accepted,
    given_only,
    question,
    read_json,
    remove_part_file,
    verified_file,
)
from sankofa.client.shortcuts import NAME, named_by, service_id_of, to_look_up

ENDPOINTS: Final[dict[str, Endpoint]] = {}
"""The endpoints by the names of their methods, as `asks` declares them."""


class SessionBase(ABC):
    """A client before it can send: how it asks, retries, identifies and reads pages."""

    def __init__(self, base_url: str, headers: Mapping[str, str], retries: Retries) -> None:
        address = httpx.URL(base_url)
        self._shown_url = str(address.copy_with(userinfo=b"") if address.userinfo else base_url).rstrip("/")
        self._has_key = KEY_FIELD in headers
        self._retries = retries
        self._by_columns = False
        self._service_ids: dict[str, str] = {}

    @property
    def columns(self) -> Self:
        """The same client, answered in columns: an Arrow stream, which turns into frames many times faster.

        Where neither pyarrow nor Polars is installed the answers are as before.
        """
        other = copy.copy(self)
        other._by_columns = frames.reads_columns()
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._shown_url}>"

    @abstractmethod
    async def _send(self, request: Request) -> Outcome:
        """The reply, or the error of sending."""

    @abstractmethod
    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt."""

    async def _asked(self, name: str, /, **arguments: object) -> Answer[Any]:
        everything = arguments.pop("all", False)
        if lookup := to_look_up(arguments.get("service_id")):
            arguments["service_id"] = await self._identify(*lookup)
        if everything:
            return await self._every_page(name, arguments)
        accept = COLUMNS if self._by_columns else JSON
        reply = await self._exchange(question(ENDPOINTS[name], arguments, accept))
        return Answer(ENDPOINTS[name], reply, limited=arguments.get("limit") is not None)

    async def _every_page(self, name: str, arguments: dict[str, object]) -> Answer[Any]:
        pages: list[Answer[Any]] = []
        following: dict[str, object] = {"limit": PAGE, **given_only(arguments)}
        try:
            while not pages or pages[-1].next_cursor is not None:
                pages.append(await self._asked(name, **following))
                following |= next_page(name, pages[-1])
        except UpgradeRequired:
            if arguments.get("limit") is not None or pages:
                raise
            return (await self._asked(name, **arguments)).cut_by_tier()  # as much as the sample tier serves
        return pages[0].with_pages(pages[1:])

    async def _identify(self, kind: str, identifier: str) -> str:
        if identifier not in self._service_ids:
            if kind == NAME:
                matches = await self._asked("search", q=identifier, type="organisation")
                self._service_ids[identifier] = named_by(identifier, matches)
            else:
                matches = await self._asked("find_by_identifier", id_type=kind, id_value=identifier)
                self._service_ids[identifier] = service_id_of(identifier, matches)
        return self._service_ids[identifier]

    async def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = read_json(await self._exchange(request))
        return body

    async def _file(self, request: Request) -> Path:
        with remove_part_file(request):
            return verified_file(request, await self._exchange(request))

    async def _exchange(self, request: Request) -> Reply:
        """Asks until there is an answer or the retries are used up. Raises the error of the last answer."""
        attempt, waited = 1, 0.0
        while True:
            outcome = await self._send(request)
            now = datetime.now(UTC)
            is_answer = isinstance(outcome, Reply) and outcome.status in request.also
            pause = None if is_answer else self._retries.pause(outcome, attempt, waited, now)
            if pause is None:
                break
            await self._pause(pause)
            attempt, waited = attempt + 1, waited + pause
        try:
            return accepted(request, self._shown_url, outcome, now)
        except Unauthorized as refused:
            if not self._has_key:
                refused.args = (f"{refused.detail} SANKOFA_API_KEY is not set, and no key was given.",)
            raise


P = ParamSpec("P")
T = TypeVar("T")


Method = Callable[Concatenate[Any, P], T]


def asks(path: str, *members: str, rows_under: str = "data") -> Callable[[Method[P, T]], Method[P, T]]:
    """Declares a method that sends its arguments to an endpoint.

    `members` are those of its envelope besides the common ones. Its rows are those of the return type.
    """
    in_path = tuple(name for _, name, _, _ in Formatter().parse(path) if name)

    def declare(method: Method[P, T]) -> Method[P, T]:
        name, signature = method.__name__, inspect.signature(method)
        (rows,) = get_args(signature.return_annotation)
        shapes = tuple(shape.__name__ for shape in get_args(rows) or (rows,))
        ENDPOINTS[name] = Endpoint(path, in_path, rows_under, shapes, members)

        @wraps(method)
        def ask(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
            answer: T = session._ask(name, **_given(signature, args, kwargs))
            return answer

        return ask

    return declare


def row_by_row(
    method: Callable[Concatenate[Any, P], Answer[T]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """The method `iter_changes` of a method `get_changes`: with its parameters, a row at a time."""
    name, signature = method.__name__, inspect.signature(method)

    @wraps(method)
    def iterate(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        arguments = _given(signature, args, kwargs)
        del arguments["all"]  # it is always every page
        every: Iterator[T] = session._each_row(name, **arguments)
        return every

    own = f"iter_{name.partition('_')[2] or name}"
    iterate.__name__, iterate.__qualname__ = own, f"Client.{own}"
    iterate.__doc__ = f"Every row of `{name}`, one after another; `limit` is of each page."
    (row,) = get_args(signature.return_annotation)
    described: Any = iterate
    described.__signature__ = signature.replace(return_annotation=GenericAlias(Iterator, (row,)))
    return iterate


def awaited(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The async form of a method: it asks the same of a session whose answers are awaited."""

    @wraps(method)
    async def ask(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        promised: Any = method(session, *args, **kwargs)
        answer: T = await promised
        return answer

    return ask


def paged(
    method: Callable[Concatenate[Any, P], Iterator[T]],
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """Like `awaited`, for a method that yields."""

    @wraps(method)
    async def ask(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        every: Any = method(session, *args, **kwargs)
        async for one in every:
            yield one

    return ask


def waits(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The form of a coroutine for a session that sends without suspending: it runs to its end at once."""

    @wraps(method)
    def ask(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            method(session, *args, **kwargs).send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        raise RuntimeError(f"{method.__name__}: `sleep` must not suspend; use AsyncClient")

    return ask


def _given(signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by name, without `self`. Raises TypeError as a call does."""
    bound = signature.bind(None, *args, **kwargs)
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "self"}
