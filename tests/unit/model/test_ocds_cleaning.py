"""Cleaning of one release: what stays, what becomes null, what is reported."""

import json
import re
import tomllib
from decimal import Decimal
from importlib import resources
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.ocds.fields import moment
from sankofa.model.ocds.release import CleanRelease, Gate, Unusable, clean, clean_again
from tests.every import every

KEYS = {"ocid": "ocds-1", "id": "1", "date": "2025-01-01T00:00:00Z"}
Json = dict[str, Any]


@Gate
def gate(name: str, identifiers: object, country: str) -> str | None:
    """A gate that accepts names with Ltd."""
    return "legal_form: Ltd" if name.endswith("Ltd") else None


def cleaned(**fields: Any) -> CleanRelease:
    return clean({**KEYS, **fields}, "ZA", gate, str.upper)


def body(release: CleanRelease) -> Json:
    content: Json = json.loads(release.body, parse_float=Decimal)
    return {key: value for key, value in content.items() if key not in KEYS}


@every(
    ("text", "instant"),
    [
        ("2025-01-02", "2025-01-02T00:00:00Z"),
        ("2025-01-02T03:04:05Z", "2025-01-02T03:04:05Z"),
        ("2025-01-02T03:04:05", "2025-01-02T03:04:05Z"),
        ("2025-01-02T03:04", "2025-01-02T03:04:00Z"),
        ("2025-01-02T00:30:00+02:00", "2025-01-01T22:30:00Z"),
        ("2025-01-02T03:04:05-0530", "2025-01-02T08:34:05Z"),
        ("2025-01-02 03:04:05", "2025-01-02T03:04:05Z"),
        ("2025-01-02T03:04:05.5Z", "2025-01-02T03:04:05.500000Z"),
        (" 2025-01-02 ", "2025-01-02T00:00:00Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-23:00", None),
        ("2025-02-30", None),
        ("2025-01-01T25:00:00Z", None),
        ("01/02/2025", None),
        ("", None),
    ],
)
def test_a_date_is_an_instant_in_utc_or_null(text: str, instant: str | None) -> None:
    assert moment(text) == instant


def test_the_address_of_a_document_is_a_web_address_or_null() -> None:
    addresses = ["https://a.example/b", "HTTP://a.example", "javascript:alert(1)", "WWW.a.example", " "]
    release = cleaned(tender={"documents": [{"id": f"{n}", "url": one} for n, one in enumerate(addresses)]})
    urls = [document["url"] for document in body(release)["tender"]["documents"]]
    assert urls == ["https://a.example/b", "HTTP://a.example", None, None, None]
    assert [field for field, _ in release.faults] == ["tender.documents[2].url", "tender.documents[3].url"]


@given(st.text(max_size=30))
def test_any_text_is_an_instant_or_null(text: str) -> None:
    instant = moment(text)
    assert instant is None or instant.endswith("Z")


@every("field", ["ocid", "id", "date"])
@every("value", [None, "", "  ", [], {}, True, 1.5, "x" * 401, "a\u0000b"])
def test_a_release_without_a_usable_key_is_unusable_and_the_reason_does_not_repeat_it(field: str, value: Any):
    with pytest.raises(Unusable) as failure:
        clean({**KEYS, field: value}, "ZA", gate, str.upper)
    assert str(failure.value) == f"no usable {field}"


def test_a_whole_number_is_a_usable_id() -> None:
    release = clean({**KEYS, "id": 17}, "ZA", gate, str.upper)
    assert (release.release_id, json.loads(release.body)["id"]) == ("17", "17")


def test_unknown_fields_are_removed_at_any_depth() -> None:
    release = cleaned(mood=1, tender={"title": "T", "mood": {"deep": 1}, "items": [{"id": "1", "mood": 2}]})
    assert body(release) == {"tender": {"title": "T", "items": [{"id": "1"}]}}
    assert release.faults == []


def test_a_text_in_another_language_is_kept_but_a_name_is_not() -> None:
    release = cleaned(tender={"title_fr": "Route", "title_pt-BR": "Rua", "title_": "x"})
    assert body(release) == {"tender": {"title_fr": "Route", "title_pt-BR": "Rua"}}
    assert body(cleaned(buyer={"name": "A Ltd", "name_fr": "A"})) == {"buyer": {"name": "A Ltd"}}


@every(
    ("published", "stored"),
    [
        (5, 5),
        (0, None),
        (Decimal("0.00"), None),
        ("0", None),
        (Decimal("1200.50"), Decimal("1200.50")),
        ("1200.50", Decimal("1200.50")),
        (2**70, 2**70),
        (None, None),
        ("", None),
    ],
)
def test_an_amount_keeps_its_digits_and_zero_is_null(published: Any, stored: Any) -> None:
    release = cleaned(
        tender={"value": {"amount": published}}, awards=[{"id": "1", "value": {"amount": published}}]
    )
    assert body(release)["tender"]["value"]["amount"] == stored
    assert body(release)["awards"][0]["value"]["amount"] == stored
    assert release.summary.value_amount == stored
    assert release.faults == []


@every("amount", ["x", True, [], Decimal("NaN"), Decimal("Infinity"), Decimal("1e999999"), "1,5"])
def test_a_number_that_is_not_finite_is_null_and_reported(amount: Any) -> None:
    release = cleaned(tender={"value": {"amount": amount, "currency": "ZAR"}})
    assert release.faults == [("tender.value.amount", "not a finite number")]
    assert body(release)["tender"]["value"] == {"amount": None, "currency": "ZAR"}


@every("currency", ["QQQ", 7, ["ZAR"], {"code": "ZAR"}])
def test_an_unknown_currency_is_null_and_reported(currency: Any) -> None:
    release = cleaned(tender={"value": {"amount": 1, "currency": currency}})
    assert release.faults == [("tender.value.currency", "unknown currency")]
    assert body(release)["tender"]["value"] == {"amount": 1, "currency": None}


def test_a_publisher_with_any_number_of_fields_of_its_own_is_cleaned_the_same() -> None:
    for number in range(10_000):
        assert body(cleaned(tender={f"own{number}": number, "title": "Road"})) == {
            "tender": {"title": "Road"}
        }
    release = cleaned(
        tender={
            "title": "Road",
            "title_qu": "Ñan",
            "contactMail": "ann@example.org",
            "own": "ann@example.org",
        },
        description="ask ann@example.org",
    )
    assert body(release) == {"tender": {"title": "Road", "title_qu": "Ñan"}, "description": "ask [withheld]"}


@pytest.mark.rule("TEND-3")
def test_value_amount_is_the_tenders_own_and_never_a_sum() -> None:
    release = cleaned(awards=[{"id": "1", "value": {"amount": 5}}, {"id": "2", "value": {"amount": 6}}])
    assert (release.summary.value_amount, release.summary.award_count) == (None, 2)


def test_the_date_stays_though_a_contact_repeats_it() -> None:
    release = cleaned(tender={"title": KEYS["date"], "contactPerson": {"telephone": KEYS["date"]}})
    assert json.loads(release.body)["date"] == KEYS["date"]
    assert release.summary.title == "[withheld]"
    assert clean_again(release.body, release.summary, "ZA", gate, str.upper).body == release.body


def test_the_category_of_the_portal_comes_before_that_of_the_standard() -> None:
    assert (
        cleaned(tender={"category": "Civil", "mainProcurementCategory": "works"}).summary.category == "Civil"
    )
    assert cleaned(tender={"mainProcurementCategory": "works"}).summary.category == "works"
    assert cleaned(tender={"category": ["x"]}).summary.category is None


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    "tag tender buyer parties awards contracts planning language initiationType id".split()
)
INNER = st.dictionaries(
    st.sampled_from("id title value items suppliers name roles identifier amount currency documents".split()),
    JSON_VALUES,
    max_size=5,
)


@given(st.dictionaries(FIELDS, JSON_VALUES | INNER | st.lists(JSON_VALUES | INNER, max_size=3), max_size=6))
def test_any_release_is_cleaned_or_unusable_and_cleaning_is_idempotent(fields: dict[str, Any]) -> None:
    try:
        once = clean({**KEYS, **fields}, "ZA", gate, str.upper)
    except Unusable:
        return
    again = clean_again(once.body, once.summary, "ZA", gate, str.upper)
    assert again.body == once.body
    assert again.faults == []
    assert {p.organisation.name for p in again.parties} == {p.organisation.name for p in once.parties}
    msgspec.json.decode(once.body)


KINDS = set("text id file code url address date number integer boolean amount currency numbers any".split())
TABLE: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    resources.files("sankofa.model.ocds").joinpath("fields.toml").read_text("utf-8")
)
SERVED_FIELDS = [(owner, name) for owner, fields in TABLE.items() for name in fields]

PERSONAL = re.compile(
    "contact|e?mail|phone|fax|person|beneficial|owner|shareholder|jury(?!Decision)|officials|attendee|representative"
    "|gender|birth|national|(given|first|last|family|sur|patronymic|matronymic|full)_?name|former_value",
    re.IGNORECASE,
)
"""Names of fields about persons in OCDS, its extensions and elsewhere."""

ORGANISATIONS = """
Release.parties Release.buyer Release.publisher Release.publicAuthority Tender.procuringEntity
Tender.tenderers Award.suppliers Award.buyers Award.preferredBidders Contract.buyer Contract.suppliers
Contract.signatories Transaction.payer Transaction.payee Transaction.providerOrganization
Transaction.receiverOrganization Organization.memberOf Bid.tenderers Enquiry.author Lot.buyer
BudgetBreakdown.sourceParty Finance.financingParty Guarantee.guarantor ParticipationFee.payee
PreQualification.tenderers PreQualification.procuringEntity RequirementResponse.relatedTenderer
Subcontract.subcontractor Subcontract.mainContractors DesignContest.selectedParticipants
LegislativeReference.informationService
""".split()


def kind(owner: str, name: str) -> str:
    """The kind of a field or of the entries of an array."""
    kinds = TABLE[owner][name]
    if isinstance(kinds, list):
        assert len(kinds) == 1
        return kinds[0]
    return kinds


def test_every_field_has_a_known_kind_or_a_type_with_a_table() -> None:
    assert len(SERVED_FIELDS) > 700
    assert not [field for field in SERVED_FIELDS if kind(*field) not in KINDS | TABLE.keys()]


def test_every_type_can_be_reached_from_a_release() -> None:
    reached, waiting = set(), {"Release"}
    while waiting:
        owner = waiting.pop()
        reached.add(owner)
        waiting |= {kind(owner, name) for name in TABLE[owner]} & TABLE.keys() - reached
    assert reached == TABLE.keys()


@pytest.mark.rule("GATE-5")
def test_no_field_is_about_a_person() -> None:
    assert not [field for field in SERVED_FIELDS if PERSONAL.search(field[1])]
    assert not {"Person", "ContactPoint", "JuryMember", "Shareholder"} & TABLE.keys()


def test_every_kind_of_party_is_an_organisation() -> None:
    marked = {f"{owner}.{name}" for owner, name in SERVED_FIELDS if kind(owner, name) == "Organization"}
    assert marked == set(ORGANISATIONS)
    assert {f"{owner}.{name}" for owner, name in SERVED_FIELDS if name in {"author", "publisher"}} <= marked


def test_money_is_distinguished_from_other_numbers() -> None:
    assert [field for field in SERVED_FIELDS if kind(*field) == "amount"] == [("Value", "amount")]
    assert {name for owner, name in SERVED_FIELDS if kind(owner, name) == "currency"} == {"currency"}


def test_a_complaint_keeps_its_number_and_no_words() -> None:
    ids: list[Any] = ["C-12/2024", 7, "Complaint of Jane Doe", "janedoe-2024", "jane.doe@example.org"]
    release = cleaned(complaints=[{"id": one, "title": "By Jane Doe", "complainants": []} for one in ids])
    assert b"ane" not in release.body
    assert [one["id"] for one in body(release)["complaints"] if one.get("id")] == ["C-12/2024", 7]
