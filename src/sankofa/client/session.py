"""The two sessions: blocking and asynchronous.

What a client does is written once, as coroutines (`SessionBase`). `AsyncSession` lets you await them.
`Session` sends without ever suspending, so `waits` runs each of them to its end.
"""

import asyncio
import copy
import hashlib
import inspect
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from string import Formatter
from types import GenericAlias, TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    get_args,
    overload,
)

import httpx

from sankofa.client import frames
from sankofa.client.answers import Answer, next_page
from sankofa.client.errors import InvalidAnswer, Unauthorized, UpgradeRequired
from sankofa.client.exchange import (
    COLUMNS,
    JSON,
    KEY_FIELD,
    PAGE,
    RETRIES,
    TIMEOUT,
    Endpoint,
    Outcome,
    Reply,
    Request,
    Retries,
    accepted,
    default_headers,
    question,
    read_json,
    target_of,
)
from sankofa.client.frames import Figures
from sankofa.client.rows import PeriodType
from sankofa.client.shortcuts import (
    NAME,
    Engine,
    StatementKind,
    by_date,
    by_period,
    by_release,
    joined_as_of,
    named_by,
    scan,
    series_key,
    service_id_of,
    to_look_up,
    universe_frame,
)

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

ENDPOINTS: Final[dict[str, Endpoint]] = {}
"""The endpoints by the names of their methods, as `asks` declares them."""


class SessionBase(ABC):
    """The common part of both clients: requests, retries, identifiers and pages."""

    def __init__(self, base_url: str | None, headers: Mapping[str, str], retries: Retries) -> None:
        self._url = base_url or os.environ.get("SANKOFA_URL") or "http://127.0.0.1:8000"
        address = httpx.URL(self._url)
        self._public_url = str(address.copy_with(userinfo=b"") if address.userinfo else self._url).rstrip("/")
        self._has_key = KEY_FIELD in headers
        self._retries = retries
        self._by_columns = False
        self._service_ids: dict[str, str] = {}

    @property
    def columns(self) -> Self:
        """The same client with answers in columns: Arrow streams, which become frames many times faster.

        Without pyarrow and Polars, answers stay JSON.
        """
        other = copy.copy(self)
        other._by_columns = frames.reads_columns()
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._public_url}>"

    @abstractmethod
    async def _send(self, request: Request) -> Outcome:
        """The reply, or the error of sending."""

    @abstractmethod
    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt."""

    async def _request(self, name: str, /, **arguments: object) -> Answer[Any]:
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
        given = {name: value for name, value in arguments.items() if value is not None}
        following: dict[str, object] = {"limit": PAGE, **given}
        try:
            while not pages or pages[-1].next_cursor is not None:
                pages.append(await self._request(name, **following))
                following |= next_page(name, pages[-1])
        except UpgradeRequired:
            if arguments.get("limit") is not None or pages:
                raise
            return (await self._request(name, **arguments)).cut_by_tier()  # all that the sample tier serves
        return pages[0].with_pages(pages[1:])

    async def _identify(self, kind: str, identifier: str) -> str:
        if identifier not in self._service_ids:
            if kind == NAME:
                matches = await self._request("search", q=identifier, type="organisation")
                self._service_ids[identifier] = named_by(identifier, matches)
            else:
                matches = await self._request("find_by_identifier", id_type=kind, id_value=identifier)
                self._service_ids[identifier] = service_id_of(identifier, matches)
        return self._service_ids[identifier]

    async def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = read_json(await self._exchange(request))
        return body

    async def _file(self, folder: str, file: str, into: Path | str, edition: str | None) -> Path:
        """Fetch a file. Raises InvalidAnswer if its digest is not the ETag."""
        target = target_of(file, into)
        part = target.with_name(f"{target.name}.part")  # only a complete file gets its final name
        query = {} if edition is None else {"edition": edition}
        try:
            reply = await self._exchange(Request(f"{folder}{file}", query, "*/*", part))
            with part.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            promised = reply.headers.get("etag", "").strip('"')
            if digest != promised:
                raise InvalidAnswer(f"{target.name}: SHA-256 is {digest}, not {promised}")
            return part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    async def _exchange(self, request: Request) -> Reply:
        """Asks until there is an answer or no retry is left. Raises the error of the last answer."""
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
            return accepted(request, self._public_url, outcome, now)
        except Unauthorized as refused:
            if not self._has_key:
                refused.args = (f"{refused.detail} SANKOFA_API_KEY is not set, and no key was given.",)
            raise


P = ParamSpec("P")
T = TypeVar("T")


Method = Callable[Concatenate[Any, P], T]


def asks(path: str, *members: str, rows_under: str = "data") -> Callable[[Method[P, T]], Method[P, T]]:
    """Declares a method that sends its arguments to an endpoint.

    `members` are the members of its envelope besides the common ones. The return type names its rows.
    """
    in_path = tuple(name for _, name, _, _ in Formatter().parse(path) if name)

    def declare(method: Method[P, T]) -> Method[P, T]:
        name, signature = method.__name__, inspect.signature(method)
        (rows,) = get_args(signature.return_annotation)
        shapes = tuple(shape.__name__ for shape in get_args(rows) or (rows,))
        ENDPOINTS[name] = Endpoint(path, in_path, rows_under, shapes, members)

        @wraps(method)
        def ask(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
            answer: T = session._ask(name, **_named_arguments(signature, args, kwargs))
            return answer

        return ask

    return declare


def row_by_row(
    method: Callable[Concatenate[Any, P], Answer[T]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """The method `iter_changes` for a method `get_changes`: same parameters, one row at a time."""
    name, signature = method.__name__, inspect.signature(method)

    @wraps(method)
    def iterate(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        arguments = _named_arguments(signature, args, kwargs)
        del arguments["all"]  # always every page
        every: Iterator[T] = session._each_row(name, **arguments)
        return every

    own = f"iter_{name.partition('_')[2] or name}"
    iterate.__name__, iterate.__qualname__ = own, f"Client.{own}"
    iterate.__doc__ = f"Every row of `{name}`, one after another; `limit` applies to each page."
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


def waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Runs a coroutine to its end at once, for a session that sends without suspending."""

    @wraps(method)
    def ask(session: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            method(session, *args, **kwargs).send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        raise RuntimeError(f"{method.__name__}: `sleep` must not suspend; use AsyncClient")

    return ask


def _named_arguments(signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by name, without `self`. Raises TypeError like a call."""
    bound = signature.bind(None, *args, **kwargs)
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "self"}


class AsyncSession(SessionBase):
    """Sends with httpx. The key defaults to SANKOFA_API_KEY, the base_url to SANKOFA_URL."""

    def __init__(
        self,
        key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: httpx.Timeout | float = TIMEOUT,
        retries: Retries = RETRIES,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        headers = default_headers(key)
        super().__init__(base_url, headers, retries)
        self._sleep = sleep
        self._http = httpx.AsyncClient(base_url=self._url, timeout=timeout, headers=headers)

    async def get_health(self) -> dict[str, Any]:
        """Whether the service is up; needs no key."""
        return await self._body(Request("/health"))

    async def get_status(self) -> dict[str, Any]:
        """The result of a real read of each dependency; also answers if some failed. Needs no key."""
        return await self._body(Request("/v1/status", also=(503,)))

    async def get_openapi(self) -> dict[str, Any]:
        """The description of the service; needs no key."""
        return await self._body(Request("/openapi.json"))

    async def link(self, path: str) -> str:
        """An address that opens this path with exactly these parameters, for programs that cannot send a key.

        For example `link("/v1/macro?series=CPI.ZA&format=csv")`. It has a small quota of its own, and ends
        with the key; `sankofa keys revoke` ends it alone.
        """
        body = await self._body(Request("/links", also=(201,), form={"path": path}))
        return str(body["address"])

    async def get_open_file(self, file: str, into: Path | str, *, edition: str | None = None) -> Path:
        """Fetches an open Parquet file, as `get_export` lists it, whole and verified."""
        return await self._file("/open/", file, into, edition)

    async def get_licensed_file(self, file: str, into: Path | str, *, edition: str | None = None) -> Path:
        """Fetches a licensed Parquet file, as `get_export` lists it, whole and verified."""
        return await self._file("/v1/export/files/", file, into, edition)

    @overload
    async def scan_panel(
        self, name: str, *, engine: Literal["polars"] = "polars", edition: str | None = None
    ) -> "polars.LazyFrame": ...

    @overload
    async def scan_panel(
        self, name: str, *, engine: Literal["duckdb"], edition: str | None = None
    ) -> "duckdb.DuckDBPyRelation": ...

    async def scan_panel(self, name: str, *, engine: Engine = "polars", edition: str | None = None) -> Any:
        """A lazy frame of Polars, or a relation of DuckDB, over an open panel by its URL.

        Only what a query needs is fetched, and all of it from one edition. Raises NotOpen.
        """
        return scan(await self._request("get_export", edition=edition), name, engine)

    async def series(
        self,
        series: str,
        *,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """A series as it was known on a day: every observation, by date, the oldest first.

        Raises UnknownSeries, with the nearest keys, if there is no such series.
        """
        key, days = series_key(series), {"as_of": as_of, "from_": from_, "to": to}
        return by_date(key, await self.columns._request("get_macro", series=key, **days, all=True), figures)

    async def vintages(
        self,
        series: str,
        *,
        release: str = "all",
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """The vintages of a series side by side: dates down, release days across, oldest first.

        A cell is the value known on that release day. With `release` (`first`, `latest` or a number as text)
        the columns are `available_at` and `value`.
        """
        query = {"series": series_key(series), "release": release, "as_of": as_of, "from_": from_, "to": to}
        return by_release(await self.columns._request("get_series_matrix", **query), figures)

    async def statement(
        self,
        issuer: str,
        *,
        as_of: date | str | None = None,
        kind: StatementKind | None = None,
        period_type: PeriodType = "FY",
        figures: Figures = "float",
    ) -> "pandas.DataFrame":
        """The statements of an issuer as known on a day: line items by period, newest first.

        `issuer` is a service_id, a ticker (`JSE:NPN`, or `NPN` where one organisation has it), an LEI or
        an exact name.
        """
        arguments = {"service_id": issuer, "as_of": as_of, "kind": kind, "period_type": period_type}
        return by_period(await self._request("get_statement", **arguments, shape="wide"), figures)

    async def universe(
        self,
        country: str | None = None,
        *,
        exchange: str | None = None,
        as_of: date | str | None = None,
        all: bool = True,
    ) -> "pandas.DataFrame":
        """Every issuer known on a day, by service_id, including those that stopped reporting since.

        With `all=False` one page of them.
        """
        arguments = {"country": country, "exchange": exchange, "as_of": as_of, "all": all}
        return universe_frame(await self.columns._request("list_issuers", **arguments))

    async def join_as_of(self, frame: Any, *, on: tuple[str, str], features: Sequence[str]) -> Any:
        """A frame of pandas or Polars with features, each as known on the day of its row.

        `on` names the identifier column (service_ids, tickers, LEIs or exact names) and the date column.
        `features` are metrics, line items of the latest full year, and series (`CPI.ZA`). The rows stay
        as they are and in their order; a cell is empty if nothing was known. A series takes a request
        for each day. Needs the starter tier or above.
        """
        return await joined_as_of(self._request, self._identify, frame, on, features)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _each_row(self, name: str, **arguments: object) -> AsyncIterator[Any]:
        following: dict[str, object] | None = arguments
        while following is not None:
            page = await self._request(name, **following)
            for row in page.rows:
                yield row
            following = None if page.next_cursor is None else following | next_page(name, page)

    async def _pause(self, seconds: float) -> None:
        await self._sleep(seconds)

    async def _send(self, request: Request) -> Outcome:
        try:
            async with self._http.stream(**request.sent) as response:
                if request.into is not None and response.status_code == 200:
                    with request.into.open("wb") as file:
                        async for chunk in response.aiter_bytes():
                            file.write(chunk)
                    return Reply(200, response.headers, b"")
                return Reply(response.status_code, response.headers, await response.aread())
        except httpx.RequestError as failure:
            return failure


class Session(SessionBase):
    """Sends with httpx. The key defaults to SANKOFA_API_KEY, the base_url to SANKOFA_URL."""

    def __init__(
        self,
        key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: httpx.Timeout | float = TIMEOUT,
        retries: Retries = RETRIES,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        headers = default_headers(key)
        super().__init__(base_url, headers, retries)
        self._sleep = sleep
        self._http = httpx.Client(base_url=self._url, timeout=timeout, headers=headers)

    get_health = waits(AsyncSession.get_health)
    get_status = waits(AsyncSession.get_status)
    get_openapi = waits(AsyncSession.get_openapi)
    link = waits(AsyncSession.link)
    get_open_file = waits(AsyncSession.get_open_file)
    get_licensed_file = waits(AsyncSession.get_licensed_file)
    scan_panel = waits(AsyncSession.scan_panel)
    series = waits(AsyncSession.series)
    vintages = waits(AsyncSession.vintages)
    statement = waits(AsyncSession.statement)
    universe = waits(AsyncSession.universe)
    join_as_of = waits(AsyncSession.join_as_of)
    _ask = waits(SessionBase._request)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _each_row(self, name: str, **arguments: object) -> Iterator[Any]:
        following: dict[str, object] | None = arguments
        while following is not None:
            page = self._ask(name, **following)
            yield from page.rows
            following = None if page.next_cursor is None else following | next_page(name, page)

    async def _pause(self, seconds: float) -> None:
        self._sleep(seconds)

    async def _send(self, request: Request) -> Outcome:
        try:
            with self._http.stream(**request.sent) as response:
                if request.into is not None and response.status_code == 200:
                    with request.into.open("wb") as file:
                        for chunk in response.iter_bytes():
                            file.write(chunk)
                    return Reply(200, response.headers, b"")
                return Reply(response.status_code, response.headers, response.read())
        except httpx.RequestError as failure:
            return failure
