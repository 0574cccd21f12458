"""The two ways to send and to wait; everything else is said once, in `exchange`."""

import asyncio
import copy
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, overload

import httpx

from sankofa.client import frames
from sankofa.client.answers import Answer
from sankofa.client.endpoints import ENDPOINTS
from sankofa.client.errors import InvalidAnswer
from sankofa.client.exchange import (
    COLUMNS,
    JSON,
    Exchange,
    Outcome,
    Reply,
    Request,
    Retries,
    exchange,
    question,
    read_json,
)
from sankofa.client.panels import Engine, scan

if TYPE_CHECKING:
    import duckdb
    import polars

VERSION: Final = "0.1.0"
_RETRIES: Final = Retries()
_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)


class _Common:
    """What both kinds of session know."""

    def __init__(self, base_url: str, retries: Retries) -> None:
        self._base_url = base_url
        self._retries = retries
        self._by_columns = False
        self._clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def columns(self) -> Self:
        """The same client, answered in columns: an Arrow stream, which turns into frames many times faster.

        Where neither pyarrow nor Polars is installed the answers are as before.
        """
        other = copy.copy(self)
        other._by_columns = frames.reads_columns()
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._base_url}>"

    def _exchange(self, request: Request) -> Exchange:
        return exchange(request, self._retries, self._clock)

    def _question(self, name: str, arguments: Mapping[str, object]) -> Request:
        return question(ENDPOINTS[name], arguments, COLUMNS if self._by_columns else JSON)


class Session(_Common):
    """Sends with httpx and waits."""

    def __init__(
        self,
        key: str | None = None,
        base_url: str = "http://127.0.0.1:8000",
        *,
        timeout: httpx.Timeout | float = _TIMEOUT,
        retries: Retries = _RETRIES,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        super().__init__(base_url, retries)
        self._sleep = sleep
        self._http = httpx.Client(base_url=base_url, timeout=timeout, headers=_headers(key))

    def get_health(self) -> dict[str, Any]:
        """Whether the service is up; needs no key."""
        return self._body(Request("/health"))

    def get_status(self) -> dict[str, Any]:
        """What a real read of each dependency gave; an answer also where some failed. Needs no key."""
        return self._body(Request("/v1/status", also=(503,)))

    def get_openapi(self) -> dict[str, Any]:
        """The description of the service; needs no key."""
        return self._body(Request("/openapi.json"))

    def get_open_file(self, file: str, into: Path | str, *, edition: str | None = None) -> Path:
        """Fetches an open Parquet file, as `get_export` lists it, whole and verified."""
        return self._file(file_request("/open/", file, into, edition))

    def get_licensed_file(self, file: str, into: Path | str, *, edition: str | None = None) -> Path:
        """Fetches a licensed Parquet file, as `get_export` lists it, whole and verified."""
        return self._file(file_request("/v1/export/files/", file, into, edition))

    @overload
    def scan_panel(
        self, name: str, *, engine: Literal["polars"] = "polars", edition: str | None = None
    ) -> "polars.LazyFrame": ...

    @overload
    def scan_panel(
        self, name: str, *, engine: Literal["duckdb"], edition: str | None = None
    ) -> "duckdb.DuckDBPyRelation": ...

    def scan_panel(self, name: str, *, engine: Engine = "polars", edition: str | None = None) -> Any:
        """A lazy frame of Polars, or a relation of DuckDB, over an open panel by its URL.

        Only what a query needs is fetched, and all of it from one edition. Raises NotOpen.
        """
        return scan(self._ask("get_export", edition=edition), name, engine)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, name: str, **arguments: object) -> Answer[Any]:
        return Answer(ENDPOINTS[name], self._run(self._exchange(self._question(name, arguments))))

    def _walk(self, name: str, **arguments: object) -> Iterator[Answer[Any]]:
        while True:
            page = self._ask(name, **arguments)
            yield page
            if page.next_cursor is None:
                return
            # named, so that an edition that is removed meanwhile is told as what it is
            arguments |= {"cursor": page.next_cursor, "edition": page.edition}

    def _body(self, request: Request) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self._run(self._exchange(request)))
        return found

    def _file(self, request: Request) -> Path:
        with nothing_left(request):
            return kept_file(request, self._run(self._exchange(request)))

    def _run(self, steps: Exchange) -> Reply:
        step = next(steps)
        while True:
            outcome = self._send(step) if isinstance(step, Request) else self._sleep(step)
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                reply: Reply = done.value
                return reply

    def _send(self, request: Request) -> Outcome:
        try:
            with self._http.stream(
                "GET", request.path, params=request.query, headers=request.headers
            ) as response:
                headers = response.headers
                if request.into is not None and response.status_code == 200:
                    with part_of(request.into).open("wb") as file:
                        for chunk in response.iter_bytes():
                            file.write(chunk)
                    return Reply(200, headers, b"")
                return Reply(response.status_code, headers, response.read())
        except httpx.RequestError as failure:
            return failure


class AsyncSession(_Common):
    """Sends with httpx and is awaited."""

    def __init__(
        self,
        key: str | None = None,
        base_url: str = "http://127.0.0.1:8000",
        *,
        timeout: httpx.Timeout | float = _TIMEOUT,
        retries: Retries = _RETRIES,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        super().__init__(base_url, retries)
        self._sleep = sleep
        self._http = httpx.AsyncClient(base_url=base_url, timeout=timeout, headers=_headers(key))

    async def get_health(self) -> dict[str, Any]:
        """Whether the service is up; needs no key."""
        return await self._body(Request("/health"))

    async def get_status(self) -> dict[str, Any]:
        """What a real read of each dependency gave; an answer also where some failed. Needs no key."""
        return await self._body(Request("/v1/status", also=(503,)))

    async def get_openapi(self) -> dict[str, Any]:
        """The description of the service; needs no key."""
        return await self._body(Request("/openapi.json"))

    async def get_open_file(self, file: str, into: Path | str, *, edition: str | None = None) -> Path:
        """Fetches an open Parquet file, as `get_export` lists it, whole and verified."""
        return await self._file(file_request("/open/", file, into, edition))

    async def get_licensed_file(self, file: str, into: Path | str, *, edition: str | None = None) -> Path:
        """Fetches a licensed Parquet file, as `get_export` lists it, whole and verified."""
        return await self._file(file_request("/v1/export/files/", file, into, edition))

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
        return scan(await self._ask("get_export", edition=edition), name, engine)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, name: str, **arguments: object) -> Answer[Any]:
        return Answer(ENDPOINTS[name], await self._run(self._exchange(self._question(name, arguments))))

    async def _walk(self, name: str, **arguments: object) -> AsyncIterator[Answer[Any]]:
        while True:
            page = await self._ask(name, **arguments)
            yield page
            if page.next_cursor is None:
                return
            arguments |= {"cursor": page.next_cursor, "edition": page.edition}

    async def _body(self, request: Request) -> dict[str, Any]:
        found: dict[str, Any] = read_json(await self._run(self._exchange(request)))
        return found

    async def _file(self, request: Request) -> Path:
        with nothing_left(request):
            return kept_file(request, await self._run(self._exchange(request)))

    async def _run(self, steps: Exchange) -> Reply:
        step = next(steps)
        while True:
            outcome = await (self._send(step) if isinstance(step, Request) else self._sleep(step))
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                reply: Reply = done.value
                return reply

    async def _send(self, request: Request) -> Outcome:
        try:
            async with self._http.stream(
                "GET", request.path, params=request.query, headers=request.headers
            ) as response:
                headers = response.headers
                if request.into is not None and response.status_code == 200:
                    with part_of(request.into).open("wb") as file:
                        async for chunk in response.aiter_bytes():
                            file.write(chunk)
                    return Reply(200, headers, b"")
                return Reply(response.status_code, headers, await response.aread())
        except httpx.RequestError as failure:
            return failure


def file_request(folder: str, file: str, into: Path | str, edition: str | None) -> Request:
    """A question for a file; into a folder it goes under its own name."""
    if Path(file).name != file:
        raise ValueError("file: expected a name as the manifest lists it")
    place = Path(into)
    query = {} if edition is None else {"edition": edition}
    return Request(f"{folder}{file}", query, "*/*", place / file if place.is_dir() else place)


def part_of(place: Path) -> Path:
    """Where a file is while it is fetched: under its name it is whole."""
    return place.with_name(f"{place.name}.part")


@contextmanager
def nothing_left(request: Request) -> Iterator[None]:
    """What is not fetched whole leaves nothing behind."""
    try:
        yield
    finally:
        part_of(request.into or Path("-")).unlink(missing_ok=True)


def kept_file(request: Request, reply: Reply) -> Path:
    """The file fetched, under its name. Raises InvalidAnswer where it is not the one that was promised."""
    place = request.into or Path()
    part = part_of(place)
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    promised = reply.headers.get("etag", "").strip('"')
    if found != promised:
        raise InvalidAnswer(f"{place.name}: SHA-256 is {found}, not {promised}")
    part.replace(place)
    return place


def _headers(key: str | None) -> dict[str, str]:
    named = {"User-Agent": f"sankofa-client/{VERSION}"}
    if key is None:
        return named
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        raise ValueError("key: expected printable ASCII without spaces")  # what sends it would repeat it
    return {**named, "X-API-Key": key}
