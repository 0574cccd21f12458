"""GET /v1/search: organisations, series and indicators by name or identifier."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.every import every
from tests.live import LiveServer
from tests.spec import register
from tests.spec.market import Desk, PaidCaller
from tests.spec.register import BANK, BREWER, DISPUTED, HELD, MINER, SCHOLARS, sid

live, sample, paid = register.live, register.sample, register.paid

FIELDS = set("type id name country matched score source_ref license_class observed_at".split())
Rows = list[dict[str, Any]]


def found(server: LiveServer, key: str, **query: str) -> Rows:
    return server.rows("/v1/search", key, **query)


@pytest.mark.rule("SEARCH-1", "SEARCH-2")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Thornveld Breweries", BREWER),
        ("thornveld breweries pty ltd", BREWER),
        ("breweries thornveld", BREWER),
        ("thornv", BREWER),  # an incomplete word
        ("thornveld brew", BREWER),
        ("brew thornveld", BREWER),
        ("Thornvled Breweries", BREWER),  # two letters swapped
        ("thornveldbreweries", BREWER),  # a space left out
        ("thorn veld breweries", BREWER),  # a space too many
        ("SOCIETE MINIERE DU FOUTA DJALLON", MINER),
        ("Société minière du Fouta-Djallon SARL", MINER),
        ("fouta gold", MINER),  # another of its names
        ("marula bank", BANK),
        ("mar ban", BANK),
    ],
)
def test_an_organisation_is_found_however_its_name_is_written(
    live: LiveServer, sample: str, query: str, expected: str
) -> None:
    first = found(live, sample, q=query)[0]
    assert set(first) == FIELDS
    assert (first["type"], first["id"]) == ("organisation", sid(f"lei:{expected}"))
    assert 0 < first["score"] < 1
    entity = live.body(f"/v1/entities/{first['id']}", sample)["data"][0]
    assert (first["name"], first["country"]) == (entity["legal_name"], entity["country"])
    assert first["matched"] in (entity["legal_name"], *entity["other_names"])
    assert first["source_ref"] == entity["source_ref"]


@pytest.mark.rule("SEARCH-3")
@pytest.mark.parametrize(
    ("query", "matched", "expected"),
    [
        (BREWER.lower(), f"lei:{BREWER}", BREWER),
        ("JSE:THV", "ticker:JSE:THV", BREWER),
        ("thv", "ticker:JSE:THV", BREWER),
        (HELD, f"isin:{HELD}", BANK),
        ("RC 4411", "registry:RC 4411", BANK),
        ("sn/12345", "aggregator:sn/12345", MINER),
    ],
)
def test_an_identifier_comes_first(live: LiveServer, paid: str, query: str, matched: str, expected: str):
    first = found(live, paid, q=query)[0]
    assert (first["id"], first["matched"]) == (sid(f"lei:{expected}"), matched)
    assert first["score"] >= 0.99


@pytest.mark.rule("SEARCH-3", "KEY-9")
@pytest.mark.parametrize("query", [HELD, DISPUTED, "RC 4411", "sn/12345", "2001/000777/07"])
def test_a_paid_identifier_is_not_confirmed_to_a_sample_key(live: LiveServer, sample: str, query: str):
    assert not [row for row in found(live, sample, q=query) if row["score"] >= 0.99]


@pytest.mark.rule("SEARCH-1")
def test_the_order_is_total_and_the_same_each_time(live: LiveServer, sample: str) -> None:
    rows = found(live, sample, q="shared number")
    assert rows == found(live, sample, q="shared number")
    order = [(-row["score"], row["type"], row["id"]) for row in rows]
    assert order == sorted(order)
    assert len(rows) == 25


@pytest.mark.rule("SEARCH-1")
def test_limit_country_and_type_narrow_the_search(live: LiveServer, paid: str) -> None:
    answer = live.body("/v1/search?q=shared+number&limit=5", paid)
    assert (answer["count"], answer["truncated"]) == (5, True)
    assert not live.body("/v1/search?q=shared+number&limit=25", paid)["truncated"]
    assert found(live, paid, q="thornveld", country="NG") == []
    assert found(live, paid, q="thornveld", type="series") == []
    assert [row["id"] for row in found(live, paid, q="thornveld", country="za")] == [sid(f"lei:{BREWER}")]


@pytest.mark.rule("SEARCH-1", "SEARCH-4")
@every(
    ("query", "type_", "expected"),
    [
        ("CPI.ZA", "series", "CPI.ZA"),
        ("cpi south africa", "series", "CPI.ZA"),
        ("south african cpi", "series", "CPI.ZA"),
        ("south african inflation 2023", "series", "CPI.ZA"),
        ("rand euro", "series", "FX.EUR.ZAR"),
        ("euro exchange rate south africa", "series", "FX.EUR.ZAR"),
        ("Nigeria's GDP", "indicator", "NY.GDP.MKTP.CD"),
        ("GDP of Nigeria", "indicator", "NY.GDP.MKTP.CD"),
        ("NY.GDP.MKTP.CD", "indicator", "NY.GDP.MKTP.CD"),
        ("inflation consumer prices", "indicator", "FP.CPI.TOTL.ZG"),
        ("Consumer infl", "indicator", "FP.CPI.TOTL.ZG"),
        ("inflaton", "indicator", "FP.CPI.TOTL.ZG"),
    ],
)
def test_series_and_indicators_are_found_by_code_and_by_name(
    server: LiveServer, sample_key: str, query: str, type_: str, expected: str
) -> None:
    first = found(server, sample_key, q=query, type=type_)[0]
    assert (first["type"], first["id"]) == (type_, expected)
    assert set(first) == FIELDS
    assert expected in [row["id"] for row in found(server, sample_key, q=query)]


@pytest.mark.rule("SEARCH-1")
def test_one_word_finds_a_longer_name(live: LiveServer, sample: str) -> None:
    for word in ("oxbow", "camfield", "oxb"):
        assert [row["id"] for row in found(live, sample, q=word)] == [sid(f"lei:{SCHOLARS}")], word


@pytest.mark.rule("SEARCH-1")
def test_an_indicator_is_found_with_the_country_that_has_it(server: LiveServer, sample_key: str) -> None:
    (everywhere,) = found(server, sample_key, q="NY.GDP.MKTP.CD", type="indicator")[:1]
    assert everywhere["country"] is None
    (there,) = found(server, sample_key, q="NY.GDP.MKTP.CD", type="indicator", country="NG")[:1]
    assert there["country"] == "NG"
    assert " NG " in there["source_ref"]
    assert found(server, sample_key, q="NY.GDP.MKTP.CD", country="AQ") == []
    for query in ("gdp growth kenya", "Kenya GDP growth", "south africa gdp growth"):
        first = found(server, sample_key, q=query, type="indicator")[0]
        assert (first["id"], first["country"]) == ("NY.GDP.MKTP.KD.ZG", "ZA" if "africa" in query else "KE")
    assert found(server, sample_key, q="kenya cpi", type="series")[0]["id"] == "CPI.KE"


@pytest.mark.rule("MCP-6")
def test_the_tool_for_organisations_finds_the_same(live: LiveServer, sample: str) -> None:
    for query in ("thornveld", "shared number", "JSE:THV"):
        by_tool = live.tool("search_entities", sample, {"query": query})["data"]
        by_rest = found(live, sample, q=query, type="organisation")
        assert [{name: row[name] for name in FIELDS} for row in by_tool] == by_rest
        assert all(row["service_id"] == row["id"] for row in by_tool)
    for query, kind in ((BREWER.lower(), "lei"), ("xjse:thv", "ticker"), (sid(f"lei:{BANK}"), "service_id")):
        first = live.tool("search_entities", sample, {"query": query})["data"][0]
        assert (first["match"]["on"], first["match"]["score"] > 0.98) == (kind, True)


SERIES = """series,series_type,frequency,country,date,value,unit,release_date
COMMODITY.BRENT,commodity,monthly,,2024-01-31,80,USD,2024-02-02
COMMODITY.COAL-ZA,commodity,monthly,,2024-01-31,90,USD,2024-02-02
COMMODITY.DUBAI,commodity,monthly,,2024-01-31,79,USD,2024-02-02
COMMODITY.PALM-OIL,commodity,monthly,,2024-01-31,900,USD,2024-02-02
CPI.KE,cpi,monthly,KE,2024-01-31,101,index,2024-02-02
CPI.NG,cpi,monthly,NG,2024-01-31,102,index,2024-02-02
CPI.ZA,cpi,monthly,ZA,2024-01-31,103,index,2024-02-02
FX.USD.NGN,fx,daily,,2024-01-31,900,NGN,2024-01-31
FX.USD.NGN.CBN,fx,monthly,,2024-01-31,900,NGN,2024-01-31
FX.USD.KES,fx,daily,,2024-01-31,150,KES,2024-01-31
POLICY-RATE.KE,policy_rate,monthly,KE,2024-01-31,13,percent,2024-02-02
POLICY-RATE.NG,policy_rate,monthly,NG,2024-01-31,23,percent,2024-02-02
WEO.NGDP_RPCH.KE,weo,annual,KE,2025-12-31,5,percent,2024-04-16
"""
INDICATORS = {
    "FR.INR.RINR": "Real interest rate (%)",
    "FR.INR.LEND": "Lending interest rate (%)",
    "FP.CPI.TOTL.ZG": "Inflation, consumer prices (annual %)",
}


@pytest.fixture(scope="module")
def markets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    """Series of a few countries, and indicators with similar names."""
    desk = Desk(tmp_path_factory.mktemp("markets"))
    desk.ingest("series", "series.csv", SERIES)
    names = "".join(f'{code},,"{name}",,,,Annual\n' for code, name in INDICATORS.items())
    head = "Series Code,Topic,Indicator Name,Short definition,Long definition,Unit of measure,Periodicity\n"
    desk.ingest("worldbank", "WDISeries.csv", head + names)
    for code in INDICATORS:
        values = "Kenya,KEN,2023,5\nNigeria,NGA,2023,6\nSouth Africa,ZAF,2023,7\n"
        desk.ingest("worldbank", f"{code.lower()}.csv", f"Country Name,Country Code,Year,Value\n{values}")
    with desk.publish_and_serve() as caller:
        yield caller


@pytest.mark.rule("SEARCH-6")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("oil price", "COMMODITY.BRENT"),
        ("price of oil", "COMMODITY.BRENT"),
        ("palm oil price", "COMMODITY.PALM-OIL"),
        ("dubai oil price", "COMMODITY.DUBAI"),
        ("kenya interest rate", "POLICY-RATE.KE"),
        ("Nigerian interest rates", "POLICY-RATE.NG"),
        ("real interest rate kenya", "FR.INR.RINR"),
        ("policy rate nigeria", "POLICY-RATE.NG"),
        ("coal south africa", "COMMODITY.COAL-ZA"),
        ("kenya gdp growth forecast", "WEO.NGDP_RPCH.KE"),
    ],
)
def test_what_people_call_a_series_finds_it_before_longer_names(
    markets: PaidCaller, query: str, first: str
) -> None:
    assert markets.get("/v1/search", q=query)["data"][0]["id"] == first


@pytest.mark.rule("SEARCH-4", "SER-2")
@pytest.mark.parametrize(
    ("words", "country"),
    [
        ("nigerian inflation", "NG"),
        ("inflation in Kenya 2023", "KE"),
        ("South Africa's inflation", "ZA"),
        ("kenyan interest", "KE"),
    ],
)
def test_the_list_of_series_understands_a_country_as_the_search_does(
    markets: PaidCaller, words: str, country: str
) -> None:
    subject = "interest" if "interest" in words else "inflation"
    listed = markets.get("/v1/series", q=words)["data"]
    assert listed == markets.get("/v1/series", q=subject, country=country)["data"]
    assert listed == markets.get("/v1/series", q=words, country=country)["data"]
    found_ids = {row["id"] for row in markets.get("/v1/search", q=words)["data"]}
    assert {row["series"] for row in listed if not row["series"].startswith("WDI:")} == found_ids
    pages = [markets.get("/v1/series", q=words, limit=1)]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(markets.get("/v1/series", q=words, limit=1, cursor=cursor))
    assert [row for page in pages for row in page["data"]] == listed


@pytest.mark.rule("SER-2")
def test_a_country_in_the_name_of_a_series_is_a_word_like_others(markets: PaidCaller) -> None:
    listed = [row["series"] for row in markets.get("/v1/series", q="coal south africa")["data"]]
    assert listed == ["COMMODITY.COAL-ZA"]
    assert markets.get("/v1/series", q="nigerian inflation", country="KE")["data"] == []


@pytest.mark.rule("ABS-2")
@pytest.mark.parametrize("pair", ["USD/NGN", "usd/ngn", "NGN/USD", "USD NGN"])
def test_two_currencies_asked_as_a_series_name_their_exchange_rate(markets: PaidCaller, pair: str) -> None:
    rates = "FX.USD.NGN, FX.USD.NGN.CBN"
    for path, query in (
        ("/v1/macro", {"series": pair}),
        ("/v1/panel", {"series": pair, "from": "2024-01-01"}),
        (f"/v1/series/{pair.replace('/', '%2F')}/vintages", {}),
    ):
        problem = markets.refused(path, **query)
        assert (problem["status"], problem["parameter"]) == (400, "series"), path
        assert f"the exchange rate {rates}: ask for that key" in problem["detail"]
    failed, refusal = markets.tool("get_macro", series=pair)
    assert failed
    assert rates in refusal["detail"]
    locked = markets.refused("/at/2024-01-30/v1/macro", series=pair)
    assert "FX." not in locked["detail"]
    unknown = markets.refused("/v1/macro", series=pair.upper().replace("NGN", "GHS"))
    assert "FX." not in unknown["detail"]
