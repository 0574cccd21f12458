"""GET /v1/shared/facts: any dataset in one shape (docs/decisions/shared-facts-and-signals.md)."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.live import LiveServer, columns_of
from tests.spec import shared_world
from tests.spec.shared_world import BANK_ID, LEI_ID, RELEASES, TICKER, awards_won, tender_values

FIELDS = (
    "fact_id entity_id entity_name country_iso3 dataset measure value unit period_end period_type "
    "available_at vintage provenance_id source_ref license_class extraction_confidence observed_at method"
).split()
NOBODY = "DC000000000000000000000000"
QUESTIONS = (
    f"entity_id={TICKER}",
    f"entity_id={TICKER}&dataset=AF-TENDER",
    f"entity_id={BANK_ID}&dataset=AF-TENDER",
    "country=ZAF&dataset=AF-TENDER",
    "country=KEN&dataset=AF-TENDER",
    "country=ZAF&dataset=AF-MACRO",
    "country=NGA&dataset=AF-MACRO",
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    yield from shared_world.serve(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def key(live: LiveServer) -> str:
    return live.key("starter", "--per-minute", "1000000", "--per-month", "10000000")


def ask(server: LiveServer, key: str, query: str) -> dict[str, Any]:
    return server.exact(f"/v1/shared/facts?{query}", key)


def rows(server: LiveServer, key: str, query: str) -> list[dict[str, Any]]:
    return list(ask(server, key, f"{query}&limit=10000")["data"])


AMOUNTS = ("unit", "value", "available_at", "period_end", "vintage")


def around() -> list[date]:
    released = {date.fromisoformat(release.day) for release in RELEASES}
    return sorted({day + timedelta(days=step) for day in released for step in (-1, 0, 1)})


# The shape


@pytest.mark.rule("FACT-2", "FACT-6")
@pytest.mark.parametrize("query", QUESTIONS)
def test_every_row_has_every_field_in_order_and_its_provenance(live: LiveServer, key: str, query: str):
    facts = rows(live, key, query)
    assert facts
    for row in facts:
        assert list(row) == FIELDS
        dataset, ref, measure = row["fact_id"].split(":", 2)
        assert (dataset, measure) == (row["dataset"], row["measure"])
        assert ref
        assert isinstance(row["vintage"], str)
        assert row["method"] == ("structured" if row["extraction_confidence"] is None else "extracted")
        assert row["source_ref"]
        assert row["license_class"]
        assert row["observed_at"].endswith("Z")
    assert len({row["fact_id"] for row in facts}) == len(facts)


def test_a_provenance_id_stands_for_its_five_fields(live: LiveServer, key: str) -> None:
    facts = [row for query in QUESTIONS for row in rows(live, key, query)]
    provenances = {(row["provenance_id"], tuple(str(row[name]) for name in FIELDS[13:])) for row in facts}
    assert (
        len(provenances) == len({one for one, _ in provenances}) == len({fields for _, fields in provenances})
    )
    assert len(provenances) < len(facts), "rows of one place share theirs"


# AF-FUND


@pytest.mark.rule("FACT-4")
def test_an_issuer_has_its_latest_reported_figures_by_default(live: LiveServer, key: str) -> None:
    facts = rows(live, key, f"entity_id={TICKER}")
    assert columns_of(
        facts, "measure", "value", "unit", "period_end", "period_type", "available_at", "vintage"
    ) == [
        ("dividends_paid", 0, "ZAR", "2023-12-31", "FY", "2024-03-01", "1"),
        ("revenue", 120, "ZAR", "2023-12-31", "FY", "2024-03-01", "1"),
        ("profit", Decimal("9007199254740993.25"), "ZAR", "2022-12-31", "FY", "2023-03-01", "1"),
        ("revenue", 110, "ZAR", "2022-12-31", "FY", "2023-06-01", "2"),
    ]
    assert {columns_of([row], "entity_id", "entity_name", "country_iso3", "dataset")[0] for row in facts} == {
        (TICKER, "Thornveld Breweries (Pty) Ltd", "ZAF", "AF-FUND")
    }
    assert rows(live, key, f"entity_id={TICKER}&dataset=AF-FUND") == facts


@pytest.mark.rule("FACT-3")
def test_facts_of_an_issuer_are_its_fundamentals_on_any_day(live: LiveServer, key: str) -> None:
    for day in ("2023-02-28", "2023-03-01", "2023-05-31", "2023-06-01", "2024-02-29", "2024-03-01"):
        body = json.loads(live.get(f"/v1/fundamentals/{TICKER}?as_of={day}", key).text, parse_int=Decimal)
        expected = [(f"AF-FUND:{r['record_ref']}:{r['line_item']}", r["period_end"]) for r in body["data"]]
        answer = ask(live, key, f"entity_id={TICKER}&as_of={day}")
        assert answer["as_of"] == day
        assert columns_of(answer["data"], "fact_id", "period_end") == expected


def test_an_id_of_a_merged_organisation_answers_too_in_any_case_after_its_prefix(live: LiveServer, key: str):
    for dataset in ("AF-FUND", "AF-TENDER"):
        facts = rows(live, key, f"entity_id={TICKER}&dataset={dataset}")
        assert facts
        for other in (LEI_ID, "DC" + TICKER[2:].lower()):
            assert rows(live, key, f"entity_id={other}&dataset={dataset}") == facts


# AF-TENDER


@pytest.mark.rule("FACT-3", "FACT-5")
def test_tender_values_match_a_replay_on_every_release_date_and_its_neighbours(
    live: LiveServer, key: str
) -> None:
    for day in around():
        for country, code in (("ZA", "ZAF"), ("KE", "ken")):
            facts = rows(live, key, f"country={code}&dataset=AF-TENDER&as_of={day}")
            assert columns_of(facts, *AMOUNTS) == tender_values(country, str(day)), day


def test_awards_match_a_replay_on_every_release_date_and_its_neighbours(live: LiveServer, key: str):
    for day in around():
        for winner, issuer in (("brewer", TICKER), ("bank", BANK_ID)):
            facts = rows(live, key, f"entity_id={issuer}&dataset=AF-TENDER&as_of={day}")
            assert columns_of(facts, *AMOUNTS) == awards_won(winner, str(day)), day


@pytest.mark.rule("FACT-4")
def test_a_tender_value_belongs_to_the_country_and_an_award_to_its_winner(live: LiveServer, key: str) -> None:
    names = ("entity_id", "entity_name", "country_iso3", "dataset", "measure", "period_type", "license_class")
    assert set(columns_of(rows(live, key, "country=KEN&dataset=AF-TENDER"), *names)) == {
        ("KEN", "Kenya", "KEN", "AF-TENDER", "tender_value", "tender", "open-government")
    }
    assert set(columns_of(rows(live, key, f"entity_id={BANK_ID}&dataset=AF-TENDER"), *names)) == {
        (BANK_ID, "First Marula Bank Plc", "NGA", "AF-TENDER", "award_value", "award", "open-government")
    }


# AF-MACRO


@pytest.mark.rule("FACT-5")
def test_a_country_has_its_indicators_and_series_the_newest_period_first(live: LiveServer, key: str) -> None:
    facts = rows(live, key, "country=zaf&dataset=AF-MACRO")
    assert columns_of(facts, "period_end", "measure", "value", "period_type", "available_at", "vintage") == [
        ("2023-01-31", "CPI.ZA", 102, "monthly", "2023-02-18", "1"),
        ("2023-01-03", "FX.EUR.ZAR", Decimal("18.2"), "daily", "2023-01-03", "1"),
        ("2023-01-02", "FX.EUR.ZAR", Decimal("18.1"), "daily", "2023-01-02", "1"),
        ("2022-12-31", "CPI.ZA", 101, "monthly", "2023-02-18", "2"),
        ("2022-12-31", "NY.GDP.MKTP.CD", Decimal("406920000000.1"), "annual", None, "1"),
        ("2022-12-31", "NY.GDP.MKTP.CD", 7, "annual", "2023-05-01", "1"),
        ("2021-12-31", "NY.GDP.MKTP.CD", 420886900000, "annual", None, "1"),
        ("2020-12-31", "NY.GDP.MKTP.CD", 6, "annual", "2021-05-01", "1"),
    ]
    assert {columns_of([row], "entity_id", "entity_name", "country_iso3", "method")[0] for row in facts} == {
        ("ZAF", "South Africa", "ZAF", "structured")
    }
    for query in ("entity_id=ZAF", "entity_id=ZAF&dataset=AF-MACRO"):
        assert rows(live, key, query) == facts


@pytest.mark.rule("PIT-6")
def test_as_of_shows_the_vintage_of_that_day_and_no_annual_indicator(live: LiveServer, key: str) -> None:
    expected = {
        "2021-04-30": [],
        "2023-01-17": [(18.2, "1"), (18.1, "1"), (6, "1")],
        "2023-01-18": [(18.2, "1"), (18.1, "1"), (100, "1"), (6, "1")],
        "2023-02-17": [(18.2, "1"), (18.1, "1"), (100, "1"), (6, "1")],
        "2023-02-18": [(102, "1"), (18.2, "1"), (18.1, "1"), (101, "2"), (6, "1")],
        "2023-05-01": [(102, "1"), (18.2, "1"), (18.1, "1"), (101, "2"), (7, "1"), (6, "1")],
    }
    for day, values in expected.items():
        for who in ("country=ZAF&dataset=AF-MACRO", "entity_id=ZAF"):
            facts = rows(live, key, f"{who}&as_of={day}")
            assert [(float(row["value"]), row["vintage"]) for row in facts] == values, day


@pytest.mark.rule("FACT-7")
def test_asking_for_one_measure_gives_the_same_rows_as_asking_for_all(live: LiveServer, key: str) -> None:
    for query in QUESTIONS:
        for as_of in ("", "&as_of=2023-03-01", "&as_of=2022-02-01", f"&as_of={datetime.now(UTC).date()}"):
            every = rows(live, key, query + as_of)
            for measure in {row["measure"] for row in every}:
                expected = [row for row in every if row["measure"] == measure]
                for spelled in (measure, measure.upper(), measure.lower()):
                    assert rows(live, key, f"{query}{as_of}&measure={spelled}") == expected
                for limit in (1, 2):
                    body = ask(live, key, f"{query}{as_of}&measure={measure}&limit={limit}")
                    assert (body["data"], body["truncated"]) == (expected[:limit], limit < len(expected))
            assert rows(live, key, f"{query}{as_of}&measure=no_such.measure") == []


@pytest.mark.rule("MACRO-8")
def test_a_currency_of_several_countries_belongs_to_none(live: LiveServer, key: str) -> None:
    assert columns_of(rows(live, key, "entity_id=USA"), "measure") == [("FX.EUR.USD",)] * 2
    assert "FX.EUR.XOF" not in {
        row["measure"] for code in ("SEN", "CIV", "BEN") for row in rows(live, key, f"entity_id={code}")
    }


# Errors and limits


@pytest.mark.rule("FACT-1")
@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "entity_id"),
        ("dataset=AF-FUND", "entity_id"),
        ("measure=revenue&limit=3", "entity_id"),
        (f"entity_id={TICKER}&country=ZAF", "entity_id"),
        ("entity_id=ZAF&country=ZAF&dataset=AF-MACRO", "entity_id"),
        (f"entity_id=dc{TICKER[2:]}", "entity_id"),
        ("entity_id=zaf", "entity_id"),
        ("entity_id=ZA", "entity_id"),
        ("entity_id=DC", "entity_id"),
        ("country=ZAF", "dataset"),
        ("country=ZAF&dataset=AF-FUND", "dataset"),
        (f"entity_id={TICKER}&dataset=AF-MACRO", "dataset"),
        ("entity_id=ZAF&dataset=AF-FUND", "dataset"),
        ("entity_id=ZAF&dataset=AF-TENDER", "dataset"),
        ("country=ZA&dataset=AF-MACRO", "country"),
    ],
)
def test_an_impossible_question_is_a_400_that_names_the_parameter(
    live: LiveServer, key: str, query: str, parameter: str
) -> None:
    answer = live.get(f"/v1/shared/facts?{query}", key)
    assert (answer.status_code, answer.json()["parameter"]) == (400, parameter)


@pytest.mark.rule("PAR-9")
@pytest.mark.parametrize(
    "query",
    [
        f"entity_id={NOBODY}",
        f"entity_id={NOBODY}&dataset=AF-TENDER",
        "entity_id=DCX",
        "entity_id=XXX",
        "entity_id=FRA",
        "country=XXX&dataset=AF-MACRO",
        "country=XXX&dataset=AF-TENDER",
        "country=fra&dataset=AF-TENDER",
        f"entity_id={BANK_ID}",
        f"entity_id={TICKER}&as_of=1990-01-01",
        "country=ZAF&dataset=AF-TENDER&as_of=1990-01-01",
        "country=ZAF&dataset=AF-TENDER&measure=award_value",
        f"entity_id={TICKER}&dataset=AF-TENDER&measure=tender_value",
    ],
)
def test_missing_data_gives_no_rows(live: LiveServer, key: str, query: str) -> None:
    body = ask(live, key, query)
    assert (body["data"], body["truncated"]) == ([], False)
    assert body["as_of"]
    assert body["_license"]


# Editions
