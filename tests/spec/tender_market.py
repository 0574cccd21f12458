"""A market of tenders, for the tests of /v1/tenders."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.spec.market import (
    BREWER,
    CITY,
    ENTITIES,
    Desk,
    PaidCaller,
    identified,
    instant,
    package,
    party,
    release,
)
from tests.spec.market import desk as desk

FIELDS = {
    *("source_ref", "license_class", "observed_at", "buyer_service_id", "country", "ocid", "release_id"),
    *("release_date", "tag", "title", "category", "procurement_method", "status", "value_amount"),
    *("value_currency", "buyer_name", "award_count", "withheld_parties", "release"),
    *("closing_date", "description", "available_instant", "available_precision"),
}
COMPLETE = release(
    "complete",
    "2025-05-05T05:05:05Z",
    tag=["award", "contract"],
    buyer={"id": "brewer", "name": "Thornveld Breweries (Pty) Ltd"},
    parties=[party("brewer", "Thornveld Breweries (Pty) Ltd", "buyer", **identified("XI-LEI", BREWER))],
    tender={
        "id": "t",
        "title": "  Road\n maintenance ",
        "category": "Services: Civil",
        "mainProcurementCategory": "works",
        "procurementMethod": "open",
        "status": "complete",
        "value": {"amount": 1200.50, "currency": "ZAR"},
    },
    awards=[{"id": "a1", "value": {"amount": 7, "currency": "ZAR"}}, {"id": "a2"}],
)
SPREAD = [
    release(f"spread-{n:02}", f"2024-{1 + n % 12:02}-{1 + n % 28:02}T{n % 24:02}:00:00Z", tender=tender)
    for n in range(60)
    for tender in [
        {"title": f"Road {n % 3} maintenance", "description": "Grader hire" if n % 4 else "Roller"}
    ]
]
TIMES = [
    release("zoned", "2025-03-01T01:00:00+02:00"),
    release("unzoned", "2025-02-28T10:00:00"),
    release("bare", "2025-03-01"),
    release("tie-b", "2025-01-10T10:00:00Z"),
    release("tie-a", "2025-01-10T10:00:00Z", 2),
    release("tie-a", "2025-01-10T10:00:00Z", 1),
    release("tie-half", "2025-01-10T10:00:00.500Z"),
    release("tie-quarter", "2025-01-10T10:00:00.25Z"),
]


def valued(ocid: str, **value: Any) -> dict[str, Any]:
    return release(ocid, "2025-04-01T00:00:00Z", tender={"value": value})


BUYERS = [
    release("buyer", "2025-04-03", buyer=CITY),
    release("listed-buyer", "2025-04-03", parties=[party("c", CITY["name"], "buyer")]),
]
VALUES = [
    valued("zero", amount=0, currency="ZAR"),
    valued("zero-point", amount=0.0, currency="ZAR"),
    valued("text", amount=" 1250.50 ", currency="zar"),
    valued("unknown-currency", amount=5, currency="ZZZ"),
    valued("words", amount="five", currency="ZAR"),
    release("nothing", "2025-04-01T00:00:00Z"),
]
DIGITS = '{"ocid":"ocds-test-digits","id":"1","date":"2025-04-02","tender":{"value":{"amount":%s}}}'
BIG = ("9007199254740993", "123456789012345678901234567890.12", "0.10")


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("market"))
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "za.json", package(COMPLETE, *SPREAD, *TIMES, *VALUES, *BUYERS))
    lines = (DIGITS.replace("digits", f"digits-{n}") % number for n, number in enumerate(BIG))
    desk.ingest("portal-za", "digits.jsonl", "\n".join(lines))
    desk.ingest("portal-ke", "ke.json", package(release("kenya", "2025-01-01", tender={"title": "Road"})))
    with desk.publish_and_serve(per_minute_sample="100000", per_month_sample="1000000") as caller:
        yield caller


def expected(releases: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Newest first, then by ocid and release id."""
    ordered = sorted(releases, key=lambda r: (r["ocid"], r["id"]))
    ordered.sort(key=lambda r: instant(r["date"]), reverse=True)
    return [(r["ocid"], r["id"]) for r in ordered]


def keys(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["ocid"], row["release_id"]) for row in rows]


def wait_for_edition(caller: PaidCaller, edition: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while caller.get("/v1/tenders", limit=1)["edition"] != edition:
        assert time.monotonic() < deadline
        time.sleep(0.05)
