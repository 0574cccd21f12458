"""The client reads every page, all from one edition."""

import asyncio

from sankofa.client import AsyncClient, Client
from tests.live import LiveServer


def test_every_row_comes_once_and_in_order(client: Client) -> None:
    whole = client.search_tenders(country="ZA", limit=10_000)
    iterated = list(client.iter_tenders(country="ZA", limit=40))
    assert whole.next_cursor is None
    assert len(iterated) > 80
    assert iterated == whole.rows


def test_the_async_client_reads_every_page_too(server: LiveServer, paid_key: str, client: Client) -> None:
    async def release_ids() -> list[str]:
        async with AsyncClient(paid_key, server.url) as other:
            return [row["release_id"] async for row in other.iter_tenders(country="NG", limit=30)]

    assert asyncio.run(release_ids()) == [
        row["release_id"] for row in client.iter_tenders(country="NG", limit=10_000)
    ]


def test_all_pages_of_changes_are_read(client: Client) -> None:
    rows = list(client.iter_changes(dataset="entities", limit=7))
    assert len({tuple(row["key"]) for row in rows}) == len(rows) >= 15
