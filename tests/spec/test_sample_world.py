"""The bundled sample world, as served: everything its README plants is found, or never found."""

import csv
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer
from tests.world.reference import MODES, Told, knowable, seen, told_in

SAMPLE = Path(str(files("sankofa").joinpath("sample")))
TODAY = datetime.now(UTC).date()
NEVER_SERVED = (
    *("Zorblatt", "Quimbyson", "999900SAMPLEZA000383", "4242424242", "424242424"),
    *("86753096", "86753097", "Plinkett", "Vandersnoot"),
    # people in tenders
    *"Blenkina Trumpelwick Vuyolwetu Zanquebar Quorra Nettlefax Dzidzor Wapplestone Fennimore".split(),
    *"Gwaqqela Skhumbuza Wintlefrith Marzipandra Jellicoe Moyoko Bartholomeow Kwindigwe".split(),
    *"Snodgrimble Wilhelmina Fruitzky Tebogolina Sprockett 9912315999999 Zephyrina Mbokwazala".split(),
    *"Ignatius Plumbottomly Ochiengula Wabberwock Umarudin Glimmerfang".split(),
    *("000 555 0", "000-555-0", "@example.org"),
)
TENDER_COUNTRIES = ("ZA", "KE", "NG")
PERSON = service_id("lei:999900SAMPLEZA000383")
DAYS = (
    "2019-12-31",
    "2021-06-30",
    "2022-08-30",
    "2023-05-31",
    "2023-10-02",
    "2024-03-25",
    "2024-12-31",
    str(TODAY),
)
Rows = list[dict[str, Any]]


def lei_of(middle: str) -> str:
    """The LEI by its middle, as the README names issuers."""
    with (SAMPLE / "lei" / "golden-copy.csv").open() as stream:
        (found,) = [row["LEI"] for row in csv.DictReader(stream) if row["LEI"][12:18] == middle]
    return found


def issuer(name: str) -> str:
    """The service_id of an issuer by the middle of its LEI, or by its CIK."""
    return service_id(f"registry:US-SEC-CIK:{name}" if name.isdigit() else f"lei:{lei_of(name)}")


@cache
def told(name: str) -> tuple[Told, ...]:
    """Every report of an issuer, straight from the files of the sample."""
    return _from_companyfacts(name) if name.isdigit() else _from_filings(lei_of(name))


def _from_filings(lei: str) -> tuple[Told, ...]:
    reports = []
    for path in sorted((SAMPLE / "filings").glob("*.csv")):
        with path.open() as stream:
            reports += [
                Told(
                    row["line_item"],
                    row["currency"],
                    date.fromisoformat(row["period_start"]) if row["period_start"] else None,
                    date.fromisoformat(row["period_end"]),
                    row["document"],
                    Decimal(row["value"]) if row["value"] else None,
                    date.fromisoformat(row["available_at"]) if row["available_at"] else None,
                    TODAY,
                    Decimal(row["confidence"]) if row["confidence"] else None,
                )
                for row in csv.DictReader(stream)
                if row["entity"] == f"lei:{lei}"
            ]
    return tuple(reports)


def _from_companyfacts(number: str) -> tuple[Told, ...]:
    whole = json.loads((SAMPLE / "companyfacts" / f"CIK{number}.json").read_text(), parse_float=Decimal)
    return tuple(
        Told(
            f"{taxonomy}:{name}",
            unit,
            date.fromisoformat(row["start"]) if "start" in row else None,
            date.fromisoformat(row["end"]),
            row["accn"],
            Decimal(row["val"]),
            date.fromisoformat(row["filed"]),
            TODAY,
        )
        for taxonomy, concepts in whole["facts"].items()
        for name, concept in concepts.items()
        for unit, rows in concept["units"].items()
        for row in rows
        if taxonomy in ("us-gaap", "ifrs-full", "srt") or (taxonomy == "dei" and unit == "shares")
    )


ISSUERS = (
    "ZA0001 NG0001 KE0001 EG0001 GH0001 MA0001 BW0001 CI0001 TZ0001 MU0001 SN0001 ZM0001 NG0002 "
    "9999900001 9999900002 9999900003".split()
)


class Reader:
    """Asks as a client does, and reads figures exactly."""

    def __init__(self, server: LiveServer, key: str) -> None:
        self._server = server
        self._key = key

    def body(self, path: str) -> str:
        answer = self._server.get(path, self._key)
        assert answer.status_code == 200, answer.text
        return answer.text

    def rows(self, name: str, **query: str) -> Rows:
        asked = "&".join(f"{key}={value}" for key, value in query.items())
        text = self.body(f"/v1/fundamentals/{issuer(name)}?{asked}")
        whole = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        assert not whole["truncated"]
        return list(whole["data"])

    def figures(self, name: str, line_item: str, period_end: str, **query: str) -> list[Decimal | None]:
        """The vintages of one figure, oldest first."""
        query.setdefault("vintages", "all")
        found = [
            row
            for row in self.rows(name, **query)
            if line_item in (row["line_item"], row["concept"]) and row["period_end"] == period_end
        ]
        return [row["value_reported"] for row in found]


@pytest.fixture(scope="module")
def reader(server: LiveServer, paid_key: str) -> Reader:
    return Reader(server, paid_key)


@pytest.mark.rule("VINT-1")
@pytest.mark.parametrize("name", ISSUERS)
def test_every_issuer_is_served_as_a_replay_of_its_files_has_it(reader: Reader, name: str) -> None:
    for day in DAYS:
        for mode in MODES:
            rows = reader.rows(name, as_of=day, vintages=mode)
            expected = told_in(mode, knowable(told(name), date.fromisoformat(day), mode))
            assert seen(rows) == expected, (day, mode)
            assert all(row["license_class"] == "synthetic" for row in rows)


def test_nothing_of_a_natural_person_is_in_any_answer(
    server: LiveServer, reader: Reader, paid_key: str
) -> None:
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


@pytest.mark.slow
def test_nothing_of_a_natural_person_is_in_any_file_of_the_data_folder(sample_home: Path) -> None:
    holding = [
        (path.name, text)
        for path in sample_home.rglob("*")
        if path.is_file()
        for content in [path.read_bytes().lower().replace(b"\0", b"")]  # so that UTF-16 is found as well
        for text in NEVER_SERVED
        if text.lower().encode() in content
    ]
    assert holding == []


def test_cover_page_figures_that_are_no_share_count_are_not_read(reader: Reader) -> None:
    concepts = {row["concept"] for row in reader.rows("9999900003", vintages="all")}
    assert "dei:EntityCommonStockSharesOutstanding" in concepts
    assert {c for c in concepts if c.startswith("dei:")} == {"dei:EntityCommonStockSharesOutstanding"}
    assert not [c for c in concepts if c.startswith("ecd:")]


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


@pytest.mark.rule("VINT-4")
def test_of_two_figures_of_one_day_the_later_document_counts_on_that_day(reader: Reader) -> None:
    assert reader.figures("GH0001", "capex", "2023-06-30", as_of="2023-10-01") == []
    assert reader.figures("GH0001", "capex", "2023-06-30", as_of="2023-10-02", vintages="latest") == [
        63622000
    ]
    assert reader.figures("GH0001", "capex", "2023-06-30", as_of="2023-10-02", vintages="as_reported") == [
        65422000
    ]


def test_a_withdrawn_figure_is_null_from_the_day_it_was_withdrawn(reader: Reader) -> None:
    asked = ("MA0001", "depreciation_amortisation", "2021-12-31")
    assert reader.figures(*asked, as_of="2024-03-24", vintages="latest") == [697199000]
    assert reader.figures(*asked, as_of="2024-03-25", vintages="latest") == [None]


def test_a_late_filing_is_known_from_its_own_day(reader: Reader) -> None:
    for day, years in (("2023-05-30", []), ("2023-05-31", [2022]), ("2023-06-30", [2022, 2021])):
        served = [
            row for row in reader.rows("SN0001", as_of=day, period_type="FY") if row["line_item"] == "revenue"
        ]
        assert [r["fiscal_year"] for r in served if r["fiscal_year"] in (2021, 2022)] == years, day


def test_what_was_completed_later_is_known_later(reader: Reader) -> None:
    def known(day: str) -> set[str]:
        rows = reader.rows("BW0001", as_of=day, period_type="FY")
        return {row["line_item"] for row in rows if row["fiscal_year"] == 2022}

    before, after = known("2023-07-13"), known("2023-07-14")
    assert ("operating_cash_flow" in before, "operating_cash_flow" in after) == (False, True)
    assert before < after


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


@pytest.mark.rule("PER-1")
def test_a_changed_year_end_and_a_year_of_53_weeks_are_named_from_their_dates(reader: Reader) -> None:
    ghana = {
        row["period_end"]: row["fiscal_year"]
        for row in reader.rows("GH0001", period_type="FY")
        if row["period_start"]
    }
    assert ghana["2020-12-31"] == 2020
    assert ghana["2023-06-30"] == 2023
    odd = [
        r
        for r in reader.rows("GH0001")
        if (r["period_start"], r["period_end"]) == ("2021-01-01", "2022-06-30")
    ]
    assert odd
    assert {row["period_type"] for row in odd} == {"other"}
    weeks = [r for r in reader.rows("ZA0001", period_type="FY") if r["period_start"] == "2022-06-27"]
    assert {(row["period_end"], row["fiscal_year"]) for row in weeks} == {("2023-07-02", 2023)}


def test_a_zero_that_is_a_figure_is_served_as_zero(reader: Reader) -> None:
    assert reader.figures("NG0002", "dividends_paid", "2020-12-31") == [0]


def test_currencies_do_not_mix(reader: Reader) -> None:
    mauritius = {
        (r["fiscal_year"], r["currency_reported"])
        for r in reader.rows("MU0001")
        if r["line_item"] == "revenue"
    }
    assert {(2022, "MUR"), (2023, "USD")} <= mauritius
    assert not {(2022, "USD"), (2023, "MUR")} & mauritius
    both = {r["unit"] for r in reader.rows("9999900001") if r["concept"] == "ifrs-full:Revenue"}
    assert both == {"ZAR", "USD"}


def test_an_issuer_that_restated_nothing_has_first_vintages_only(reader: Reader) -> None:
    assert {int(row["vintage"]) for row in reader.rows("9999900002", vintages="all")} == {1}


# Tenders


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
