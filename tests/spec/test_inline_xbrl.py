"""Inline XBRL reports become facts, offline, whatever a report tries to do."""

import re
import socket
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.spec import inline_report
from tests.spec.ingesting import source_entry
from tests.spec.inline_report import BODY, LEI, report, report_package, taxonomy
from tests.spec.market import Desk, PaidCaller, counts
from tests.spec.register import COLUMNS, record

pytest.importorskip("arelle", reason="inline XBRL is an extra, which is not installed here")

SOURCES = source_entry("reports", "ixbrl", license_class="statutory-filing")
NAME = "2024-03-28-annual.zip"


def desk_at(folder: Path, *, taxonomies: bool = True, **settings: str) -> Desk:
    desk = Desk(folder, SOURCES, **settings)
    if taxonomies:
        (desk.home / "taxonomies").mkdir()
        (desk.home / "taxonomies" / "ifrs.zip").write_bytes(taxonomy())
    return desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = desk_at(tmp_path_factory.mktemp("reports"))
    counted = desk.ingest("reports", NAME, report_package())
    # One of the nine facts has a dimension, one is text and one is nil.
    assert (counted["appended"], counted["skipped"], counted["rejected"]) == (6, 3, 0)
    assert desk.ingest("reports", NAME, report_package())["appended"] == 0
    return desk


@pytest.fixture(scope="module")
def caller(desk: Desk) -> Iterator[PaidCaller]:
    desk.ingest(
        "gleif-lei",
        "lei.csv",
        f"{COLUMNS}\n{record(LEI, 'Riftline Sample Telecom PLC', 'KE', 'RA990200:C.99001')}\n",
    )
    with desk.publish_and_serve() as caller:
        yield caller


@pytest.mark.rule("XBRL-1", "XBRL-2")
def test_a_report_becomes_facts_with_every_digit_and_the_issuers_own_concepts(caller: PaidCaller) -> None:
    (issuer,) = caller.get("/v1/crosswalk", id_type="lei", id_value=LEI)["data"]
    rows = caller.get(f"/v1/fundamentals/{issuer['service_id']}")["data"]
    figures = {
        row["concept"]: (
            row["line_item"],
            row["value_reported"],
            row["unit"],
            row["period_start"],
            row["period_end"],
        )
        for row in rows
    }
    year = ("2023-01-01", "2023-12-31")
    assert figures == {
        "ifrs-full:Revenue": ("revenue", Decimal("1234500000"), "ZAR", *year),
        "ifrs-full:ProfitLoss": ("profit", Decimal(-17000000), "ZAR", *year),
        "ifrs-full:Assets": ("assets", Decimal(9007199254740993), "ZAR", None, "2023-12-31"),
        "ifrs-full:BasicEarningsLossPerShare": ("eps_basic", Decimal("-0.42"), "ZAR/shares", *year),
        "own:GoldOuncesRefined": ("gold_ounces_refined", Decimal(12345), "pure", *year),
        "own:RoyaltiesOnOunces": ("royalties_on_ounces", Decimal(77), "ZAR", *year),
    }
    for row in rows:
        assert row["available_at"] == "2024-03-28"
        assert row["license_class"] == "statutory-filing"
        assert re.fullmatch(rf"reports:{NAME}/report\.xhtml#f\d", row["source_ref"])
    day_before = caller.get(f"/v1/fundamentals/{issuer['service_id']}", as_of="2024-03-27")
    assert day_before["count"] == 0


@pytest.mark.rule("XBRL-3")
def test_the_more_precise_of_two_figures_wins_and_a_contradiction_is_rejected(tmp_path: Path) -> None:
    desk = desk_at(tmp_path)
    again = (
        '<p><ix:nonFraction id="g{0}" name="ifrs-full:{1}" contextRef="year" unitRef="zar" decimals="{2}" '
        'format="ixt:num-dot-decimal">{3}</ix:nonFraction></p>'
    )
    more = again.format(1, "Revenue", 0, "1,234,499,999") + again.format(2, "ProfitLoss", -6, "18,000,000")
    counted = desk.ingest("reports", "report.zip", report_package(report(BODY + more)))
    assert (counted["appended"], counted["rejected"]) == (6, 1)
    (rejected,) = desk.rejects()
    assert rejected["position"].endswith("#g2")
    assert rejected["reason"] == "another figure than f3"


@pytest.mark.deep
@pytest.mark.rule("XBRL-4")
def test_a_missing_taxonomy_is_named_and_nothing_is_stored(tmp_path: Path) -> None:
    desk = desk_at(tmp_path, taxonomies=False)
    failed = desk.command("ingest", "reports", desk.write("report.zip", report_package()))
    assert failed.returncode != 0
    assert "HOME/taxonomies" in failed.stderr
    assert f"{inline_report.IFRS}/full_ifrs_entry_point.xsd" in failed.stderr


@pytest.mark.rule("XBRL-4")
def test_reading_a_report_opens_no_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        connected = threading.Event()
        stop = threading.Event()

        def listen() -> None:
            while not stop.is_set():
                try:
                    listener.accept()[0].close()
                except TimeoutError:
                    continue
                connected.set()

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/own-2023.xsd"
            desk = desk_at(tmp_path)
            failed = desk.command(
                "ingest", "reports", desk.write("report.zip", report_package(report(schema=address)))
            )
        finally:
            stop.set()
            thread.join()
    assert failed.returncode != 0
    assert address in failed.stderr
    assert not connected.is_set()


LAUGHS = '<!DOCTYPE html [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE html [<!ENTITY file SYSTEM "file:///etc/hostname">]>'


@pytest.mark.rule("XBRL-5")
@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (report(before=LAUGHS), "has its own declarations"),
        (report(before=OUTSIDE), "has its own declarations"),
        (report("<div>" * 5000 + "</div>" * 5000), "nested more than 200 deep"),
        (report()[:-20], "not well-formed"),
        ("<html xmlns='http://www.w3.org/1999/xhtml'><body/></html>", "expected an inline XBRL report"),
        ("not XML", "not well-formed"),
    ],
    ids=["laughs", "outside", "deep", "cut", "plain", "text"],
)
def test_an_invalid_or_unsafe_report_is_refused_before_it_is_opened(
    tmp_path: Path, document: str, reason: str
) -> None:
    desk = desk_at(tmp_path)
    for path in (desk.write("report.xhtml", document), desk.write("report.zip", report_package(document))):
        failed = desk.command("ingest", "reports", path)
        assert failed.returncode != 0
        assert reason in failed.stderr


@pytest.mark.rule("XBRL-5")
@pytest.mark.limit("SANKOFA_INGEST_XBRL_MEMORY_BYTES", "SANKOFA_INGEST_XBRL_SECONDS")
def test_time_and_memory_are_bounded(tmp_path: Path) -> None:
    # out of memory, an import may loop until its processor time ends
    desk = desk_at(tmp_path, ingest_xbrl_memory_bytes=str(40 << 20), ingest_xbrl_seconds="60")
    failed = desk.command("ingest", "reports", desk.write("report.zip", report_package()))
    assert failed.returncode != 0
    assert "INGEST_XBRL_MEMORY_BYTES" in failed.stderr or "not read within 120 s" in failed.stderr
    desk = desk_at(tmp_path / "time", ingest_xbrl_seconds="1")
    figures = "".join(
        f'<ix:nonFraction id="f{number}" name="ifrs-full:Revenue" contextRef="year" unitRef="zar" '
        f'decimals="0">{number}</ix:nonFraction>'
        for number in range(20_000)
    )
    long = report_package(report(f"<p>{figures}</p>"))
    failed = desk.command("ingest", "reports", desk.write("report.zip", long))
    assert failed.returncode != 0
    assert "1 s of processor time" in failed.stderr or "not read within 2 s" in failed.stderr


@pytest.mark.deep
@pytest.mark.rule("XBRL-2")
def test_the_issuer_is_identified_by_lei_sec_or_south_african_number_only(tmp_path: Path) -> None:
    desk = desk_at(tmp_path)
    for scheme, number, appended in (
        ("http://www.sec.gov/CIK", "0001172724", 6),
        ("http://www.cipc.co.za", "2001/012345/07", 6),
        ("http://example.org/own", "42", 0),
    ):
        package = report_package(report(scheme=scheme, identifier=number))
        done = desk.command("ingest", "reports", desk.write(f"{number.replace('/', '-')}.zip", package))
        counted = counts(done.stdout)
        assert counted["appended"] == appended, scheme
        assert bool(counted["rejected"]) is (not appended)
        assert done.returncode == (0 if appended else 1)
    assert {row["reason"] for row in desk.rejects()} == {
        "identifier: unknown scheme (known: LEI, SEC CIK, CIPC)"
    }


def test_the_vault_stores_no_report_unencrypted(desk: Desk) -> None:
    """Reports name directors and auditors."""
    stored = [path for path in (desk.home / "vault").rglob("*") if path.is_file()]
    assert stored
    assert not any(b"Annual report, written for a test" in path.read_bytes() for path in stored)
