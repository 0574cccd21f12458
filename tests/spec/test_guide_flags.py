"""/v1/flags: each indicator of the Open Contracting guide by hand."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from tests.every import every
from tests.spec.market import Desk, Json, PaidCaller, package, party, release

ZAR = "ZAR"
NINE = (1, 10, 11, 12, 13, 14, 15, 16, 60)
"""Their quartiles are 10 2/3 and 15 1/3 (type 8), their fences 3 2/3 and 22 1/3."""
LOWER, UPPER = 11 / 3, 67 / 3


def _price(amount: float) -> Json:
    return {"amount": amount, "currency": ZAR}


def _day(number: int) -> str:
    """A day of 2025 by its number."""
    return f"{date(2025, 1, 1) + timedelta(days=number)}T00:00:00Z"


def _document(kind: str, **fields: Any) -> Json:
    return {"documents": [{"id": "1", "documentType": kind, **fields}]}


def _contract(**fields: Any) -> Json:
    contract = {"id": "k", "awardID": "a", "status": "active", "value": _price(100), **fields}
    return {"contracts": [contract], "awards": [AWARD]}


def _item(quantity: int, name: str = "1") -> Json:
    return {"id": name, "description": "Beds", "quantity": quantity}


AWARD: Json = {"id": "a", "status": "active", "value": _price(100), "items": [_item(5)]}
PERIOD = {"tenderPeriod": {"startDate": _day(1), "endDate": _day(30)}}
AMENDED = {"amendments": [{"id": "1", "description": "Changed."}]}
Case = tuple[Json, float, Json | None]

ALONE: dict[str, tuple[Json, float, Json, Json]] = {
    "R004": (
        {"tender": PERIOD | _document("tenderNotice", datePublished=_day(2))},
        1,
        {"tender": PERIOD | _document("tenderNotice", datePublished=_day(1))},
        {"tender": PERIOD},
    ),
    "R020": ({"complaints": [{"id": "c1"}]}, 1, {}, {}),
    "R039": (
        {"tender": {"status": "complete", "enquiries": [{"id": "1", "title": "Both?"}]}},
        1,
        {"tender": {"status": "complete", "enquiries": [{"id": "1", "answer": "Both."}]}},
        {"tender": {"status": "active", "enquiries": [{"id": "1", "title": "Both?"}]}},
    ),
    "R064": (_contract(**AMENDED), 1, _contract(), {}),
    "R065": (
        _contract(items=[_item(4)], **AMENDED),
        1,
        _contract(items=[_item(6)], **AMENDED),
        _contract(**AMENDED),
    ),
    "R066": (
        _contract(items=[_item(5), _item(1, "2")], **AMENDED),
        1,
        _contract(items=[_item(5)], **AMENDED),
        {},
    ),
    "R067": (
        _contract(
            implementation={
                "milestones": [{"id": "1", "type": "delivery", "dueDate": _day(1), "dateMet": _day(2)}]
            }
        ),
        1,
        _contract(
            implementation={
                "milestones": [{"id": "1", "type": "delivery", "dueDate": _day(2), "dateMet": _day(2)}]
            }
        ),
        _contract(implementation={"milestones": [{"id": "1", "type": "delivery", "dueDate": _day(1)}]}),
    ),
    "R068": (
        _contract(
            implementation={
                "transactions": [{"id": "1", "value": _price(80)}, {"id": "2", "value": _price(40)}]
            }
        ),
        1.2,
        _contract(implementation={"transactions": [{"id": "1", "value": _price(100)}]}),
        _contract(implementation={"transactions": [{"id": "1", "value": _price(90) | {"currency": "USD"}}]}),
    ),
    "R069": (
        _contract(value=_price(150), **AMENDED),
        1.5,
        _contract(value=_price(90), **AMENDED),
        _contract(value=_price(150) | {"currency": "USD"}, **AMENDED),
    ),
    "R071": (
        {"awards": [AWARD | {"hasSubcontracting": True, "subcontracting": {"value": _price(60)}}]},
        0.6,
        {"awards": [AWARD | {"hasSubcontracting": True, "subcontracting": {"minimumPercentage": 0.5}}]},
        {"awards": [AWARD | {"hasSubcontracting": True}]},
    ),
}
"""Parts of a flagged release, the value; of one that is not flagged; of one where it cannot be computed."""


def _beds(**fields: Any) -> list[Json]:
    classification = {"scheme": "CPV", "id": "39143100"}
    return [{"id": "1", "description": "Beds", "classification": classification, **fields}]


def _compared(at: int) -> Json:
    """A process in which every duration, price and number of bidders has the value of `NINE` at a place."""
    days = NINE[at]
    bid = {"status": "valid", "tenderers": [{"id": "b"}]}
    return {
        "buyer": {"id": f"buyer{at // 2}", "name": f"Department {at // 2}"},
        "planning": _document("procurementPlan"),
        "tender": {
            "title": "Beds",
            "procurementMethod": "open",
            "numberOfTenderers": days,
            "value": _price(1000 * days),
            "items": _beds(unit={"name": "bed", "value": _price(days)}),
            "tenderPeriod": {"startDate": _day(0), "endDate": _day(70)},
            "bidOpening": {"date": _day(days)},
            "awardPeriod": {"startDate": _day(2 * days)},
        },
        "bids": {
            "details": [
                bid | {"id": "1", "value": _price(1000 - 5 * days)},
                bid | {"id": "2", "value": _price(1000 + 5 * days), "tenderers": [{"id": "r"}]},
            ]
        },
        "parties": [party("b", "Thornveld Breweries (Pty) Ltd", "supplier")],
        "awards": [
            {
                "id": "a",
                "status": "active",
                "date": _day(70 + days),
                "value": _price(100),
                "suppliers": [{"id": "b"}],
            }
        ],
        "contracts": [
            {
                "id": "k",
                "awardID": "a",
                "status": "active",
                "dateSigned": _day(70 + 2 * days),
                "value": _price(100 + days),
                **_document("contractSigned"),
            }
        ],
    }


def _bids(*statuses: str, **value: str) -> Json:
    """Bids of two firms, the second with another currency if one is given."""
    return {
        "details": [
            {"id": firm, "status": status, "tenderers": [{"id": firm}], "value": _price(5) | own}
            for firm, status, own in zip("br", statuses, ({}, value), strict=False)
        ]
    }


_DAYS = {"tenderPeriod": {"startDate": _day(0)}, "bidOpening": {"date": _day(3)}}
NOT_COMPUTED: list[tuple[str, Json, str]] = [
    ("R014", {"tender": _DAYS | {"bidOpening": {"date": "2025-01-04"}}}, "with its time"),
    ("R015", {"tender": _DAYS}, "start of the award period is not published"),
    ("R016", {"tender": {"value": _price(1), "items": [*_beds(), {"id": "2"}]}}, ""),
    (
        "R016",
        {
            "tender": {
                "value": _price(1),
                "items": [*_beds(), {"id": "2", "classification": {"scheme": "CPV", "id": "45"}}],
            }
        },
        "not all of one published category",
    ),
    ("R017", {"tender": {"items": _beds(unit={"name": "bed"})}}, "No item has a classification and a value"),
    ("R019", {"tender": {"procurementMethod": "limited", "numberOfTenderers": 3}}, "not published as open"),
    ("R022", {"bids": _bids("valid", "disqualified")}, "There are not two valid bids"),
    ("R022", {"bids": _bids("valid", "valid", currency="USD")}, "all in one currency"),
    ("R031", {"tender": {"value": _price(9)}, "awards": [AWARD, AWARD | {"id": "2"}]}, "no single winning"),
    (
        "R031",
        {
            "tender": {"value": _price(9)},
            "awards": [AWARD | {"suppliers": [{"id": "r"}]}],
            "bids": _bids("valid", "disqualified"),
        },
        "no single winning",
    ),
    ("R059", _contract() | {"awards": [AWARD | {"status": "pending"}]}, "an active award with a value"),
    ("R059", _contract(value=_price(1) | {"currency": "USD"}), "an active award with a value"),
    ("R059", _contract(status="terminated"), "an active award with a value"),
    ("R060", _contract(dateSigned="2025-05-01"), "No contract has a date of signature"),
    (
        "R061",
        {"tender": PERIOD, "awards": [AWARD | {"status": "cancelled", "date": _day(40)}]},
        "date of an active award",
    ),
]
"""Releases for which an indicator cannot be computed, with words of the reason; empty where it can be."""
TOWNS = [f"{name} District Municipality" for name in "Alfa Bravo Delta Hotel Kilo Mike".split()]


def _method(buyer: int, number: int) -> Json:
    """A process of one of six buyers; only the last uses direct awards, quality and subcontracts."""
    last = buyer == 5
    return {
        "buyer": {"id": f"city{buyer}", "name": TOWNS[buyer]},
        "tender": {
            "title": f"Roads {number}",
            "procurementMethod": "direct" if last else "open",
            "awardCriteria": "qualityOnly" if last else "priceOnly",
            **PERIOD,
        },
        "awards": [{"id": "a", "status": "active", "hasSubcontracting": last}],
    }


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("guide"))
    alone = [
        release(f"{code}-{name}".lower(), "2025-06-01T00:00:00Z", **parts)
        for code, (flagged, _, not_flagged, not_computed) in ALONE.items()
        for name, parts in (("yes", flagged), ("no", not_flagged), ("none", not_computed))
    ]
    compared = [
        release(f"nine{at}", f"2025-01-{at + 1:02}T00:00:00Z", **_compared(at)) for at in range(len(NINE))
    ]
    shares = [
        release(f"share{buyer}-{number}", "2025-06-01T00:00:00Z", **_method(buyer, number))
        for buyer in range(6)
        for number in range(2)
    ]
    bare: Json = {"planning": {"rationale": "Beds."}, "tender": {"id": "t"}}
    bare["contracts"] = [{"id": "k", "status": "active"}]
    compared.append(release("bare", "2025-02-01T00:00:00Z", **bare))
    alone += [
        release(f"not{at}", "2025-06-01T00:00:00Z", **parts) for at, (_, parts, _) in enumerate(NOT_COMPUTED)
    ]
    desk.ingest("portal-za", "alone.json", package(*alone))
    desk.ingest("portal-ke", "compared.json", package(*compared))
    desk.ingest("portal-za", "shares.json", package(*shares))
    with desk.publish_and_serve() as asked:
        yield asked


def _row(market: PaidCaller, ocid: str, code: str) -> Json:
    rows: list[Json] = [
        one
        for one in market.get("/v1/flags", ocid=ocid, limit=1000)["data"]
        if (one["indicator"], one["subject_type"]) == (code, "process")
    ]
    (row,) = rows
    return row


def _flagged(market: PaidCaller, country: str, code: str, **query: str) -> list[str]:
    rows = market.get("/v1/flags", country=country, limit=1000, **query)["data"]
    return [one["subject"] for one in rows if one["indicator"] == code]


@pytest.mark.rule("FLAG-1", "FLAG-2")
@every("code", ALONE)
def test_an_indicator_of_one_process_by_hand(market: PaidCaller, code: str) -> None:
    _, value, not_flagged, _ = ALONE[code]
    rows = {name: _row(market, f"ocds-test-{code.lower()}-{name}", code) for name in ("yes", "no", "none")}
    assert (rows["yes"]["flagged"], float(rows["yes"]["value"])) == (True, value), rows["yes"]
    assert rows["yes"]["inputs"]
    assert rows["no"]["flagged"] is (False if not_flagged else None), rows["no"]
    assert rows["none"]["flagged"] is None, rows["none"]
    assert rows["none"]["reason"].endswith(".")
    listed = _flagged(market, "ZA", code)
    assert f"ocds-test-{code.lower()}-yes" in listed
    assert f"ocds-test-{code.lower()}-no" not in listed


@pytest.mark.rule("FLAG-2")
@every("at", range(len(NOT_COMPUTED)))
def test_the_reason_says_what_an_indicator_lacks(market: PaidCaller, at: int) -> None:
    code, _, words = NOT_COMPUTED[at]
    row = _row(market, f"ocds-test-not{at}", code)
    assert (row["flagged"] is None, row["reason"] is None) == ((True, False) if words else (False, True)), row
    assert words in (row["reason"] or "")


@pytest.mark.rule("FLAG-1")
@every("code", ["R001", "R005", "R063"])
def test_a_missing_document_is_flagged_where_most_processes_publish_theirs(
    market: PaidCaller, code: str
) -> None:
    """The quartiles of nine processes with the documents (0) and one without (1) are 0."""
    assert _flagged(market, "KE", code) == ["ocds-test-bare"]
    row = _row(market, "ocds-test-bare", code)
    assert [float(one) for one in (row["value"], row["threshold"], row["inputs"]["q3"])] == [1, 0, 0]
    assert _row(market, "ocds-test-nine0", code)["flagged"] is False


@pytest.mark.rule("FLAG-1", "FLAG-2")
def test_a_document_that_few_processes_publish_is_not_missing(market: PaidCaller) -> None:
    assert not _flagged(market, "ZA", "R063")
    row = _row(market, "ocds-test-r064-no", "R063")
    assert (row["flagged"], float(row["value"]), float(row["inputs"]["q3"])) == (False, 1, 1)
    none = _row(market, "ocds-test-r064-no", "R001")
    assert (none["flagged"], none["reason"]) == (None, "The release has no planning section.")


MEASURED: dict[str, tuple[float, set[int]]] = {
    "R014": (1, {1}),
    "R015": (1, {60}),
    "R016": (1000, {1, 60}),
    "R017": (1, {1, 60}),
    "R019": (1, {1}),
    "R022": (0.01, {60}),
    "R059": (0.01, {60}),
    "R060": (1, {60}),
    "R061": (1, {1}),
    "R062": (1, {60}),
}
"""What a value of `NINE` is multiplied by, and the values that stand out."""


@pytest.mark.rule("FLAG-1")
@every("code", MEASURED)
def test_an_outlier_among_nine_processes_by_hand(market: PaidCaller, code: str) -> None:
    scale, expected = MEASURED[code]
    flagged = set()
    for at, value in enumerate(NINE):
        row = _row(market, f"ocds-test-nine{at}", code)
        assert float(row["value"]) == pytest.approx(value * scale), row
        assert float(row["inputs"]["q1"]) == pytest.approx(32 / 3 * scale)
        assert float(row["inputs"]["q3"]) == pytest.approx(46 / 3 * scale)
        if row["flagged"]:
            flagged.add(value)
            fence = LOWER if value == 1 else UPPER
            assert float(row["threshold"]) == pytest.approx(fence * scale)
    assert flagged == expected
    assert {NINE[int(one[-1])] for one in _flagged(market, "KE", code)} == expected
    assert 60 not in {NINE[int(one[-1])] for one in _flagged(market, "KE", code, as_of="2025-01-05")}


@pytest.mark.rule("FLAG-1")
def test_a_winning_price_against_the_estimate_by_hand(market: PaidCaller) -> None:
    """The ratios are 1 / n - 0.005: their quartiles 0.060278 and 0.088939, the fence 0.131932."""
    assert _flagged(market, "KE", "R031") == ["ocds-test-nine0"]
    row = _row(market, "ocds-test-nine0", "R031")
    assert float(row["value"]) == pytest.approx(0.995)
    assert float(row["threshold"]) == pytest.approx(0.131932, abs=1e-6)
    assert row["inputs"] | {"q1": 0, "q3": 0} == {
        "winning_price": 995,
        "tender_value": 1000,
        "currency": ZAR,
        "q1": 0,
        "q3": 0,
    }
    alone = _row(market, "ocds-test-r064-yes", "R031")
    assert (alone["flagged"], alone["reason"]) == (None, "The value of the tender is not published.")


@pytest.mark.rule("FLAG-1")
@every("code", ["R013", "R021", "R072"])
def test_a_share_of_a_buyers_processes_by_hand(market: PaidCaller, code: str) -> None:
    """The quartiles of six shares 0, 0, 0, 0, 0 and 1 are 0 and 1/12: the fence is 5/24."""
    assert _flagged(market, "ZA", code) == ["city5"]
    rows = market.get("/v1/flags", country="ZA", buyer=TOWNS[5], limit=1000)["data"]
    (row,) = [one for one in rows if one["indicator"] == code]
    assert (row["subject_type"], row["name"], float(row["value"])) == ("buyer", TOWNS[5], 1)
    assert float(row["threshold"]) == pytest.approx(5 / 24, rel=1e-5)
    assert row["inputs"]["processes"] == 2
    (other,) = [
        one for one in market.get("/v1/flags", ocid="ocds-test-share0-0")["data"] if one["indicator"] == code
    ]
    assert (other["flagged"], float(other["value"]), other["subject"]) == (False, 0, "city0")
