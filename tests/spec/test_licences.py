"""Licences: withdrawn sources are left out, and every answer has its attribution."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sankofa.replication.stores import open_store
from sankofa.settings import Settings
from tests.spec.market import Desk, PaidCaller, package, release
from tests.spec.register import COLUMNS, lei, record, sid
from tests.spec.tender_market import wait_for_edition

ISSUER = lei("ISSUER")
OTHER = lei("OTHER")
TICKER = "ticker:JSE:ISS"
NOTICE = "Licence-clean data"
REF = re.compile(r"(?P<source>[A-Za-z0-9][A-Za-z0-9._-]*):(?P<document>[^#]+)#.+")
FILINGS = (
    "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
    "confidence\n"
)
KINDS = {
    "numbers": ("identifiers-csv", None),
    "names": ("gleif-lei", None),
    "filed": ("filings-csv", "AF-FUND"),
    "filed-too": ("filings-csv", "AF-FUND"),
    "portal": ("ocds", "AF-TENDER"),
    "portal-too": ("ocds", "AF-TENDER"),
    "bank": ("worldbank", "AF-MACRO"),
    "bank-too": ("worldbank", "AF-MACRO"),
    "rates": ("series-csv", "AF-MACRO"),
    "rates-too": ("series-csv", "AF-MACRO"),
    "rates-three": ("series-csv", "AF-MACRO"),
}
WITHDRAWN = ("numbers", "filed-too", "portal-too", "bank-too", "rates-too", "rates-three")


def registry(closed: tuple[str, ...] = (), unregistered: tuple[str, ...] = ()) -> str:
    """Every source of the test, without those no longer registered."""
    entries = []
    for name, (adapter, sku) in KINDS.items():
        if name not in unregistered:
            entries.append(
                f"""
[sources.{name}]
adapter = "{adapter}"
{f'sku = "{sku}"' if sku else ""}
{'country = "ZA"' if adapter == "ocds" else ""}
publisher = "Bureau \u00e9 of {name}"
licence = "CC-BY-4.0"
license_class = "cc-by"
commercial_redistribution = {"false" if name in closed else "true"}
attribution = "\u00a9 {name} office"
"""
            )
    return "".join(entries)


def filing(entity: str, value: int, document: str, year: int = 2023) -> str:
    return (
        f"{entity},revenue,{value},ZAR,{year}-01-01,{year}-12-31,FY,{year + 1}-03-01,{document},p. 4,0.99\n"
    )


def ingest_all(desk: Desk) -> None:
    """The issuer is known by its ticker first, then by its LEI; every kind of row from two sources."""
    desk.ingest("numbers", "numbers.csv", f"entity,id_type,id_value,registry\n{TICKER},lei,{ISSUER},\n")
    names = (record(ISSUER, "Issuer Holdings Ltd", "ZA"), record(OTHER, "Other Holdings Ltd", "ZA"))
    desk.ingest("names", "names.csv", "\n".join([COLUMNS, *names]) + "\n")
    desk.ingest("filed", "filed.csv", FILINGS + filing(f"lei:{ISSUER}", 1001, "annual-2023"))
    desk.ingest("filed-too", "too.csv", FILINGS + filing(f"lei:{ISSUER}", 2002, "annual-2022", 2022))
    same, own = release("both"), [release(f"own-{n}", f"2025-0{n}-01T10:00:00Z") for n in (1, 2, 3)]
    for one in own:
        one["buyer"] = {"name": "Department of Second Opinions"}
    desk.ingest("portal-too", "too.json", package(same, *own))
    desk.ingest("portal", "portal.json", package(same, release("only", "2025-05-01T10:00:00Z")))
    for name, country in (("bank", "ZAF"), ("bank-too", "KEN")):
        table = f"Country Name,Country Code,Year,Value\nSomewhere,{country},2020,{len(name)}.25\n"
        desk.ingest(name, "ny.gdp.mktp.cd.csv", table)
    for name in ("rates", "rates-too", "rates-three"):
        rows = "series,series_type,frequency,country,date,value,unit,release_date\n"
        for month in range(1, 8):
            rows += f"{name.upper()},cpi,monthly,ZA,2025-0{month}-01,1{month}.5,index,2025-0{month}-20\n"
        desk.ingest(name, f"{name}.csv", rows)


class Published(NamedTuple):
    """A desk with all licences in force, then some withdrawn."""

    desk: Desk
    first: str
    second: str
    output: str
    caller: PaidCaller
    before: dict[str, Any]


PATHS = (
    f"/v1/entities/{sid(TICKER)}",
    f"/v1/crosswalk/{sid(TICKER)}",
    f"/v1/fundamentals/{sid(TICKER)}",
    f"/v1/shared/facts?entity_id={sid(TICKER)}",
    "/v1/shared/facts?country=ZAF&dataset=AF-MACRO",
    f"/v1/metrics/{sid(TICKER)}",
    "/v1/tenders?country=ZA",
    "/v1/tender-parties",
    "/v1/macro?country=ZA&indicator=NY.GDP.MKTP.CD",
    "/v1/macro?country=KE&indicator=NY.GDP.MKTP.CD",
    "/v1/macro?series=RATES",
    "/v1/macro?series=RATES-TOO",
    "/v1/signals/macro-momentum",
    "/v1/changes",
    "/v1/export",
    "/v1/quality-metrics/AF-FUND",
    "/v1/quality-metrics/AF-TENDER",
    "/v1/quality-metrics/AF-MACRO",
    "/v1/coverage?sku=AF-TENDER",
    "/v1/sources",
)


def answers(caller: PaidCaller) -> dict[str, Any]:
    return {path: caller.server.get(path, caller.key).json() for path in PATHS}


def rows_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    return list(body.get("data", body.get("observations", body.get("facts", []))))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    desk = Desk(tmp_path_factory.mktemp("licences"))
    (desk.home / "sources.toml").write_text(registry())
    ingest_all(desk)
    first = desk.publish()
    with desk.serve() as caller:
        before = answers(caller)
        (desk.home / "sources.toml").write_text(registry(closed=WITHDRAWN[:3], unregistered=WITHDRAWN[3:]))
        done = desk.succeed("publish")
        second = done.stdout.splitlines()[-1].split()[2].rstrip(":")
        wait_for_edition(caller, second)
        yield Published(desk, first, second, done.stdout, caller, before)


@pytest.mark.rule("PROV-6")
def test_publish_reports_each_withdrawn_source_in_a_line(published: Published) -> None:
    lines = [line for line in published.output.splitlines() if line.startswith("left out ")]
    assert lines == [
        "left out bank-too (not registered): captures 1, rows 1",
        "left out filed-too (commercial_redistribution is not true): captures 1, rows 1",
        "left out numbers (commercial_redistribution is not true): captures 1, rows 1",
        "left out portal-too (commercial_redistribution is not true): captures 1, rows 4",
        "left out rates-three (not registered): captures 1, rows 7",
        "left out rates-too (not registered): captures 1, rows 7",
    ]
    store = open_store(Settings(home=published.desk.home))
    manifest = store.open(published.second).manifest
    assert [one["source"] for one in manifest["left_out"]] == sorted(WITHDRAWN)
    assert set(manifest["left_out"][0]) == {"source", "why", "captures", "rows"}
    assert sorted(manifest["sources"]) == sorted(set(KINDS) - set(WITHDRAWN))


@pytest.mark.rule("PROV-6")
def test_no_row_of_a_withdrawn_source_is_served(published: Published) -> None:
    after = answers(published.caller)
    text = json.dumps(after)
    assert not [name for name in WITHDRAWN if f'"{name}:' in text or f" {name} office" in text]
    assert "Second Opinions" not in text
    assert "2002" not in [str(row["value_reported"]) for row in rows_of(after[PATHS[2]])]
    still_served, withdrawn = ("country=ZA&ind", "series=RATES"), ("country=KE&ind", "series=RATES-TOO")
    for path, body in after.items():
        if path.endswith(still_served) or any(name in path for name in still_served[:1]):
            assert rows_of(body), path
        if path.endswith(withdrawn) or withdrawn[0] in path:
            assert not rows_of(body), path
            assert rows_of(published.before[path]), path


def test_rows_that_another_source_reported_too_are_still_served(published: Published) -> None:
    tenders = published.caller.server.get("/v1/tenders?country=ZA", published.caller.key).json()["data"]
    assert {row["release_id"] for row in tenders} == {"both-1", "only-1"}
    assert {row["source_ref"].partition(":")[0] for row in tenders} == {"portal"}
    before = {
        row["release_id"]: row["source_ref"] for row in rows_of(published.before["/v1/tenders?country=ZA"])
    }
    assert len(before) == 5
    assert before["both-1"].startswith("portal-too:"), "the one that told it first"
    counted = {
        row["source_id"]: row["count"] for row in rows_of(published.before["/v1/coverage?sku=AF-TENDER"])
    }
    assert counted == {"portal": 1, "portal-too": 4}, "each release under the source of its row"
    sources = {row["source_id"]: row["row_count"] for row in rows_of(published.before["/v1/sources"])}
    assert (sources["portal"], sources["portal-too"]) == (1, 4)


def test_an_organisation_keeps_its_id_without_the_record_the_id_came_from(published: Published):
    """The ticker came from the withdrawn source; the rows under the LEI keep the id."""
    caller = published.caller
    (row,) = caller.server.get(f"/v1/entities/{sid(TICKER)}", caller.key).json()["data"]
    assert (row["service_id"], row["lei"], row["listings"]) == (sid(TICKER), ISSUER, [])
    (same,) = caller.server.get(f"/v1/entities/{sid(f'lei:{ISSUER}')}", caller.key).json()["data"]
    assert same["service_id"] == sid(TICKER)
    assert rows_of(published.before[PATHS[0]])[0]["listings"] == [{"exchange": "JSE", "ticker": "ISS"}]


@pytest.mark.rule("PROV-6", "ENV-9")
def test_editions_with_rows_of_the_source_are_withdrawn(published: Published) -> None:
    caller = published.caller
    for path in ("/v1/tenders", "/v1/export", "/open/macro-momentum.parquet"):
        refused = caller.server.get(f"{path}?edition={published.first}", caller.key)
        assert (refused.status_code, refused.json()["detail"]) == (
            410,
            f"edition: {published.first} is withdrawn.",
        )
    listed = published.desk.command("editions").stdout.splitlines()
    assert sum(line.startswith(published.first) and line.endswith("  withdrawn") for line in listed) == 1
    assert sum(line.endswith("  current") for line in listed) == 1
    rolled = published.desk.command("editions", "rollback", published.first)
    assert rolled.returncode == 1
    assert "withdrawn" in rolled.stderr
    assert "filed-too" in rolled.stderr
    changed, removed = caller.get("/v1/changes", since=published.first, dataset="fundamentals")["data"]
    (before,) = (row for row in rows_of(published.before[PATHS[2]]) if row["value_reported"] == 1001)
    assert changed["change"] == "changed"
    differing = {name for name, value in changed["row"].items() if str(value) != str(before[name])}
    assert differing == {"tradable_from"}
    assert (removed["change"], removed["row"]) == ("removed", None)
    assert removed["source_ref"].startswith("filed-too:")


@pytest.mark.rule("PROV-1", "PROV-2")
def test_every_source_ref_begins_with_its_source_and_names_a_location(published: Published) -> None:
    for path, body in published.before.items():
        for row in rows_of(body):
            match = REF.fullmatch(row["source_ref"])
            assert match is not None, (path, row["source_ref"])
            assert match["source"] in KINDS or path == "/v1/export", (path, row["source_ref"])
            for one in row.get("inputs", ()):
                assert REF.fullmatch(one["source_ref"])
    (figure,) = (row for row in rows_of(published.before[PATHS[2]]) if row["value_reported"] == 1001)
    assert figure["source_ref"] == "filed:annual-2023#p. 4"


@pytest.mark.rule("PROV-4")
def test_the_notice_of_a_dataset_names_only_its_own_sources(published: Published) -> None:
    sources = {
        PATHS[2]: {"filed", "filed-too", "numbers", "names"},
        "/v1/tenders?country=ZA": {"portal", "portal-too", "numbers", "names"},
        "/v1/macro?series=RATES": {"bank", "bank-too", "rates", "rates-too", "rates-three"},
        "/v1/signals/macro-momentum": {"bank", "bank-too", "rates", "rates-too", "rates-three"},
        PATHS[1]: {"numbers", "names"},
        "/v1/changes": set(KINDS),
    }
    for path, names in sources.items():
        terms = published.before[path]["_license"]
        assert terms.startswith(NOTICE)
        assert "no natural-person data" in terms
        named = {name for name in KINDS if f"\u00a9 {name} office (CC-BY-4.0)" in terms}
        assert named == names, path


@pytest.mark.rule("PROV-4")
def test_every_format_and_the_tool_carry_the_same_notice(published: Published) -> None:
    caller = published.caller
    terms = caller.server.get("/v1/macro?series=RATES", caller.key).json()["_license"]
    assert "rates office" in terms
    assert "rates-too" not in terms
    assert caller.tool("get_macro", series="RATES")[1]["_license"] == terms
    answer = caller.server.get("/v1/macro?series=RATES", caller.key, accept="text/csv")
    header = answer.headers["X-License"]
    assert header.isascii()
    assert header.startswith(NOTICE)
    assert "? rates office (CC-BY-4.0)" in header
    listed = list(csv.DictReader(io.StringIO(answer.text)))
    assert listed
    assert all(row["source_ref"].startswith("rates:") for row in listed)
    stream = caller.server.get(
        "/v1/macro?series=RATES", caller.key, accept="application/vnd.apache.arrow.stream"
    )
    schema = pa.ipc.open_stream(stream.content).schema
    assert schema.metadata[b"license"].decode() == terms


@pytest.mark.rule("PROV-8")
def test_a_file_names_only_the_sources_of_its_rows(published: Published) -> None:
    caller = published.caller
    listed = caller.server.get("/v1/export", caller.key).json()["data"]
    for one in listed:
        content = caller.server.get(one["url"].replace(caller.server.url, ""), caller.key).content
        table = pq.read_table(io.BytesIO(content))
        attribution = table.schema.metadata[b"attribution"].decode()
        named = {name for name in KINDS if f"\u00a9 {name} office" in attribution}
        own = {ref.partition(":")[0] for ref in table.column("source_ref").to_pylist()} & KINDS.keys()
        assert own <= named, one["name"]
        if one["name"] not in ("af-fund-entities.parquet", "shared-entity.parquet"):  # these have several
            assert own == named, one["name"]
        assert not named & set(WITHDRAWN), one["name"]


@pytest.mark.rule("PROV-2")
def test_two_captures_of_one_table_have_different_refs(tmp_path: Any) -> None:
    desk = Desk(tmp_path / "twice")
    (desk.home / "sources.toml").write_text(registry())
    for value in (1, 2):
        table = f"Country Name,Country Code,Year,Value\nSouth Africa,ZAF,2020,{value}\n"
        desk.ingest("bank", "ny.gdp.mktp.cd.csv", table)
        desk.ingest("filed", "filed.csv", FILINGS + filing(f"lei:{ISSUER}", value, "annual-2023"))
    with desk.publish_and_serve() as caller:
        bulk = caller.server.get("/v1/export/files/af-macro-annual.parquet", caller.key).content
        refs = pq.read_table(io.BytesIO(bulk)).column("source_ref").to_pylist()
        assert len(refs) == len(set(refs)) == 2
        assert all(ref.endswith("#NY.GDP.MKTP.CD ZA 2020") for ref in refs)
        rows = caller.get(f"/v1/fundamentals/{sid(f'lei:{ISSUER}')}", vintages="all")["data"]
        first, second = (row["source_ref"] for row in sorted(rows, key=lambda row: row["vintage"]))
        assert first == "filed:annual-2023#p. 4"
        assert re.fullmatch(r"filed:annual-2023@[0-9a-f]{8}#p\. 4", second)


@pytest.mark.rule("PUB-1")
def test_without_publishable_data_publish_refuses_and_the_old_edition_stays(tmp_path: Any) -> None:
    desk = Desk(tmp_path / "all")
    (desk.home / "sources.toml").write_text(registry())
    ingest_all(desk)
    first = desk.publish()
    (desk.home / "sources.toml").write_text(registry(closed=tuple(KINDS)))
    refused = desk.command("publish")
    assert refused.returncode == 1
    assert "every source of the ledger is left out" in refused.stderr
    assert "portal-too (commercial_redistribution is not true)" in refused.stderr
    assert first in desk.command("editions").stdout
    (desk.home / "sources.toml").write_text(registry())
    assert desk.publish() == first, "and a licence that is back brings everything back, under the same ids"


@pytest.mark.rule("PROV-6")
def test_a_current_edition_with_withdrawn_rows_is_replaced_although_nothing_else_changed(
    tmp_path: Any,
) -> None:
    """Every row supersedes the source's values, so the rows stay the same but the edition does not."""
    desk = Desk(tmp_path / "same")
    (desk.home / "sources.toml").write_text(registry())
    desk.ingest("portal", "a.json", package(release("both")))
    desk.ingest("portal-too", "b.json", package(release("both")))
    first = desk.publish()
    (desk.home / "sources.toml").write_text(registry(closed=("portal-too",)))
    second = desk.publish()
    assert second != first
    with desk.serve() as caller:
        assert caller.get("/v1/tenders")["edition"] == second
        assert caller.server.get(f"/v1/tenders?edition={first}", caller.key).status_code == 410


@pytest.mark.ci
@pytest.mark.rule("PROV-7", "ENV-9")
def test_editions_with_open_rows_that_need_a_key_today_are_withdrawn(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.home / "sources.toml").write_text(registry())
    ingest_all(desk)
    first = desk.publish()
    closed = registry().replace('license_class = "cc-by"', 'license_class = "cc0"')
    (desk.home / "sources.toml").write_text(closed)
    second = desk.publish()
    open_file, pushed = f"/open/macro-momentum.parquet?edition={second}", tmp_path / "pushed"
    desk.command("push", pushed)
    with desk.serve() as caller:
        assert caller.server.http.get(open_file).status_code == 200
        assert caller.server.get(f"/v1/tenders?edition={first}", caller.key).status_code == 200
        head, _, entry = closed.partition("[sources.rates]")
        entry = entry.replace('"cc0"', '"licensed-redistribution"', 1)
        (desk.home / "sources.toml").write_text(f"{head}[sources.rates]{entry}")
        third = desk.publish()
        wait_for_edition(caller, third)
        assert caller.server.http.get(open_file).status_code == 410
        for edition in (first, second):
            path = f"/v1/macro?series=RATES&edition={edition}"
            assert caller.server.get(path, caller.key).status_code == 410, edition
        (row, *_) = caller.server.get("/v1/macro?series=RATES", caller.key).json()["data"]
        assert row["license_class"] == "licensed-redistribution"
    rolled = desk.command("editions", "rollback", second)
    assert (rolled.returncode, "need a key today, but did not then: rates" in rolled.stderr) == (1, True)
    assert desk.command("push", pushed).returncode == 0
    assert not (pushed / "open" / second).exists()
    desk.ingest("portal", "more.json", package(release("more")))
    with desk.publish_and_serve() as caller:
        assert caller.server.get(f"/v1/tenders?edition={third}", caller.key).status_code == 200
