"""Which ISINs an LEI has issued."""

import json
from pathlib import Path

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.records import IdentifierLink, Rejected
from tests.every import every
from tests.unit.sources.conftest import Read, Written

LEI = "21380068P1DRHMJ8KU70"
OTHER = "529900T8BM49AURSDO55"
ISIN = "ZAE000015228"
LINK = IdentifierLink(f"isin:{ISIN}", f"lei:{LEI}", "row 2")


def reply(*attributes: object) -> str:
    data = [{"type": "isins", "id": "1", "attributes": each} for each in attributes]
    return json.dumps({"meta": {"goldenCopy": {}}, "data": data})


@pytest.mark.rule("ADP-10")
@every(
    "content",
    [
        f"LEI,ISIN\n{LEI},{ISIN}\n",
        f'"LEI","ISIN"\r\n"{LEI}","{ISIN}"\r\n',
        f"\ufefflei,isin\n{LEI},{ISIN}",
        f"ISIN,LEI\n{ISIN},{LEI}\n\n",
        f"LEI,ISIN\n{LEI.lower()},{ISIN[:2]} {ISIN[2:]}\n",
    ],
)
def test_quotes_order_case_and_blanks_make_no_difference(read: Read, written: Written, content: str) -> None:
    assert read("gleif-isin", written("a.csv", content)) == [LINK]


def test_an_isin_claimed_by_two_leis_is_two_links(read: Read, written: Written) -> None:
    content = f"LEI,ISIN\n{LEI},{ISIN}\n{OTHER},{ISIN}\n"
    assert read("gleif-isin", written("a.csv", content)) == [
        LINK,
        IdentifierLink(f"isin:{ISIN}", f"lei:{OTHER}", "row 3"),
    ]


@every(
    ("line", "reason"),
    [
        (f"{LEI},ZAE000015229", "not a valid ISIN"),
        (f"{LEI},ZAE00001522", "not a valid ISIN"),
        (f"{LEI},QQE000015228", "not a valid ISIN"),
        (f"{LEI},", "not a valid ISIN"),
        (f"{LEI[:-1]}1,{ISIN}", "not a valid LEI"),
        (f"{LEI}", "1 fields where the header has 2"),
        (f'{LEI},"{ISIN},{ISIN}', "3 fields where the header has 2"),
        ("é,è", "not a valid LEI"),
    ],
)
def test_a_bad_row_is_rejected_and_costs_no_other(read: Read, written: Written, line: str, reason: str):
    content = f"LEI,ISIN\n{LEI},{ISIN}\n{line}\n{LEI},{ISIN}\n".encode("latin-1")
    first, rejected, last = read("gleif-isin", written("a.csv", content))
    assert (first, last) == (LINK, LINK._replace(location="row 4"))
    assert isinstance(rejected, Rejected)
    assert rejected.position == "row 3"
    assert reason in rejected.reason


def test_a_bad_lei_is_rejected_on_each_of_its_rows(read: Read, written: Written) -> None:
    bad = f"{LEI[:-1]}1"
    records = read("gleif-isin", written("a.csv", f"LEI,ISIN\n{LEI},{ISIN}\n{bad},{ISIN}\n{bad},{ISIN}\n"))
    assert [type(record) for record in records] == [IdentifierLink, Rejected, Rejected]


def test_a_reply_of_the_api_is_read(read: Read, written: Written) -> None:
    records = read(
        "gleif-isin",
        written("a.json", reply({"lei": LEI, "isin": ISIN}, {"lei": LEI, "isin": "ZAE000015229"}, {}, None)),
    )
    assert records[0] == LINK._replace(location="data/0")
    assert [record.position for record in records if isinstance(record, Rejected)] == [
        "data/1",
        "data/2",
        "data/3",
    ]


@every(
    ("name", "content", "reason"),
    [
        ("a.csv", "", "found no columns LEI and ISIN"),
        ("a.csv", "LEI,Entity.LegalName\n", "found no columns LEI and ISIN"),
        ("a.csv", "LEI,ISIN,ISIN\n", "found no columns LEI and ISIN"),
        ("a.json", '{"data": [', "this is not JSON"),
        ("a.json", '{"data": []}', "this is other JSON"),
        ("a.json", '{"data": [{"type": "lei-records"}]}', "this is other JSON"),
        ("a.json", '[{"data": []}]', "this is other JSON"),
        ("a.json", '{"errors": [{"status": "404"}]}', "this is an error reply"),
    ],
)
def test_another_file_is_refused(read: Read, written: Written, name: str, content: str, reason: str) -> None:
    with pytest.raises(FormatError, match=rf"^{name}: expected a LEI-ISIN relationship CSV.*; {reason}"):
        read("gleif-isin", written(name, content))


def test_real_replies_of_the_api_are_read(read: Read, shared_data: Path) -> None:
    replies = sorted((shared_data / "identifiers" / "gleif-api" / "isins").glob("*.json"))
    records = [record for path in replies for record in read("gleif-isin", path)]
    assert [type(record) for record in records] == [IdentifierLink] * 20
    assert IdentifierLink("isin:DE0006969603", "lei:529900GRZ2BQY5ZM9N49", "data/2") in records
