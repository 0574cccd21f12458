"""Build, check, switch: what does not pass is never served."""

from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from sankofa.edition.read.edition_manager import open_edition, open_newest_usable
from sankofa.model.errors import CheckFailed, EditionError
from sankofa.model.identifiers import service_id
from sankofa.model.records import Fact
from tests.edition_parts import part_of
from tests.world.desk import Desk, ask

ISSUER = "ticker:JSE:TST"
KEY = service_id(ISSUER)
TODAY = date(2024, 1, 1)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", TODAY)


def add_edition(desk: Desk, number: int) -> str:
    """A further edition, a day after the last, with one more figure."""
    desk.set_day(date(2024, 1, number))
    row = [
        ISSUER,
        "revenue",
        str(number),
        "ZAR",
        f"{2000 + number}-01-01",
        f"{2000 + number}-12-31",
        "",
        "d",
        "",
        "",
    ]
    desk.filings(f"{number}.csv", [row])
    edition = desk.publish(keep=2)
    edition.close()
    return edition.id


def revenue(desk: Desk, edition_id: str) -> int:
    edition = open_edition(desk.store, edition_id)
    try:
        return len(ask(edition, KEY, [date(2024, 6, 1)], ["all"])[date(2024, 6, 1), "all"])
    finally:
        edition.close()


def test_publishing_again_after_an_upgrade_writes_the_new_layout(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as before:
        before.setattr("sankofa.edition.write.publish.LAYOUT", 0)
        with pytest.raises(EditionError, match=r"of another layout, 0, .*: run `sankofa publish`"):
            add_edition(desk, 1)
    desk.publish().close()
    current = desk.store.list_editions().current
    assert current is not None
    assert revenue(desk, current) == 1


@pytest.mark.rule("PROV-9")
def test_a_row_under_no_known_licence_class_stops_the_edition_and_the_old_one_stays(desk: Desk) -> None:
    old = add_edition(desk, 1)
    figure = Fact(ISSUER, "revenue", "ZAR", "2019-01-01", "2019-12-31", "", "d", "7", "other place")
    with closing(desk.ledger()) as ledger, ledger.capture("filings", "stolen", "f", "0") as capture:
        capture.fact(figure)
        capture.fact(figure._replace(subject="ticker:JSE:B"))
    with pytest.raises(CheckFailed, match="unknown licence class"):
        desk.publish()
    shelf = desk.store.list_editions()
    assert (shelf.editions, shelf.current) == ((old,), old)
    assert [p.name for p in (desk.home / "editions").iterdir() if p.name.startswith(".")] == []


def damage(desk: Desk, edition: str) -> None:
    path = part_of(desk.home / "editions" / edition)
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.rule("PUB-7")
def test_a_damaged_edition_is_refused_by_name_and_the_newest_whole_one_is_served(desk: Desk) -> None:
    made = [add_edition(desk, n) for n in range(1, 4)]
    for edition in made[1:]:
        damage(desk, edition)
    with pytest.raises(EditionError, match=f"edition {made[2]}: corrupt"):
        open_edition(desk.store, made[2])
    found, complaints = open_newest_usable(desk.store)
    assert found is not None
    assert found.id == made[0]
    assert len(complaints) == 2
    found.close()


@pytest.mark.parametrize("missing", ["parts", "manifest.json"])
def test_an_incomplete_edition_is_refused_by_name(desk: Desk, missing: str) -> None:
    edition = add_edition(desk, 1)
    folder = desk.home / "editions" / edition
    path = part_of(folder) if missing == "parts" else folder / missing
    path.unlink()
    with pytest.raises(EditionError, match=rf"edition {edition}: incomplete: {path.name}"):
        open_edition(desk.store, edition)
