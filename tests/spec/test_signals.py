"""GET /v1/signals/...: panels, and months closed by a day."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest

from sankofa.derive.signals.contract import panels
from tests.every import every
from tests.live import LiveServer, publish_files
from tests.spec.demand import CATEGORIES, COUNTRIES, TODAY, Row, demand, last_day, released, releases

PATH = "/v1/signals/procurement-demand"
FIELDS = (
    "country category month closed_at tender_count category_share buyer_hhi momentum_3m value_coverage "
    "methodology_ref source_ref license_class observed_at"
).split()
KEYS = {
    "procurement-demand": "open",
    "tender-award-concentration": "open",
    "public-buyer-concentration": "open",
    "red-flags": "open",
    "macro-momentum": "open",
    "fundamentals-factors": "licensed",
    "fundamentals-quality": "licensed",
    "fundamentals-revisions": "licensed",
    "issuer-persistence": "licensed",
    "supplier-issuer-demand": "licensed",
}
RELEASES = {country: releases(country, seed) for seed, country in enumerate(COUNTRIES)}
MONTHS = sorted({f"{released(r):%Y-%m}" for r in RELEASES["ZA"]})
SERIES = """\
series,series_type,frequency,country,date,value,unit,release_date
CPI.ZA,cpi,monthly,ZA,2024-01-31,100,index,2024-02-20
CPI.ZA,cpi,monthly,ZA,2024-02-29,102,index,2024-03-20
CPI.ZA,cpi,monthly,ZA,2024-01-31,99,index,2024-04-01
FX.USD.ZAR,fx,daily,,2024-02-29,18.5,ZAR,2024-02-29
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Tenders of two countries and some series."""
    folder = tmp_path_factory.mktemp("signals")
    home = folder / "home"
    (folder / "series.csv").write_text(SERIES)
    files = [("series", folder / "series.csv")]
    for country, source in COUNTRIES.items():
        half = len(RELEASES[country]) // 2
        for n, part in enumerate((RELEASES[country][:half], RELEASES[country][half:])):
            path = folder / f"{country}-{n}.json"
            path.write_text(json.dumps({"version": "1.1", "releases": part}))
            files.append((source, path))
    publish_files(home, *files)
    with LiveServer(home, per_minute_sample="100000", per_month_sample="1000000") as server:
        yield server


@pytest.fixture(scope="module")
def key(live: LiveServer) -> str:
    return live.key("starter", "--per-minute", "100000")


def ask(server: LiveServer, key: str, query: str = "", path: str = PATH) -> dict[str, Any]:
    return server.exact(f"{path}?{query}", key)


def panel_rows(body: dict[str, Any]) -> list[Row]:
    return [tuple(row[name] for name in FIELDS[:9]) for row in body["observations"]]


@cache
def expected(country: str = "ZA", as_of: date = TODAY) -> list[Row]:
    return demand(RELEASES[country], country, as_of)


@pytest.mark.rule("SIG-5")
def test_rows_have_every_field_and_their_provenance(live: LiveServer, key: str) -> None:
    body = ask(live, key, "limit=1000")
    assert "data" not in body
    assert body["as_of"] in {f"{TODAY}", f"{datetime.now(UTC):%Y-%m-%d}"}  # midnight may have passed
    assert body["truncated"] is False
    for row in body["observations"]:
        assert sorted(row) == sorted(FIELDS)
        assert row["methodology_ref"] == "signals-v1/procurement-demand"
        assert row["source_ref"].startswith("za-etenders:")
        assert row["license_class"] == "public-domain"
        assert row["observed_at"].startswith(str(TODAY)[:4])


@pytest.mark.rule("SIG-1", "SIG-2", "SIG-4")
@pytest.mark.parametrize("country", COUNTRIES)
def test_without_as_of_every_closed_month_is_served(live: LiveServer, key: str, country: str) -> None:
    rows = panel_rows(ask(live, key, f"country={country}&limit=1000"))
    assert rows == expected(country)
    assert {row[6] is None for row in rows} == {True, False}, "with and without a withheld buyer"
    assert {row[7] is None for row in rows} == {True, False}, "with and without a momentum"


@pytest.mark.rule("SIG-1")
@pytest.mark.parametrize("month", MONTHS)
def test_as_of_gives_months_closed_by_then_from_releases_dated_by_then(
    live: LiveServer, key: str, month: str
) -> None:
    for day in (last_day(month) + timedelta(days=n) for n in (-1, 0, 1)):
        if day > TODAY:
            continue
        body = ask(live, key, f"as_of={day}&limit=1000")
        assert body["as_of"] == str(day)
        assert panel_rows(body) == expected(as_of=day), day


@pytest.mark.rule("SIG-7")
def test_the_country_is_za_unless_named_in_any_case(live: LiveServer, key: str) -> None:
    assert panel_rows(ask(live, key)) == panel_rows(ask(live, key, "country=za"))
    assert panel_rows(ask(live, key, "country=py&limit=1000")) == expected("PY")
    assert ask(live, key, "country=SN")["observations"] == []


@pytest.mark.rule("SIG-7")
@pytest.mark.parametrize("category", [category for category in CATEGORIES if category])
def test_a_category_is_matched_as_published(live: LiveServer, key: str, category: str) -> None:
    rows = panel_rows(ask(live, key, f"category={quote(category)}&limit=1000"))
    assert rows == [row for row in expected() if row[1] == category] != []
    assert ask(live, key, f"category={quote(category.swapcase())}")["observations"] == []


@pytest.mark.rule("SIG-7")
@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("from=2024-05-01", "2024-05", "9999"),
        ("from=2024-05-31", "2024-05", "9999"),
        ("to=2024-05-01", "0000", "2024-05"),
        ("to=2024-05-31", "0000", "2024-05"),
        ("from=2024-05-15&to=2024-07-15", "2024-05", "2024-07"),
        ("from=2024-05-15&to=2024-05-01", "2024-05", "2024-05"),
        ("from=2024-06-01&to=2024-05-31", "9999", "0000"),
        ("from=2024-03-31&as_of=2024-06-29", "2024-03", "2024-05"),
        ("to=9999-12-31", "0000", "9999"),
    ],
)
def test_from_and_to_may_be_any_day_of_a_month(
    live: LiveServer, key: str, query: str, first: str, last: str
) -> None:
    for category in ("", CATEGORIES[1]):
        narrowed = f"&category={quote(category)}" if category else ""
        assert panel_rows(ask(live, key, f"{query}{narrowed}&limit=1000")) == [
            row for row in expected() if first <= row[2] <= last and category in ("", row[1])
        ]


# Panels


@pytest.mark.rule("SIG-6")
def test_each_panel_is_open_or_licensed_as_promised() -> None:
    assert {key: panel.access for key, panel in panels().items()} == KEYS


@pytest.mark.parametrize("signal", KEYS)
def test_every_panel_answers_under_its_key_and_explains_itself(live: LiveServer, key: str, signal: str):
    body = ask(live, key, path=f"/v1/signals/{signal}")
    assert {"observations", "count", "_license", "edition", "truncated"} <= set(body)
    assert {row["methodology_ref"] for row in body["observations"]} <= {f"signals-v1/{signal}"}
    page = live.get(f"/methodology/signals-v1/{signal}")
    assert page.status_code == 200
    assert page.text.startswith(f"# {signal}\n")
    for name in panels()[signal].row.__struct_fields__:
        assert f"| {name} |" in page.text


def test_momentum_of_a_series_uses_values_known_then(live: LiveServer, key: str) -> None:
    rows = ask(live, key, path="/v1/signals/macro-momentum")["observations"]
    assert [(r["date"], r["known_at"], r["value"], r["momentum_1p"]) for r in rows] == [
        ("2024-02-29", "2024-03-20", 102, Decimal("0.02")),
        ("2024-01-31", "2024-02-20", 100, None),
    ]


def test_public_buyers_of_closed_quarters(live: LiveServer, key: str) -> None:
    rows = ask(live, key, path="/v1/signals/public-buyer-concentration")["observations"]
    quarters = {"ZA": set[str](), "PY": set[str]()}
    for row in rows:
        quarters[row["country"]].add(row["quarter"])
        assert row["closed_at"] <= TODAY.isoformat()
        assert row["buyer_count"] <= 4, "two spellings are one buyer"
    assert quarters["ZA"] >= {"2024-Q1", "2024-Q4", "2025-Q1"}


@pytest.mark.rule("SIG-3")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/signals/no-such-panel", 404),
        ("/v1/signals/Macro-Momentum", 400),
        ("/v1/signals/macro_momentum", 400),
        ("/v1/signals/macro-momentum%2Fx", 400),
        ("/v1/signals/macro-momentum?country=ZA", 400),
        ("/v1/signals/macro-momentum?limit=0", 400),
        ("/v1/signals/", 404),
        ("/v1/signals", 404),
        ("/methodology/signals-v1/no-such-panel", 404),
    ],
)
def test_an_unknown_key_is_404_and_a_malformed_one_400(live: LiveServer, key: str, path: str, status: int):
    assert live.get(path, key).status_code == status


@pytest.mark.rule("CLI-5")
@every("signal", KEYS)
def test_the_sample_world_has_rows_on_every_panel(server: LiveServer, sample_key: str, signal: str) -> None:
    for country in ("ZA", "KE", "NG") if signal == "procurement-demand" else (None,):
        query = f"country={country}" if country else ""
        assert ask(server, sample_key, query, f"/v1/signals/{signal}")["count"] > 5
