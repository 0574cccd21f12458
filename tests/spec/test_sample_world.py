"""The bundled sample world, as served: everything that its README plants is found, or never found."""

import json
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from tests.depth import deep_after
from tests.live import LiveServer
from tests.spec.sample_reference import (
    DAYS,
    ISSUERS,
    NEVER_SERVED,
    PERSON,
    SAMPLE,
    TENDER_COUNTRIES,
    Reader,
    issuer,
    reports_of,
)
from tests.spec.sample_reference import reader as reader
from tests.world.reference import MODES, answered_rows, expected_in, knowable


@pytest.mark.rule("VINT-1")
@pytest.mark.parametrize("name", deep_after(4, [*ISSUERS]))
def test_every_issuer_matches_a_replay_of_its_files(reader: Reader, name: str) -> None:
    for day in DAYS:
        for mode in MODES:
            rows = reader.rows(name, as_of=day, vintages=mode)
            expected = expected_in(mode, knowable(reports_of(name), date.fromisoformat(day), mode))
            assert answered_rows(rows) == expected, (day, mode)
            assert all(row["license_class"] == "synthetic" for row in rows)


def test_nothing_of_a_natural_person_is_in_any_answer(server: LiveServer, reader: Reader, paid_key: str):
    for name in (*ISSUERS, "ZA0002"):
        bodies = [
            reader.body(f"/v1/{kind}/{issuer(name)}") for kind in ("entities", "crosswalk", "fundamentals")
        ]
        bodies += [reader.body(f"/v1/fundamentals/{issuer(name)}?vintages={mode}") for mode in MODES]
        for body in bodies:
            assert not [text for text in NEVER_SERVED if text in body], name
    for country in TENDER_COUNTRIES:
        for kind in ("tenders", "tender-parties"):
            body = reader.body(f"/v1/{kind}?country={country}&limit=10000").lower()
            assert not [text for text in NEVER_SERVED if text.lower() in body], (country, kind)
    for kind in ("entities", "crosswalk", "fundamentals"):
        refused = server.get(f"/v1/{kind}/{PERSON}", paid_key)
        assert refused.status_code == 404
        assert "SAMPLEZA000383" not in refused.text
    assert not [text for text in NEVER_SERVED if text in server.log]


@pytest.mark.rule("VINT-2", "VINT-3")
@pytest.mark.parametrize(
    ("name", "line_item", "period_end", "figures"),
    [
        ("KE0001", "revenue", "2023-03-31", [144229717000, 147348157000, 144229717000]),
        ("GH0001", "capex", "2023-06-30", [65422000, 63622000]),
        ("MA0001", "depreciation_amortisation", "2021-12-31", [697199000, None]),
        ("ZM0001", "capex", "2023-12-31", [105717000]),
        ("CI0001", "payables", "2022-09-30", []),
        ("EG0001", "receivables", "2023-12-31", [1822170876]),
        ("9999900003", "us-gaap:Revenues", "2022-12-31", [302985000, 296573000]),
    ],
)
def test_the_planted_vintages_are_served(
    reader: Reader, name: str, line_item: str, period_end: str, figures: list[int | None]
) -> None:
    assert reader.figures(name, line_item, period_end, period_type="FY") == figures


@pytest.mark.rule("PIT-3")
def test_an_undated_schedule_is_known_from_its_capture_and_not_before(reader: Reader) -> None:
    (row,) = [r for r in reader.rows("ZM0001", vintages="all") if r["value_reported"] == 105717000]
    assert row["available_at"] == row["observed_at"][:10]
    assert not [r for r in reader.rows("ZM0001", as_of="2024-12-31") if r["value_reported"] == 105717000]


@pytest.mark.rule("FIG-1")
def test_figures_beyond_two_to_the_53_keep_every_digit(reader: Reader) -> None:
    body = reader.body(f"/v1/fundamentals/{issuer('NG0001')}?vintages=all")
    for digits in ("9007199254740992", "9007199254740993", "11258999068426241", "8123456789012345.67"):
        assert f'"value_reported":{digits},' in body


def releases_in(country: str) -> dict[tuple[str, str], Any]:
    """Every release in the files of a country by ocid and id, with the last correction, parsed by hand."""
    releases = []
    for path in sorted((SAMPLE / f"tenders-{country.lower()}").iterdir()):
        text = path.read_text()
        if path.suffix == ".jsonl":
            releases += [json.loads(line, parse_float=Decimal) for line in text.splitlines()]
            continue
        package = json.loads(text, parse_float=Decimal)
        releases += package.get("releases", ())
        for record in package.get("records", ()):
            embedded = [release for release in record.get("releases", ()) if "ocid" in release]
            releases += embedded or [record["compiledRelease"]]
    return {(release["ocid"], release["id"]): release for release in releases}


@cache
def tenders(reader: Reader, country: str) -> dict[tuple[str, str], Any]:
    body = reader.body(f"/v1/tenders?country={country}&limit=10000")
    rows = json.loads(body, parse_float=Decimal)["data"]
    return {(row["ocid"], row["release_id"]): row for row in rows}


def tender(reader: Reader, ocid: str) -> Any:
    """The single release of a planted process."""
    country = {"z": "ZA", "k": "KE", "n": "NG"}[ocid.removeprefix("ocds-999s")[0]]
    (row,) = [row for (of, _), row in tenders(reader, country).items() if of == ocid]
    return row


@pytest.mark.parametrize(("country", "count"), [("ZA", 312), ("KE", 133), ("NG", 130)])
def test_every_release_is_served_as_in_its_file(reader: Reader, country: str, count: int) -> None:
    served, published = tenders(reader, country), releases_in(country)
    assert len(served) == count
    assert set(served) == set(published)
    for key, release in published.items():
        row, tender_of_file = served[key], release["tender"]
        amount = Decimal(tender_of_file["value"]["amount"])
        assert row["title"] == tender_of_file["title"] or "[withheld]" in row["title"]
        assert (row["value_amount"] or 0) == amount
        assert (row["value_amount"] is None) is (amount == 0)
        assert row["category"] == tender_of_file.get("category", tender_of_file["mainProcurementCategory"])
        assert (row["tag"], row["status"]) == (release["tag"], tender_of_file["status"])
        assert row["award_count"] == len(release.get("awards", ()))
        assert (row["country"], row["license_class"]) == (country, "synthetic")


def test_only_the_name_of_a_withheld_person_is_cut_from_a_text(reader: Reader) -> None:
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
