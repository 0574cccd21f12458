"""GET /v1/screen: issuers ranked on a metric."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from sankofa.derive.metrics.contract import slugs
from sankofa.model.identifiers import service_id
from tests.every import every
from tests.live import LiveServer
from tests.spec import market
from tests.spec.market import Desk
from tests.spec.test_changes import figure, filings

plain_desk = market.plain_desk

FIELDS = set(
    "rank service_id legal_name country metric value unit period_end as_of age_days available_at "
    "methodology_ref inputs source_ref license_class observed_at".split()
)
REASONS = {
    *("not_published", "input_absent", "currency_mixed", "denominator_not_positive"),
    *("completed_after_as_of", "revised_after_as_of"),
}
ISSUERS = 16  # of the sample world: those with a full year
RIFTLINE = service_id("lei:999900SAMPLEKE000132")
OKAVANGO = service_id("lei:999900SAMPLEBW000181")
DODO = service_id("lei:999900SAMPLEMU000120")


def ask(server: LiveServer, key: str, query: str) -> dict[str, Any]:
    body = server.body(f"/v1/screen?{query}", key)
    assert set(body["omitted"]) == REASONS
    return body


def row_of(body: dict[str, Any], issuer: str) -> dict[str, Any] | None:
    return next((row for row in body["data"] if row["service_id"] == issuer), None)


def ranks(rows: Iterable[dict[str, Any]]) -> list[int]:
    return [row["rank"] for row in rows]


@pytest.mark.rule("MET-11", "SCR-4")
@every("slug", slugs())
def test_every_metric_of_the_set_ranks_issuers(server: LiveServer, paid_key: str, slug: str) -> None:
    body = ask(server, paid_key, f"metric={slug}")
    rows = body["data"]
    assert rows
    assert ranks(rows) == list(range(1, len(rows) + 1))
    assert len(rows) + sum(body["omitted"].values()) == ISSUERS
    assert [(-r["value"], r["service_id"]) for r in rows] == sorted(
        (-r["value"], r["service_id"]) for r in rows
    )
    for row in rows:
        assert set(row) == FIELDS
        assert row["metric"] == slug
        assert row["as_of"] == body["as_of"]
        assert row["methodology_ref"] == f"metrics-v1/{slug}"
        assert row["unit"] == ("days" if slug.endswith("_days") else "ratio")
        assert max(row["period_end"], row["available_at"]) <= body["as_of"]
        assert {"line_item", "concept", "period_end", "value", "vintage", "source_ref"} == set(
            row["inputs"][0]
        )
        assert row["source_ref"] in {i["source_ref"] for i in row["inputs"]}
        assert row["license_class"] == "synthetic"


@pytest.mark.rule("SCR-3")
def test_the_order_reverses_the_ranks_and_desc_is_the_default(server: LiveServer, paid_key: str) -> None:
    down = ask(server, paid_key, "metric=net_margin&order=desc")["data"]
    up = ask(server, paid_key, "metric=net_margin&order=asc")["data"]
    assert ask(server, paid_key, "metric=net_margin")["data"] == down
    assert [r["service_id"] for r in up] == [r["service_id"] for r in reversed(down)]
    assert ranks(up) == ranks(down)


@pytest.mark.rule("SCR-1")
def test_ranks_cover_the_whole_result_before_the_limit(server: LiveServer, paid_key: str) -> None:
    whole = ask(server, paid_key, "metric=asset_turnover")
    for limit in (1, 3, whole["count"]):
        part = ask(server, paid_key, f"metric=asset_turnover&limit={limit}")
        assert part["data"] == whole["data"][:limit]
        assert part["truncated"] == (limit < whole["count"])
        assert part["omitted"] == whole["omitted"]


@pytest.mark.rule("SCR-1")
def test_ranks_cover_the_country(server: LiveServer, paid_key: str) -> None:
    whole = ask(server, paid_key, "metric=net_margin")["data"]
    for country in sorted({r["country"] for r in whole if r["country"]}):
        body = ask(server, paid_key, f"metric=net_margin&country={country.lower()}")
        expected = [r for r in whole if r["country"] == country]
        assert ranks(body["data"]) == list(range(1, len(expected) + 1))
        assert [r | {"rank": 0} for r in body["data"]] == [r | {"rank": 0} for r in expected]


@pytest.mark.rule("PAR-7")
def test_a_country_that_is_not_covered_is_an_empty_answer(server: LiveServer, paid_key: str) -> None:
    body = ask(server, paid_key, "metric=net_margin&country=AQ")
    assert (body["data"], body["truncated"], set(body["omitted"].values())) == ([], False, {0})


@pytest.mark.rule("MET-12")
def test_before_any_publication_every_issuer_is_omitted_with_that_reason(server: LiveServer, paid_key: str):
    for day in ("0001-01-01", "1990-01-01", "2020-01-31"):
        body = ask(server, paid_key, f"metric=net_margin&as_of={day}")
        assert (body["data"], body["omitted"]["not_published"]) == ([], ISSUERS)


@pytest.mark.rule("MET-2")
def test_a_year_revised_later_is_left_out_and_not_replaced(server: LiveServer, paid_key: str) -> None:
    """Riftline's FY2023 revenue: 1 June 2023, restated on 3 June 2024, restated back on 29 May 2025."""
    screen = ask(server, paid_key, "metric=net_margin&as_of=2023-05-31")
    row = row_of(screen, RIFTLINE)
    assert row is not None
    assert row["period_end"] == "2022-03-31"
    for day in ("2023-06-01", "2024-01-01"):
        screen_without = ask(server, paid_key, f"metric=net_margin&as_of={day}")
        assert row_of(screen_without, RIFTLINE) is None
        assert screen_without["omitted"]["revised_after_as_of"] >= 1
    row = row_of(ask(server, paid_key, "metric=net_margin&as_of=2024-06-03"), RIFTLINE)
    assert row is not None
    assert row["period_end"] == "2024-03-31"
    # growth of FY2024 depends on the FY2023 figure that was restated back: only from that filing on
    assert row_of(ask(server, paid_key, "metric=revenue_growth&as_of=2025-05-28"), RIFTLINE) is None


@pytest.mark.rule("MET-2")
def test_a_year_completed_later_is_left_out_until_then(server: LiveServer, paid_key: str) -> None:
    """Okavango's operating cash flow of FY2022 came in a supplement of 14 July 2023, the rest in March."""
    before = ask(server, paid_key, "metric=accruals_ratio&as_of=2023-07-13")
    after = ask(server, paid_key, "metric=accruals_ratio&as_of=2023-07-14")
    assert row_of(before, OKAVANGO) is None
    assert before["omitted"]["completed_after_as_of"] == after["omitted"]["completed_after_as_of"] + 1
    row = row_of(after, OKAVANGO)
    assert row is not None
    assert (row["available_at"], row["period_end"]) == ("2023-07-14", "2022-12-31")


@pytest.mark.rule("MET-3")
def test_a_year_before_in_another_currency_gives_no_growth(server: LiveServer, paid_key: str) -> None:
    body = ask(server, paid_key, "metric=revenue_growth&as_of=2024-06-30&country=MU")
    assert row_of(body, DODO) is None
    assert body["omitted"]["currency_mixed"] == 1
    assert row_of(ask(server, paid_key, "metric=net_margin&as_of=2024-06-30&country=MU"), DODO)


@pytest.mark.rule("SCR-2")
def test_the_description_lists_the_slugs(server: LiveServer) -> None:
    described = server.get("/openapi.json").json()
    for path in ("/v1/screen", "/v1/metrics/{service_id}"):
        (parameter,) = [p for p in described["paths"][path]["get"]["parameters"] if p["name"] == "metric"]
        assert parameter["schema"]["enum"] == list(slugs())
        assert parameter["required"] == (path == "/v1/screen")


def test_a_mistyped_distant_year_does_not_enlarge_the_edition(plain_desk: Desk) -> None:
    """Only years with events are stored; the others are derived from them."""
    issuer = "ticker:JSE:TST"
    reported = [
        figure(issuer, year, year, "2020-03-01", "afs") for year in (1202, 1203, 2018, 2019, 9202, 9203)
    ]
    plain_desk.ingest("filings", "filings.csv", filings(*reported))
    plain_desk.publish()
    written = (path for path in (plain_desk.home / "editions").rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in written) < 1_000_000
    with plain_desk.serve() as caller:
        for day in ("2020-03-01", "2020-12-31", "2021-01-01", "2023-06-30", f"{datetime.now(UTC):%Y-%m-%d}"):
            body = caller.get("/v1/screen", metric="revenue_growth", as_of=day)
            assert [row["period_end"] for row in body["data"]] == ["2019-12-31"]
            assert not any(body["omitted"].values())
        for day in ("1000-01-01", "1500-06-30", "2020-02-29"):
            body = caller.get("/v1/screen", metric="revenue_growth", as_of=day)
            assert (body["count"], body["omitted"]["not_published"]) == (0, 1)
