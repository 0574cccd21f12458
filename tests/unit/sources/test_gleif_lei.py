"""GLEIF records, golden copy and API."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.errors import FormatError
from sankofa.model.records import EntityRecord, IdentifierLink, Record, Rejected, Withheld
from tests.every import every
from tests.unit.sources.conftest import Read, Written

LEI = "2138004VFYZFYLELHT92"
SUCCESSOR = "21380068P1DRHMJ8KU70"
ARABIC = "شركة \u200fالنيل"  # noqa: RUF001 - with a right-to-left mark, as such names are written
RECORD = {
    "LEI": LEI,
    "Entity.LegalName": "BRAZIL SHIPPING I LIMITED",
    "Entity.LegalName.xmllang": "en",
    "Entity.OtherEntityNames.OtherEntityName.1": "BG OIL SERVICES LIMITED",
    "Entity.OtherEntityNames.OtherEntityName.1.type": "PREVIOUS_LEGAL_NAME",
    "Entity.OtherEntityNames.OtherEntityName.2": "",
    "Entity.TransliteratedOtherEntityNames.TransliteratedOtherEntityName.1": "BRASIL SHIPPING",
    "Entity.LegalAddress.Country": "GB",
    "Entity.HeadquartersAddress.Country": "NL",
    "Entity.RegistrationAuthority.RegistrationAuthorityID": "RA000585",
    "Entity.RegistrationAuthority.RegistrationAuthorityEntityID": "07211438",
    "Entity.LegalJurisdiction": "GB",
    "Entity.EntityCategory": "GENERAL",
    "Entity.LegalForm.EntityLegalFormCode": "H0PO",
    "Entity.LegalForm.OtherLegalForm": "",
    "Entity.EntityStatus": "ACTIVE",
    "Entity.SuccessorEntity.1.SuccessorLEI": SUCCESSOR,
    "Registration.LastUpdateDate": "2025-04-01T15:41:30Z",
    "Registration.RegistrationStatus": "ISSUED",
}


def golden_copy(*changes: dict[str, str], columns: list[str] | None = None) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns or list(RECORD), quoting=csv.QUOTE_ALL, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(RECORD | change for change in changes)
    return text.getvalue()


def api_record(**changes: object) -> dict[str, Any]:
    entity = {
        "legalName": {"name": "BRAZIL SHIPPING I LIMITED"},
        "otherNames": [{"name": "BG OIL SERVICES LIMITED", "type": "PREVIOUS_LEGAL_NAME"}],
        "transliteratedOtherNames": [{"name": "BRASIL SHIPPING"}],
        "legalAddress": {"country": "GB"},
        "registeredAt": {"id": "RA000585", "other": None},
        "registeredAs": "07211438",
        "jurisdiction": "GB",
        "category": "GENERAL",
        "legalForm": {"id": "H0PO", "other": None},
        "status": "ACTIVE",
        "successorEntity": {"lei": SUCCESSOR, "name": None},
    }
    registration = {"lastUpdateDate": "2025-04-01T15:41:30Z", "status": "ISSUED"}
    attributes = {"lei": LEI, "entity": entity | changes, "registration": registration}
    return {"type": "lei-records", "id": LEI, "attributes": attributes}


def only(records: list[Record]) -> EntityRecord:
    [record] = records
    assert isinstance(record, EntityRecord)
    return record


def test_a_record_of_the_golden_copy(read: Read, written: Written) -> None:
    record = only(read("gleif-lei", written("a.csv", golden_copy({}))))
    profile = record.profile
    assert (record.subject, record.effective, record.incidental) == (
        f"lei:{LEI}",
        "2025-04-01T15:41:30Z",
        False,
    )
    assert profile.legal_name == "BRAZIL SHIPPING I LIMITED"
    assert profile.other_names == ("BG OIL SERVICES LIMITED", "BRASIL SHIPPING")
    assert (profile.country, profile.jurisdiction) == ("GB", "GB")
    assert (profile.status, profile.category, profile.legal_form) == ("ISSUED", "GENERAL", "H0PO")
    assert profile.identifiers == (f"lei:{LEI}", "registry:GB-COH:07211438")
    assert profile.successor == f"lei:{SUCCESSOR}"
    assert profile.document == LEI


@pytest.mark.rule("ADP-9")
def test_the_api_says_the_same_as_the_golden_copy(read: Read, written: Written) -> None:
    of_csv = read("gleif-lei", written("a.csv", golden_copy({})))
    assert read("gleif-lei", written("one.json", json.dumps({"data": api_record()}))) == of_csv
    assert read("gleif-lei", written("many.json", json.dumps({"data": [api_record()]}, indent=1))) == of_csv


@pytest.mark.rule("ADP-9")
@every(("lei", "withheld"), [(LEI, (f"lei:{LEI}", "JANE DOE", "GB")), ("2138004VFYZFYLELHT93", ())])
def test_a_sole_proprietor_is_withheld(
    read: Read, written: Written, lei: str, withheld: tuple[str, ...]
) -> None:
    person = {"LEI": lei, "Entity.LegalName": "JANE DOE", "Entity.EntityCategory": "SOLE_PROPRIETOR"}
    assert read("gleif-lei", written("a.csv", golden_copy(person))) == [Withheld("row 2", *withheld)]
    reply = api_record(legalName={"name": "JANE DOE"}, category="SOLE_PROPRIETOR")
    expected = Withheld("data/0", f"lei:{LEI}", "JANE DOE", "GB")
    assert read("gleif-lei", written("a.json", json.dumps({"data": [reply]}))) == [expected]


@every(
    ("change", "reason"),
    [
        ({"LEI": "2138004VFYZFYLELHT93"}, "not a valid LEI"),
        ({"LEI": ""}, "not a valid LEI"),
        ({"LEI": "2138004VFYZFYLELHTÉ2"}, "not a valid LEI"),
        ({"Entity.LegalName": " "}, "a name is missing"),
        ({"Entity.LegalName": "A\x00B"}, "a name is missing or not in UTF-8"),
    ],
)
def test_a_record_without_identity_is_rejected(
    read: Read, written: Written, change: dict[str, str], reason: str
) -> None:
    first, rejected, last = read("gleif-lei", written("a.csv", golden_copy({}, change, {})))
    assert isinstance(rejected, Rejected)
    assert first == last
    assert rejected.position == "row 3"
    assert reason in rejected.reason
    assert "BRAZIL" not in rejected.reason


def test_an_lei_written_with_blanks_is_the_same(read: Read, written: Written) -> None:
    record = only(read("gleif-lei", written("a.csv", golden_copy({"LEI": f" {LEI.lower()} "}))))
    assert record.subject == f"lei:{LEI}"


@every(
    ("authority", "number"),
    [
        ("RA999999", "07211438"),
        ("RA888888", "07211438"),
        ("", "07211438"),
        ("RA000585", ""),
        ("RA000585", "N/A"),
        ("RA000585", "000"),
    ],
)
def test_a_placeholder_is_not_a_registry_number(read: Read, written: Written, authority: str, number: str):
    change = {
        "Entity.RegistrationAuthority.RegistrationAuthorityID": authority,
        "Entity.RegistrationAuthority.RegistrationAuthorityEntityID": number,
    }
    assert only(read("gleif-lei", written("a.csv", golden_copy(change)))).profile.identifiers == (
        f"lei:{LEI}",
    )


@every(
    ("column", "value", "reason"),
    [
        ("Entity.SuccessorEntity.1.SuccessorLEI", "21380068P1DRHMJ8KU71", "successor: not a valid LEI"),
        ("Registration.LastUpdateDate", "yesterday", "effective: expected an instant"),
        ("Entity.RegistrationAuthority.RegistrationAuthorityEntityID", "1" * 65, "registered: "),
    ],
)
def test_a_bad_field_is_named_and_other_fields_are_read(
    read: Read, written: Written, column: str, value: str, reason: str
) -> None:
    rejected, record = read("gleif-lei", written("a.csv", golden_copy({column: value})))
    assert isinstance(rejected, Rejected)
    assert reason in rejected.reason
    assert isinstance(record, EntityRecord)
    fields = (record.effective, record.profile.successor, record.profile.identifiers[-1])
    assert sum(map(bool, fields)) >= 2
    assert record.profile.legal_name == "BRAZIL SHIPPING I LIMITED"


@every(
    ("address", "jurisdiction", "country"),
    [("ZA", "US-DE", "ZA"), ("", "US-DE", "US"), ("??", "KE", "KE"), ("", "", None)],
)
def test_the_country_is_that_of_the_legal_address(
    read: Read, written: Written, address: str, jurisdiction: str, country: str | None
) -> None:
    change = {"Entity.LegalAddress.Country": address, "Entity.LegalJurisdiction": jurisdiction}
    assert only(read("gleif-lei", written("a.csv", golden_copy(change)))).profile.country == country


@every(
    ("code", "words", "form"),
    [
        ("H0PO", "", "H0PO"),
        ("8888", "Sociedad Anónima", "Sociedad Anónima"),
        ("9999", "", None),
        ("", "", None),
    ],
)
def test_the_legal_form_is_its_code_or_in_words(
    read: Read, written: Written, code: str, words: str, form: str | None
) -> None:
    change = {"Entity.LegalForm.EntityLegalFormCode": code, "Entity.LegalForm.OtherLegalForm": words}
    assert only(read("gleif-lei", written("a.csv", golden_copy(change)))).profile.legal_form == form


def test_instants_are_in_utc(read: Read, written: Written) -> None:
    change = {"Registration.LastUpdateDate": "2024-02-09T01:31:00.123+02:00"}
    assert only(read("gleif-lei", written("a.csv", golden_copy(change)))).effective == "2024-02-08T23:31:00Z"


def test_an_older_golden_copy_names_one_successor(read: Read, written: Written) -> None:
    content = golden_copy({}).replace("SuccessorEntity.1.", "SuccessorEntity.")
    assert only(read("gleif-lei", written("a.csv", content))).profile.successor == f"lei:{SUCCESSOR}"


def test_a_name_over_two_lines_and_an_arabic_one_are_kept(read: Read, written: Written) -> None:
    names = ["ACME\nHOLDINGS", ARABIC]
    first, second = read(
        "gleif-lei", written("a.csv", golden_copy(*({"Entity.LegalName": n} for n in names)))
    )
    assert isinstance(first, EntityRecord)
    assert isinstance(second, EntityRecord)
    assert (first.profile.legal_name, second.profile.legal_name) == ("ACME HOLDINGS", ARABIC)


def test_ragged_rows_and_bytes_not_in_utf_8_reject_only_their_record(read: Read, written: Written) -> None:
    lines = golden_copy({}, {"Entity.LegalName": "CAFÉ"}, {}).encode().splitlines(keepends=True)
    content = b"".join([lines[0], b'"short"\r\n', lines[2].replace("É".encode(), b"\xc9"), lines[3]])
    records = read("gleif-lei", written("a.csv", content))
    assert [type(record) for record in records] == [Rejected, Rejected, EntityRecord]


@every(
    "content",
    [
        "",
        "<html>",
        "LEI,ISIN\n",
        golden_copy({}, columns=["LEI", "Entity.LegalName"]),
        "[]",
        "{}",
        '{"data": []}',
        '{"data": [{"type": "isins", "id": "x"}]}',
        '{"errors": [{"status": "404", "title": "Not Found"}]}',
        '{"data": [',
    ],
)
def test_a_file_of_another_format_is_refused_by_name(read: Read, written: Written, content: str) -> None:
    with pytest.raises(FormatError, match=r"^a\.txt: expected a GLEIF golden copy CSV or a GLEIF API reply"):
        read("gleif-lei", written("a.txt", content))


@every("record", [5, {"type": "lei-records"}, {"type": "lei-records", "attributes": 5}])
def test_a_malformed_record_of_a_reply_does_not_affect_others(
    read: Read, written: Written, record: object
) -> None:
    reply = json.dumps({"data": [record, api_record()]})
    rejected, other = read("gleif-lei", written("a.json", reply))
    assert rejected == Rejected("data/0", "malformed record")
    assert isinstance(other, EntityRecord)


def test_the_real_names_hold_one_bad_checksum_and_name_no_sole_proprietor(read: Read, shared_data: Path):
    path = shared_data / "identifiers" / "gleif_names.csv"
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    people = {row["LEI"] for row in rows if row["Entity.EntityCategory"] == "SOLE_PROPRIETOR"}
    records = read("gleif-lei", path)
    entities = [record for record in records if isinstance(record, EntityRecord)]
    assert [record.position for record in records if isinstance(record, Rejected)] == ["row 5418"]
    assert len([record for record in records if isinstance(record, Withheld)]) == len(people) == 449
    assert len(entities) == len(rows) - len(people) - 1
    assert not people & {record.subject.removeprefix("lei:") for record in entities}


ISSUER_LEI = "21380068P1DRHMJ8KU70"
ISIN = "ZAE000015228"
LINK = IdentifierLink(f"isin:{ISIN}", f"lei:{ISSUER_LEI}", "row 2")


def reply(*attributes: object) -> str:
    data = [{"type": "isins", "id": "1", "attributes": each} for each in attributes]
    return json.dumps({"meta": {"goldenCopy": {}}, "data": data})


@pytest.mark.rule("ADP-10")
@every(
    "content",
    [
        f"LEI,ISIN\n{ISSUER_LEI},{ISIN}\n",
        f'"LEI","ISIN"\r\n"{ISSUER_LEI}","{ISIN}"\r\n',
        f"\ufefflei,isin\n{ISSUER_LEI},{ISIN}",
        f"ISIN,LEI\n{ISIN},{ISSUER_LEI}\n\n",
        f"LEI,ISIN\n{ISSUER_LEI.lower()},{ISIN[:2]} {ISIN[2:]}\n",
    ],
)
def test_quotes_order_case_and_blanks_make_no_difference(read: Read, written: Written, content: str) -> None:
    assert read("gleif-isin", written("a.csv", content)) == [LINK]


@every(
    ("line", "reason"),
    [
        (f"{ISSUER_LEI},ZAE000015229", "not a valid ISIN"),
        (f"{ISSUER_LEI},ZAE00001522", "not a valid ISIN"),
        (f"{ISSUER_LEI},QQE000015228", "not a valid ISIN"),
        (f"{ISSUER_LEI},", "not a valid ISIN"),
        (f"{ISSUER_LEI[:-1]}1,{ISIN}", "not a valid LEI"),
        (f"{ISSUER_LEI}", "1 fields where the header has 2"),
        (f'{ISSUER_LEI},"{ISIN},{ISIN}', "3 fields where the header has 2"),
        ("é,è", "not a valid LEI"),
    ],
)
def test_a_bad_row_is_rejected_and_others_are_read(read: Read, written: Written, line: str, reason: str):
    content = f"LEI,ISIN\n{ISSUER_LEI},{ISIN}\n{line}\n{ISSUER_LEI},{ISIN}\n".encode("latin-1")
    first, rejected, last = read("gleif-isin", written("a.csv", content))
    assert (first, last) == (LINK, LINK._replace(location="row 4"))
    assert isinstance(rejected, Rejected)
    assert rejected.position == "row 3"
    assert reason in rejected.reason


def test_a_reply_of_the_api_is_read(read: Read, written: Written) -> None:
    records = read(
        "gleif-isin",
        written(
            "a.json",
            reply({"lei": ISSUER_LEI, "isin": ISIN}, {"lei": ISSUER_LEI, "isin": "ZAE000015229"}, {}, None),
        ),
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
def test_a_file_of_another_format_is_refused(
    read: Read, written: Written, name: str, content: str, reason: str
) -> None:
    with pytest.raises(FormatError, match=rf"^{name}: expected a LEI-ISIN relationship CSV.*; {reason}"):
        read("gleif-isin", written(name, content))
