"""GET /v1/quality-metrics/{sku}, the tool get_quality_metrics, and the floors of `sankofa publish`."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.live import LiveServer, run, succeed
from tests.spec.market import Desk

SOURCE = """
[sources.{name}]
adapter = "ocds"
sku = "AF-TENDER"
country = "ZA"
license_class = "synthetic"
commercial_redistribution = true
{floors}
"""
FLOORS = "floors = { releases = 3, share_resolved = 0.5, freshness_days = 36500, share_audited = 0.1 }"


def release(number: int, supplier: str = "Sizwe Sample Works (Pty) Ltd") -> dict[str, object]:
    return {
        "ocid": f"ocds-q-{number}", "id": f"{number}", "date": f"2026-01-{number:02}T00:00:00Z",
        "tag": ["award"], "initiationType": "tender", "buyer": {"name": "Department of Sample Health"},
        "tender": {"id": "t", "title": "Gloves", "value": {"amount": 5 * number % 10, "currency": "ZAR"}},
        "awards": [{"id": "a", "suppliers": [{"name": supplier}]}],
    }  # fmt: skip


def world(home: Path, floors: str, count: int = 4) -> Path:
    home.mkdir(parents=True)
    (home / "sources.toml").write_text(SOURCE.format(name="portal", floors=floors))
    lines = [release(n) for n in range(1, count)] + [release(count, "Wendeline Quackenbush")]
    file = home / "releases.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{broken}\n")
    succeed(home, "ingest", "portal", str(file))
    return home


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    home = world(tmp_path_factory.mktemp("quality") / "home", FLOORS)
    succeed(home, "publish")
    with LiveServer(home) as server:
        yield server


def measures(server: LiveServer, sku: str) -> dict[str, tuple[object, object, object]]:
    rows = server.rows(f"/v1/quality-metrics/{sku}", server.key("sample"))
    return {row["measure"]: (row["value"], row["floor"], row["status"]) for row in rows}


@pytest.mark.rule("QUAL-3")
def test_every_measure_is_compared_with_its_floor(live: LiveServer) -> None:
    by_measure = measures(live, "AF-TENDER")
    assert by_measure["releases"] == (4, 3, "PASS")
    assert by_measure["share_resolved"] == (0, 0.5, "FAIL")
    assert by_measure["freshness_days"][1:] == (36500, "PASS")
    assert by_measure["processes"] == (4, None, None)
    assert by_measure["share_with_value"] == (0.5, None, None)
    assert by_measure["withheld"] == (1, None, None)
    assert by_measure["rejected"] == (1, None, None)


@pytest.mark.rule("QUAL-1")
def test_an_unmeasured_floor_is_never_a_pass(live: LiveServer) -> None:
    assert measures(live, "AF-TENDER")["share_audited"] == (None, 0.1, "UNMEASURED")


def test_the_coverage_of_each_metric_matches_the_omissions_of_the_screen(
    server: LiveServer, paid_key: str
) -> None:
    """`server` serves the sample world."""
    rows = server.get("/v1/quality-metrics/AF-FUND", paid_key).json()["data"]
    values = {row["measure"]: Decimal(str(row["value"])) for row in rows if row["status"] != "UNMEASURED"}
    day = rows[0]["measured_at"][:10]
    assert values["identity_conflicts"] >= 0
    for slug in ("net_margin", "debt_to_equity", "effective_tax_rate", "loan_to_deposit"):
        screen = server.get(f"/v1/screen?metric={slug}&as_of={day}&limit=1000", paid_key).json()
        omitted = screen["omitted"]
        published = screen["count"] + sum(n for why, n in omitted.items() if why != "not_published")
        absent = omitted.get("input_absent", 0) + omitted.get("currency_mixed", 0)
        share = (Decimal(published - absent) / published).quantize(Decimal("0.0001"))
        assert values[f"coverage_{slug}"] == share, slug


@pytest.mark.rule("QUAL-1")
@pytest.mark.parametrize("sku", ["af-tender", "Af-Tender", "AF-FUND", "af-macro"])
def test_the_sku_may_be_in_any_case(live: LiveServer, sku: str) -> None:
    rows = live.get(f"/v1/quality-metrics/{sku}", live.key("sample")).json()["data"]
    assert {row["sku"] for row in rows} == {sku.upper()}
    assert [row["measure"] for row in rows] == sorted(row["measure"] for row in rows)


@pytest.mark.rule("QUAL-1")
@pytest.mark.parametrize("sku", ["AF-NONE", "a_b", "AF FUND"])
def test_an_unknown_dataset_is_a_404(live: LiveServer, sku: str) -> None:
    path = f"/v1/quality-metrics/{sku.replace(' ', '%20')}"
    assert live.get(path, live.key("sample")).status_code == 404


@pytest.mark.parametrize("files", [1, 2])
def test_a_revision_counts_in_whichever_file_it_arrives(tmp_path: Path, files: int) -> None:
    """One of three monthly values was revised, and one of two annual ones."""
    desk = Desk(tmp_path)
    header = "series,series_type,frequency,country,date,value,unit,release_date\n"
    first = "".join(f"CPI.ZA,cpi,monthly,ZA,2024-0{n}-28,100,index,2024-0{n + 1}-20\n" for n in (1, 2, 3))
    later = "CPI.ZA,cpi,monthly,ZA,2024-01-28,101,index,2024-06-20\n"
    for number, rows in enumerate([first + later] if files == 1 else [first, later]):
        desk.ingest("series", f"{number}.csv", header + rows)
    for population in (60, 61):
        rows = f"South Africa,ZAF,2019,59\nSouth Africa,ZAF,2020,{population}\n"
        desk.ingest("worldbank", "sp.pop.totl.csv", "Country Name,Country Code,Year,Value\n" + rows)
    with desk.publish_and_serve() as caller:
        values = {row["measure"]: row["value"] for row in caller.get("/v1/quality-metrics/af-macro")["data"]}
    assert (values["restatement_rate"], values["observations"]) == (Decimal("0.4"), 5)


def test_publish_prints_the_table(tmp_path: Path) -> None:
    done = run(world(tmp_path / "home", FLOORS), "publish", "--verbose")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["AF-TENDER", "share_audited", "-", "floor", "0.1", "UNMEASURED"] in lines
    assert ["AF-TENDER", "releases", "4", "floor", "3", "PASS"] in lines
    short = run(tmp_path / "home", "publish")
    assert len(short.stdout.splitlines()) + len(short.stderr.splitlines()) <= 10 < len(lines)
    assert any(line.endswith("UNMEASURED") for line in short.stdout.splitlines()), "what misses its floor"


@pytest.mark.rule("PUB-5")
@pytest.mark.parametrize("floor", ["releases = 5", "share_audited = 0.1", "rejected = 0"])
def test_a_source_short_of_a_hard_floor_is_not_published(tmp_path: Path, floor: str) -> None:
    home = world(tmp_path / "home", "")
    succeed(home, "publish")
    before = run(home, "editions").stdout
    (home / "sources.toml").write_text(SOURCE.format(name="portal", floors=f"hard_floors = {{ {floor} }}"))
    (home / "more.jsonl").write_text(json.dumps(release(5) | {"date": "2025-01-01"}) + "\n")
    if not floor.startswith("releases"):
        succeed(home, "ingest", "portal", str(home / "more.jsonl"))
    refused = run(home, "publish")
    assert refused.returncode == 1
    assert f"source portal: {floor.split()[0]} is" in refused.stderr
    assert run(home, "editions").stdout == before, "the old edition goes on serving"
    forced = succeed(home, "publish", "--despite-floors")
    assert "published despite its floor: source portal" in forced.stderr
    listed = run(home, "editions").stdout.splitlines()
    current = next(line.split()[0] for line in listed if line.endswith("current"))
    manifest = json.loads((home / "editions" / current / "manifest.json").read_text())
    assert manifest["despite_floors"][0].startswith("source portal:")


@pytest.mark.parametrize(("floor", "published"), [(0.5, True), (0.6, False)])
def test_a_hard_floor_applies_to_its_dataset_only(tmp_path: Path, floor: float, published: bool) -> None:
    home = world(tmp_path / "home", f"hard_floors = {{ share_with_value = {floor} }}")
    done = run(home, "publish")
    assert (done.returncode == 0) is published
    assert published or "source portal: share_with_value is 0.5000, floor 0.6" in done.stderr


@pytest.mark.parametrize("floor", ["nan", "inf", '"3"'])
def test_a_malformed_floor_is_refused_before_anything_is_read(tmp_path: Path, floor: str) -> None:
    (tmp_path / "sources.toml").write_text(
        SOURCE.format(name="portal", floors=f"floors = {{ releases = {floor} }}")
    )
    done = run(tmp_path, "publish")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: sources.toml: source portal: ")


def test_an_edition_published_despite_a_floor_differs_from_one_without_the_floor(tmp_path: Path) -> None:
    home = world(tmp_path / "home", "floors = { releases = 5 }")
    succeed(home, "publish")
    (home / "sources.toml").write_text(SOURCE.format(name="portal", floors="hard_floors = { releases = 5 }"))
    assert run(home, "publish").returncode == 1
    succeed(home, "publish", "--despite-floors")
    manifests = [json.loads(path.read_text()) for path in (home / "editions").glob("*/manifest.json")]
    assert sorted(len(manifest.get("despite_floors", ())) for manifest in manifests) == [0, 1]
