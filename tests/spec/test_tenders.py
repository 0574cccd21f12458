"""GET /v1/tenders and the tool search_tenders."""

import re
from decimal import Decimal

import pytest

from tests.spec.market import BREWER, CITY, PaidCaller, without_mark
from tests.spec.tender_market import BIG, BUYERS, COMPLETE, FIELDS, SPREAD, TIMES, VALUES, expected, keys
from tests.spec.tender_market import market as market

# Fields


@pytest.mark.rule("TEND-7")
def test_a_row_has_every_field_with_the_values_of_the_release(market: PaidCaller) -> None:
    row = market.tender("complete")
    assert set(row) == FIELDS
    assert all(set(other) == FIELDS for other in market.tenders())
    del row["release"], row["observed_at"]
    row["source_ref"] = without_mark(row["source_ref"])
    assert row == {
        "source_ref": "portal-za:za.json#releases[0]",
        "license_class": "open-government",
        "buyer_service_id": market.get("/v1/crosswalk", id_type="lei", id_value=BREWER)["data"][0][
            "service_id"
        ],
        "country": "ZA",
        "ocid": "ocds-test-complete",
        "release_id": "complete-1",
        "release_date": "2025-05-05T05:05:05Z",
        "tag": ["award", "contract"],
        "title": "Road maintenance",
        "description": None,
        "closing_date": None,
        "category": "Services: Civil",
        "procurement_method": "open",
        "status": "complete",
        "value_amount": Decimal("1200.5"),
        "value_currency": "ZAR",
        "buyer_name": "Thornveld Breweries (Pty) Ltd",
        "award_count": 2,
        "withheld_parties": 0,
        "available_instant": "2025-05-05T05:05:05Z",
        "available_precision": "second",
    }


@pytest.mark.rule("FIG-2")
def test_a_release_with_only_its_keys_has_nulls(market: PaidCaller) -> None:
    row = market.tender("nothing")
    empty = "title category procurement_method status value_amount value_currency buyer_name".split()
    assert [row[field] for field in empty] == [None] * len(empty)
    assert (row["award_count"], row["withheld_parties"]) == (0, 0)


@pytest.mark.parametrize("ocid", ["buyer", "listed-buyer"])
def test_the_buyer_is_named_wherever_the_release_names_it(market: PaidCaller, ocid: str) -> None:
    assert market.tender(ocid)["buyer_name"] == CITY["name"]


@pytest.mark.rule("FIG-3")
@pytest.mark.parametrize("ocid", ["zero", "zero-point"])
def test_a_zero_amount_is_null_in_the_row_and_in_the_release(market: PaidCaller, ocid: str) -> None:
    row = market.tender(ocid)
    assert row["value_amount"] is None
    assert row["release"]["tender"]["value"] == {"amount": None, "currency": "ZAR"}


@pytest.mark.rule("FIG-1")
def test_amounts_keep_every_digit_of_the_source(market: PaidCaller) -> None:
    body = market.server.get("/v1/tenders?limit=10000", market.key).text
    for number in BIG:
        assert body.count(f'"amount":{number}}}') == 1
        assert len(re.findall(rf'"value_amount":{re.escape(number)},', body)) == 1


# Order, country, from


@pytest.mark.rule("ENV-3", "TEND-1")
def test_rows_come_newest_first_and_then_by_ocid_and_release_id(market: PaidCaller) -> None:
    served = [k for k in keys(market.tenders()) if not k[0].startswith("ocds-test-digits")]
    assert served == expected([COMPLETE, *SPREAD, *TIMES, *VALUES, *BUYERS])


@pytest.mark.rule("TEND-1")
def test_the_default_country_is_za(market: PaidCaller) -> None:
    assert {row["country"] for row in market.tenders()} == {"ZA"}
    assert market.tenders() == market.tenders(country="za")


@pytest.mark.rule("PAR-7")
def test_a_country_that_is_not_covered_has_no_rows(market: PaidCaller) -> None:
    answer = market.get("/v1/tenders", country="XX")
    assert (answer["data"], answer["next_cursor"], answer["truncated"]) == ([], None, False)


@pytest.mark.rule("TEND-6")
@pytest.mark.parametrize(
    ("ocid", "date", "precision"),
    [
        ("zoned", "2025-02-28T23:00:00Z", "second"),
        ("unzoned", "2025-02-28T10:00:00Z", "day"),
        ("bare", "2025-03-01T00:00:00Z", "day"),
    ],
)
def test_release_date_is_an_instant_in_utc_and_known_if_it_was_published_with_its_zone(
    market: PaidCaller, ocid: str, date: str, precision: str
) -> None:
    row = market.tender(ocid)
    assert (row["release_date"], row["available_precision"]) == (date, precision)
    assert row["available_instant"] == (date if precision == "second" else None)


@pytest.mark.rule("TEND-1")
def test_from_cuts_by_the_day_in_utc(market: PaidCaller) -> None:
    def since(day: str) -> set[str]:
        return {row["ocid"].removeprefix("ocds-test-") for row in market.tenders(**{"from": day})}

    assert "bare" in since("2025-03-01")
    assert not {"zoned", "unzoned"} & since("2025-03-01")
    assert {"zoned", "unzoned", "bare"} <= since("2025-02-28")
    assert since("2025-05-06") == set()
    assert since("2025-05-05") == {"complete"}
    assert len(market.tenders(**{"from": "1990-01-01"})) == len(market.tenders())
    assert market.tenders(**{"from": "2999-01-01"}) == []


@pytest.mark.rule("TEND-8")
def test_words_and_the_compact_form_are_parameters_of_the_endpoint_too(market: PaidCaller) -> None:
    full = market.get("/v1/tenders", query="roller")
    assert full["filters"] == {"country": "ZA", "from": None, "query": "roller", "detail": "full"}
    compact = market.get("/v1/tenders", query="roller", detail="compact")
    assert compact["filters"]["detail"] == "compact"
    assert 0 < full["count"] < len(market.tenders())
    for row in full["data"]:
        del row["release"]
    assert compact["data"] == full["data"]


@pytest.mark.rule("TEND-9")
def test_the_releases_of_one_process_are_asked_for_by_its_ocid(market: PaidCaller) -> None:
    every = market.tenders()
    ocids = {row["ocid"] for row in every}
    assert len(ocids) > 60
    for ocid in ocids:
        body = market.get("/v1/tenders", ocid=ocid)
        assert body["data"] == [row for row in every if row["ocid"] == ocid]
        assert body["filters"]["ocid"] == ocid
    (kenya,) = market.tool("search_tenders", ocid="ocds-test-kenya")[1]["data"]  # of all countries
    assert kenya["country"] == "KE"
    for nothing in ({"ocid": "ocds-test-kenya"}, {"ocid": "OCDS-TEST-COMPLETE"}, {"ocid": "no such"}):
        assert market.get("/v1/tenders", **nothing)["data"] == []
    assert market.get("/v1/tenders", ocid="ocds-test-complete", query="maintenance")["count"] == 1
    assert market.get("/v1/tenders", ocid="ocds-test-complete", query="roller")["count"] == 0
    refused = market.server.get("/v1/tenders?ocid=" + "x" * 201, market.server.key("sample"))
    assert (refused.status_code, refused.json()["parameter"]) == (400, "ocid")


# Limits


# Pages


@pytest.mark.rule("TEND-5")
def test_the_last_page_has_a_null_cursor_and_no_link(market: PaidCaller) -> None:
    answer = market.server.get("/v1/tenders?country=KE", market.key)
    assert answer.json()["next_cursor"] is None
    assert answer.json()["truncated"] is False
    assert "link" not in answer.headers
    rows = len(market.tenders())
    exact = market.get("/v1/tenders", limit=rows)
    assert (exact["count"], exact["next_cursor"], exact["truncated"]) == (rows, None, False)
