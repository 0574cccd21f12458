"""A small market of tenders on each engine, for the tests of releases and of their parties."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.live import LiveServer, create_key, run, succeed
from tests.spec.ingesting import source_entry
from tests.spec.register import COLUMNS, lei, record

Json = dict[str, Any]

SOURCES = "".join(
    (
        source_entry("portal-za", "ocds", country="ZA", license_class="open-government"),
        source_entry("portal-ke", "ocds", country="ken"),
        source_entry("portal-any", "ocds"),
        source_entry("portal-closed", "ocds", country="ZA", redistributable=False),
    )
)

BREWER, MINER, TWIN_ONE, TWIN_TWO = (lei(s) for s in ("BREWER", "MINER", "TWIN1", "TWIN2"))
TRADER, UNKNOWN = lei("TRADER"), lei("UNKNOWN")
"""The LEI of a sole proprietor, and one of which no record is held."""

ENTITIES = [
    record(BREWER, "Thornveld Breweries (Pty) Ltd", "ZA", "RA990300:2001/000777/07", also="Thornveld Beer"),
    record(MINER, "Société Minière du Fouta S.A.", "SN", "RA990100:SN 2001-B-9"),
    record(TWIN_ONE, "Twin Baobab Trading Limited", "ZA", "RA990300:1"),
    record(TWIN_TWO, "Twin Baobab Trading Ltd", "ZA", "RA990300:2"),
    record(TRADER, "Quentin Zebulon Marchbanks", "ZA", "RA991111:42", category="SOLE_PROPRIETOR"),
]
CITY = {"id": "city", "name": "City of Thornveld Metropolitan Municipality"}


def release(ocid: str, date: str = "2025-06-01T10:00:00Z", /, number: int = 1, **fields: Any) -> Json:
    """A release with the minimum it needs, and anything else that is given."""
    return {"ocid": f"ocds-test-{ocid}", "id": f"{ocid}-{number}", "date": date, "tag": ["tender"], **fields}


def party(key: str, name: str, *roles: str, **fields: Any) -> Json:
    return {"id": key, "name": name, "roles": list(roles), **fields}


def identified(scheme: str, number: str, **fields: Any) -> Json:
    return {"identifier": {"scheme": scheme, "id": number, **fields}}


def package(*releases: Any, **fields: Any) -> Json:
    return {"uri": "https://example.org", "version": "1.1", "releases": list(releases), **fields}


class Desk:
    """A data folder that takes files through the command line."""

    def __init__(self, folder: Path, more_sources: str = "", **settings: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.settings = settings
        self.home.mkdir(parents=True)
        (self.home / "sources.toml").write_text(SOURCES + more_sources)

    def command(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run(self.home, *arguments, **self.settings)

    def succeed(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return succeed(self.home, *arguments, **self.settings)

    def write(self, name: str, content: Any) -> Path:
        """Write a file from bytes, text or a JSON value."""
        path = self.folder / name
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(content)
        return path

    def ingest(self, source: str, name: str, content: Any, *options: str) -> dict[str, int]:
        """Ingest one file, which must have its format; returns the counts of the summary."""
        return counts(self.succeed("ingest", *options, source, self.write(name, content)).stdout)

    def records(self, *rows: str) -> None:
        self.ingest("gleif-lei", f"lei-{time.monotonic_ns()}.csv", "\n".join([COLUMNS, *rows]) + "\n")

    def publish(self) -> str:
        return self.succeed("publish").stdout.splitlines()[-1].split()[2].rstrip(":")

    def rejects(self) -> list[Json]:
        """Everything rejected so far."""
        paths = sorted((self.home / "rejects").glob("*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def key(self, tier: str = "starter") -> str:
        return create_key(self.home, tier, "--per-minute", "1000000", **self.settings)

    @contextmanager
    def serve(self, **settings: str) -> Iterator["PaidCaller"]:
        with LiveServer(self.home, workers=1, **self.settings, **settings) as server:
            yield PaidCaller(server, self.key())

    def publish_and_serve(self, **settings: str) -> AbstractContextManager["PaidCaller"]:
        self.publish()
        return self.serve(**settings)


def without_mark(ref: str) -> str:
    """A `source_ref` without the part that identifies the capture of a file."""
    return re.sub(r"@[0-9a-f]{8}#", "#", ref)


def counts(summary: str) -> dict[str, int]:
    words = summary.split(" (rejects")[0].partition(": ")[2].replace(",", "").split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


class PaidCaller:
    """A server, called with a paid key; figures are parsed exactly."""

    def __init__(self, server: LiveServer, key: str) -> None:
        self.server = server
        self.key = key

    def get(self, path: str, **query: Any) -> Json:
        answer = self.server.http.get(path, params=query, headers={"x-api-key": self.key})
        assert answer.status_code == 200, answer.text
        whole: Json = json.loads(answer.text, parse_float=Decimal)
        assert whole["count"] == len(whole["data"])
        return whole

    def refused(self, path: str, **query: Any) -> Json:
        answer = self.server.http.get(path, params=query, headers={"x-api-key": self.key})
        assert answer.status_code >= 400, answer.text
        problem: Json = answer.json()
        return problem

    def tenders(self, **query: Any) -> list[Json]:
        return list(self.get("/v1/tenders", **{"limit": 10000, **query})["data"])

    def tender(self, ocid: str, **query: Any) -> Json:
        """The only row of a process."""
        (row,) = [row for row in self.tenders(**query) if row["ocid"] == f"ocds-test-{ocid}"]
        return row

    def parties(self, **query: Any) -> list[Json]:
        return list(self.get("/v1/tender-parties", **{"limit": 10000, **query})["data"])

    def pages(self, limit: int = 7, **query: Any) -> Iterator[Json]:
        page = self.get("/v1/tenders", limit=limit, **query)
        yield page
        while page["next_cursor"] is not None:
            page = self.get("/v1/tenders", limit=limit, cursor=page["next_cursor"], **query)
            yield page

    def tool(self, name: str, **arguments: Any) -> tuple[bool, Json]:
        """Whether a tool failed, and its answer, through the SDK's own client."""

        async def call() -> tuple[bool, Json]:
            async with self._client() as client:
                return await _answer(client, name, arguments)

        return asyncio.run(call())

    def pages_by_tool(self, name: str, **arguments: Any) -> list[Json]:
        """Every page of a tool's answer, in one session of the SDK's own client."""

        async def read_pages() -> list[Json]:
            pages: list[Json] = []
            async with self._client() as client:
                cursor: Json = {}
                while not pages or cursor["cursor"] is not None:
                    failed, page = await _answer(client, name, {**arguments, **cursor})
                    assert not failed, page
                    pages.append(page)
                    cursor = {"cursor": page["next_cursor"]}
            return pages

        return asyncio.run(read_pages())

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(headers={"x-api-key": self.key}, verify=False) as http,
            Client(streamable_http_client(f"{self.server.url}/mcp", http_client=http)) as client,
        ):
            yield client


async def _answer(client: Client, name: str, arguments: Json) -> tuple[bool, Json]:
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    body: Json = json.loads(content.text)  # type: ignore[union-attr]
    if not result.is_error:
        assert result.structured_content == body
    return bool(result.is_error), body


def instant(text: str) -> datetime:
    when = datetime.fromisoformat(text)
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


@pytest.fixture
def desk(fresh_engine: dict[str, str], tmp_path: Path) -> Desk:
    """An empty data folder on each engine."""
    return Desk(tmp_path, **fresh_engine)


@pytest.fixture
def plain_desk(tmp_path: Path) -> Desk:
    """An empty data folder for tests that do not depend on the engine."""
    return Desk(tmp_path)
