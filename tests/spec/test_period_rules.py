"""Periods are named from dates: year-ends, trailing twelve months, rounded dates."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from sankofa.model.identifiers import cik, service_id
from tests.depth import deep_after
from tests.live import LiveServer, succeed

NUMBER = 9999900077
ISSUER = service_id(cik(NUMBER))
ANNUAL, INTERIM = ("0009999900-10-000001", "2010-03-18"), ("0009999900-10-000002", "2010-05-21")
# A year of whole weeks: it ends on the last Sunday of January.
YEARS = (("2008-01-28", "2009-01-25"), ("2009-01-26", "2010-01-31"))
ROUNDED_YEARS = ("20090131", "20100131")


def filed() -> list[tuple[str, str, str | None, str, int, tuple[str, str]]]:
    """Concept, unit, start, end, value and filing of every reported figure, with its real dates."""
    rows: list[tuple[str, str, str | None, str, int, tuple[str, str]]] = []
    for number, (start, end) in enumerate(YEARS):
        for position, concept in enumerate(
            ("Revenues", "NetIncomeLoss", "OperatingIncomeLoss", "IncomeTaxExpenseBenefit")
        ):
            rows.append((concept, "USD", start, end, 1000 * (position + 1) + number, ANNUAL))
        rows.append(("Assets", "USD", None, end, 9000 + number, ANNUAL))
        rows.append(("EarningsPerShareBasic", "USD/shares", start, end, 2 + number, ANNUAL))
    rows.append(("Assets", "USD", None, "2009-01-26", 8999, ANNUAL))  # opening balance, new standard
    rows.append(("Revenues", "USD", "2010-02-01", "2010-05-02", 300, INTERIM))
    rows.append(("NetIncomeLoss", "USD", "2010-02-01", "2010-05-02", 30, INTERIM))
    rows.append(("Assets", "USD", None, "2010-05-02", 9100, INTERIM))
    rows.append(("Revenues", "USD", "2009-05-04", "2010-05-02", 1100, INTERIM))  # trailing
    return rows


def companyfacts(path: Path) -> Path:
    concepts: dict[str, Any] = {}
    for concept, unit, start, end, value, (accession, day) in filed():
        row = {"end": end, "val": value, "accn": accession, "filed": day} | (
            {"start": start} if start else {}
        )
        concepts.setdefault(concept, {"units": {}})["units"].setdefault(unit, []).append(row)
    path.write_text(
        json.dumps({"cik": NUMBER, "entityName": "Rounding Works Inc", "facts": {"us-gaap": concepts}})
    )
    return path


def data_set(path: Path) -> Path:
    """The annual report in the form of the Financial Statement Data Sets, with the issuer's own concepts."""
    accession, day = ANNUAL
    num = ["adsh\ttag\tversion\tddate\tqtrs\tuom\tcoreg\tvalue"]
    for concept, unit, start, end, value, filing in filed():
        if filing == ANNUAL and end != "2009-01-26":
            ddate = ROUNDED_YEARS[end > "2009-06-30"]
            unit = unit.removesuffix("/shares")
            num.append(
                f"{accession}\t{concept}\tus-gaap/2009\t{ddate}\t{4 if start else 0}\t{unit}\t\t{value}.0000"
            )
    for ddate in ROUNDED_YEARS:
        num.append(f"{accession}\tOwnIncome\t{accession}\t{ddate}\t4\tUSD\t\t77.0000")
        num.append(f"{accession}\tOwnBalance\t{accession}\t{ddate}\t0\tUSD\t\t78.0000")
    sub = f"adsh\tcik\tname\tfiled\n{accession}\t{NUMBER}\tROUNDING WORKS INC\t{day.replace('-', '')}\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sub.txt", sub)
        archive.writestr("num.txt", "\n".join(num) + "\n")
    return path


SOURCES = {"sec-companyfacts": companyfacts, "sec-financial-statements": data_set}


@pytest.fixture(scope="module", params=deep_after(1, [[*SOURCES], [*reversed(SOURCES)]]))
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    yield from served(tmp_path_factory.mktemp("both"), request.param)


@pytest.fixture(scope="module")
def rounded_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    yield from served(tmp_path_factory.mktemp("rounded"), ("sec-financial-statements",))


def served(folder: Path, sources: Sequence[str]) -> Iterator[LiveServer]:
    home = folder / "home"
    for source in sources:
        name = "facts.json" if source == "sec-companyfacts" else "2010q1.zip"
        succeed(home, "ingest", "--strict", source, SOURCES[source](folder / name))
    succeed(home, "publish")
    with LiveServer(home) as live:
        yield live


def rows(server: LiveServer, query: str = "", path: str = "fundamentals") -> list[dict[str, Any]]:
    return server.rows(f"/v1/{path}/{ISSUER}?{query}", server.key("starter"))


@pytest.mark.rule("PER-4")
def test_twelve_months_that_end_on_no_year_end_are_trailing(both: LiveServer) -> None:
    (trailing,) = [r for r in rows(both, "period_type=TTM") if r["method"] == "structured"]
    assert (trailing["period_start"], trailing["period_end"]) == ("2009-05-04", "2010-05-02")
    assert (trailing["concept"], trailing["fiscal_year"]) == ("us-gaap:Revenues", 2011)


@pytest.mark.rule("PER-4")
def test_metrics_never_use_trailing_figures_or_rounded_years(both: LiveServer) -> None:
    metrics = rows(both, path="metrics")
    assert {row["period_end"] for row in metrics} == {"2010-01-31"}
    growth = next(row for row in metrics if row["metric"] == "revenue_growth")
    assert {i["period_end"] for i in growth["inputs"]} == {"2010-01-31", "2009-01-25"}


@pytest.mark.rule("PER-7")
def test_a_filing_with_real_and_rounded_dates_gives_one_fact(both: LiveServer) -> None:
    facts = [r for r in rows(both, "vintages=all") if not r["concept"].startswith("custom:")]
    assert len(facts) == len(filed())
    assert {(r["method"], r["vintage"]) for r in facts} == {("structured", 1)}


@pytest.mark.rule("PER-6")
def test_a_row_says_that_its_dates_are_rounded(both: LiveServer) -> None:
    own = [r for r in rows(both) if r["concept"].startswith("custom:")]
    assert {r["method"] for r in own} == {"structured-rounded"}
    assert {r["period_end"] for r in own} == {"2009-01-31", "2010-01-31"}


@pytest.mark.rule("PER-7")
def test_a_rounded_year_is_dropped_if_there_is_a_real_one(both: LiveServer) -> None:
    years = rows(both, "period_type=FY")
    assert {(r["fiscal_year"], r["period_end"]) for r in years} == {
        (2009, "2009-01-25"),
        (2010, "2010-01-31"),
    }
    aside = {
        (r["concept"], r["period_type"], r["fiscal_year"])
        for r in rows(both)
        if r["period_end"] == "2009-01-31"
    }
    assert aside == {("custom:OwnIncome", "TTM", 2009), ("custom:OwnBalance", "other", 2009)}


@pytest.mark.rule("PER-6")
def test_shared_facts_are_the_same_facts_and_call_them_structured(both: LiveServer, tmp_path: Path) -> None:
    key = both.key("starter")
    facts = both.get(f"/v1/shared/facts?entity_id={ISSUER}&limit=1000", key).json()["data"]
    assert len(facts) == len(rows(both))
    assert {fact["method"] for fact in facts} == {"structured"}
    files = both.get("/v1/export", key).json()["data"]
    (url,) = [f["url"] for f in files if f["name"] == "af-fund-fact.parquet"]
    table = pyarrow.parquet.read_table(BytesIO(both.http.get(url, headers={"X-API-Key": key}).content))
    assert {(f["fact_id"], f["provenance_id"], f["method"]) for f in table.to_pylist()} == {
        (f["fact_id"], f["provenance_id"], f["method"]) for f in facts
    }


def test_without_real_dates_rounded_years_are_years(rounded_only: LiveServer) -> None:
    facts = rows(rounded_only)
    assert {row["method"] for row in facts} == {"structured-rounded"}
    assert {(r["fiscal_year"], r["period_end"], r["period_type"]) for r in facts} == {
        (2009, "2009-01-31", "FY"),
        (2010, "2010-01-31", "FY"),
    }
    assert {row["period_end"] for row in rows(rounded_only, path="metrics")} == {"2010-01-31"}


MOVED = 9999900078
MOVED_ISSUER = service_id(cik(MOVED))


def moved_companyfacts(path: Path) -> Path:
    """An issuer whose year ended in June, then in December; later filings repeat some periods."""
    concepts: dict[str, Any] = {}

    def file(accession: str, day: str, *periods: tuple[str | None, str], more: tuple[str, ...] = ()) -> None:
        for start, end in periods:
            flows = ("Revenues", "NetIncomeLoss", "OperatingIncomeLoss", *more)
            for position, concept in enumerate(flows if start else ("Assets", "StockholdersEquity", *more)):
                row = {"end": end, "val": 100 + position, "accn": accession, "filed": day}
                reported = concepts.setdefault(concept, {"units": {"USD": []}})["units"]["USD"]
                reported.append(row | ({"start": start} if start else {}))

    file("0009999900-10-000011", "2010-10-01", ("2009-07-01", "2010-06-30"), (None, "2010-06-30"))
    file("0009999900-11-000011", "2011-03-31", ("2010-07-01", "2010-12-31"), (None, "2010-12-31"))
    later = [("2011-01-01", "2011-12-31"), (None, "2011-12-31"), (None, "2010-12-31"), (None, "2010-07-01")]
    file("0009999900-12-000011", "2012-04-23", *later, more=("Goodwill", "IncomeTaxExpenseBenefit"))
    file("0009999900-12-000012", "2012-11-15", ("2012-01-01", "2012-09-30"), (None, "2012-09-30"))
    file("0009999900-13-000011", "2013-04-20", ("2012-01-01", "2012-12-31"), (None, "2012-10-01"))
    path.write_text(json.dumps({"cik": MOVED, "entityName": "Moved Mines", "facts": {"us-gaap": concepts}}))
    return path


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("moved")
    home = folder / "home"
    succeed(home, "ingest", "--strict", "sec-companyfacts", moved_companyfacts(folder / "moved.json"))
    succeed(home, "publish")
    with LiveServer(home) as live:
        yield live


@pytest.mark.rule("PER-8")
@pytest.mark.parametrize("day", ["2011-12-31", "2012-04-23", "2013-05-01", "2020-01-01"])
@pytest.mark.parametrize("path", ["fundamentals", "statements"])
def test_a_period_has_one_name_whenever_its_figures_arrived(moved: LiveServer, path: str, day: str) -> None:
    query = "&vintages=all" if path == "fundamentals" else ""
    answer = moved.get(f"/v1/{path}/{MOVED_ISSUER}?as_of={day}{query}", moved.key("starter"))
    names: dict[tuple[str | None, str], set[tuple[str, int]]] = {}
    for row in answer.json()["data"]:
        period = row["period_start"], row["period_end"]
        names.setdefault(period, set()).add((row["period_type"], row["fiscal_year"]))
    assert names[None, "2010-12-31"] == {("H1", 2011)}
    assert all(len(of_one) == 1 for of_one in names.values()), names
