"""A walk and a scan stay on the edition they began with, and say so once it is gone."""

from pathlib import Path

import pytest

from sankofa.client import Client, Gone
from tests.patience import until
from tests.spec.market import CITY, Desk, release

OTHER = {"id": "board", "name": "Karoo Water Board"}


@pytest.mark.usefixtures("httpfs")
def test_a_walk_and_scans_stay_on_their_edition_and_fail_once_it_is_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, editions_kept="1")

    def publish(number: int) -> str:
        told = [
            release(
                f"{number}-{n}", f"2025-0{number}-1{n}T10:00:00Z", buyer=buyer, tender={"category": "Works"}
            )
            for n, buyer in enumerate((CITY, OTHER, CITY))
        ]
        desk.ingest("portal-za", f"{number}.json", told)
        return desk.publish()

    first = publish(1)
    with desk.serve() as asked, Client(asked.key, asked.server.url) as client:
        walk = client.tenders_pages(country="ZA", limit=1)
        assert next(walk).edition == first
        lazy = client.scan_panel("procurement-demand")
        relation = client.scan_panel("procurement-demand", engine="duckdb")

        def months() -> list[list[str]]:
            return [
                lazy.select("month").collect()["month"].to_list(),
                [month for (month,) in relation.project("month").fetchall()],
            ]

        assert months() == [["2025-01"]] * 2
        second = publish(2)
        until(lambda: client.get_status()["edition"] == second)
        assert client.scan_panel("procurement-demand").collect().height == 2
        assert months() == [["2025-01"]] * 2
        page = next(walk)
        assert (page.edition, page.rows[0]["release_date"][:7]) == (first, "2025-01")

        publish(3)
        open_file = f"/open/procurement-demand.parquet?edition={first}"
        until(lambda: asked.server.get(open_file).status_code == 410)
        with pytest.raises(Gone, match=first):
            next(walk)
        with pytest.raises(Exception, match="no longer kept"):
            lazy.collect()
        with pytest.raises(Exception, match="HTTP GET error"):
            relation.fetchall()
