"""/worldbank/v2: wbgapi and wbdata, unmodified, get the annual values, and under /at/ those of the day."""

import importlib
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
import wbgapi
from fredapi import Fred
from wbdata import client as wbdata_client

from tests.live import LiveServer, succeed
from tests.spec.test_annual_series import CAPTURES, TABLES, as_csv
from tests.spec.test_links import link

GDP = "NY.GDP.MKTP.CD"
Values = dict[tuple[str, int], float | None]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("worldbank")
    home = folder / "home"
    for day in CAPTURES:
        path = folder / f"{day}-gdp.csv"
        path.write_text(as_csv(TABLES[day]))
        succeed(home, "ingest", "worldbank", path)
    succeed(home, "publish")
    with LiveServer(home) as server:
        yield server


@pytest.fixture(scope="module")
def key(live: LiveServer) -> str:
    return live.key("starter", "--per-minute", "100000")


def expected(live: LiveServer, key: str, at: date | None) -> Values:
    """The answer of /v1/macro."""
    if at is None:
        rows = live.get(f"/v1/macro?indicator={GDP}", key).json()["data"]
        return {(row["country_iso3"], row["year"]): row["value"] for row in rows}
    values: Values = {}
    for iso3 in ("NGA", "KEN"):
        rows = live.get(f"/v1/macro?series=WDI:{GDP}:{iso3}&as_of={at}", key).json()["data"]
        values |= {(iso3, int(row["date"][:4])): row["value"] for row in rows}
    return values


def root(live: LiveServer, at: date | None) -> str:
    return f"{live.url}{'' if at is None else f'/at/{at}'}/worldbank/v2"


DAYS = (None, *CAPTURES, date(2014, 1, 1))


@pytest.mark.rule("DIAL-1")
@pytest.mark.parametrize("at", DAYS)
def test_wbgapi_gets_the_values(live: LiveServer, key: str, at: date | None) -> None:
    wb: Any = importlib.reload(wbgapi)  # it caches answers
    wb.endpoint = root(live, at)
    wb.get_options = {"headers": {"X-API-Key": key}}
    own = expected(live, key, at)
    assert own
    rows = list(wb.data.fetch(GDP, ["NGA", "KEN"], numericTimeKeys=True))
    assert {(row["economy"], row["time"]): row["value"] for row in rows} == own
    assert {row["series"] for row in rows} == {GDP}
    chosen = list(wb.data.fetch(GDP, "KEN", [2008, 2010], numericTimeKeys=True))
    assert {row["time"]: row["value"] for row in chosen} == {
        year: value for (iso3, year), value in own.items() if iso3 == "KEN" and year in (2008, 2010)
    }
    last = max(year for _, year in own)
    newest = list(wb.data.fetch(GDP, "all", mrv=1, numericTimeKeys=True))
    assert {row["time"] for row in newest} == {last}
    filled = list(wb.data.fetch(GDP, "all", mrnev=2, numericTimeKeys=True))
    for iso3 in ("NGA", "KEN"):
        years = sorted((y for (c, y), value in own.items() if c == iso3 and value is not None), reverse=True)
        assert {row["time"] for row in filled if row["economy"] == iso3} == set(years[:2])
    assert [row["id"] for row in wb.series.list()] == [GDP]
    assert {row["id"] for row in wb.economy.list(["GHA", "ZAF"])} == {"GHA", "ZAF"}
    with pytest.raises(wb.APIError):
        list(wb.data.fetch("NO.SUCH", "KEN"))


@pytest.mark.parametrize("at", DAYS[:3])
def test_wbdata_gets_the_values(live: LiveServer, key: str, at: date | None, monkeypatch: pytest.MonkeyPatch):
    for name in ("COUNTRIES", "ILEVEL", "INDICATOR", "LTYPE", "SOURCE", "TOPIC"):
        url = getattr(wbdata_client, f"{name}_URL")
        monkeypatch.setattr(
            wbdata_client, f"{name}_URL", url.replace("https://api.worldbank.org/v2", root(live, at))
        )
    monkeypatch.setattr("wbdata.cache.get_cache", lambda **_: {})  # not a file in the user's folder
    client = wbdata_client.Client()
    client.fetcher.session.headers["X-API-Key"] = key
    own = expected(live, key, at)
    rows = client.get_data(GDP, ["NGA", "KEN"], date=("2008", "2010"))
    assert {(row["countryiso3code"], int(row["date"])): row["value"] for row in rows} == {
        where: value for where, value in own.items() if 2008 <= where[1] <= 2010
    }
    assert rows.last_updated is not None
    assert at is None or rows.last_updated.date() <= at
    assert [row["id"] for row in client.get_indicators()] == [GDP]
    assert {row["id"] for row in client.get_countries(["GHA", "ZAF"])} == {"GHA", "ZAF"}
    assert [row["id"] for row in client.get_sources()] == ["2"]
    assert not client.get_topics()
    with pytest.raises(RuntimeError, match="no country"):
        client.get_data(GDP, "XXX")


@pytest.mark.rule("DIAL-2")
def test_pages_and_the_sample_tier(live: LiveServer, key: str) -> None:
    path = f"/worldbank/v2/country/all/indicator/{GDP}?format=json&per_page=3"
    head, first = live.get(path, key).json()
    total = head["total"]
    assert (head["page"], head["per_page"], head["pages"]) == (1, 3, -(-total // 3))
    assert len(first) == 3
    pages = [live.get(f"{path}&page={n}", key).json()[1] for n in range(1, head["pages"] + 1)]
    assert len({(row["countryiso3code"], row["date"]) for page in pages for row in page}) == total
    filled = live.get(f"{path}&mrv=2&gapfill=Y", key)
    assert (filled.status_code, filled.json()[0]["message"][0]["id"]) == (400, "120")
    assert live.get(f"{path}&mrv=2&gapfill=N", key).status_code == 200
    refused = live.get(path)
    assert refused.status_code == 401
    assert refused.json()[0]["message"][0]["id"] == "401"
    with LiveServer(live.home, rows_sample="3") as few:
        cut = few.get(path, few.key("sample"))
        assert cut.status_code == 402
        assert "message" in cut.json()[0]
        # a short list over many years is not truncated
        years = f"{first[0]['date']}:{first[0]['date']}"
        one = few.get(f"{path.replace('all', first[0]['countryiso3code'])}&date={years}", few.key("sample"))
        assert [row["value"] for row in one.json()[1]] == [first[0]["value"]]


def test_fredapi_reads_an_annual_indicator_as_captured(live: LiveServer, key: str) -> None:
    client = Fred(api_key=link(live, key, "--dialect", "fred")[1])
    client.root_url = f"{live.url}/fred"
    releases = client.get_series_all_releases(f"WDI:{GDP}:KEN")
    assert {at.date() for at in releases["realtime_start"]} <= set(CAPTURES)
    for day in CAPTURES:
        values = {year: v for (iso3, year), v in expected(live, key, day).items() if iso3 == "KEN"}
        series = client.get_series(f"WDI:{GDP}:KEN", realtime_start=day, realtime_end=day)
        assert {at.year for at in series.index} == values.keys()
        assert {at.year: v for at, v in series.dropna().items()} == {
            year: v for year, v in values.items() if v is not None
        }


@pytest.mark.rule("DIA-7", "DIAL-1")
@pytest.mark.parametrize("at", DAYS)
def test_an_annual_indicator_is_one_series_for_each_country_by_sdmx_and_in_a_search(
    live: LiveServer, key: str, at: date | None
) -> None:
    before = "" if at is None else f"/at/{at}"
    flow = f"{before}/sdmx/data/dataflow/SANKOFA/MACRO/1.0.0"
    series = live.get(f"{before}/v1/macro?series=WDI:{GDP}:KEN", key).json()["data"]
    expected = [(row["date"], row["available_at"]) for row in reversed(series)]
    assert expected
    for path in (f"{flow}/..WDI_NY_GDP_MKTP_CD_KEN", f"{flow}/A.KE.", f"{flow}/*"):
        lines = [line.split(",") for line in live.get(path, key).text.splitlines()[1:]]
        assert [(line[-3], line[-1]) for line in lines if line[4] == "KE"] == expected, path
    client = Fred(api_key=link(live, key, "--dialect", "fred")[1])
    client.root_url = f"{live.url}{before}/fred"
    for text in ("GDP current", GDP):
        assert sorted(client.search(text)["id"]) == [f"WDI:{GDP}:KEN", f"WDI:{GDP}:NGA"]
    assert list(client.search(f"WDI:{GDP}:KEN")["id"]) == [f"WDI:{GDP}:KEN"]
