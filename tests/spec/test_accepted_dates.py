"""Dates outside 1800-01-01 to today + 30 years are rejected, and a row that makes `publish` fail is named."""

import json
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sankofa.cli.main import main
from sankofa.edition.write.datasets import fundamentals, macro_series, tenders
from sankofa.ledger import macro
from sankofa.model.days import latest_day
from tests.live import LiveServer, create_key, succeed
from tests.spec.ingesting import source_entry
from tests.spec.register import COLUMNS, MINER, record
from tests.world.desk import Desk

TODAY = datetime.now(UTC).date()
LATEST = latest_day(TODAY.isoformat())
FIRST = "1800-01-01"
REFUSED = ("1799-12-31", (date.fromisoformat(LATEST) + timedelta(1)).isoformat(), "0001-12-31", "9999-12-31")
REASON = f"outside {FIRST} to {LATEST}"
SOURCES = source_entry("portal", "ocds", country="ZA")
SERIES = (("CPI.ZA", "cpi", "monthly"), ("FX.EUR.ZAR", "fx", "daily"), ("FX.EUR.USD", "fx", "daily"))
DAYS = ("0001-01-01", "0001-02-01", "0001-03-01", "1500-06-30", "1999-12-31", "2024-06-01")
_FILING = "entity,line_item,value,currency,period_start,period_end,available_at,document,location"
_SERIES = "series,series_type,frequency,country,date,value,unit,release_date"


def filings(start: str = "2022-01-01", end: str = "2022-12-31", available: str = "2023-03-01") -> str:
    return f"ticker:JSE:TST,revenue,5,ZAR,{start},{end},{available},afs,p. 4"


def companyfacts(*rows: dict[str, Any]) -> str:
    figures = [
        {"val": n, "accn": f"0000000000-23-{n:06}", "form": "10-K", **row} for n, row in enumerate(rows)
    ]
    concept = {"label": "Revenues", "units": {"USD": figures}}
    return json.dumps(
        {"cik": 9999900777, "entityName": "Tested Inc", "facts": {"us-gaap": {"Revenues": concept}}}
    )


def statements(folder: Path, *periods: str) -> Path:
    path = folder / "2023q1.zip"
    filing = "0000000000-23-000001"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sub.txt", f"adsh\tcik\tname\tfiled\n{filing}\t9999900777\tTESTED INC\t20230301\n")
        rows = [f"{filing}\tRevenues\tus-gaap/2022\t\t{end}\t4\tUSD\t5" for end in periods]
        columns = "adsh\ttag\tversion\tcoreg\tddate\tqtrs\tuom\tvalue"
        archive.writestr("num.txt", "\n".join((columns, *rows, "")))
    return path


def observations(*rows: tuple[str, str]) -> str:
    return json.dumps(
        {
            "realtime_end": "9999-12-31",
            "units": "lin",
            "observations": [
                {"realtime_start": start, "realtime_end": "9999-12-31", "date": day, "value": "1"}
                for day, start in rows
            ],
        }
    )


def table(header: str, *rows: str) -> str:
    return "\n".join((header, *rows, ""))


def figures(**dates: str) -> str:
    return table(_FILING, filings(), filings(**dates))


def values(row: str) -> str:
    return table(_SERIES, "CPI.ZA,cpi,monthly,ZA,2022-01-01,1,,", f"CPI.ZA,cpi,monthly,ZA,{row}")


def reported(day: str) -> str:
    return companyfacts({"end": "2022-12-31", "filed": "2023-03-01"}, {"end": day, "filed": "2023-03-01"})


def observed(day: str) -> str:
    return observations(("2022-01-01", "2022-02-01"), ("2022-02-01", "2022-03-01"), (day, "2022-03-01"))


CASES: dict[str, tuple[str, str, Callable[[str], str], str, int]] = {
    "period_end": ("filings", "a.csv", lambda day: figures(start="", end=day), "period_end", 1),
    "period_start": (
        *("filings", "a.csv", lambda day: figures(start=day, end=max(day, "2022-12-31"))),
        *("period_", 1),
    ),
    "available_at": ("filings", "a.csv", lambda day: figures(available=day), "available_at", 1),
    "companyfacts": ("sec-companyfacts", "CIK9999900777.json", reported, "period_end", 1),
    "date": ("series", "s.csv", lambda day: values(f"{day},1,,"), "date", 1),
    "release_date": ("series", "s.csv", lambda day: values(f"2022-02-01,1,,{day}"), "release_date", 1),
    "ecb-fx": (
        "ecb-fx",
        "hist.csv",
        lambda day: table("Date,USD,ZAR", "2022-01-03,1,2", f"{day},1,2"),
        "date",
        2,
    ),
    "alfred": ("alfred", "CPIX.json", observed, "date", 1),
}
"""For each case: the source, a file with one such row, the field that the reject names, and the rejects."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "home", TODAY)
    desk.home.mkdir(exist_ok=True)
    (desk.home / "sources.toml").write_text(SOURCES)
    return desk


def rejects(path: Path | None) -> list[tuple[str, str]]:
    assert path is not None
    return [(row["position"], row["reason"]) for row in map(json.loads, path.read_text().splitlines())]


@pytest.mark.rule("ING-16")
def test_a_row_with_a_date_out_of_range_is_rejected_and_says_why(desk: Desk) -> None:
    for (source, name, content, field, rows), day in product(CASES.values(), REFUSED):
        path = desk.inbox / name
        path.write_text(content(day))
        summary = desk.take(source, path)
        assert not summary.failures
        lines = rejects(summary.rejects)
        desk.now += timedelta(seconds=1)
        assert len(lines) == rows == summary.counts.rejected, (field, day)
        for _, reason in lines:
            assert reason.startswith(field)
            assert reason.endswith(REASON)
        assert summary.counts.appended or summary.counts.unchanged
    desk.publish().close()


@pytest.mark.rule("ING-16")
def test_a_year_out_of_range_is_rejected(desk: Desk) -> None:
    for year in ("1799", str(int(LATEST[:4]) + 1), "1000", "2999"):
        path = desk.inbox / "fp.cpi.totl.zg.csv"
        rows = ("Kenya,KEN,2020,1", f"Kenya,KEN,{year},2")
        path.write_text(table("Country Name,Country Code,Year,Value", *rows))
        summary = desk.take("worldbank", path)
        assert rejects(summary.rejects) == [(f"{path.name} KE FP.CPI.TOTL.ZG {year}", f"year: {REASON}")]
        desk.now += timedelta(seconds=1)
        assert summary.counts.appended or summary.counts.unchanged
    desk.publish().close()


@pytest.mark.rule("ING-16")
def test_the_first_and_the_last_day_of_the_range_are_accepted(desk: Desk) -> None:
    path = desk.inbox / "a.csv"
    path.write_text(
        "\n".join((_FILING, filings(FIRST, LATEST, FIRST), filings("", FIRST), filings("", LATEST)))
    )
    summary = desk.take("filings", path)
    assert (summary.counts.appended, summary.rejects) == (3, None)
    desk.publish().close()


@pytest.mark.rule("ING-16")
def test_a_rounded_period_out_of_range_is_rejected(desk: Desk) -> None:
    summary = desk.take(
        "sec-financial-statements", statements(desk.inbox, "20221231", "00021231", "99991231")
    )
    assert [reason for _, reason in rejects(summary.rejects)] == [f"period_end: {REASON}"] * 2


@pytest.mark.rule("ING-16")
@pytest.mark.parametrize(
    "updated", ["1799-12-31T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"]
)
def test_a_record_with_an_update_out_of_range_counts_from_its_capture(desk: Desk, updated: str) -> None:
    path = desk.inbox / "lei.csv"
    row = record(MINER, "Tested Mining Limited", "ZA").replace("2026-01-05T00:00:00Z", updated)
    path.write_text(f"{COLUMNS}\n{row}\n")
    summary = desk.take("gleif-lei", path)
    ((_, reason),) = rejects(summary.rejects)
    assert reason.startswith("the record is kept without")
    assert summary.counts.appended == 1


@pytest.mark.rule("ING-16", "TEND-3")
@pytest.mark.parametrize("day", REFUSED[:2])
def test_a_date_of_a_release_out_of_range_is_null_and_the_release_stays(desk: Desk, day: str) -> None:
    release = {
        "ocid": "ocds-1",
        "id": "1",
        "date": "2024-01-02",
        "tag": ["award"],
        "tender": {"id": "1", "title": "Road", "tenderPeriod": {"startDate": "2024-01-01", "endDate": day}},
        "awards": [{"id": "1", "date": f"{day}T12:00:00Z", "contractPeriod": {"startDate": FIRST}}],
    }
    path = desk.inbox / "releases.json"
    path.write_text(json.dumps({"releases": [release, {**release, "id": "2", "date": day}]}))
    summary = desk.take("portal", path)
    assert rejects(summary.rejects)[:2] == [
        ("releases[0]: tender.tenderPeriod.endDate", REASON),
        ("releases[0]: awards[0].date", REASON),
    ]
    assert rejects(summary.rejects)[2:] == [("releases[1]", f"no usable date: {REASON}")]
    desk.publish().close()
    with LiveServer(desk.home) as server:
        (row,) = server.get("/v1/tenders", create_key(desk.home, "starter")).json()["data"]
    served = row["release"]
    assert served["tender"]["tenderPeriod"] == {"startDate": "2024-01-01", "endDate": None}
    assert served["awards"] == [{"id": "1", "date": None, "contractPeriod": {"startDate": FIRST}}]


@pytest.mark.rule("PUB-9", "WEB-1")
def test_pages_answer_although_an_older_ledger_spans_two_thousand_years(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(macro, "out_of_range", lambda *_: None)
    rates = [
        f"{key},{kind},{often},,{day},{n},,{day}" for key, kind, often in SERIES for n, day in enumerate(DAYS)
    ]
    (desk.inbox / "s.csv").write_text(table(_SERIES, *rates))
    years = [f"South Africa,ZAF,{year},{year}" for year in (1000, 1799, 2020)]
    (desk.inbox / "fp.cpi.totl.zg.csv").write_text(table("Country Name,Country Code,Year,Value", *years))
    desk.take("series", desk.inbox / "s.csv")
    desk.take("worldbank", desk.inbox / "fp.cpi.totl.zg.csv")
    desk.publish().close()
    paths = [f"/macro/series/{key}" for key, *_ in SERIES]
    paths += ["/macro/indicator/FP.CPI.TOTL.ZG", "/country/ZA", "/"]
    with LiveServer(desk.home) as server:
        for path in paths:
            assert server.http.get(path).status_code == 200, path
        for path in paths[: len(SERIES)]:
            for day in DAYS:
                assert server.http.get(f"{path}?as_of={day}").status_code == 200, (path, day)


def _failing(module: Any, name: str, at: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a defect: a function of a builder fails on some of its rows."""
    whole = getattr(module, name)

    def defective(*arguments: Any, **keywords: Any) -> Any:
        if at(*arguments, **keywords):
            raise ZeroDivisionError("planted")
        return whole(*arguments, **keywords)

    monkeypatch.setattr(module, name, defective)


@pytest.mark.rule("PUB-9")
@pytest.mark.parametrize("surface", ["figures", "series", "releases"])
def test_a_row_that_breaks_a_build_is_named_with_its_capture(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, surface: str
) -> None:
    for number, year in enumerate((2021, 2022)):
        at = desk.inbox / f"f{year}.csv"
        at.write_text(f"{_FILING}\nticker:JSE:TST,revenue,1{number},ZAR,,{year}-12-31,2023-03-01,afs,p. 4\n")
        desk.take("filings", at)
        at = desk.inbox / f"s{year}.csv"
        at.write_text(f"{_SERIES}\nCPI.ZA,cpi,monthly,ZA,{year}-01-01,1{number},,\n")
        desk.take("series", at)
        at = desk.inbox / f"r{year}.json"
        at.write_text(
            json.dumps({"ocid": "ocds-1", "id": f"1{number}", "date": f"{year}-01-01", "tag": ["tender"]})
        )
        desk.take("portal", at)
    if surface == "figures":
        _failing(fundamentals, "fact_row", lambda *row: row[2].report.value == "11", monkeypatch)
        source, capture, file = "filings", 4, "f2022.csv"
    elif surface == "series":
        _failing(macro_series, "in_force", lambda row: row.report.figure == "11", monkeypatch)
        source, capture, file = "series", 5, "s2022.csv"
    else:
        _failing(tenders, "_buyer", lambda tender: tender.row.release_id == "11", monkeypatch)
        source, capture, file = "portal", 6, "r2022.json"
    result = CliRunner().invoke(main, ["publish"], env={"SANKOFA_HOME": str(desk.home)})
    assert result.exit_code == 1
    assert f"ZeroDivisionError (planted) on a row of capture {capture} ({source}, {file})" in result.output
    assert f"sankofa withdraw {source} --capture {capture} --reason TEXT" in result.output
    assert "Traceback" not in result.output
    again = CliRunner().invoke(main, ["publish", "--verbose"], env={"SANKOFA_HOME": str(desk.home)})
    assert 'raise ZeroDivisionError("planted")' in again.output
    monkeypatch.undo()
    arguments = ["withdraw", source, "--capture", str(capture), "--reason", "a defect"]
    assert CliRunner().invoke(main, arguments, env={"SANKOFA_HOME": str(desk.home)}).exit_code == 0
    succeed(desk.home, "publish")
