"""Licences follow rows: a licensed twin of every source, and its rows that may be in an open file."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from sankofa.derive.signals.contract import panels
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.publish import publish
from sankofa.edition.write.tables import tables
from sankofa.model.provenance import KEYED_CLASSES, file_license, strictest
from sankofa.sources.registry import Source, load_sources
from tests.spec.demand import released, releases
from tests.world.desk import Desk
from tests.world.signals_desk import observations

TODAY = date(2026, 1, 31)
CUMULATIVE = "red-flags"
"""Counts all processes up to a quarter, so the licensed releases of the first month decide every row."""
OPEN_PANELS = sorted({panel.key for panel in panels().values() if panel.access == "open"} - {CUMULATIVE})
OPEN_TABLES = sorted({table.name for table in tables() if table.open} - {CUMULATIVE})
SOURCES = "".join(
    f"""
[sources.{name}]
adapter = "{adapter}"
sku = "{sku}"
publisher = "Publisher of {name}"
licence = "Licence of {name}"
license_class = "{license_class}"
commercial_redistribution = true
{'country = "ZA"' if adapter == "ocds" else ""}
"""
    for name, adapter, sku, license_class in (
        ("portal", "ocds", "AF-TENDER", "open-government"),
        ("portal-twin", "ocds", "AF-TENDER", "licensed-redistribution"),
        ("series", "series-csv", "AF-MACRO", "cc-by"),
        ("series-twin", "series-csv", "AF-MACRO", "statutory-filing"),
    )
)
TWINS = ("portal-twin", "series-twin")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Releases of one country and values of the same series, some from each of two sources."""
    desk = Desk(tmp_path_factory.mktemp("licences") / "home", TODAY)
    desk.home.mkdir(parents=True, exist_ok=True)
    (desk.home / "sources.toml").write_text(SOURCES)
    chance = random.Random(12)
    portal = [one for one in releases("ZA", seed=5) if released(one).date() <= TODAY]
    first = min(f"{released(one):%Y-%m}" for one in portal)  # the month decides the momentum
    twin = [one for one in portal if chance.random() < 0.04 or f"{released(one):%Y-%m}" == first]
    for release in twin:  # earlier winners count in every later quarter
        if released(release).date() < date(2025, 1, 1):
            release.pop("awards", None)
    # An award that the twin reported before, or cancelled, is missing from a later count of the other's.
    later = [dict(one, date="2025-08-02T00:00:00Z") for one in portal[:1]]
    for number, status in enumerate(("active", "cancelled")):
        award = {"id": "x", "status": status, "suppliers": [{"name": "Karoo Water Board"}]}
        award_release = later[0] | {"ocid": f"ocds-x-{number}", "awards": [award]}
        twin.append(award_release | {"id": "early", "date": "2025-05-02T00:00:00Z"})
        portal.append(award_release | {"id": "late", "awards": [award | {"status": "active"}]})
    _take(desk, "portal", "portal.json", json.dumps({"releases": [one for one in portal if one not in twin]}))
    _take(desk, "portal-twin", "twin.json", json.dumps({"releases": twin}))
    for source, share in (("series", 0.9), ("series-twin", 0.2)):
        lines = ["series,series_type,frequency,country,date,value,unit,release_date"]
        for series in ("CPI.ZA", "PPI.ZA"):
            for month in range(1, 40):
                day = f"{2021 + month // 12}-{month % 12 + 1:02d}"
                if chance.random() < share:
                    lines.append(
                        f"{series},cpi,monthly,ZA,{day}-01,{100 + chance.random():.2f},index,{day}-20"
                    )
        _take(desk, source, f"{source}.csv", "\n".join(lines) + "\n")
    return desk


def _take(desk: Desk, source: str, name: str, content: str) -> None:
    path = desk.inbox / name
    path.write_text(content)
    assert desk.take(source, path).failures == []


@contextmanager
def world(desk: Desk, **changed: dict[str, Any]) -> Iterator[BuildContext]:
    """The input of a build, with some registry entries changed."""
    sources: dict[str, Source] = load_sources(desk.home)
    for name, fields in changed.items():
        source_id = name.replace("_", "-")
        sources[source_id] = msgspec.structs.replace(sources[source_id], **fields)
    ledger = desk.ledger()
    try:
        yield BuildContext(ledger, sources)
    finally:
        ledger.close()


def _without_times(row: Any) -> Any:
    return msgspec.structs.replace(row, observed_at="")


@pytest.mark.parametrize("key", OPEN_PANELS)
def test_an_open_row_does_not_depend_on_the_licensed_source(desk: Desk, key: str) -> None:
    with world(desk) as with_twins:
        rows = [(o.row, o.sources) for o in observations(panels()[key], with_twins)]
    closed = {"commercial_redistribution": False}
    with world(desk, portal_twin=closed, series_twin=closed) as without:
        clean = {_without_times(o.row) for o in observations(panels()[key], without)}
    open_rows = [row for row, _ in rows if row.license_class not in KEYED_CLASSES]
    assert open_rows, "some rows have nothing to do with the licensed source"
    assert len(open_rows) < len(rows), "and some have"
    assert [row for row in open_rows if _without_times(row) not in clean] == []
    for row, sources in rows:
        assert (row.license_class in KEYED_CLASSES) == (not sources.isdisjoint(TWINS))
        assert row.source_ref.startswith(tuple(f"{source}:" for source in sources))


@pytest.fixture(scope="module")
def published(desk: Desk) -> dict[str, Any]:
    ledger = desk.ledger()
    try:
        return publish(desk.store, ledger, 3, sources=load_sources(desk.home))
    finally:
        ledger.close()


def _path(desk: Desk, manifest: dict[str, Any], name: str) -> Path:
    (path,) = (p for p in desk.home.rglob(name) if manifest["edition"] in str(p))
    return path


@pytest.mark.rule("PROV-7")
@pytest.mark.parametrize("name", OPEN_TABLES)
def test_an_open_file_has_no_row_of_a_narrower_licence(desk: Desk, published: dict[str, Any], name: str):
    (entry,) = (one for one in published["files"] if one["name"] == f"{name}.parquet")
    table = pq.read_table(_path(desk, published, entry["name"]))
    rows = table.to_pylist()
    assert {row["license_class"] for row in rows}.isdisjoint(KEYED_CLASSES)
    assert entry["license"] == "CC-BY-4.0"
    assert entry["license_class"] == strictest({row["license_class"] for row in rows})
    assert entry["row_count"] == len(rows) > 0
    assert entry["rows_left_out"] > 0
    assert entry["row_count"] + entry["rows_left_out"] == _served(desk, published, name)
    attribution = table.schema.metadata[b"attribution"].decode()
    own = "portal" if entry["sku"] == "AF-TENDER" else "series"
    assert attribution == f"Publisher of {own} (Licence of {own})", "and of no other source"


@pytest.mark.rule("PROV-7")
def test_no_row_of_a_cumulative_panel_is_in_its_open_file(desk: Desk, published: dict[str, Any]) -> None:
    with world(desk) as with_twins:
        rows = [(o.row, o.sources) for o in observations(panels()[CUMULATIVE], with_twins)]
    assert rows
    for row, sources in rows:
        assert row.license_class in KEYED_CLASSES
        assert "portal-twin" in sources
    (file,) = (one for one in published["files"] if one["name"] == f"{CUMULATIVE}.parquet")
    assert (file["row_count"], file["rows_left_out"]) == (0, len(rows))


def _served(desk: Desk, manifest: dict[str, Any], name: str) -> int:
    """Rows of a panel; each is stored under every question it answers, but counted once."""
    with world(desk) as context:
        return sum(1 for _ in observations(panels()[name], context))


@pytest.mark.rule("PROV-7")
def test_if_every_source_is_licensed_open_files_are_empty_but_keyed_rows_exist(
    desk: Desk, published: dict[str, Any]
) -> None:
    sources = {
        name: msgspec.structs.replace(source, license_class="licensed-redistribution")
        for name, source in load_sources(desk.home).items()
    }
    ledger = desk.ledger()
    try:
        manifest = publish(desk.store, ledger, 3, sources=sources)
    finally:
        ledger.close()
    open_files = {one["name"]: one for one in manifest["files"] if one["access"] == "open"}
    assert sorted(open_files) == sorted(f"{name}.parquet" for name in (*OPEN_TABLES, CUMULATIVE))
    for one in open_files.values():
        assert (one["row_count"], one["rows_left_out"] > 0) == (0, True)
    for key in OPEN_PANELS:
        assert manifest["rows"][f"signal-{key}"] > 0
    assert manifest["edition"] != published["edition"], "a licence class is part of what is published"


@pytest.mark.rule("PROV-8")
def test_the_licence_of_a_file_follows_from_the_classes_of_its_rows() -> None:
    free = ("public-domain", "cc0", "cc-by", "open-government", "synthetic")
    assert file_license(free, keyed=False) == "CC-BY-4.0"
    for narrow in KEYED_CLASSES:
        assert file_license((*free, narrow), keyed=False) == "LicenseRef-Sankofa-Bulk"
        assert strictest((*free, narrow)) == narrow, "whatever it is mixed with"
    assert file_license(free, keyed=True) == "LicenseRef-Sankofa-Bulk"
