"""Tenders are read from the ledger once in a build, and what is written down of them is what was read."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sankofa.derive.tenders import Tender, Tenders, awards
from sankofa.edition.write.context import BuildContext
from sankofa.ledger.reader import ReleaseRow
from sankofa.ledger.store import Ledger
from tests.world.desk import Desk
from tests.world.signals_desk import PERSON, TODAY, release, tenders


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "home", TODAY)
    days = [date(2023, 1, 1 + n % 28).isoformat() + "T08:00:00Z" for n in range(150)]
    tenders(
        desk,
        *(
            release(
                f"ocds-{n}",
                day,
                (f"a{n}", ["Alpha Roads Ltd", PERSON][: 1 + n % 2], 1000 + n, "ZAR", "active"),
                (f"b{n}", ["Beta Works Ltd"], 7, None, "cancelled"),
                buyer=f"Ministry {n % 7}",
            )
            for n, day in enumerate(days)
        ),
    )
    return desk


def told(tender: Tender) -> tuple[Any, ...]:
    """Everything but what only the served row has."""
    row = tender.row._replace(body="", summary="", parties="")
    return row, tender.summary, tender.parties, awards(tender)


def test_what_is_written_down_of_a_tender_is_what_the_ledger_has(desk: Desk) -> None:
    with closing(desk.ledger()) as ledger:
        context = BuildContext(ledger)
        (country,) = context.tenders.countries
        plain = Tenders(context.parties, context.entities)
        expected = [told(tender) for tender in plain.of(country, bodies=True)]
        assert len(expected) == 150
        assert any(one[3] for one in expected)
        assert [told(tender) for tender in context.tenders.of(country)] == expected
        again = zip(context.tenders.of(country), context.tenders.of(country), strict=True)  # two at a time
        assert [(told(one), told(other)) for one, other in again] == [(one, one) for one in expected]


def test_a_build_reads_the_releases_of_a_country_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[str] = Counter()
    read = Ledger.releases

    def counted(ledger: Ledger, country: str, *, bodies: bool) -> Iterator[ReleaseRow]:
        reads[country] += 1
        return read(ledger, country, bodies=bodies)

    monkeypatch.setattr(Ledger, "releases", counted)
    desk.publish().close()
    assert reads == {"ZA": 1}
