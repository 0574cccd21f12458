"""Pages are walked to the end, all on one edition."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from sankofa.client import AsyncClient, Client, Gone
from tests.client.conftest import publish_another, settled
from tests.live import PATIENCE, LiveServer, run


def test_every_row_comes_once_and_in_order(client: Client) -> None:
    whole = client.search_tenders(country="ZA", limit=10_000)
    walked = list(client.iter_tenders(country="ZA", limit=40))
    assert whole.next_cursor is None
    assert len(walked) > 80
    assert walked == whole.rows


def test_pages_are_answers(client: Client) -> None:
    pages = list(client.tenders_pages(country="KE", limit=25))
    assert [page.count for page in pages[:-1]] == [25] * (len(pages) - 1)
    assert {page.edition for page in pages} == {pages[0].edition}
    by_columns = [page.to_pandas() for page in client.columns.tenders_pages(country="KE", limit=25)]
    assert [len(frame) for frame in by_columns] == [page.count for page in pages]


def test_the_awaited_client_walks_too(server: LiveServer, paid_key: str, client: Client) -> None:
    async def walk() -> list[str]:
        async with AsyncClient(paid_key, server.url) as other:
            pages = [page.count async for page in other.tenders_pages(country="NG", limit=30)]
            rows = [row["release_id"] async for row in other.iter_tenders(country="NG", limit=30)]
            assert sum(pages) == len(rows)
            return rows

    assert asyncio.run(walk()) == [
        row["release_id"] for row in client.iter_tenders(country="NG", limit=10_000)
    ]


def test_changes_are_walked_to_the_end(client: Client) -> None:
    rows = list(client.iter_changes(dataset="entities", limit=7))
    assert len({tuple(row["key"]) for row in rows}) == len(rows) >= 15


def test_a_walk_stays_on_its_edition_and_says_when_that_is_gone(sample_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(sample_home, home)
    with LiveServer(home) as live, Client(live.key("starter"), live.url) as client:
        walk = client.tenders_pages(country="ZA", limit=50)
        first = next(walk)
        publish_another(home, 1)
        settled(client, other_than=first.edition)
        second = next(walk)
        assert second.edition == first.edition
        assert second.rows[0] != first.rows[0]
        publish_another(home, 2)
        assert first.edition not in run(home, "editions").stdout
        gone_from(live, first.edition)
        with pytest.raises(Gone, match=first.edition):
            for _ in walk:
                pass


def gone_from(live: LiveServer, edition: str) -> None:
    """Until the server is seen to have let go of an edition."""
    deadline = time.monotonic() + PATIENCE
    while live.get(f"/open/macro-momentum.parquet?edition={edition}").status_code == 200:
        assert time.monotonic() < deadline, "the server still has it"
