"""The tenders of the sample world, against the files they are in."""

import json
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from tests.spec.sample_reference import SAMPLE, Reader
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


def test_texts_that_name_a_withheld_person_keep_the_rest_of_their_words(reader: Reader) -> None:
    row = tender(reader, "ocds-999sza-00171")
    assert row["title"] == "Catering by [withheld] for the opening of the library"
    assert row["release"]["tender"]["description"] == "Appointed: Ms [withheld] (tel [withheld])"
    (award,) = tender(reader, "ocds-999sza-00175")["release"]["awards"]
    assert award["description"] == "Awarded to [withheld], identity number [withheld]"


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


def test_a_short_tender_period_is_flagged(reader: Reader) -> None:
    (flag,) = json.loads(reader.body("/v1/flags?country=ZA"))["data"]
    assert (flag["indicator"], flag["subject"], flag["inputs"]["days"]) == ("R003", "ocds-999sza-00099", 9)
