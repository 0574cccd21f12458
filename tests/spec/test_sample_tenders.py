"""The tenders of the sample world, against the files they are in."""

import json
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from tests.spec.sample_reference import SAMPLE, TENDER_COUNTRIES, Reader, Rows, issuer
from tests.spec.sample_reference import reader as reader


def releases_in(country: str) -> dict[tuple[str, str], Any]:
    """Every release in the files of a country by ocid and id, read by hand; as corrected last."""
    found = []
    for path in sorted((SAMPLE / f"tenders-{country.lower()}").iterdir()):
        text = path.read_text()
        if path.suffix == ".jsonl":
            found += [json.loads(line, parse_float=Decimal) for line in text.splitlines()]
            continue
        package = json.loads(text, parse_float=Decimal)
        found += package.get("releases", ())
        for record in package.get("records", ()):
            embedded = [release for release in record.get("releases", ()) if "ocid" in release]
            found += embedded or [record["compiledRelease"]]
    return {(release["ocid"], release["id"]): release for release in found}


@cache
def tenders(reader: Reader, country: str) -> dict[tuple[str, str], Any]:
    body = reader.body(f"/v1/tenders?country={country}&limit=10000")
    rows = json.loads(body, parse_float=Decimal)["data"]
    return {(row["ocid"], row["release_id"]): row for row in rows}


@cache
def parties(reader: Reader, **query: str) -> Rows:
    asked = "&".join(f"{key}={value}" for key, value in query.items())
    return list(json.loads(reader.body(f"/v1/tender-parties?limit=10000&{asked}"))["data"])


def tender(reader: Reader, ocid: str) -> Any:
    """The one release of a planted process."""
    country = {"z": "ZA", "k": "KE", "n": "NG"}[ocid.removeprefix("ocds-999s")[0]]
    (row,) = [row for (of, _), row in tenders(reader, country).items() if of == ocid]
    return row


@pytest.mark.parametrize(("country", "count"), [("ZA", 312), ("KE", 133), ("NG", 130)])
def test_every_release_is_served_with_what_its_file_says(reader: Reader, country: str, count: int) -> None:
    served, published = tenders(reader, country), releases_in(country)
    assert len(served) == count
    assert set(served) == set(published)
    for key, release in published.items():
        row, told = served[key], release["tender"]
        amount = Decimal(told["value"]["amount"])
        assert row["title"] == told["title"] or "[withheld]" in row["title"]
        assert (row["value_amount"] or 0) == amount
        assert (row["value_amount"] is None) is (amount == 0)
        assert row["category"] == told.get("category", told["mainProcurementCategory"])
        assert (row["tag"], row["status"]) == (release["tag"], told["status"])
        assert row["award_count"] == len(release.get("awards", ()))
        assert (row["country"], row["license_class"]) == (country, "synthetic")


@pytest.mark.parametrize("country", TENDER_COUNTRIES)
def test_every_month_of_33_has_tenders_in_every_country(reader: Reader, country: str) -> None:
    months = {row["release_date"][:7] for row in tenders(reader, country).values()}
    assert len(months) == 33
    assert (min(months), max(months)) == ("2023-10", "2026-06")


@pytest.mark.parametrize(
    ("ocid", "withheld"),
    [(f"ocds-999sza-{number:05}", 1) for number in range(171, 179)]
    + [("ocds-999ske-00077", 1), ("ocds-999sng-00078", 1)],
)
def test_a_planted_person_is_counted_and_leaves_only_a_role(reader: Reader, ocid: str, withheld: int) -> None:
    row = tender(reader, ocid)
    assert row["withheld_parties"] == withheld
    stubs = [party for party in row["release"]["parties"] if set(party) == {"roles"}]
    assert len(stubs) == withheld


def test_texts_that_name_a_withheld_person_keep_the_rest_of_their_words(reader: Reader) -> None:
    row = tender(reader, "ocds-999sza-00171")
    assert row["title"] == "Catering by [withheld] for the opening of the library"
    assert row["release"]["tender"]["description"] == "Appointed: Ms [withheld] (tel [withheld])"
    (award,) = tender(reader, "ocds-999sza-00175")["release"]["awards"]
    assert award["description"] == "Awarded to [withheld], identity number [withheld]"


def test_a_buyer_that_is_a_person_is_null_and_one_with_a_held_lei_is_resolved(reader: Reader) -> None:
    row = tender(reader, "ocds-999sza-00178")
    assert (row["buyer_name"], row["buyer_service_id"]) == (None, None)
    roads = [r for r in tenders(reader, "ZA").values() if r["buyer_service_id"] == issuer("ZA0002")]
    assert {r["buyer_name"] for r in roads} == {"Baobab Sample Infrastructure Fund"}


def test_awkward_values_are_understood_and_a_correction_is_served(reader: Reader) -> None:
    row = tender(reader, "ocds-999sza-00179")
    assert (row["value_amount"], row["value_currency"]) == (Decimal("1250000.50"), "ZAR")
    assert tender(reader, "ocds-999sza-00180")["release"]["tender"]["tenderPeriod"] == {
        "startDate": None,
        "endDate": None,
    }
    assert tender(reader, "ocds-999sza-00181")["value_amount"] == Decimal("9007199254740993.07")
    assert tender(reader, "ocds-999sza-00182")["release_date"] == "2025-06-30T22:30:00Z"
    corrected = tender(reader, "ocds-999sza-00183")
    assert corrected["value_amount"] == 570000
    assert corrected["source_ref"].startswith("sample-tenders-za:za-republished-2026.json@")
    assert not [r for r in tenders(reader, "NG").values() if r["title"] == "compiled: not read"]


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("ZA0001", {"lei", "name"}),
        ("KE0001", {"lei", "identifier"}),
        ("NG0001", {"lei", "name"}),
        ("NG0002", {"lei"}),
        ("MU0001", {"lei"}),
        ("GH0001", {"name"}),
        ("TZ0001", {"name"}),
        ("9999900001", {"identifier"}),
    ],
)
def test_issuers_win_tenders_and_are_recognised(reader: Reader, name: str, methods: set[str]) -> None:
    rows = parties(reader, role="supplier", service_id=issuer(name))
    assert {row["match_method"] for row in rows} == methods
    assert sum(row["release_count"] for row in rows) > 0


def test_a_few_suppliers_win_again_and_again(reader: Reader) -> None:
    counts = [row["release_count"] for row in parties(reader, country="ZA", role="supplier")]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 5
    assert sum(counts[:3]) * 4 > sum(counts)
