"""Replies of the OpenFIGI API."""

import json
from pathlib import Path

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.records import IdentifierLink, Record, Rejected, Skipped
from tests.every import every
from tests.unit.sources.conftest import Read, Written

IBM = {
    "figi": "BBG000BLNQ16",
    "name": "INTL BUSINESS MACHINES CORP",
    "ticker": "IBM",
    "exchCode": "UN",
    "compositeFIGI": "BBG000BLNNH6",
    "securityType": "Common Stock",
    "marketSector": "Equity",
    "shareClassFIGI": "BBG001S5S399",
    "securityType2": "Common Stock",
    "securityDescription": "IBM",
}
LINKS: list[Record] = [
    IdentifierLink(f"figi:{figi}", "ticker:NYSE:IBM", "0/data/0")
    for figi in ("BBG000BLNQ16", "BBG000BLNNH6", "BBG001S5S399")
]


def mapping(*instruments: object) -> str:
    return json.dumps([{"data": list(instruments)}])


@pytest.mark.rule("ADP-11")
def test_each_figi_of_a_listed_share_is_linked_to_its_ticker(read: Read, written: Written) -> None:
    assert read("openfigi", written("a.json", mapping(IBM))) == LINKS


def test_a_search_or_filter_reply_is_one_reply(read: Read, written: Written) -> None:
    reply = json.dumps({"data": [IBM], "total": 1, "next": "QW9"})
    at_top = [link._replace(location="data/0") for link in LINKS if isinstance(link, IdentifierLink)]
    assert read("openfigi", written("a.json", reply)) == at_top


@every(
    "changes",
    [{"compositeFIGI": "BBG000BLNQ16", "shareClassFIGI": None}, {"compositeFIGI": "", "shareClassFIGI": ""}],
)
def test_a_figi_that_is_its_own_composite_is_linked_once(
    read: Read, written: Written, changes: dict[str, object]
) -> None:
    assert read("openfigi", written("a.json", mapping(IBM | changes))) == LINKS[:1]


@every(
    ("changes", "subject"),
    [
        ({"exchCode": "SJ", "ticker": "NPN"}, "ticker:JSE:NPN"),
        ({"exchCode": "UN", "ticker": "BRK/B"}, "ticker:NYSE:BRK.B"),
        ({"exchCode": "LN", "ticker": "BP/"}, "ticker:LSE:BP."),
        ({"exchCode": "IS", "ticker": "m&m"}, "ticker:NSE:M&M"),
        ({"exchCode": "KN", "ticker": " SCOM "}, "ticker:NSE-KE:SCOM"),
        ({"securityType": "ADR", "securityType2": "Depositary Receipt"}, "ticker:NYSE:IBM"),
        ({"securityType": "REIT", "securityType2": None}, "ticker:NYSE:IBM"),
    ],
)
def test_the_ticker_is_written_as_people_write_it(
    read: Read, written: Written, changes: dict[str, object], subject: str
) -> None:
    records = read("openfigi", written("a.json", mapping(IBM | changes)))
    assert [record.subject for record in records if isinstance(record, IdentifierLink)] == [subject] * 3


@every(
    "changes",
    [
        {"securityType": "Equity Option", "securityType2": "Option"},
        {"securityType": "Equity WRT", "securityType2": "Warrant"},
        {"securityType": "ETP", "securityType2": "Mutual Fund"},
        {"securityType": None, "securityType2": None},
        {"marketSector": "Corp"},
        {"marketSector": None},
        {"exchCode": "US"},
        {"exchCode": "B3"},
        {"exchCode": None},
    ],
)
def test_what_is_no_share_where_it_is_listed_is_skipped(
    read: Read, written: Written, changes: dict[str, object]
) -> None:
    assert read("openfigi", written("a.json", mapping(IBM | changes))) == [Skipped(1)]


def test_trading_on_the_nyse_is_no_listing_for_a_share_of_the_nasdaq(read: Read, written: Written) -> None:
    nasdaq = IBM | {"exchCode": "UW", "figi": "BBG000BLNR78"}
    records = read("openfigi", written("a.json", mapping(IBM, nasdaq, IBM | {"compositeFIGI": None})))
    assert records[0] == Skipped(1)
    assert [record.subject for record in records if isinstance(record, IdentifierLink)] == [
        *["ticker:NASDAQ:IBM"] * 3,
        *["ticker:NYSE:IBM"] * 2,
    ]


@every(
    ("changes", "reason"),
    [
        ({"figi": "BBG000BLNQ17"}, "not a valid FIGI"),
        ({"compositeFIGI": "BBG000BLNNH"}, "not a valid FIGI"),
        ({"shareClassFIGI": "BSG001S5S399"}, "not a valid FIGI"),
    ],
)
def test_a_bad_figi_is_rejected_and_costs_no_other(
    read: Read, written: Written, changes: dict[str, object], reason: str
) -> None:
    records = read("openfigi", written("a.json", mapping(IBM | changes)))
    [rejected] = [record for record in records if isinstance(record, Rejected)]
    assert rejected.position == "0/data/0"
    assert reason in rejected.reason
    assert len(records) == 3


@every(
    ("instrument", "reason"),
    [
        ("x", "malformed instrument"),
        (IBM | {"ticker": None}, "a ticker of 1 to 64"),
        (IBM | {"ticker": ":"}, "a ticker of 1 to 64"),
        (IBM | {"figi": None, "compositeFIGI": None, "shareClassFIGI": None}, "no FIGI is given"),
    ],
)
def test_a_malformed_instrument_is_rejected_and_costs_no_other(
    read: Read, written: Written, instrument: object, reason: str
) -> None:
    records = read("openfigi", written("a.json", mapping(IBM, instrument)))
    assert records[:-1] == LINKS
    [rejected] = records[3:]
    assert isinstance(rejected, Rejected)
    assert rejected.position == "0/data/1"
    assert reason in rejected.reason


def test_a_job_without_an_answer_is_rejected_in_the_words_of_the_reply(read: Read, written: Written) -> None:
    jobs = [
        {"error": "Invalid idValue format."},
        {"warning": "No identifier\nfound."},
        {"data": [IBM]},
        {"data": "x"},
        7,
    ]
    records = read("openfigi", written("a.json", json.dumps(jobs)))
    assert [record for record in records if isinstance(record, Rejected)] == [
        Rejected("0/error", "nothing was mapped: Invalid idValue format."),
        Rejected("1/warning", "nothing was mapped: No identifier found."),
        Rejected("3", "malformed reply"),
        Rejected("4", "malformed reply"),
    ]
    assert len([record for record in records if isinstance(record, IdentifierLink)]) == 3


@every(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("LEI,ISIN", "not JSON"),
        ("7", "other JSON"),
        ("{}", "other JSON"),
        ("[1, 2]", "other JSON"),
        ('{"meta": {}, "data": []}', "other JSON"),
        ('{"data": [{"type": "isins"}]}', "other JSON"),
    ],
)
def test_another_file_is_refused(read: Read, written: Written, content: str, reason: str) -> None:
    with pytest.raises(FormatError, match=rf"^a\.json: expected a reply of the OpenFIGI API .*{reason}"):
        read("openfigi", written("a.json", content))


def test_real_replies_are_read(read: Read, shared_data: Path) -> None:
    folder = shared_data / "identifiers" / "openfigi"
    records = {path.stem: read("openfigi", path) for path in sorted(folder.rglob("*.json"))}
    links = {record for found in records.values() for record in found if isinstance(record, IdentifierLink)}
    assert {link.subject for link in links} == {"ticker:NYSE:IBM", "ticker:NASDAQ:AAPL"}
    assert {link.identifier for link in links if link.subject == "ticker:NYSE:IBM"} == {
        "figi:BBG000BLNQ16",
        "figi:BBG000BLNNH6",
        "figi:BBG001S5S399",
    }
    assert records["invalid_identifier"] == [
        Rejected("0/error", "nothing was mapped: Invalid idValue format.")
    ]
    assert records["no_data"] == []
    assert records["option_example"] == [Skipped(1)] * 17
    assert records["query_example"] == records["simple_example"] == [Skipped(1)] * 100
