"""`sankofa editions diff A B`: how the rows of each dataset changed, on each engine."""

import json
from typing import Any

import pytest

from tests.spec import market
from tests.spec.market import CITY, ENTITIES, Desk, identified, party, release
from tests.spec.register import lei, record
from tests.spec.test_changes import SERIES, figure, filings

desk, plain_desk = market.desk, market.plain_desk
ISSUER = "registry:ZA-TEST:1"


def differences(desk: Desk, before: str, after: str, *options: str) -> dict[str, Any]:
    done = desk.command("editions", "diff", before, after, "--json", *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    body: dict[str, Any] = json.loads(done.stdout)
    assert (body["before"], body["after"]) == (before, after)
    return dict(body["datasets"])


def counts(datasets: dict[str, Any], dataset: str) -> tuple[int, int, int, int]:
    one = datasets[dataset]
    return one["added"], one["changed"], one["removed"], one["restated"]


def series(value: str, released: str) -> str:
    return f"{SERIES}\nCPI.XA,cpi,monthly,ZA,2024-01-31,{value},index,{released}\n"


@pytest.mark.deep
@pytest.mark.both_engines
def test_rows_added_restated_and_removed_are_counted_per_dataset(desk: Desk) -> None:
    trader = lei("LATERMAN")
    desk.records(*ENTITIES, record(trader, "Obadiah Quist", "ZA", "RA990300:9"))
    supplier = party("s", "Obadiah Quist", "supplier", **identified("LEI", trader))
    desk.ingest("portal-za", "a.json", [release("A", parties=[supplier]), release("B", buyer=CITY)])
    desk.ingest("filings", "f1.csv", filings(figure(ISSUER, 2019, 5, "2020-03-01", "a")))
    desk.ingest("series", "s1.csv", series("100.0", "2024-02-20"))
    first = desk.publish()
    desk.ingest("portal-za", "b.json", [release("C"), release("D")])
    desk.ingest("filings", "f2.csv", filings(figure(ISSUER, 2019, 7, "2021-03-01", "b")))
    desk.ingest("series", "s2.csv", series("101.5", "2024-03-20"))
    desk.records(record(trader, "Obadiah Quist", "ZA", "RA990300:9", category="SOLE_PROPRIETOR"))
    second = desk.publish()

    forward = differences(desk, first, second)
    assert counts(forward, "fundamentals") == (1, 1, 0, 1)  # the restatement and the superseded row
    assert counts(forward, "macro-series") == (0, 1, 0, 1)
    assert counts(forward, "tenders") == (2, 1, 0, 0)  # the release whose supplier is a person
    assert counts(forward, "entities") == (0, 0, 1, 0)
    assert forward["tender_party"]["removed"] >= 1
    assert {"change": "restated", "key": ["CPI.XA|cpi|monthly|ZA", "2024-01-31"]} in forward["macro-series"][
        "examples"
    ]
    assert "Obadiah" not in json.dumps(forward)

    back = differences(desk, second, first)
    assert counts(back, "fundamentals") == (0, 1, 1, 0)
    assert counts(back, "entities") == (1, 0, 0, 0)
    assert differences(desk, first, first) == {}
    assert all(
        len(one["examples"]) <= 1 for one in differences(desk, first, second, "--examples", "1").values()
    )

    lines = desk.command("editions", "diff", first, second).stdout.splitlines()
    assert "fundamentals: added 1, changed 1, removed 0, restated 1" in lines
    assert desk.command("editions", "diff", first, first).stdout == "no row differs\n"


@pytest.mark.parametrize("name", ["nosuch", "..", "CURRENT"])
def test_a_removed_edition_is_named(plain_desk: Desk, name: str) -> None:
    plain_desk.ingest("portal-za", "a.json", [release("A")])
    current = plain_desk.publish()
    for pair in ((name, current), (current, name)):
        done = plain_desk.command("editions", "diff", *pair)
        assert done.returncode == 1
        assert name in done.stderr
