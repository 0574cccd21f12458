"""Who of a release may be named, in which roles, and what is left of everyone else."""

import json
from typing import Any

from sankofa.model.ocds.parties import Gate, role
from sankofa.model.ocds.release import CleanRelease, clean
from tests.every import every

KEYS = {"ocid": "ocds-1", "id": "1", "date": "2025-01-01"}
ASKED: list[tuple[str, Any, str]] = []


@Gate
def gate(name: str, identifiers: Any, country: str) -> str | None:
    """Whoever says Ltd is a firm, and whoever a register names."""
    ASKED.append((name, identifiers, country))
    if any(scheme == "REG" for scheme, _ in identifiers):
        return "registry: REG"
    return "legal_form: Ltd" if name.endswith("Ltd") else None


def cleaned(**fields: Any) -> CleanRelease:
    ASKED.clear()
    return clean({**KEYS, **fields}, "ZA", gate, str.upper)


def body(release: CleanRelease) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(release.body)
    return found


def listed(key: Any, name: str | None, *roles: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "name": name, "roles": list(roles), **fields}


def roles_of(release: CleanRelease) -> dict[str, set[str]]:
    return {party.organisation.name: set(party.roles) for party in release.parties}


def test_a_party_with_evidence_is_told_with_all_it_is_known_by() -> None:
    release = cleaned(
        parties=[
            listed(
                1,
                " Acme \n Roads ",
                "supplier",
                identifier={"scheme": " REG ", "id": 77},
                additionalIdentifiers=[
                    {"scheme": "TAX", "id": "x"},
                    {"id": "no scheme"},
                    {"scheme": "EMPTY", "id": " "},
                ],
                address={"countryName": "Kenya"},
            )
        ]
    )
    ((known, roles),) = release.parties
    assert known[1:] == ("Acme Roads", "KE", (("REG", "77"), ("TAX", "x")), "registry: REG")
    assert roles == ("supplier",)
    assert release.withheld == []


def test_a_party_without_evidence_leaves_its_roles_alone() -> None:
    release = cleaned(parties=[listed("p", "Ann Bee", "supplier", "tenderer", address={"region": "Cee"})])
    assert body(release)["parties"] == [{"roles": ["supplier", "tenderer"]}]
    assert release.parties == []
    assert release.summary.withheld_parties == 1


def test_twins_of_a_stub_are_one_and_those_withheld_are_counted_by_who_they_are() -> None:
    release = cleaned(
        parties=[listed(n, name, "supplier") for n, name in enumerate(("Ann Bee", "Cee Dee", "ANN BEE"))]
    )
    assert body(release)["parties"] == [{"roles": ["supplier"]}]
    assert release.summary.withheld_parties == 2


def test_an_empty_party_names_nobody_and_is_not_counted() -> None:
    release = cleaned(parties=[{}, {"roles": ["buyer"]}, {"name": " "}], buyer={})
    assert release.summary.withheld_parties == 0
    assert release.parties == []


def test_a_reference_to_a_withheld_party_is_withheld_whatever_it_is_called() -> None:
    release = cleaned(parties=[listed("p", "Ann Bee", "buyer")], buyer={"id": "p", "name": "Respectable Ltd"})
    assert release.parties == []
    assert body(release)["buyer"] == {"roles": ["buyer"]}
    assert release.summary.buyer_name is None


def test_a_reference_adds_its_role_to_the_party_it_leads_to() -> None:
    release = cleaned(
        parties=[listed("p", "Acme Ltd", "tenderer")],
        buyer={"id": "p"},
        tender={"procuringEntity": {"id": "p", "name": "ACME LTD"}},
        awards=[{"id": "1", "suppliers": [{"id": "p", "name": "Acme Ltd"}]}],
    )
    assert roles_of(release) == {"Acme Ltd": {"tenderer", "buyer", "procuringEntity", "supplier"}}
    assert body(release)["tender"]["procuringEntity"] == {"id": "p", "name": "ACME LTD"}


def test_a_reference_under_another_name_loses_that_name() -> None:
    release = cleaned(
        parties=[listed("p", "Acme Ltd")],
        buyer={"id": "p", "name": "Ann Bee"},
        tender={"title": "By Ann Bee"},
    )
    assert body(release)["buyer"] == {"id": "p"}
    assert "Bee" not in release.body.decode()


def test_organisations_where_they_are_meant_have_the_role_of_that_place() -> None:
    release = cleaned(
        buyer={"name": "B Ltd"},
        tender={"procuringEntity": {"name": "P Ltd"}, "tenderers": [{"name": "T Ltd"}, {"name": "Ann Bee"}]},
        awards=[{"id": "1", "suppliers": [{"name": "S Ltd"}, {"name": "T Ltd"}]}],
    )
    assert roles_of(release) == {
        "B Ltd": {"buyer"},
        "P Ltd": {"procuringEntity"},
        "T Ltd": {"tenderer", "supplier"},
        "S Ltd": {"supplier"},
    }
    assert body(release)["tender"]["tenderers"] == [{"name": "T Ltd"}, {"roles": ["tenderer"]}]


def test_the_country_of_a_party_is_that_of_its_address_or_its_register_or_its_source() -> None:
    cleaned(
        parties=[
            listed(1, "A Ltd", address={"countryName": "Ghana"}),
            listed(2, "B Ltd", identifier={"scheme": "KE-RCO", "id": "1"}),
            listed(3, "C Ltd"),
            listed(4, "D Ltd", address={"countryName": "Atlantis"}),
        ]
    )
    countries = {name: country for name, _, country in ASKED}
    assert countries["A Ltd"] == "GH"
    assert countries["B Ltd"] == "KE"
    assert countries["C Ltd"] == "ZA"


def test_another_legal_name_is_kept_only_on_evidence_of_its_own() -> None:
    for legal, kept in (("Acme Holdings Ltd", True), ("Ann Bee", False), ("ACME LTD", True)):
        release = cleaned(
            parties=[listed("p", "Acme Ltd", identifier={"scheme": "X", "id": "1", "legalName": legal})]
        )
        assert ("legalName" in body(release)["parties"][0].get("identifier", {})) is kept


def test_the_number_of_somebody_else_at_an_organisation_is_cut_and_its_own_is_kept() -> None:
    for legal, number, kept in (
        ("Zoe Quist", {"scheme": "ZA-IDN", "id": "9001015009087"}, False),
        ("Acme (old)", {"scheme": "ZA-VAT", "id": "4001015009"}, True),
        ("Zoe Quist", {"scheme": "ZA-CIPC", "id": "2001/000777/07"}, True),
    ):
        number = {**number, "legalName": legal}
        for place in ({"identifier": number}, {"additionalIdentifiers": [number]}):
            release = cleaned(
                parties=[listed("p", "Acme Ltd", **json.loads(json.dumps(place)))],
                tender={"title": f"For {number['id']}"},
            )
            assert (number["id"] in json.dumps(body(release))) is kept


def test_a_party_without_a_name_is_known_by_its_legal_name() -> None:
    release = cleaned(
        parties=[listed("p", None, "buyer", identifier={"scheme": "X", "id": "1", "legalName": "Acme Ltd"})]
    )
    assert roles_of(release) == {"Acme Ltd": {"buyer"}}


def test_a_number_of_a_withheld_party_is_cut_elsewhere_but_a_telling_id_is_not() -> None:
    release = cleaned(
        parties=[listed("2", "Ann Bee", identifier={"scheme": "ID", "id": "9001015009087"})],
        tender={"title": "Lot 2 for 9001015009087"},
    )
    assert body(release)["tender"]["title"] == "Lot 2 for [withheld]"


@every(
    ("text", "told"),
    [
        ("supplier", "supplier"),
        (" Proveedor ", "supplier"),
        ("COMPRADOR", "buyer"),
        ("reviewBody", "reviewBody"),
        (5, ""),
        (None, ""),
    ],
)
def test_a_role_is_told_in_the_words_of_the_standard(text: Any, told: str) -> None:
    assert role(text) == told
