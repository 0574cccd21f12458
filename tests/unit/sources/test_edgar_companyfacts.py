"""SEC companyfacts as its publisher ships it."""

import json
import zipfile
from pathlib import Path
from unittest import mock

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.records import EntityRecord, Fact, Record, Rejected, Skipped
from tests.every import every
from tests.unit.sources.conftest import Read, Written

ROW = (
    '{"start":"2023-01-01","end":"2023-12-31","val":%s,'
    '"accn":"0000000001-24-000001","fy":2023,"fp":"FY","form":"10-K","filed":"2024-02-01"}'
)
SUBJECT = "registry:US-SEC-CIK:0001045810"


def document(*rows: str, taxonomy: str = "us-gaap", unit: str = "USD", cik: str = "1045810") -> str:
    facts = f'{{"{taxonomy}":{{"Revenues":{{"label":null,"units":{{"{unit}":[{",".join(rows)}]}}}}}}}}'
    return f'{{"cik":{cik},"entityName":"NVIDIA CORP","facts":{facts}}}'


def facts_of(records: list[Record]) -> list[Fact]:
    return [record for record in records if isinstance(record, Fact)]


def rejects_of(records: list[Record]) -> list[Rejected]:
    return [record for record in records if isinstance(record, Rejected)]


@pytest.mark.rule("PER-1", "ADP-2")
def test_a_figure_carries_its_dates_document_and_concept(read: Read, written: Written) -> None:
    entity, fact = read("edgar-companyfacts", written("a.json", document(ROW % "5")))
    assert fact == Fact(
        subject=SUBJECT,
        concept="us-gaap:Revenues",
        unit="USD",
        period_start="2023-01-01",
        period_end="2023-12-31",
        available_at="2024-02-01",
        document="0000000001-24-000001",
        value="5",
        location="us-gaap:Revenues",
    )
    assert isinstance(entity, EntityRecord)
    assert entity.incidental
    assert (entity.subject, entity.effective) == (SUBJECT, "2024-02-01")
    assert entity.profile.legal_name == "NVIDIA CORP"
    assert entity.profile.identifiers == (SUBJECT,)


@every(
    ("written_as", "value"),
    [
        ("9007199254740993", "9007199254740993"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("-1.50", "-1.5"),
        ("1E3", "1000"),
    ],
)
def test_every_digit_is_kept(read: Read, written: Written, written_as: str, value: str) -> None:
    [fact] = facts_of(read("edgar-companyfacts", written("a.json", document(ROW % written_as))))
    assert fact.value == value


@every(
    ("bad", "reason"),
    [
        (ROW % '"abc"', "not a number"),
        (ROW % "true", "not a number"),
        (ROW % "NaN", "not a finite number"),
        (ROW % "1e999", "out of range"),
        ('{"end":"2023-12-31","accn":"a","filed":"2024-02-01"}', "val is missing"),
        ('{"end":5,"val":1,"accn":"a","filed":"2024-02-01"}', "end: expected a date"),
        ('{"end":"2023-02-30","val":1,"accn":"a","filed":"2024-02-01"}', "end: no such day"),
        ('{"val":1,"accn":"a","filed":"2024-02-01"}', "end: expected a date"),
        (
            '{"start":"2024-01-01","end":"2023-12-31","val":1,"accn":"a","filed":"2024-02-01"}',
            "start is after",
        ),
        ('{"start":7,"end":"2023-12-31","val":1,"accn":"a","filed":"2024-02-01"}', "start: expected a date"),
        ('{"end":"2023-12-31","val":1,"filed":"2024-02-01"}', "accn is missing"),
        ('{"end":"2023-12-31","val":1,"accn":7,"filed":"2024-02-01"}', "accn is missing"),
        ('{"end":"2023-12-31","val":1,"accn":"a"}', "filed: expected a date"),
        ("17", "val is missing"),
    ],
)
def test_one_malformed_figure_does_not_affect_its_neighbours(
    read: Read, written: Written, bad: str, reason: str
) -> None:
    records = read(
        "edgar-companyfacts", written("a.json", document(ROW % "1", bad, ROW % "9007199254740993"))
    )
    assert [fact.value for fact in facts_of(records)] == ["1", "9007199254740993"]
    [rejected] = rejects_of(records)
    assert rejected.position == "us-gaap/Revenues/USD/1"
    assert reason in rejected.reason


def test_a_malformed_concept_does_not_affect_others(read: Read, written: Written) -> None:
    whole = json.loads(document(ROW % "1"))
    whole["facts"]["us-gaap"] |= {
        "Broken": 5,
        "Assets": {"units": {"USD": "none"}},
        "Liabilities": {"units": []},
    }
    whole["facts"]["srt"] = "gone"
    records = read("edgar-companyfacts", written("a.json", json.dumps(whole)))
    assert len(facts_of(records)) == 1
    assert sorted(r.position for r in rejects_of(records)) == [
        "srt",
        "us-gaap/Assets/USD",
        "us-gaap/Broken",
        "us-gaap/Liabilities",
    ]


def test_a_null_value_is_skipped(read: Read, written: Written) -> None:
    assert Skipped(1) in read("edgar-companyfacts", written("a.json", document(ROW % "null")))


@pytest.mark.rule("ADP-2")
@every(
    ("taxonomy", "unit", "is_read"),
    [
        ("us-gaap", "USD", True),
        ("ifrs-full", "ZAR", True),
        ("srt", "USD", True),
        ("dei", "shares", True),
        ("dei", "USD", False),
        ("ecd", "USD", False),
        ("invest", "USD", False),
    ],
)
def test_only_company_figures_are_read(read: Read, written: Written, taxonomy: str, unit: str, is_read: bool):
    records = read("edgar-companyfacts", written("a.json", document(ROW % "1", taxonomy=taxonomy, unit=unit)))
    assert len(facts_of(records)) == is_read
    assert (Skipped(1) in records) is not is_read


@every("cik", ["1045810", '"1045810"', '"0001045810"'])
def test_the_cik_is_read_as_number_or_text(read: Read, written: Written, cik: str) -> None:
    assert read("edgar-companyfacts", written("a.json", document(cik=cik)))[0].subject == SUBJECT  # type: ignore[union-attr]


@every(
    "content",
    [
        "",
        "<html><body>Request rate exceeded</body></html>",
        "[]",
        "5",
        '{"cik":1,"units":{}}',
        '{"cik":1,"facts":[]}',
        '{"cik":"x","entityName":"X","facts":{}}',
        '{"cik":0,"entityName":"X","facts":{}}',
        document(ROW % "1")[:-20],
        b"\xff\xfe" + document(ROW % "1").encode("utf-16-le"),
        "[" * 100_000,
    ],
    ids=[
        "empty",
        "html",
        "list",
        "number",
        "frames",
        "no facts",
        "bad cik",
        "no cik",
        "cut off",
        "utf-16",
        "deep",
    ],
)
def test_a_file_of_another_format_is_refused_by_name(
    read: Read, written: Written, content: str | bytes
) -> None:
    with pytest.raises(FormatError, match=r"^a\.json: expected SEC companyfacts JSON with cik"):
        read("edgar-companyfacts", written("a.json", content))


def test_a_zip_is_read_member_by_member(read: Read, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "companyfacts.zip", "w") as archive:
        archive.writestr("CIK0000000001.json", document(ROW % "1", ROW % '"x"', cik="1"))
        archive.writestr("CIK0000000002.json", document(ROW % "2", cik="2"))
        archive.writestr("CIK0000000003.json", "<html>")
        archive.writestr("readme.txt", "nothing of ours")
    records = read("edgar-companyfacts", tmp_path / "companyfacts.zip")
    assert [fact.value for fact in facts_of(records)] == ["1", "2"]
    assert [rejected.position for rejected in rejects_of(records)] == [
        "CIK0000000001.json/us-gaap/Revenues/USD/1",
        "CIK0000000003.json",
    ]


def test_a_file_is_not_opened_again_for_each_figure(
    read: Read, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written("a.json", document(*(ROW % n for n in range(100))))
    is_zipfile = mock.Mock(wraps=zipfile.is_zipfile)
    monkeypatch.setattr(zipfile, "is_zipfile", is_zipfile)
    assert len(facts_of(read("edgar-companyfacts", path))) == 100
    assert is_zipfile.call_count < 5
