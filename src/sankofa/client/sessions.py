"""The synchronous and the asynchronous session; what they share is in `exchange`."""

import asyncio
import copy
import hashlib
import os
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
from sankofa.client.errors import InvalidAnswer, UpgradeRequired
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
from sankofa.client.identifiers import service_id_of, to_look_up
from sankofa.client.notebook import Progress, progress
from sankofa.client.panels import Engine, scan

if TYPE_CHECKING:
    import duckdb
    import polars

VERSION: Final = "0.1.0"
PAGE: Final = 10_000
"""Rows of a page where everything is asked for: the most that a paid tier is given at once."""
_RETRIES: Final = Retries()
_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)


class _Common:
    """What both sessions share."""

    def __init__(self, base_url: str, retries: Retries) -> None:
        self._base_url = base_url
        self._retries = retries
        self._by_columns = False
        self._service_ids: dict[str, str] = {}
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
    """Sends with httpx and waits. Without a key, SANKOFA_API_KEY is it; without a base_url, SANKOFA_URL."""

    def __init__(
        self,
        key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: httpx.Timeout | float = _TIMEOUT,
        retries: Retries = _RETRIES,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        base_url = base_url or _default_url()
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
        everything = arguments.pop("all", False)
        if lookup := to_look_up(arguments.get("service_id")):
            arguments["service_id"] = self._identify(*lookup)
        if everything:
            return self._ask_all(name, arguments)
        reply = self._run(self._exchange(self._question(name, arguments)))
        return Answer(ENDPOINTS[name], reply, limited=arguments.get("limit") is not None)

    def _ask_all(self, name: str, arguments: dict[str, object]) -> Answer[Any]:
        with progress(name) as bar:
            try:
                first, *others = self._counted(bar, name, {"limit": PAGE, **_given(arguments)})
            except UpgradeRequired:
                if arguments.get("limit") is not None:
                    raise
                return self._ask(name, **arguments)  # as much as the sample tier serves
        return first.with_pages(others)

    def _counted(self, bar: Progress, name: str, arguments: dict[str, object]) -> Iterator[Answer[Any]]:
        for page in self._walk(name, **arguments):
            bar.update(page.count)
            yield page

    def _identify(self, kind: str, identifier: str) -> str:
        if identifier not in self._service_ids:
            matches = self._ask("find_by_identifier", id_type=kind, id_value=identifier)
            self._service_ids[identifier] = service_id_of(identifier, matches)
        return self._service_ids[identifier]

    def _walk(self, name: str, **arguments: object) -> Iterator[Answer[Any]]:
        while True:
            page = self._ask(name, **arguments)
            yield page
            if page.next_cursor is None:
                return
            # with the edition, so that its removal during the walk is reported as Gone
            arguments |= {"cursor": page.next_cursor, "edition": page.edition}

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = read_json(self._run(self._exchange(request)))
        return body

    def _file(self, request: Request) -> Path:
        with remove_part_file(request):
            return verified_file(request, self._run(self._exchange(request)))

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
                    with part_path(request.into).open("wb") as file:
                        for chunk in response.iter_bytes():
                            file.write(chunk)
                    return Reply(200, headers, b"")
                return Reply(response.status_code, headers, response.read())
        except httpx.RequestError as failure:
            return failure


class AsyncSession(_Common):
    """Sends with httpx and is awaited; key and base_url as in `Session`."""

    def __init__(
        self,
        key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: httpx.Timeout | float = _TIMEOUT,
        retries: Retries = _RETRIES,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        base_url = base_url or _default_url()
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
        everything = arguments.pop("all", False)
        if lookup := to_look_up(arguments.get("service_id")):
            arguments["service_id"] = await self._identify(*lookup)
        if everything:
            return await self._ask_all(name, arguments)
        reply = await self._run(self._exchange(self._question(name, arguments)))
        return Answer(ENDPOINTS[name], reply, limited=arguments.get("limit") is not None)

    async def _ask_all(self, name: str, arguments: dict[str, object]) -> Answer[Any]:
        pages: list[Answer[Any]] = []
        with progress(name) as bar:
            try:
                async for page in self._walk(name, **{"limit": PAGE, **_given(arguments)}):
                    bar.update(page.count)
                    pages.append(page)
            except UpgradeRequired:
                if arguments.get("limit") is not None or pages:
                    raise
                return await self._ask(name, **arguments)
        return pages[0].with_pages(pages[1:])

    async def _identify(self, kind: str, identifier: str) -> str:
        if identifier not in self._service_ids:
            matches = await self._ask("find_by_identifier", id_type=kind, id_value=identifier)
            self._service_ids[identifier] = service_id_of(identifier, matches)
        return self._service_ids[identifier]

    async def _walk(self, name: str, **arguments: object) -> AsyncIterator[Answer[Any]]:
        while True:
            page = await self._ask(name, **arguments)
            yield page
            if page.next_cursor is None:
                return
            arguments |= {"cursor": page.next_cursor, "edition": page.edition}

    async def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = read_json(await self._run(self._exchange(request)))
        return body

    async def _file(self, request: Request) -> Path:
        with remove_part_file(request):
            return verified_file(request, await self._run(self._exchange(request)))

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
                    with part_path(request.into).open("wb") as file:
                        async for chunk in response.aiter_bytes():
                            file.write(chunk)
                    return Reply(200, headers, b"")
                return Reply(response.status_code, headers, await response.aread())
        except httpx.RequestError as failure:
            return failure


def _given(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in arguments.items() if value is not None}


def _default_url() -> str:
    return os.environ.get("SANKOFA_URL") or "http://127.0.0.1:8000"


def file_request(folder: str, file: str, into: Path | str, edition: str | None) -> Request:
    """The request of a file, into a path or under its own name into a folder."""
    if Path(file).name != file:
        raise ValueError("file: expected a name as the manifest lists it")
    target = Path(into)
    query = {} if edition is None else {"edition": edition}
    return Request(f"{folder}{file}", query, "*/*", target / file if target.is_dir() else target)


def part_path(target: Path) -> Path:
    """The path of a file while it is fetched; only a complete one gets its name."""
    return target.with_name(f"{target.name}.part")


@contextmanager
def remove_part_file(request: Request) -> Iterator[None]:
    """Removes the partial file, whatever happened."""
    try:
        yield
    finally:
        part_path(request.into or Path("-")).unlink(missing_ok=True)


def verified_file(request: Request, reply: Reply) -> Path:
    """The fetched file under its final name. Raises InvalidAnswer where its digest is not the ETag."""
    target = request.into or Path()
    part = part_path(target)
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    promised = reply.headers.get("etag", "").strip('"')
    if digest != promised:
        raise InvalidAnswer(f"{target.name}: SHA-256 is {digest}, not {promised}")
    part.replace(target)
    return target


def _headers(key: str | None) -> dict[str, str]:
    headers = {"User-Agent": f"sankofa-client/{VERSION}"}
    key = os.environ.get("SANKOFA_API_KEY") if key is None else key
    if key is None:
        return headers
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        raise ValueError("key: expected printable ASCII without spaces")  # what sends it would repeat it
    return {**headers, "X-API-Key": key}
