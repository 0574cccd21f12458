"""/v1/flags: the indicators about pairs of a buyer and a supplier, or of two tenderers, by hand."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.spec.market import Desk, Json, PaidCaller, package, party, release

CITY, TOWN = {"id": "city", "name": "City of Alfa"}, {"id": "town", "name": "Bravo District Municipality"}


def _firm(name: str) -> Json:
    return party(name, f"Firm {name.upper()} (Pty) Ltd", "supplier")


def _price(amount: float) -> Json:
    return {"amount": amount, "currency": "ZAR"}


def _purchase(number: int, buyer: Json, supplier: str, amount: float, day: int, category: str = "39") -> Json:
    """A process with one award on a day of January 2025, known on that day."""
    date = f"2025-01-{day:02}T08:00:00Z"
    item = {"id": "1", "description": "Beds", "classification": {"scheme": "CPV", "id": f"{category}143100"}}
    award = {
        "id": "a",
        "status": "active",
        "date": date,
        "value": _price(amount),
        "suppliers": [{"id": supplier}],
        "items": [item],
    }
    return release(
        f"buy{number}", date, buyer=buyer, parties=[_firm(supplier)], awards=[award], tender={"title": "Beds"}
    )


def _contest(number: int, prices: Mapping[str, float], winner: str) -> Json:
    bids = [
        {"id": name, "status": "valid", "tenderers": [{"id": name}], "value": _price(price)}
        for name, price in prices.items()
    ]
    return release(
        f"bid{number}",
        f"2025-03-{number:02}T08:00:00Z",
        parties=[_firm(name) for name in prices],
        tender={"title": "Roads"},
        bids={"details": bids},
        awards=[{"id": "a", "status": "active", "suppliers": [{"id": winner}]}],
    )


SHARES = [_purchase(n, CITY, f"s{n}", 1_000 if n == 9 else 100, n + 1) for n in range(10)]
"""The city awards 100 to each of nine suppliers, and then 1,000 to the tenth."""
GROWING = [
    _purchase(20 + 10 * n + at, TOWN, f"t{n}", amount, 11 + at, f"5{n}")
    for n in range(6)
    for at, amount in enumerate([10, 200, 400] if n == 5 else [100, 100])
]
"""The town awards the same again to each of five suppliers, and much more to the sixth."""
FOUR = [{"a": 100, "b": 111, "c": 123, "d": 137}, {"a": 110, "b": 100, "c": 141, "d": 163}]
FOUR += [{"a": 140, "b": 122, "c": 100, "d": 119}, {"a": 181, "b": 139, "c": 129, "d": 100}]
CONTESTS = [
    *(_contest(n + 1, prices, "abcd"[n]) for n, prices in enumerate(FOUR)),
    _contest(5, {"x": 100, "y": 103}, "x"),
    _contest(6, {"x": 2_000, "y": 2_060}, "x"),
    _contest(7, {"x": 300, "y": 360}, "x"),
    _contest(8, {f"m{n}": 500 + n for n in range(21)}, "m0"),
]
"""Four firms meet four times, and each wins once; x always wins against y; 21 firms meet once."""


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("pairs"))
    desk.ingest("portal-za", "za.json", package(*SHARES, *GROWING))
    desk.ingest("portal-ke", "ke.json", package(*CONTESTS))
    with desk.publish_and_serve() as asked:
        yield asked


def _rows(market: PaidCaller, code: str, **query: str) -> list[Json]:
    rows: list[Json] = market.get("/v1/flags", indicator=code, limit=1000, **query)["data"]
    return rows


def _is(row: Json, subject: str, flagged: bool | None, *numbers: float, **inputs: Any) -> None:
    assert (row["subject_type"], row["subject"], row["flagged"]) == ("tenderer", subject, flagged), row
    assert [float(one) for one in (row["value"], row["threshold"])] == pytest.approx(list(numbers), rel=1e-5)
    for name, expected in inputs.items():
        own = row["inputs"][name]
        assert (own if isinstance(expected, str | list) else float(own)) == (
            expected if isinstance(expected, str | list) else pytest.approx(expected, rel=1e-5)
        ), row


@pytest.mark.rule("FLAG-1", "FLAG-3", "FLAG-5")
@pytest.mark.parametrize("code", ["R040", "R050"])
def test_a_high_share_of_what_a_buyer_or_a_market_awards(market: PaidCaller, code: str) -> None:
    """The quartiles of nine amounts of 100 and one of 1,000 are 100: the fence is 100 of 1,900."""
    (row,) = _rows(market, code)
    whole = {"awarded_by_buyer" if code == "R040" else "awarded_in_category": 1_900}
    _is(row, "s9", True, 10 / 19, 1 / 19, awarded=1_000, suppliers=10, q3=1 / 19, currency="ZAR", **whole)
    assert row["inputs"]["buyer" if code == "R040" else "category"] in ("city", "CPV 39")
    assert row["name"] == "Firm S9 (Pty) Ltd"
    (other,) = _rows(market, code, ocid="ocds-test-buy0")
    _is(other, "s0", False, 1 / 19, 1 / 19, awarded=100)


@pytest.mark.rule("FLAG-1", "FLAG-3")
def test_pairs_are_found_by_their_buyer(tmp_path: Path) -> None:
    """s9 has a high share of what both buyers award: 10/19 of the city, 2/11 of the town from the 20th on."""
    of_town = [_purchase(n + 50, TOWN, f"s{n}", 200 if n == 9 else 100, n + 11) for n in range(10)]
    desk = Desk(tmp_path)
    desk.ingest("portal-za", "za.json", package(*SHARES, *of_town))
    with desk.publish_and_serve() as asked:
        (of_both,) = _rows(asked, "R040")
        _is(of_both, "s9", True, 10 / 19, 1 / 19, buyer="city", pairs=2)
        for buyer in ("town", "bravo district municipality"):
            (row,) = _rows(asked, "R040", buyer=buyer)
            _is(row, "s9", True, 2 / 11, 1 / 11, buyer="town", pairs=1)
            assert _rows(asked, "R040", buyer=buyer, supplier="firm s9 (pty) ltd") == [row]
        assert not _rows(asked, "R040", buyer="town", supplier="s8")
        assert not _rows(asked, "R040", buyer="town", as_of="2025-01-19")
        (of_city,) = _rows(asked, "R040", buyer="City of Alfa", as_of="2025-01-19")
        _is(of_city, "s9", True, 10 / 19, 1 / 19, buyer="city")
        (own,) = _rows(asked, "R040", ocid="ocds-test-buy59", buyer="town")
        _is(own, "s9", True, 2 / 11, 1 / 11, buyer="town")
        assert not _rows(asked, "R040", ocid="ocds-test-buy59", buyer="city")


@pytest.mark.rule("FLAG-2", "FLAG-3", "FLAG-5")
def test_shares_are_compared_only_once_ten_suppliers_have_awards(market: PaidCaller) -> None:
    assert not _rows(market, "R040,R050", as_of="2025-01-09")
    early, market_share = _rows(market, "R040,R050", ocid="ocds-test-buy0", as_of="2025-01-09")
    assert (early["flagged"], early["subject"], early["value"]) == (None, "s0", None)
    assert early["reason"] == "The buyer has awards to fewer than 10 suppliers."
    assert market_share["reason"] == "Fewer than 10 suppliers have awards in the item category."


@pytest.mark.rule("FLAG-1", "FLAG-2", "FLAG-3")
def test_a_small_first_purchase_followed_by_much_larger_ones(market: PaidCaller) -> None:
    """The ratios are 1 five times and 300 / 10: their q3 is 3.416667, the fence 7.041667."""
    (row,) = _rows(market, "R052")
    later = {"later_purchases": 2, "mean_later_purchase": 300}
    _is(row, "t5", True, 30, 7.041667, buyer="town", first_purchase=10, **later)
    (then,) = _rows(market, "R052", as_of="2025-01-12")
    _is(then, "t5", True, 20, 1 + 19 / 12 * 2.5, later_purchases=1)
    assert not _rows(market, "R052", as_of="2025-01-11")
    (early,) = _rows(market, "R052", ocid="ocds-test-buy70", as_of="2025-01-11")
    assert early["reason"] == "The buyer's awards to the supplier are all of one day."
    (same,) = _rows(market, "R052", ocid="ocds-test-buy21")
    _is(same, "t0", False, 1, 7.041667)


@pytest.mark.rule("FLAG-1", "FLAG-2", "FLAG-5")
def test_prices_of_two_tenderers_that_differ_by_the_same_percentage(market: PaidCaller) -> None:
    """Six pairs never repeat a difference: of seven counts, q1 and q3 are 1, and so is the fence."""
    rows = _rows(market, "R023")
    assert [row["subject"] for row in rows] == ["x", "y"]
    for row in rows:
        known = {"difference_percent": 3, "same_difference": 2, "processes": 3, "processes_left_out": 1}
        _is(row, row["subject"], True, 2, 1, tenderers=["x", "y"], **known)
    of_four = _rows(market, "R023", ocid="ocds-test-bid1")
    assert [(row["subject"], row["flagged"]) for row in of_four] == [(one, False) for one in "abcd"]
    (crowded,) = _rows(market, "R023", ocid="ocds-test-bid8")
    assert (crowded["subject_type"], crowded["flagged"]) == ("process", None)
    assert "more than 20" in crowded["reason"]
    assert not _rows(market, "R023", as_of="2025-03-05")


@pytest.mark.rule("FLAG-1", "FLAG-2")
def test_a_recurrent_winner_among_two_who_often_bid_together(market: PaidCaller) -> None:
    """Six pairs have a share of 1/4, and one of 1: the quartiles and the fence are 1/4."""
    rows = _rows(market, "R053")
    assert [row["subject"] for row in rows] == ["x", "y"]
    for row in rows:
        won = {"won": 3, "processes": 3, "q1": 0.25}
        _is(row, row["subject"], True, 1, 0.25, tenderers=["x", "y"], winner="x", **won)
    early = _rows(market, "R053", ocid="ocds-test-bid5", as_of="2025-03-06")
    assert {row["reason"] for row in early} == {"The two bid in fewer than 3 processes with one winner."}
    assert not _rows(market, "R053", as_of="2025-03-06")
    assert "R053 Co-bidding pairs" in market.server.http.get("/supplier/KE/Firm X (Pty) Ltd").text


@pytest.mark.rule("FLAG-2", "LOCK-5")
def test_later_releases_do_not_choose_between_pairs_with_the_same_value(tmp_path: Path) -> None:
    """x always wins against y and against z. A later process names z before y is ever named."""
    others = [
        _contest(n + 1, {name * 2: price for name, price in prices.items()}, "abcd"[n] * 2)
        | {"ocid": f"ocds-test-other{n}"}
        for n, prices in enumerate(FOUR)
    ]
    both = [
        _contest(5 + n, {"x": 100, other: 103 + n}, "x") | {"ocid": f"ocds-test-c{other}{n}"}
        for other in "yz"
        for n in range(3)
    ]
    later = _contest(20, {"k": 100, "z": 200}, "k") | {"ocid": "ocds-test-a"}
    answers = []
    for name, contests in (("before", []), ("after", [later])):
        desk = Desk(tmp_path / name)
        desk.ingest("portal-ke", "ke.json", package(*CONTESTS[:4], *others, *both, *contests))
        with desk.publish_and_serve() as asked:
            answers.append(asked.get("/at/2025-03-15/v1/flags", country="KE", limit=1000))
    first, second = answers
    assert [row["subject"] for row in first["data"] if row["indicator"] == "R053"] == ["x", "y", "z"]
    assert first == second
