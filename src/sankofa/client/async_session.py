"""A session that is awaited. tools/client.py writes `session`, which waits, from this module."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import httpx

from sankofa.client.answers import Answer, next_page
from sankofa.client.endpoints import ENDPOINTS
from sankofa.client.errors import UpgradeRequired
from sankofa.client.exchange import (
    PAGE,
    RETRIES,
    TIMEOUT,
    Exchange,
    Outcome,
    Reply,
    Request,
    Retries,
    SessionBase,
    default_headers,
    default_url,
    file_request,
    given_only,
    part_path,
    read_json,
    remove_part_file,
    verified_file,
)
from sankofa.client.shortcuts import NAME, Engine, named_by, scan, service_id_of, to_look_up

if TYPE_CHECKING:
    import duckdb
    import polars


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
        base_url, headers = base_url or default_url(), default_headers(key)
        super().__init__(base_url, headers, retries)
        self._sleep = sleep
        self._http = httpx.AsyncClient(base_url=base_url, timeout=timeout, headers=headers)

    async def get_health(self) -> dict[str, Any]:
        """Whether the service is up; needs no key."""
        return await self._body(Request("/health"))

    async def get_status(self) -> dict[str, Any]:
        """The result of a real read of each dependency; answers also when some failed. Needs no key."""
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
        try:
            async for page in self._paged(name, **{"limit": PAGE, **given_only(arguments)}):
                pages.append(page)
        except UpgradeRequired:
            if arguments.get("limit") is not None or pages:
                raise
            return (await self._ask(name, **arguments)).cut_by_tier()  # as much as the sample tier serves
        return pages[0].with_pages(pages[1:])

    async def _identify(self, kind: str, identifier: str) -> str:
        if identifier not in self._service_ids:
            if kind == NAME:
                matches = await self._ask("search", q=identifier, type="organisation")
                self._service_ids[identifier] = named_by(identifier, matches)
            else:
                matches = await self._ask("find_by_identifier", id_type=kind, id_value=identifier)
                self._service_ids[identifier] = service_id_of(identifier, matches)
        return self._service_ids[identifier]

    async def _paged(self, name: str, **arguments: object) -> AsyncIterator[Answer[Any]]:
        while True:
            page = await self._ask(name, **arguments)
            yield page
            if page.next_cursor is None:
                return
            arguments |= next_page(name, page)

    async def _each_row(self, pages: AsyncIterator[Answer[Any]]) -> AsyncIterator[Any]:
        async for page in pages:
            for row in page.rows:
                yield row

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
            method = "GET" if request.form is None else "POST"
            async with self._http.stream(
                method, request.path, params=request.query, headers=request.headers, data=request.form
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
