"""GET /v1/fundamentals/{service_id}: facts as they were known on a day."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow
import pytest

from sankofa.edition.format.columns import COLUMNS_FROM
from sankofa.model.identifiers import service_id
from sankofa.operations.contract import endpoints
from sankofa.rest.formats import ARROW
from tests.depth import deep_after
from tests.live import LiveServer, create_key, succeed
from tests.spec.test_formats import as_json, compare
from tests.world.desk import Desk

RETAILER = service_id("lei:999900SAMPLEZA000189")
FUND = service_id("lei:999900SAMPLEZA000286")
TESTED = "ticker:JSE:TST"
NOBODY = "DC000000000000000000000000"
FIELDS = set(
    "service_id record_ref line_item concept value_reported currency_reported unit period_start period_end "
    "period_type fiscal_year available_at available_instant available_precision tradable_from vintage "
    "restated split_ratio superseded_at superseding_record_ref "
    "extraction_confidence method source_ref license_class observed_at".split()
)


def ask(server: LiveServer, key: str, query: str = "", issuer: str = RETAILER) -> dict[str, Any]:
    return server.body(f"/v1/fundamentals/{issuer}?{query}", key)


@pytest.mark.rule("PROV-1", "FUND-4")
def test_every_row_has_every_field_and_its_provenance(server: LiveServer, paid_key: str) -> None:
    for row in ask(server, paid_key, "vintages=all")["data"]:
        assert set(row) == FIELDS
        assert row["service_id"] == RETAILER
        assert row["source_ref"]
        assert row["license_class"] == "synthetic"
        assert datetime.fromisoformat(row["observed_at"]).tzinfo == UTC
        assert row["observed_at"].endswith("Z")


@pytest.mark.rule("PIT-1")
def test_without_as_of_the_answer_is_for_today_and_says_so(server: LiveServer, paid_key: str) -> None:
    before = datetime.now(UTC).date()
    now = ask(server, paid_key)
    after = datetime.now(UTC).date()
    assert before.isoformat() <= now["as_of"] <= after.isoformat()
    assert ask(server, paid_key, f"as_of={now['as_of']}")["data"] == now["data"]


def test_a_known_issuer_without_known_facts_is_an_empty_answer(server: LiveServer, paid_key: str) -> None:
    for body in (ask(server, paid_key, "as_of=1990-01-01"), ask(server, paid_key, issuer=FUND)):
        assert (body["data"], body["count"], body["truncated"]) == ([], 0, False)
        assert body["_license"]
        assert body["edition"]


@pytest.mark.rule("FUND-3")
def test_an_unknown_issuer_is_not_found(server: LiveServer, paid_key: str) -> None:
    answer = server.get(f"/v1/fundamentals/{NOBODY}", paid_key)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.rule("VINT-5", "VINT-7")
def test_the_three_modes_show_the_latest_the_first_and_every_vintage(server: LiveServer, paid_key: str):
    def facts(mode: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
        by_identity: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in ask(server, paid_key, f"vintages={mode}")["data"]:
            identity = tuple(
                str(row[k]) for k in ("line_item", "concept", "unit", "period_start", "period_end")
            )
            by_identity.setdefault(identity, []).append(row)
        return by_identity

    every, latest, first = facts("all"), facts("latest"), facts("as_reported")
    assert set(every) == set(latest) == set(first)
    assert any(len(rows) > 1 for rows in every.values())
    for identity, rows in every.items():
        assert [row["vintage"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row["restated"] for row in rows] == [row["vintage"] > 1 for row in rows]
        assert latest[identity] == rows[-1:]
        assert first[identity] == rows[:1]
        assert [row["superseding_record_ref"] for row in rows] == [*(r["record_ref"] for r in rows[1:]), None]
        assert [row["superseded_at"] for row in rows] == [*(r["available_at"] for r in rows[1:]), None]
    assert ask(server, paid_key, "vintages=latest") == ask(server, paid_key)


@pytest.mark.rule("ENV-3", "FUND-1")
def test_rows_come_in_the_documented_order(server: LiveServer, paid_key: str) -> None:
    for query in ("", "vintages=all", "as_of=2024-01-01&vintages=all"):
        order = [
            (-date.fromisoformat(r["period_end"]).toordinal(), r["period_type"], r["line_item"], r["vintage"])
            for r in ask(server, paid_key, query)["data"]
        ]
        assert order == sorted(order)


@pytest.mark.rule("FUND-5")
def test_a_period_type_selects_its_rows_in_every_mode(server: LiveServer, paid_key: str) -> None:
    for mode in ("latest", "as_reported", "all"):
        every = ask(server, paid_key, f"vintages={mode}")["data"]
        for name in ("FY", "H1", "Q1", "other"):
            chosen = ask(server, paid_key, f"vintages={mode}&period_type={name}")["data"]
            assert chosen == [row for row in every if row["period_type"] == name]


@pytest.mark.rule("FUND-2")
def test_the_sample_tier_gets_the_first_rows_and_the_answer_says_so(
    server: LiveServer, sample_key: str, paid_key: str
) -> None:
    whole = ask(server, paid_key)
    part = ask(server, sample_key)
    assert (part["count"], part["truncated"], whole["truncated"]) == (25, True, False)
    assert part["data"] == whole["data"][:25]
    few = ask(server, sample_key, "as_of=2021-12-31&period_type=H1")
    assert few["truncated"] == (ask(server, paid_key, "as_of=2021-12-31&period_type=H1")["count"] > 25)


@pytest.mark.rule("PAR-3")
def test_an_id_may_be_written_in_any_case(server: LiveServer, paid_key: str) -> None:
    assert ask(server, paid_key, issuer=RETAILER.lower())["data"] == ask(server, paid_key)["data"]


@pytest.mark.rule("FIG-4")
def test_the_unit_is_as_written_and_the_currency_null_where_it_is_not_money(
    server: LiveServer, paid_key: str
) -> None:
    filer = service_id("registry:US-SEC-CIK:9999900003")
    units = {(r["unit"], r["currency_reported"]) for r in ask(server, paid_key, issuer=filer)["data"]}
    assert {("USD", "USD"), ("shares", None), ("USD/shares", None)} <= units


def revenue(value: object, available: str, document: str, end: str = "2022-12-31") -> list[str]:
    return [TESTED, "revenue", str(value), "ZAR", f"{end[:4]}-01-01", end, available, document, "p. 1", ""]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", date(2024, 1, 1))


@pytest.mark.rule("VINT-6")
def test_an_older_filing_that_arrives_late_is_known_from_its_own_day(desk: Desk) -> None:
    desk.filings("3.csv", [revenue(3, "2023-09-01", "third")])
    desk.filings("1.csv", [revenue(1, "2023-03-01", "first")])
    desk.publish().close()
    with LiveServer(desk.home) as server:
        key = create_key(desk.home, "starter")
        (only,) = ask(server, key, "as_of=2023-08-31&vintages=all", service_id(TESTED))["data"]
        assert (only["value_reported"], only["vintage"], only["superseded_at"]) == (1, 1, None)

        desk.set_day(date(2024, 1, 2))
        desk.filings("2.csv", [revenue(2, "2023-06-01", "second")])
        desk.publish().close()
        rows = _until(server, key, 3)
        assert [(row["value_reported"], row["vintage"]) for row in rows] == [(1, 1), (2, 2), (3, 3)]
        assert [row["superseded_at"] for row in rows] == ["2023-06-01", "2023-09-01", None]
        assert rows[0]["record_ref"] == only["record_ref"], "a vintage is named the same in every edition"


@pytest.mark.rule("PIT-9")
def test_later_filings_do_not_change_a_byte_of_a_past_answer(desk: Desk) -> None:
    desk.filings(
        "1.csv",
        [revenue("0.10", "2023-03-01", "a"), revenue("9007199254740993.25", "2022-03-01", "a", "2021-12-31")],
    )
    desk.publish().close()
    with LiveServer(desk.home) as server:
        key = create_key(desk.home, "starter")
        path = f"/v1/fundamentals/{service_id(TESTED)}?as_of=2023-12-31&vintages=all"
        before = server.get(path, key).text
        assert '"value_reported":9007199254740993.25,' in before
        desk.set_day(date(2024, 6, 1))
        desk.filings(
            "2.csv", [revenue("0.2", "2024-03-01", "b"), revenue(7, "2024-03-01", "b", "2023-12-31")]
        )
        desk.publish().close()
        assert len(_until(server, key, 4)) == 4
        after = server.get(path, key).text
    assert before.replace(json.loads(before)["edition"], "") == after.replace(
        json.loads(after)["edition"], ""
    )


def _until(server: LiveServer, key: str, count: int) -> list[dict[str, Any]]:
    """The rows once the next edition is served."""
    deadline = datetime.now(UTC) + timedelta(seconds=20)
    while True:
        rows: list[dict[str, Any]] = ask(server, key, "vintages=all", service_id(TESTED))["data"]
        if len(rows) == count or datetime.now(UTC) > deadline:
            return rows


ISSUER = "registry:ZA-CIPC:2001/000001/06"
HEADER = "entity,line_item,value,currency,period_start,period_end,available_at,document,location"
(OPERATION,) = (o for o in endpoints() if o.name == "get_fundamentals")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """An issuer with slightly more facts than its limit, one in five of them restated a year later."""
    folder: Path = tmp_path_factory.mktemp("crowded")
    lines = [HEADER]
    for item in range(COLUMNS_FROM // 5):
        for year in range(2018, 2024):
            period = f"ZAR,{year}-01-01,{year}-{'12-31' if item % 3 else '06-30'}"
            filing = f"{year + 1}-03-01,afs-{year},"
            note = f'"p. {item}, a ""note"""' if year > 2020 else f"p. {item}"  # written by two writers
            lines.append(f"{ISSUER},item_{item},{year}.{item}0,{period},{filing}{note}")
            if item % 5 == 0:
                lines.append(
                    f"{ISSUER},item_{item},-{item},{period},{year + 2}-03-01,afs-{year + 1},p. {item}"
                )
    filings = folder / "filings.csv"
    filings.write_text("\n".join(lines) + "\n")
    home = folder / "home"
    for command in (("ingest", "--strict", "filings", filings), ("publish",)):
        succeed(home, *command)
    with LiveServer(home, workers=1) as live:
        yield live


@pytest.mark.parametrize("as_of", deep_after(2, ["2021-03-01", "", "2019-06-30"]))
@pytest.mark.parametrize("vintages", ["latest", "as_reported", "all"])
@pytest.mark.parametrize("period_type", ["FY", ""])
def test_arrow_and_csv_have_the_rows_of_json(
    crowded: LiveServer, as_of: str, vintages: str, period_type: str
) -> None:
    key = crowded.key("starter")
    parameters = {"as_of": as_of, "vintages": vintages, "period_type": period_type}
    query = urlencode({name: value for name, value in parameters.items() if value})
    same_in_every_form(crowded, key, f"/v1/fundamentals/{service_id(ISSUER)}?{query}")


@pytest.mark.rule("LOCK-3")
@pytest.mark.parametrize("vintages", ["latest", "all"])
def test_a_locked_view_shows_no_capture_in_any_format(crowded: LiveServer, vintages: str) -> None:
    key = crowded.key("starter")
    rows = same_in_every_form(
        crowded, key, f"/at/2021-03-01/v1/fundamentals/{service_id(ISSUER)}?vintages={vintages}"
    )
    assert {row["observed_at"] for row in rows} == {None}


def same_in_every_form(crowded: LiveServer, key: str, path: str) -> list[dict[str, Any]]:
    """Compare the rows of an answer with those of its other formats, and return them."""
    rows, body = as_json(crowded.get(path, key), OPERATION)
    table = pyarrow.ipc.open_stream(crowded.get(path, key, accept=ARROW).content).read_all()
    assert table.num_rows == body["count"] == len(rows) > 0
    compare(rows, table.to_pylist(), arrow=True)
    assert table.schema.metadata.get(b"edition", b"").decode() == (body["edition"] or "")
    text = crowded.get(path, key, accept="text/csv").text
    header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == table.column_names == list(rows[0])
    compare(rows, [dict(zip(header, line, strict=True)) for line in lines])
    return rows
