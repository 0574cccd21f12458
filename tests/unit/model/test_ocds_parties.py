"""The parties of a release that may be named, their roles, and the stubs of all others."""

import json
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.ocds import redaction
from sankofa.model.ocds.redaction import CUT, Secrets
from sankofa.model.ocds.release import CleanRelease, Gate, clean, role
from sankofa.model.ocds.telephones import may_name_a_person
from sankofa.model.text import composed, fold_in_place
from tests.every import every

KEYS = {"ocid": "ocds-1", "id": "1", "date": "2025-01-01"}
EVIDENCE_REQUESTS: list[tuple[str, Any, str]] = []


@Gate
def gate(name: str, identifiers: Any, country: str) -> str | None:
    """A gate that accepts names with Ltd, and names from a register."""
    EVIDENCE_REQUESTS.append((name, identifiers, country))
    if any(scheme == "REG" for scheme, _ in identifiers):
        return "registry: REG"
    return "legal_form: Ltd" if name.endswith("Ltd") else None


def cleaned(**fields: Any) -> CleanRelease:
    EVIDENCE_REQUESTS.clear()
    return clean({**KEYS, **fields}, "ZA", gate, str.upper)


def body(release: CleanRelease) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(release.body)
    return content


def listed(key: Any, name: str | None, *roles: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "name": name, "roles": list(roles), **fields}


def roles_of(release: CleanRelease) -> dict[str, set[str]]:
    return {party.organisation.name: set(party.roles) for party in release.parties}


def test_a_party_with_evidence_keeps_all_its_names_and_identifiers() -> None:
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
    ((party, roles),) = release.parties
    assert party[1:] == ("Acme Roads", "KE", (("REG", "77"), ("TAX", "x")), "registry: REG")
    assert roles == ("supplier",)
    assert release.withheld == []


def test_only_the_roles_of_a_party_without_evidence_stay() -> None:
    release = cleaned(parties=[listed("p", "Ann Bee", "supplier", "tenderer", address={"region": "Cee"})])
    assert body(release)["parties"] == [{"roles": ["supplier", "tenderer"]}]
    assert release.parties == []
    assert release.summary.withheld_parties == 1


def test_equal_stubs_become_one_and_withheld_parties_are_counted_by_kind() -> None:
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


def test_organisations_in_other_fields_have_the_role_of_that_field() -> None:
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
    countries = {name: country for name, _, country in EVIDENCE_REQUESTS}
    assert countries["A Ltd"] == "GH"
    assert countries["B Ltd"] == "KE"
    assert countries["C Ltd"] == "ZA"


def test_another_legal_name_is_kept_only_on_evidence_of_its_own() -> None:
    for legal, is_served in (("Acme Holdings Ltd", True), ("Ann Bee", False), ("ACME LTD", True)):
        release = cleaned(
            parties=[listed("p", "Acme Ltd", identifier={"scheme": "X", "id": "1", "legalName": legal})]
        )
        assert ("legalName" in body(release)["parties"][0].get("identifier", {})) is is_served


def test_another_persons_number_at_an_organisation_is_cut_and_its_own_is_kept() -> None:
    for legal, number, is_served in (
        ("Zoe Quist", {"scheme": "ZA-IDN", "id": "9001015009087"}, False),
        ("Acme (old)", {"scheme": "ZA-VAT", "id": "4001015009"}, True),
        ("Zoe Quist", {"scheme": "ZA-CIPC", "id": "2001/000777/07"}, True),
    ):
        number = {**number, "legalName": legal}
        for fields in ({"identifier": number}, {"additionalIdentifiers": [number]}):
            release = cleaned(
                parties=[listed("p", "Acme Ltd", **json.loads(json.dumps(fields)))],
                tender={"title": f"For {number['id']}"},
            )
            assert (number["id"] in json.dumps(body(release))) is is_served


@every(
    ("name", "text", "expected"),
    [
        ("王小明", "採購王小明先生", "採購[withheld]先生"),
        ("Ибраимова Айгуль", "Выдан Ибраимовой Айгуль", "Выдан [withheld]"),
        ("Ткаленко Іван", "Договір, Ткаленком", "Договір, [withheld]"),
        ("Ибраимова Айгуль", "Ибраги и Ибраимовское", "Ибраги и Ибраимовское"),
        ("Zoe Quist", "Award_ZoeQuist.pdf", "Award_[withheld].pdf"),
        ("Water Works Zoe", "Waterworks repaired", "Waterworks repaired"),
    ],
)
def test_a_withheld_name_is_cut_however_its_language_or_a_file_writes_it(
    name: str, text: str, expected: str
) -> None:
    release = cleaned(parties=[listed("p", name, "supplier")], tender={"title": text})
    assert body(release)["tender"]["title"] == expected


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
    ("text", "expected"),
    [
        ("supplier", "supplier"),
        (" Proveedor ", "supplier"),
        ("COMPRADOR", "buyer"),
        ("reviewBody", "reviewBody"),
        (5, ""),
        (None, ""),
    ],
)
def test_a_role_has_the_name_of_the_standard(text: Any, expected: str) -> None:
    assert role(text) == expected


NAME = "Thandiwe Mokoena-Dube"


def cut(text: str, *withheld: str) -> str:
    secrets = Secrets()
    for secret in withheld or (NAME,):
        secrets.add(secret)
    may_change = may_name_a_person(text) or secrets.may_repeat(text)
    result = secrets.cut(text)
    assert secrets.repeats(text) is (CUT in result)
    assert may_change or result == text, "neither may ever be wrongly no"
    return result


@every(
    ("text", "expected"),
    [
        ("Awarded to Thandiwe Mokoena-Dube.", f"Awarded to {CUT}."),
        ("THANDIWE MOKOENA DUBE", CUT),
        ("Mokoena-Dube, Thandiwe", CUT),
        ("Mokoena Dube", CUT),
        ("T. Mokoena", CUT),
        ("Mokoena T", CUT),
        ("T M Dube", CUT),
        ("Mrs Dube agreed", f"Mrs {CUT} agreed"),
        ("Thandiwe_Mokoena.pdf", f"{CUT}.pdf"),
        ("a/Thandiwe%20Mokoena%2DDube.pdf", f"a/{CUT}.pdf"),
        ("Thandiwe&nbsp;Dube", CUT),
        ("Thandiwe and Dube", f"{CUT} and {CUT}"),
        ("Dube Street", f"{CUT} Street"),
        ("call dube at noon", f"call {CUT} at noon"),
        ("Call dube at noon", "Call dube at noon"),
        ("dube", "dube"),
        ("A T M in Soweto", "A T M in Soweto"),
        ("Thandiwes Mokoenas", "Thandiwes Mokoenas"),
        ("", ""),
    ],
)
def test_a_name_is_cut_by_two_of_its_words_or_by_one_that_is_written_as_a_name(
    text: str, expected: str
) -> None:
    assert cut(text) == expected


@every(
    ("withheld", "text", "expected"),
    [
        ("Zwelithini", "By Zwelithini himself", f"By {CUT} himself"),
        ("Ng", "Ng in a text", "Ng in a text"),
        ("José Peña", "JOSE PENA", CUT),
        ("Jose Pena", "Jose\u0301 Pen\u0303a", CUT),
        ("Maria de la Cruz", "Maria de la Cruz y otros", f"{CUT} y otros"),
        ("Maria de la Cruz", "la Cruz de la plaza", f"la {CUT} de la plaza"),
        ("Li da", "by Li da alone", f"by {CUT} alone"),
        ("王 小明", "由王小明签署", f"由{CUT}签署"),
        ("王 小明", "小明-王.pdf", f"{CUT}.pdf"),
        ("王小明", "由王小明签署", f"由{CUT}签署"),
        ("Νίκος Παπάς", "ΝΙΚΟΣ ΠΑΠΑΣ", CUT),
        ("Νικοσ Παπασ", "ΝΙΚΟΣ ΠΑΠΑΣ", CUT),
        ("ნინო კვარაცხელია", "Kiosk of კვარაცხელია", f"Kiosk of {CUT}"),
        ("da Li", "by da Li alone", f"by {CUT} alone"),
        ("9001015009087", "ID 9001015009087!", f"ID {CUT}!"),
        ("082 555 0101", "call 082 555 0101", f"call {CUT}"),
        ("+27 (0)82 555-0101", "call 0825550101 or 0027 82 555 0101", f"call {CUT} or {CUT}"),
        ("+27 82 555 0101", "lot 10825550101234 of 2024", "lot 10825550101234 of 2024"),
        ("王小明", "由王小明承包", f"由{CUT}承包"),
        ("Bo Da", "Road to Bo, by Bo Da and Da Bo", f"Road to Bo, by {CUT} and {CUT}"),
    ],
)
def test_short_long_accented_and_numbered_secrets(withheld: str, text: str, expected: str) -> None:
    assert cut(text, withheld) == expected


@every("text", ["Water in March", "Procurement of Works", "Kenya", "Thornveld Road", "Tender, and open"])
def test_ordinary_words_and_words_of_named_organisations_are_not_cut(text: str) -> None:
    secrets = Secrets()
    for name in ("March Water Supply", "Procurement Works Kenya", "Thornveld Tender Open"):
        secrets.add(name)
    secrets.spare("City of Thornveld")
    assert secrets.cut(text) == text


@every(
    ("text", "expected"),
    [
        ("Mail to somebody.else@example.org now", f"Mail to {CUT} now"),
        ("Ask Mr Zebulon van der Vyver for it", f"Ask Mr {CUT} for it"),
        ("Mr T. Nkosi and Mme Aïssatou Ndiaye", f"Mr {CUT} and Mme {CUT}"),
        ("Mrs. Okafor Director of Supply", f"Mrs. {CUT} Director of Supply"),
        ("C/O Zebulon Vyver, 1 Long Street", f"C/O {CUT}, 1 Long Street"),
        ("c/o: Supply Manager", "c/o: Supply Manager"),
        ("c/o Department of Health", "c/o Department of Health"),
        ("MS PIPES, MS Office and M.S. bars", "MS PIPES, MS Office and M.S. bars"),
        ("Msunduzi Municipality", "Msunduzi Municipality"),
    ],
)
def test_a_person_addressed_in_a_text_is_cut_even_if_nobody_was_withheld(text: str, expected: str) -> None:
    secrets = Secrets()
    assert secrets.cut(text) == expected
    assert secrets.repeats(text) is (CUT in expected)


@every(
    ("contact", "text", "expected"),
    [
        ("Procurement", "Procurement of drugs", "Procurement of drugs"),
        ("Ministry of Health", "For the Ministry of Health", "For the Ministry of Health"),
        ("The Director General", "Office of the Director General", "Office of the Director General"),
        ("Supply Chain Management", "Supply Chain Management course", "Supply Chain Management course"),
        ("2024", "Roads, 2024", "Roads, 2024"),
        (
            "Zebulon Vyver, Supply Manager",
            "Supply Manager sought by Z. Vyver",
            f"Supply Manager sought by {CUT}",
        ),
        ("Zebulon Manager", "Zebulon, the Manager", f"{CUT}, the Manager"),
        ("unit@health.test", "unit@health.test", CUT),
    ],
)
def test_a_contact_that_is_an_office_is_not_cut(contact: str, text: str, expected: str) -> None:
    secrets = Secrets()
    secrets.add_contact(contact)
    assert secrets.cut(text) == expected


def test_values_of_any_shape_are_cut_and_a_spared_name_stays() -> None:
    secrets = Secrets()
    secrets.add(NAME)
    spared = {"name": NAME, "title": NAME}
    value = {"a": [NAME, 5, None, {"b": f"x {NAME}"}], "firm": spared}
    assert secrets.cut_all(value, frozenset({id(spared)})) == {
        "a": [CUT, 5, None, {"b": f"x {CUT}"}],
        "firm": {"name": NAME, "title": CUT},
    }


@given(st.text())
def test_folding_keeps_every_position(text: str) -> None:
    assert len(fold_in_place(text)) == len(composed(text))


WORDS = st.text("abcdefgh", min_size=2, max_size=6)


@given(st.lists(WORDS, min_size=2, max_size=4, unique=True), st.text(max_size=20), st.text(max_size=20))
def test_a_name_as_it_was_withheld_never_stays(words: list[str], before: str, after: str) -> None:
    name = " ".join(words)
    text = f"{before} {name} {after}"
    assert f" {name} " not in f" {cut(text, name)} "


_WORDS = "ann bee carl dube ella fana gogo h i van de la y water supply dr mokoena peña".split()
_WRITTEN = [form for word in _WORDS for form in (word, word.title(), word.upper())] + [
    "H", "A", "B.", "Mr", "Dr", "with", "and", "%20", "&nbsp;", "Road",
]  # fmt: skip
_LITERALS = [
    "ann.bee@example.org",
    "082 555 0101",
    "+27 (0)82 555-0102",
    "9001015009087",
    "王小明",
    "A-12345",
]

names = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join)
secrets_of_a_release = st.lists(st.one_of(names, st.sampled_from(_LITERALS)), max_size=12)
fragments = st.one_of(
    st.sampled_from(_WRITTEN), st.sampled_from(_LITERALS), st.sampled_from(["0825550101", "12345"])
)
texts = st.lists(st.tuples(fragments, st.sampled_from([" ", " ", ", ", "-", ""])), max_size=14).map(
    lambda parts: "".join(fragment + between for fragment, between in parts)
)


def _cut(text: str, withheld: Iterable[str], public: Iterable[str], many: int) -> str:
    secrets = Secrets()
    for secret in withheld:
        secrets.add(secret)
    for name in public:
        secrets.spare(name)
    with patch.object(redaction, "_MANY", many):
        return secrets.cut(text)


@given(texts, secrets_of_a_release, st.lists(names, max_size=1))
def test_the_index_cuts_the_same_as_a_search_for_each_name(text: str, withheld: list[str], public: list[str]):
    one_by_one = _cut(text, withheld, public, many=1_000)
    assert _cut(text, withheld, public, many=-1) == one_by_one
