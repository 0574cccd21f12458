"""Earnings per share and share counts around splits: no split is applied before a filing restates for it.

The annual reports around the splits of Apple, Alphabet and Amazon are written here as companyfacts, with the
figures that the companies published. NVIDIA, and Amazon before its split, are real files.
"""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from sankofa.client import Client
from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, publish_files

EPS: Final = ("EarningsPerShareBasic", "EarningsPerShareDiluted")
COUNTS: Final = (
    "WeightedAverageNumberOfSharesOutstandingBasic",
    "WeightedAverageNumberOfDilutedSharesOutstanding",
)
PROFIT: Final = "NetIncomeLoss"
UNITS: Final = dict.fromkeys(EPS, "USD/shares") | dict.fromkeys(COUNTS, "shares") | {PROFIT: "USD"}
SCALES: Final = (1, 1, 1000, 1000, 1_000_000)
APPLE, ALPHABET, AMAZON, NVIDIA = "0000320193", "0001652044", "0001018724", "0001045810"


class FiledYear(NamedTuple):
    """A fiscal year as an annual report states it."""

    cik: str
    filed: str
    accession: str
    year: int
    figures: dict[str, Decimal]

    @property
    def end(self) -> str:
        return year_of(self.cik, self.year)[1]


REPORTED: Final = """
0000320193 2013-10-30 0001193125-13-416534 2013 40.03 39.75 925331 931662 37037
0000320193 2013-10-30 0001193125-13-416534 2012 44.64 44.15 934818 945355 41733
0000320193 2014-10-27 0001193125-14-383437 2014 6.49 6.45 6085572 6122663 39510
0000320193 2014-10-27 0001193125-14-383437 2013 5.72 5.68 6477320 6521634 37037
0000320193 2014-10-27 0001193125-14-383437 2012 6.38 6.31 6543726 6617483 41733
0000320193 2019-10-31 0000320193-19-000119 2019 11.97 11.89 4617834 4648913 55256
0000320193 2019-10-31 0000320193-19-000119 2018 12.01 11.91 4955377 5000109 59531
0000320193 2019-10-31 0000320193-19-000119 2017 9.27 9.21 5217242 5251692 48351
0000320193 2020-10-30 0000320193-20-000096 2020 3.31 3.28 17352119 17528214 57411
0000320193 2020-10-30 0000320193-20-000096 2019 2.99 2.97 18471336 18595651 55256
0000320193 2020-10-30 0000320193-20-000096 2018 3.00 2.98 19821510 20000435 59531
0001652044 2022-02-02 0001652044-22-000019 2021 113.88 112.20 - - 76033
0001652044 2022-02-02 0001652044-22-000019 2020 59.15 58.61 - - 40269
0001652044 2023-02-03 0001652044-23-000016 2022 4.59 4.56 - - 59972
0001652044 2023-02-03 0001652044-23-000016 2021 5.69 5.61 - - 76033
0001652044 2023-02-03 0001652044-23-000016 2020 2.96 2.93 - - 40269
0001018724 2022-02-04 0001018724-22-000005 2021 65.96 64.81 506000 515000 33364
0001018724 2022-02-04 0001018724-22-000005 2020 42.64 41.83 500000 510000 21331
0001018724 2023-02-03 0001018724-23-000004 2022 -0.27 -0.27 10189000 10189000 -2722
0001018724 2023-02-03 0001018724-23-000004 2021 3.30 3.24 10117000 10296000 33364
0001018724 2023-02-03 0001018724-23-000004 2020 2.13 2.09 10005000 10198000 21331
"""
"""Company, day, accession and fiscal year; then earnings per share basic and diluted, shares basic and
diluted (thousands), net income (millions). Alphabet states no share counts for all its classes."""
SPLITS: Final = [
    # the company, the day before the restating report and its day, the ratio, and the years it restates
    (APPLE, "2014-10-26", "2014-10-27", 7, (2012, 2013)),
    (APPLE, "2020-10-29", "2020-10-30", 4, (2018, 2019)),
    (ALPHABET, "2023-02-02", "2023-02-03", 20, (2020, 2021)),
    (AMAZON, "2023-02-02", "2023-02-03", 20, (2020, 2021)),
]


def of(cik: str) -> str:
    return service_id(f"registry:US-SEC-CIK:{cik}")


def year_of(cik: str, year: int) -> tuple[str, str]:
    """The first and last day of a fiscal year; Apple's ends with the last Saturday of September."""
    if cik != APPLE:
        return f"{year}-01-01", f"{year}-12-31"
    ends = [
        date(one, 9, 30) - timedelta(days=(date(one, 9, 30).weekday() + 2) % 7) for one in (year - 1, year)
    ]
    return str(ends[0] + timedelta(days=1)), str(ends[1])


def filed_years(cik: str) -> Iterator[FiledYear]:
    for own, filed, accession, year, *texts in map(str.split, REPORTED.strip().splitlines()):
        if own == cik:
            figures = {
                name: Decimal(text) * scale
                for name, text, scale in zip(UNITS, texts, SCALES, strict=True)
                if text != "-"
            }
            yield FiledYear(cik, filed, accession, int(year), figures)


def company_facts(folder: Path, cik: str) -> Path:
    """The annual reports of a company as the SEC's companyfacts has them."""
    facts: dict[str, Any] = {}
    for report in filed_years(cik):
        start, end = year_of(cik, report.year)
        for name, figure in report.figures.items():
            value = float(figure) if name in EPS else int(figure)
            row = {"start": start, "end": end, "accn": report.accession, "filed": report.filed, "val": value}
            facts.setdefault(name, {"units": {UNITS[name]: []}})["units"][UNITS[name]].append(row)
    path = folder / f"CIK{cik}.json"
    path.write_text(
        json.dumps({"cik": int(cik), "entityName": "Registrant Inc", "facts": {"us-gaap": facts}})
    )
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, str]]:
    folder = tmp_path_factory.mktemp("splits")
    home = folder / "home"
    publish_files(
        home, *(("sec-companyfacts", company_facts(folder, cik)) for cik in (APPLE, ALPHABET, AMAZON))
    )
    with LiveServer(home) as server:
        yield server, create_key(home, "starter", "--per-minute", "100000")


def rows_of(served: tuple[LiveServer, str], path: str) -> list[dict[str, Any]]:
    server, key = served
    return list(server.exact(path, key)["data"])


def published(cik: str, day: str) -> dict[tuple[str, str], Decimal]:
    """The figures of the latest report filed by a day, by concept and last day of the year."""
    return {
        (name, report.end): figure
        for report in filed_years(cik)
        if report.filed <= day
        for name, figure in report.figures.items()
        if name != PROFIT
    }


def per_share(rows: list[dict[str, Any]], value: str = "value_reported") -> dict[tuple[str, str], Decimal]:
    names = {f"us-gaap:{name}": name for name in (*EPS, *COUNTS)}
    return {(names[row["concept"]], row["period_end"]): row[value] for row in rows if row["concept"] in names}


@pytest.mark.rule("VINT-10")
@pytest.mark.parametrize(("cik", "before", "after", "ratio", "years"), SPLITS)
def test_no_surface_applies_a_split_before_a_filing_restates_for_it(
    served: tuple[LiveServer, str], cik: str, before: str, after: str, ratio: int, years: tuple[int, int]
) -> None:
    server, key = served
    path = f"/v1/fundamentals/{of(cik)}"
    ends = {year_of(cik, year)[1] for year in years}
    for day in (before, after):
        expected = published(cik, day)
        for question in (f"{path}?as_of={day}", f"/at/{day}{path}"):
            rows = rows_of(served, question)
            assert per_share(rows) == expected
            marked = {row["period_end"] for row in rows if row["split_ratio"] == ratio}
            assert marked == (ends if day == after else set())
        by_tool = server.tool("get_fundamentals", key, {"service_id": of(cik), "as_of": day})["data"]
        assert {k: Decimal(str(v)) for k, v in per_share(by_tool).items()} == expected
        statement = per_share(rows_of(served, f"/v1/statements/{of(cik)}?as_of={day}&limit=1000"))
        assert statement.items() <= expected.items()
        assert {name for name, _ in statement} == set(EPS)
        facts = server.exact(f"/at/{day}/sec/api/xbrl/companyfacts/CIK{cik}.json", key)["facts"]
        newest = {
            (name, one["end"]): Decimal(str(one["val"]))
            for name in (*EPS, *COUNTS)
            for own in facts["us-gaap"].get(name, {"units": {}})["units"].values()
            for one in own
        }
        assert newest == expected


@pytest.mark.rule("VINT-10")
@pytest.mark.parametrize("cik", [APPLE, ALPHABET, AMAZON])
def test_panels_and_matrices_have_the_figures_of_each_report(
    served: tuple[LiveServer, str], cik: str
) -> None:
    changes = rows_of(
        served, f"/v1/panel?line_items=eps_basic&every=change&from=2013-01-01&issuers={of(cik)}"
    )
    days = {report.filed for report in filed_years(cik)}
    expected = {}
    for day in days:
        known = published(cik, day)
        expected[day] = known[max(key for key in known if key[0] == EPS[0])]
    assert {row["as_of"]: row["eps_basic"] for row in changes} == expected
    for row in rows_of(served, f"/v1/fundamentals/{of(cik)}/matrix?line_item=eps_basic&period_type=FY"):
        for day in days:
            assert row[day] == published(cik, day).get((EPS[0], row["date"]))


@pytest.mark.rule("VINT-10", "RST-1", "RST-3", "RST-4")
@pytest.mark.parametrize(("cik", "before", "after", "ratio", "years"), SPLITS)
def test_a_restatement_for_a_split_says_so_everywhere(
    served: tuple[LiveServer, str], cik: str, before: str, after: str, ratio: int, years: tuple[int, int]
) -> None:
    server, key = served
    query = f"service_id={of(cik)}&since={after}&until={after}"
    rows = rows_of(served, f"/v1/restatements?{query}&limit=100")
    assert per_share(rows, "value_before").items() <= published(cik, before).items()
    assert per_share(rows, "value_after").items() <= published(cik, after).items()
    figures = 2 if cik == ALPHABET else 4
    assert [row["split_ratio"] for row in rows] == [ratio] * (len(years) * figures)
    vintages = {row["record_ref"]: row for row in rows_of(served, f"/v1/fundamentals/{of(cik)}?vintages=all")}
    assert all(vintages[row["record_ref"]]["split_ratio"] == ratio for row in rows)
    by_tool = server.tool("get_restatements", key, {"service_id": of(cik), "since": after, "until": after})
    assert {row["split_ratio"] for row in by_tool["data"]} == {ratio}
    with Client(key, server.url) as client:
        by_client = client.get_restatements(service_id=of(cik), since=after, until=after)
        assert {row["split_ratio"] for row in by_client} == {ratio}
    feed = ET.fromstring(server.get(f"/feeds/company/{of(cik)}.atom?since={after}&until={after}", key).text)  # noqa: S314 - our own answer
    titles = [one.text or "" for one in feed.iter("{http://www.w3.org/2005/Atom}title")][1:]
    assert len(titles) == len(rows)
    assert all(f"restated for a split ({ratio}:1) from" in title for title in titles), titles
    words = f"restated for a split, {ratio}:1"
    assert server.http.get(f"/restatements?{query}").text.count(words) == len(rows)
    end = year_of(cik, years[0])[1]
    figure = f"/company/{of(cik)}/figure?line_item=eps_basic&period_end={end}"
    assert words in server.http.get(f"/at/{after}{figure}").text
    assert words not in server.http.get(f"/at/{before}{figure}").text


@pytest.mark.rule("VINT-10")
def test_an_ordinary_restatement_names_no_split(server: LiveServer, paid_key: str) -> None:
    rows = server.rows("/v1/restatements?limit=1000", paid_key)
    assert rows
    assert {row["split_ratio"] for row in rows} == {None}
    assert "restated for a split" not in server.http.get("/restatements").text
