"""The table of served OCDS fields: it hangs together, leaves people out and marks whoever may be a party."""

import re
import tomllib
from importlib import resources
from typing import Any

import pytest

from tests.every import every
from tests.ocds_schema import release_schema

KINDS = set("text id code url address date number integer boolean amount currency numbers any".split())
TABLE: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    resources.files("sankofa.model.ocds").joinpath("fields.toml").read_text("utf-8")
)
FIELDS = [(owner, name) for owner, fields in TABLE.items() for name in fields]

PERSONAL = re.compile(
    "contact|e?mail|phone|fax|person|beneficial|owner|shareholder|jury(?!Decision)|officials|attendee|representative"
    "|gender|birth|national|(given|first|last|family|sur|patronymic|matronymic|full)_?name|former_value",
    re.IGNORECASE,
)
"""What a field about a person is called in OCDS, its extensions and elsewhere."""

LEFT_OUT = {
    ("Organization", "contactPoint"),
    ("OrganizationReference", "contactPoint"),
    ("Amendment.changes", "former_value"),
}
"""Fields of the core schema that are not served; ContactPoint itself has no table."""

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
    """The kind of a field, or of the entries of an array."""
    found = TABLE[owner][name]
    if isinstance(found, list):
        assert len(found) == 1
        return found[0]
    return found


def test_a_field_is_of_a_known_kind_or_of_a_type_with_a_table() -> None:
    assert len(FIELDS) > 700
    assert not [field for field in FIELDS if kind(*field) not in KINDS | TABLE.keys()]


def test_every_type_can_be_reached_from_a_release() -> None:
    reached, waiting = set(), {"Release"}
    while waiting:
        owner = waiting.pop()
        reached.add(owner)
        waiting |= {kind(owner, name) for name in TABLE[owner]} & TABLE.keys() - reached
    assert reached == TABLE.keys()


@pytest.mark.rule("GATE-5")
def test_no_field_is_about_a_person() -> None:
    assert not [field for field in FIELDS if PERSONAL.search(field[1])]
    assert not {"Person", "ContactPoint", "JuryMember", "Shareholder"} & TABLE.keys()


def test_whoever_may_be_a_party_is_an_organisation() -> None:
    marked = {f"{owner}.{name}" for owner, name in FIELDS if kind(owner, name) == "Organization"}
    assert marked == set(ORGANISATIONS)
    assert {f"{owner}.{name}" for owner, name in FIELDS if name in {"author", "publisher"}} <= marked


def test_money_is_told_from_other_numbers() -> None:
    assert [field for field in FIELDS if kind(*field) == "amount"] == [("Value", "amount")]
    assert {name for owner, name in FIELDS if kind(owner, name) == "currency"} == {"currency"}


def core_fields(schema: dict[str, Any], owner: str) -> list[tuple[str, str]]:
    """Each field of a type of the schema, and of the objects that are spelled out inside it."""
    found = []
    for name, rule in schema.get("properties", {}).items():
        found.append((owner, name))
        found += core_fields(rule if "properties" in rule else rule.get("items", {}), f"{owner}.{name}")
    return found


INSIDE = {"OrganizationReference": "Organization", "Item.unit": "Unit", "Amendment.changes": "Change"}


@pytest.mark.deep
@every("version", ["1.0", "1.1"])
def test_the_core_schema_is_served_whole_but_for_what_is_left_out(version: str) -> None:
    schema = release_schema(version)
    types = {name: rule for name, rule in schema["definitions"].items() if name != "ContactPoint"}
    core = [field for name, rule in types.items() for field in core_fields(rule, name)]
    core += core_fields(schema, "Release")
    assert len(core) > 100
    absent = {field for field in core if field[1] not in TABLE.get(INSIDE.get(field[0], field[0]), {})}
    assert absent == LEFT_OUT & set(core)
