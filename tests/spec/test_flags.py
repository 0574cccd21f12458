"""/v1/flags: red flags of contracting processes that could be raised on a day."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.spec.market import (
    BREWER,
    CITY,
    ENTITIES,
    Desk,
    Json,
    PaidCaller,
    identified,
    package,
    party,
    release,
)

BEER, ROADS = "Thornveld Breweries (Pty) Ltd", "Thornveld Roads (Pty) Ltd"
PERSON = "Quentin Zebulon Marchbanks"
PARTIES = [
    party("b", BEER, "tenderer", **identified("XI-LEI", BREWER)),
    party("r", ROADS, "tenderer"),
    party("p", PERSON, "tenderer"),
    party("city", CITY["name"], "buyer"),
]
CODES = """R001 R004 R005 R013 R014 R015 R016 R017 R019 R020 R021 R022 R023 R031 R039 R040 R050 R052 R053 R059
R060 R061 R062 R063 R064 R065 R066 R067 R068 R069 R071 R072""".split()
"""The indicators of the guide."""
ALL = sorted([*"R003 R018 R024 R025 R028 R030 R035 R036 R038 R048 R058".split(), *CODES])


def _bid(number: int, who: str, amount: float, status: str = "valid", **fields: Any) -> Json:
    value = {"amount": amount, "currency": "ZAR"}
    return {"id": f"{number}", "status": status, "tenderers": [{"id": who}], "value": value, **fields}


def _award(who: str, status: str = "active") -> Json:
    return {"id": "a", "status": status, "suppliers": [{"id": who}]}


def _tender(start: str = "2025-01-01", end: str = "2025-01-10", **fields: Any) -> Json:
    period = {"startDate": f"{start}T00:00:00Z", "endDate": f"{end}T00:00:00Z"}
    return {"title": "Beer for the city", "status": "active", "tenderPeriod": period, **fields}


SHORT = [
    release(
        "short", "2025-01-02T00:00:00Z", tender=_tender(procurementMethod="open"), buyer=CITY, parties=PARTIES
    ),
    release(
        "short",
        "2025-02-02T00:00:00Z",
        number=2,
        buyer=CITY,
        parties=PARTIES,
        tender=_tender(end="2025-03-01", numberOfTenderers=1),
    ),
    release(
        "short",
        "2025-03-02T00:00:00Z",
        number=3,
        buyer=CITY,
        parties=PARTIES,
        tender={"status": "complete"},
        bids={
            "details": [
                _bid(1, "b", 5, date="2025-03-02T00:00:00Z"),
                _bid(2, "r", 5),
                _bid(3, "p", 4, "disqualified"),
            ]
        },
        awards=[_award("b")],
    ),
]
CANCELLED = [
    release("gone", "2025-01-05T00:00:00Z", tender=_tender() | {"status": "cancelled"}, parties=PARTIES)
]
OTHERS = [
    release(
        f"n{n}",
        f"2025-04-{n + 1:02}T00:00:00Z",
        buyer=CITY,
        parties=PARTIES,
        tender=_tender(end="2025-03-01"),
        bids={
            "details": [_bid(1, "b", 100), _bid(2, "r", 100 + n * n), _bid(3, "r", 90 + n, "disqualified")]
        },
        awards=[_award("b")],
    )
    for n in range(8)
]
FOREIGN = release("ke", "2025-01-02T00:00:00Z", tender=_tender(), parties=PARTIES)
QUIET = release(
    "quiet",
    "2024-12-30T00:00:00Z",
    tender={"id": "1", "title": "Chairs", "tenderPeriod": {"startDate": "2025-01-01T00:00:00Z"}},
)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("flags"))
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "za.json", package(*SHORT, *CANCELLED, *OTHERS))
    desk.ingest("portal-ke", "ke.json", package(FOREIGN, QUIET))
    with desk.publish_and_serve() as asked:
        yield asked


def _flagged(market: PaidCaller, view: str = "", **query: Any) -> set[tuple[str, str, str]]:
    rows = market.get(f"{view}/v1/flags", **{"limit": 1000, **query})["data"]
    assert all(row["flagged"] and row["reason"] is None for row in rows)
    return {(row["indicator"], row["subject_type"], row["subject"]) for row in rows}


@pytest.mark.rule("FLAG-1", "FLAG-3")
def test_flags_depend_only_on_releases_up_to_the_day(market: PaidCaller) -> None:
    short = "ocds-test-short"
    assert _flagged(market, country="ZA", as_of="2025-01-01") == set()
    assert _flagged(market, country="ZA", as_of="2025-01-31") == {("R003", "process", short)}
    assert _flagged(market, country="ZA", as_of="2025-02-28") == {("R018", "process", short)}
    by_march = _flagged(market, country="ZA", as_of="2025-03-31")
    assert by_march >= {
        ("R018", "process", short),
        ("R028", "process", short),
        ("R028", "tenderer", "b"),
        ("R028", "tenderer", "r"),
        ("R030", "process", short),
        ("R030", "tenderer", "b"),
        ("R036", "process", short),
    }
    assert by_march == _flagged(market, "/at/2025-03-31", country="za")
    assert {row[2] for row in _flagged(market, country="KE")} == {"ocds-test-ke"}
    none = market.get("/v1/flags", country="KE", as_of="2024-12-31")
    assert (none["data"], none["absent"]["detail"][:33]) == ([], "Nothing is flagged on 2024-12-31.")


@pytest.mark.rule("FLAG-2")
def test_every_indicator_of_a_process_has_inputs_or_a_reason(market: PaidCaller) -> None:
    rows = market.get("/v1/flags", ocid="ocds-test-n3")["data"]
    assert sorted({row["indicator"] for row in rows}) == ALL
    for row in rows:
        assert (row["flagged"] is None) == bool(row["reason"]), row
        assert row["formula"]
        assert (row["population"], row["country"]) == (10, "ZA")
    (close,) = [row for row in rows if row["indicator"] == "R024"]
    assert float(close["value"]) == 0.09
    assert close["name"] == "Beer for the city"
    assert close["inputs"]["winning_bid"] == 100
    assert close["inputs"]["currency"] == "ZAR"
    (brewer,) = [row for row in rows if (row["indicator"], row["subject"]) == ("R038", "b")]
    assert brewer["name"] == BEER
    assert brewer["service_id"].startswith("DC")
    gone = market.get("/v1/flags", ocid="ocds-test-gone")["data"]
    assert [row["indicator"] for row in gone] == ALL
    assert not any(row["flagged"] for row in gone)
    early = market.get("/v1/flags", ocid="ocds-test-n3", as_of="2025-01-31")
    assert (early["data"], early["absent"]["reason"]) == ([], "not_yet_known")
    assert market.get("/v1/flags", ocid="ocds-test-nobody")["data"] == []


@pytest.mark.rule("FLAG-1")
def test_flags_of_a_buyer_and_a_supplier_by_id_name_and_service_id(market: PaidCaller) -> None:
    everything = _flagged(market, country="ZA")
    of_brewer = _flagged(market, country="ZA", supplier="b")
    (service_id,) = {
        row["service_id"]
        for row in market.get("/v1/flags", country="ZA", supplier="b")["data"]
        if row["subject_type"] == "tenderer"
    }
    assert of_brewer == _flagged(market, supplier=BEER.upper(), country="ZA")
    assert of_brewer == _flagged(market, supplier=service_id.lower(), country="ZA")
    assert not any(subject == "r" for _, _, subject in of_brewer)
    of_city = _flagged(market, country="ZA", buyer=CITY["name"])
    assert (
        of_city
        == _flagged(market, country="ZA", buyer="city")
        == {row for row in everything if row[1] != "tenderer"}
    )
    assert _flagged(market, buyer="nobody") == set()
    assert _flagged(market, country="KE", buyer="CITY"), "as the list of parties names it"


@pytest.mark.rule("FLAG-1")
def test_rows_of_one_indicator_or_several_page_by_page(market: PaidCaller) -> None:
    everything = _flagged(market)
    codes = {code for code, *_ in everything}
    assert len(codes) > 3
    for asked in ("R028", "R058,R003,R028", ",".join(sorted(codes))):
        expected = {row for row in everything if row[0] in asked.split(",")}
        assert _flagged(market, indicator=asked) == expected
        rows: list[Json] = []
        cursor = None
        while cursor or not rows:
            following: Json = {"cursor": cursor} if cursor else {}
            page = market.get("/v1/flags", indicator=asked, limit=1, **following)
            rows += page["data"]
            cursor = page["next_cursor"]
        keys = [(row["country"], row["indicator"], row["subject_type"], row["subject"]) for row in rows]
        assert keys == sorted(keys)
        assert {key[1:] for key in keys} == expected
        assert len(keys) == len(market.get("/v1/flags", indicator=asked, limit=1000)["data"])
    assert {code for code, *_ in _flagged(market, supplier="b", indicator="R028,R036")} == {"R028", "R036"}
    assert _flagged(market, "/at/2025-02-28", indicator="R018") == {("R018", "process", "ocds-test-short")}
    assert _flagged(market, "/at/2025-01-31", indicator="R018") == set()
    of_process = market.get("/v1/flags", ocid="ocds-test-n3", indicator="R003,R004")["data"]
    assert [(row["indicator"], row["flagged"]) for row in of_process] == [("R003", False), ("R004", None)]
    failed, body = market.tool("get_flags", country="ZA", indicator=["R028"])
    assert not failed
    assert {row["indicator"] for row in body["data"]} == {"R028"}


@pytest.mark.rule("FLAG-1", "ABS-1", "PAR-5")
def test_an_indicator_that_flags_nothing_or_does_not_exist(market: PaidCaller) -> None:
    none = market.get("/v1/flags", country="ZA", indicator="R067")
    assert (none["data"], none["absent"]["reason"]) == ([], "no_match")
    assert none["absent"]["detail"] == "Nothing matches `indicator`."
    assert [one["arguments"] for one in none["absent"]["try"]] == [{"country": "ZA"}]
    for unknown in ("R28", "r028", "R028,R28"):
        problem = market.refused("/v1/flags", indicator=unknown)
        assert problem["parameter"] == "indicator"
        assert "nearest: R028" in problem["detail"]
    cursor = market.get("/v1/flags", country="ZA", indicator="R028", limit=1)["next_cursor"]
    assert market.refused("/v1/flags", country="ZA", indicator="R003", cursor=cursor)["parameter"] == "cursor"
    assert market.refused("/v1/flags", country="ZA", cursor=cursor)["parameter"] == "cursor"


@pytest.mark.rule("FLAG-1", "MCP-2", "GATE-5")
def test_the_order_the_tool_and_persons(market: PaidCaller) -> None:
    whole = market.get("/v1/flags")["data"]
    keys = [(row["country"], row["indicator"], row["subject_type"], row["subject"]) for row in whole]
    assert keys == sorted(keys)
    assert len(keys) > 6
    failed, body = market.tool("get_flags", country="ZA", as_of="2025-03-31")
    rest = market.get("/v1/flags", country="ZA", as_of="2025-03-31")
    assert not failed
    assert json.loads(json.dumps(rest, default=float)) == json.loads(json.dumps(body, default=float))
    for text in (str(whole), str(market.get("/v1/flags", ocid="ocds-test-short"))):
        assert PERSON not in text
        assert "'p'" not in text
    assert market.refused("/v1/flags", as_of="2999-01-01")["parameter"] == "as_of"


def _drawn(chance: random.Random) -> Json:
    """A state of a process: bids of several firms in two currencies, and their outcome."""

    def some(count: int) -> Json:
        number = min(chance.randrange(count), chance.randrange(count))
        return {"id": f"f{number}", "name": f"Firm {number} Ltd"}

    bids: list[dict[str, Any]] = [
        {
            "id": f"{number}",
            "status": chance.choice(["valid"] * 8 + ["disqualified", "withdrawn"]),
            "tenderers": [some(14)],
            "value": {
                "amount": chance.choice([100, 110, 112, 115, 120, 130] * 4 + [900]),
                "currency": chance.choice(["ZAR"] * 9 + ["USD"]),
            },
            **({"date": f"2025-0{chance.randint(1, 2)}-05T00:00:00Z"} if chance.random() < 0.3 else {}),
        }
        for number in range(chance.randrange(5))
    ]
    buyer = some(9)
    tender, contract, award = _guide_members(chance, likely=0.9 if buyer["id"] == "f3" else 0.05)
    if chance.random() < 0.3:
        bids = _met_again(chance)
    winner = min(bids, key=lambda one: one["value"]["amount"])["tenderers"] if bids else [some(14)]
    if chance.random() < 0.25:
        bids, buyer, winner = [], {"id": "f0", "name": "Firm 0 Ltd"}, [{"id": f"f{chance.randrange(14)}"}]
        award["value"]["amount"] *= 30 if winner == [{"id": "f5"}] else 1
    item = {"id": "1", "classification": {"scheme": "CPV", "id": chance.choice("1111111222345")}}
    return {
        "tender": _tender(
            end=chance.choice(["2025-01-10"] * 9 + ["2025-02-01"]),
            numberOfTenderers=chance.choice([5, 6, 6, 7] * 6 + [1]),
            procuringEntity=some(5),
            status=chance.choice(["active"] * 5 + ["complete"] * 4 + ["cancelled"]),
            **tender,
        ),
        "buyer": buyer,
        "parties": [party(f"f{n}", f"Firm {n} Ltd", "tenderer") for n in range(14)],
        "bids": {"details": bids},
        "awards": [{"id": "a", "status": "active", "suppliers": winner, "items": [item], **award}],
        **contract,
        **({"complaints": [{"id": "c1"}]} if chance.random() < 0.1 else {}),
        **(
            {"planning": _documents(chance, *["procurementPlan"] * 7, "hearingNotice")}
            if chance.random() < 0.5
            else {}
        ),
    }


def _met_again(chance: random.Random) -> list[Json]:
    """Bids of firms that often meet: of two, one always wins, mostly by the same difference."""
    price = chance.randrange(100, 900)
    amounts = {f"f{number}": price + chance.randrange(100) / 7 for number in range(8, 12)}
    if chance.random() < 0.5:
        amounts = {"f12": price * chance.choice([1.03, 1.03, 1.03, 1.2]), "f13": price}
    return [
        {
            "id": who,
            "status": "valid",
            "tenderers": [{"id": who}],
            "value": {"amount": round(one, 2), "currency": "ZAR"},
        }
        for who, one in amounts.items()
    ]


def _documents(chance: random.Random, *types: str) -> Json:
    """One document, often with the only id, so that a later release changes it."""
    document = {"id": chance.choice("112"), "documentType": chance.choice(types)}
    return {"documents": [document | {"datePublished": _day(chance, 1)}]}


def _day(chance: random.Random, month: int) -> str:
    return f"2025-0{month}-{chance.choice([1, 9, 10, 10, 11, 11, 12, 28]):02}T00:00:00Z"


def _guide_members(chance: random.Random, likely: float) -> tuple[Json, Json, Json]:
    """Members of a tender, of a release with contracts and of an award that the guide's indicators read.

    `likely` is the chance of what R013, R021 and R072 count.
    """

    def price() -> Json:
        amounts = [90, 100, 100, 101, 102, 103, 300]
        return {"amount": chance.choice(amounts), "currency": chance.choice(["ZAR"] * 5 + ["USD"])}

    def items() -> list[Json]:
        code = {"scheme": "CPV", "id": chance.choice(["4511", "4512", "3300"])}
        unit = {"name": "m", "value": price()}
        return [
            {"id": one, "classification": code, "quantity": chance.randint(1, 3), "unit": unit}
            for one in chance.sample("123", chance.randint(1, 2))
        ]

    tender = {
        "value": price(),
        "items": items(),
        "procurementMethod": chance.choice(["direct", "limited"]) if chance.random() < likely else "open",
        "awardCriteria": "ratedCriteria" if chance.random() < likely else "priceOnly",
        "awardPeriod": {"startDate": _day(chance, 3)},
        "bidOpening": {"date": _day(chance, 2)},
        "enquiries": [{"id": "1", **({"answer": "Yes, both."} if chance.random() < 0.7 else {})}],
        **_documents(chance, "tenderNotice", "evaluationCriteria", "clarifications"),
    }
    award = {
        "date": _day(chance, 4),
        "value": price(),
        "hasSubcontracting": chance.random() < likely,
        "subcontracting": {"minimumPercentage": chance.choice([0.2, 0.6]), "value": price()},
    }
    milestone = {"id": "1", "type": "delivery", "dueDate": _day(chance, 6), "dateMet": _day(chance, 6)}
    payments = [{"id": one, "value": price()} for one in chance.sample("12", chance.randint(0, 2))]
    contract = {
        "id": "k",
        "awardID": "a",
        "status": chance.choice(["active", "active", "pending", "terminated"]),
        "dateSigned": _day(chance, 5),
        "value": price(),
        "items": items(),
        "implementation": {"milestones": [milestone], "transactions": payments},
        **({"amendments": [{"id": "1", "description": "More."}]} if chance.random() < 0.4 else {}),
        **_documents(chance, *["contractSigned"] * 7, "contractAnnexe"),
    }
    return tender, {"contracts": [contract]} if chance.random() < 0.7 else {}, award


@pytest.mark.ci
@pytest.mark.rule("FLAG-3", "LOCK-2")
def test_flags_of_a_day_follow_from_the_state_of_each_process_that_day(tmp_path: Path) -> None:
    """A second ledger has one release of each process, compiled from its releases up to the day."""
    chance = random.Random(34)
    releases = [
        release(f"x{n}", f"2025-{month:02}-{n % 28 + 1:02}T00:00:00Z", number=step, **_drawn(chance))
        for n in range(90)
        for step, month in enumerate(sorted(chance.sample(range(1, 10), chance.randint(1, 3))))
    ]
    queries: list[dict[str, str]] = [{}, {"buyer": "firm 1 ltd"}, {"supplier": "F2"}]
    seen = set()
    with _served(tmp_path / "whole", releases) as asked:
        for day in ("2025-03-15", "2025-06-30", "2025-12-31"):
            ocids = sorted({one["ocid"] for one in releases if one["date"][:10] <= day})
            compiled = [
                asked.get(f"/at/{day}/v1/contracts/{ocid}")["data"][0]["release"] | {"tag": ["tender"]}
                for ocid in ocids
            ]
            with _served(tmp_path / day, json.loads(json.dumps(compiled, default=float))) as other:
                for query in (*queries, *({"ocid": ocid} for ocid in ocids[::15])):
                    rows, expected = (
                        _without_places(one.get(f"/at/{day}/v1/flags", limit=1000, **query)["data"])
                        for one in (asked, other)
                    )
                    assert rows == expected, (day, query)
                    seen |= {row["indicator"] for row in rows if row["flagged"]}
    assert seen >= {*CODES} - {"R005"}, {*CODES} - seen


@contextmanager
def _served(folder: Path, releases: list[Json]) -> Iterator[PaidCaller]:
    desk = Desk(folder)
    desk.ingest("portal-za", "za.json", package(*releases))
    with desk.publish_and_serve() as asked:
        yield asked


def _without_places(rows: list[Json]) -> list[Json]:
    """Rows without their location in the file, which differs between the files."""
    return [{**row, "source_ref": row["source_ref"].partition("#")[0]} for row in rows]


@pytest.mark.rule("FLAG-2")
def test_a_country_without_new_releases_keeps_its_flags(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.ingest("portal-za", "za.json", package(*OTHERS))
    desk.publish()
    desk.ingest("portal-ke", "ke.json", package(FOREIGN))
    with desk.publish_and_serve() as asked:
        for process, country in (("n3", "ZA"), ("ke", "KE")):
            rows = asked.get("/v1/flags", ocid=f"ocds-test-{process}")["data"]
            assert {row["country"] for row in rows} == {country}
            assert {row["indicator"] for row in rows} == {*ALL}
        assert ("R036", "process", "ocds-test-n3") in _flagged(asked, country="ZA")


@pytest.mark.rule("FLAG-2")
def test_pages_show_indicators_and_lead_from_a_process_to_its_parties_and_back(market: PaidCaller) -> None:
    process = market.server.http.get("/tender/ZA/ocds-test-short").text
    assert "R028 Identical bid prices" in process
    assert "stands out" in process
    assert "It proves nothing" in process
    assert "Cannot be computed" in process
    early = market.server.http.get("/tender/ZA/ocds-test-short?as_of=2025-01-31").text
    assert "R003 Short submission period" in early
    assert "R028 Identical bid prices</a></th><td>Process" in process
    assert "R028 Identical bid prices</a></th><td>Process" not in early
    one = market.server.http.get("/tender/ZA/ocds-test-short?as_of=2025-04-30&indicator=R028").text
    assert "R028 Identical bid prices" in one
    assert "R003 Short submission period" not in one
    assert 'href="/tender/ZA/ocds-test-short?as_of=2025-04-30">All indicators</a>' in one
    assert market.server.http.get("/tender/ZA/ocds-test-short?indicator=R999").status_code == 400
    for role, name in (("supplier", BEER), ("buyer", CITY["name"])):
        address = f"/{role}/ZA/{quote(name)}"
        assert address in process
        party_page = market.server.http.get(address).text
        assert "/tender/ZA/ocds-test-short" in party_page
        assert "R028 Identical bid prices" in party_page
        assert PERSON not in party_page
