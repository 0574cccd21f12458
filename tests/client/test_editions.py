"""Pages and scans stay on the edition they began with; once it is gone, pages go on in the current one."""

from pathlib import Path

import pytest

from sankofa.client import Client, Gone
from tests.patience import until
from tests.spec.market import CITY, Desk, release

OTHER = {"id": "board", "name": "Karoo Water Board"}


@pytest.mark.deep
@pytest.mark.usefixtures("httpfs")
def test_pages_go_on_once_their_edition_is_gone_and_scans_and_changes_fail(tmp_path: Path) -> None:
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
        walk = client.iter_tenders(country="ZA", limit=1)
        assert next(walk)["release_date"][:7] == "2025-01"
        changes = client.iter_changes(limit=1)
        assert next(changes)["change"] == "added"
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
        assert next(walk)["release_date"][:7] == "2025-01"

        publish(3)
        open_file = f"/open/procurement-demand.parquet?edition={first}"
        until(lambda: asked.server.get(open_file).status_code == 410)
        assert [row["ocid"] for row in walk] == ["ocds-test-1-0"]
        with pytest.raises(Gone, match=first):
            next(changes)
        with pytest.raises(Exception, match="no longer kept"):
            lazy.collect()
        with pytest.raises(Exception, match="HTTP GET error"):
            relation.fetchall()
