"""When a figure became public to the second, the first session after that, and restatements for a split."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, succeed
from tests.spec.ingesting import source_entry

FILER, SPLIT = "9999200", "9999201"
FILER_ID, SPLIT_ID = (service_id(f"registry:US-SEC-CIK:{one:0>10}") for one in (FILER, SPLIT))
LISTED = {
    "JSE:MILL": "2024-12-24",
    "NGX:MILL": "2024-06-11",
    "NSE-KE:MILL": "2024-12-11",
    "EGX:MILL": "2024-06-13",
}
SOURCES = source_entry("submissions", "sec-submissions", license_class="public-domain")
ACCEPTED = {  # by the end of a filing's period: filed, accepted (New York time), instant, tradable from
    "20230331": ("20240524", "2024-05-24 07:00:00", "2024-05-24T11:00:00Z", "2024-05-24"),
    "20230630": ("20240528", "2024-05-24 18:05:00.0", "2024-05-24T22:05:00Z", "2024-05-28"),
    "20230930": ("20240801", "2024-08-01 12:00:00", "2024-08-01T16:00:00Z", "2024-08-02"),
    "20231231": ("20240703", "2024-07-03 16:00:00", "2024-07-03T20:00:00Z", "2024-07-05"),
    "20240331": ("20240801", "2024-09-09 10:00:00", None, "2024-08-02"),  # later than its own day
}


def data_set(path: Path) -> Path:
    """A data set of the SEC with one filing for each entry of ACCEPTED."""
    head = "adsh\tcik\tname\tcountryba\tcountryinc\tfiled\taccepted\n"
    subs, nums = head, "adsh\ttag\tversion\tddate\tqtrs\tuom\tcoreg\tvalue\n"
    for number, (end, (filed, accepted, _, _)) in enumerate(ACCEPTED.items()):
        adsh = f"0009999200-24-00000{number}"
        subs += f"{adsh}\t{FILER}\tFiler Inc\tUS\tUS\t{filed}\t{accepted}\n"
        nums += f"{adsh}\tAssets\tus-gaap/2023\t{end}\t0\tUSD\t\t{100 + number}.0000\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sub.txt", subs)
        archive.writestr("num.txt", nums)
    return path


def company_facts(path: Path) -> Path:
    """Two years as filed, and as restated by the next report after a split of four for one."""
    first, second = ("0009999201-23-000001", "2023-02-10"), ("0009999201-24-000001", "2024-02-09")

    def rows(*reports: tuple[str, Any, tuple[str, str]]) -> list[dict[str, Any]]:
        return [
            {"start": f"{year}-01-01", "end": f"{year}-12-31", "val": val, "accn": accn, "filed": filed}
            for year, val, (accn, filed) in reports
        ]

    facts = {
        "EarningsPerShareBasic": {"USD/shares": rows(("2022", 4.52, first), ("2022", 1.13, second))},
        "EarningsPerShareDiluted": {"USD/shares": rows(("2022", 4.46, first), ("2022", 1.12, second))},
        "WeightedAverageNumberOfSharesOutstandingBasic": {
            "shares": rows(("2022", 609000000, first), ("2022", 2436000000, second))
        },
        "NetIncomeLoss": {"USD": rows(("2022", 2796000000, first), ("2022", 2700000000, second))},
        "CommonStockDividendsPerShareDeclared": {"USD/shares": rows(("2022", 0.64, first))},
    }
    body = {
        "cik": SPLIT,
        "entityName": "Split Inc",
        "facts": {"us-gaap": {k: {"units": v} for k, v in facts.items()}},
    }
    path.write_text(json.dumps(body))
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, str]]:
    folder = tmp_path_factory.mktemp("markets")
    home = folder / "home"
    home.mkdir()
    (home / "sources.toml").write_text(SOURCES)
    listings = folder / "listings.csv"
    ciks = "".join(f"registry:US-SEC-CIK:{one},ticker,NASDAQ:F{one}\n" for one in (FILER, SPLIT))
    listings.write_text("entity,id_type,id_value\n" + ciks)
    figures = folder / "figures.csv"
    figures.write_text(
        "entity,line_item,value,currency,period_end,period_type,available_at,document,location\n"
        + "".join(f"ticker:{one},assets,5,USD,2023-12-31,FY,{day},report,p1\n" for one, day in LISTED.items())
        + "ticker:GSE:MILL,assets,5,USD,2023-12-31,FY,2024-06-11,report,p1\n"
    )
    filings = {
        "accessionNumber": ["0009999201-24-000001", "0009999201-24-000009"],
        "acceptanceDateTime": ["2024-02-09T06:01:36.000Z", "2024-02-08T16:30:00.000Z"],  # impossible in UTC
        "form": ["10-K", "4"],
    }
    submissions = folder / f"CIK{SPLIT:0>10}.json"
    submissions.write_text(
        json.dumps({"cik": SPLIT, "name": "Split Inc", "formerNames": [], "filings": {"recent": filings}})
    )
    for source, path in (
        ("sec-financial-statements", data_set(folder / "2024q2.zip")),
        ("sec-companyfacts", company_facts(folder / "facts.json")),
        ("identifiers", listings),
        ("filings", figures),
        ("submissions", submissions),
    ):
        succeed(home, "ingest", source, path)
        if source == "filings":
            succeed(home, "publish")
    succeed(home, "publish")
    with LiveServer(home) as server:
        yield server, create_key(home, "starter")


def rows_of(world: tuple[LiveServer, str], issuer: str, query: str = "") -> list[dict[str, Any]]:
    server, key = world
    return server.rows(f"/v1/fundamentals/{issuer}?{query}", key)


@pytest.mark.rule("PIT-10", "PIT-11")
def test_a_filing_is_tradable_from_the_first_session_that_opens_after_its_acceptance(
    world: tuple[LiveServer, str],
) -> None:
    rows = rows_of(world, FILER_ID)
    assert len(rows) == len(ACCEPTED)
    for row in rows:
        _, _, instant, session = ACCEPTED[row["period_end"].replace("-", "")]
        assert (row["available_instant"], row["tradable_from"]) == (instant, session), row["period_end"]
        assert row["available_precision"] == ("second" if instant else "day")
    then = rows_of(world, FILER_ID, "as_of=2024-05-24")
    assert [(row["available_at"], row["tradable_from"]) for row in then] == [("2024-05-24", "2024-05-24")]
    server, key = world
    locked = server.get(f"/at/2024-05-28/v1/fundamentals/{FILER_ID}", key).json()["data"]
    assert {row["tradable_from"] for row in locked} == {"2024-05-24", "2024-05-28"}
    (by_tool,) = server.tool("get_fundamentals", key, {"service_id": FILER_ID, "as_of": "2024-05-24"})["data"]
    assert by_tool["available_instant"] == "2024-05-24T11:00:00Z"


@pytest.mark.rule("PIT-11")
@pytest.mark.parametrize(
    ("ticker", "session"),
    [
        ("JSE:MILL", "2024-12-27"),  # Christmas, Day of Goodwill
        ("NGX:MILL", "2024-06-13"),  # Democracy Day
        ("NSE-KE:MILL", "2024-12-13"),  # Jamhuri Day
        ("EGX:MILL", "2024-06-19"),  # Friday, Saturday, Eid al-Adha
        ("GSE:MILL", None),  # no calendar
    ],
)
def test_a_figure_with_a_day_is_tradable_from_the_next_session_of_its_exchange(
    world: tuple[LiveServer, str], ticker: str, session: str | None
) -> None:
    (row,) = rows_of(world, service_id(f"ticker:{ticker}"))
    assert (row["available_instant"], row["available_precision"]) == (None, "day")
    assert row["tradable_from"] == session


@pytest.mark.rule("VINT-10")
def test_only_a_figure_restated_for_a_split_says_so(world: tuple[LiveServer, str]) -> None:
    rows = rows_of(world, SPLIT_ID, "vintages=all")
    ratios = {(row["concept"].partition(":")[2], row["vintage"]): row["split_ratio"] for row in rows}
    of_shares = (
        "EarningsPerShareBasic",
        "EarningsPerShareDiluted",
        "WeightedAverageNumberOfSharesOutstandingBasic",
    )
    assert {key for key, ratio in ratios.items() if ratio == 4} == {(name, 2) for name in of_shares}
    assert {ratio for ratio in ratios.values() if ratio is not None} == {4}
    assert len(ratios) == 9
    (eps,) = (r for r in rows_of(world, SPLIT_ID, "as_of=2023-12-31") if r["line_item"] == "eps_basic")
    assert (eps["value_reported"], eps["split_ratio"]) == (
        4.52,
        None,
    )  # no split is applied before it was filed


@pytest.mark.rule("PIT-10")
def test_submissions_give_the_instant_of_filings_that_other_files_report(world: tuple[LiveServer, str]):
    """The SEC writes New York time as UTC for some registrants: EDGAR is closed at 6:01 UTC."""
    restated = [row for row in rows_of(world, SPLIT_ID) if row["vintage"] == 2]
    assert {row["available_instant"] for row in restated} == {"2024-02-09T11:01:36Z"}
    assert {row["tradable_from"] for row in restated} == {"2024-02-09"}
    first = rows_of(world, SPLIT_ID, "as_of=2023-12-31")
    assert {(row["available_instant"], row["tradable_from"]) for row in first} == {(None, "2023-02-13")}
