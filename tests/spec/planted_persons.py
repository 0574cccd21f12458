"""People with invented names, planted in every field of a release that can name one."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.spec.market import CITY, identified, party, release

FIRM = "Zqvisible Holdings Limited"
VISIBLE = "Zqvisible"
"""Texts that must be found, as proof that the search works."""

Json = dict[str, Any]


class Person(NamedTuple):
    """An invented person; no part of them may be visible."""

    given: str
    family: str
    number: str
    email: str

    @property
    def name(self) -> str:
        return f"{self.given} {self.family}"

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.given, self.family, self.number


def person(n: int) -> Person:
    word = "".join("abcdefghij"[int(digit)] for digit in f"{n:03}")
    return Person(
        f"Zqgiven{word}", f"Zqfamily{word}", f"7{n:03}0415{n:03}87", f"zqmail{word}@zqhost{word}.test"
    )


def supplied(ocid: str, who: Json, **fields: Any) -> Json:
    """A release in which a firm and a person supply."""
    firm = party("firm", FIRM, "supplier")
    return release(
        ocid,
        parties=[party(CITY["id"], CITY["name"], "buyer"), firm, {"id": "who", "roles": ["supplier"], **who}],
        buyer=CITY,
        awards=[
            {"id": "1", "suppliers": [{"id": "firm", "name": FIRM}, {"id": "who", "name": who.get("name")}]}
        ],
        **fields,
    )


def contact(p: Person) -> Json:
    return {
        "name": p.name,
        "email": p.email,
        "telephone": p.number,
        "faxNumber": p.number,
        "url": f"https://example.test/{p.given}",
    }


def in_parties(p: Person) -> Iterator[tuple[str, Json]]:
    yield "party", supplied("x", {"name": p.name})
    yield "party in capitals", supplied("x", {"name": p.name.upper()})
    yield "party with a title", supplied("x", {"name": f"Dr {p.name}"})
    yield "trading name", supplied("x", {"name": f"{p.name} T/A {p.family} Plumbing Ltd"})
    yield "trading name without a stroke", supplied("x", {"name": f"{p.name} TA {p.family} Homes (Pty) Ltd"})
    yield "holder of an office", supplied("x", {"name": f"Auditor General {p.name}"})
    yield "joint venture with a firm", supplied("x", {"name": f"{p.name} JV Sample Works Limited"})
    yield "somebody at a firm", supplied("x", {"name": f"{p.name} @ Sample Works Limited"})
    yield "initials and surname", supplied("x", {"name": f"Q.Z. {p.family}"})
    yield "national identity number", supplied("x", {"name": p.name, **identified("ZA-IDN", p.number)})
    yield "name in legalName alone", supplied("x", identified("ZA-IDN", p.number, legalName=p.name))
    yield "id of the party", supplied("x", {"name": p.name, "id": p.number})
    yield "address", supplied("x", {"name": p.name, "address": {"streetAddress": f"1 {p.family} Street"}})
    yield (
        "further identifiers",
        supplied(
            "x",
            {
                "name": p.name,
                "additionalIdentifiers": [{"scheme": "ZA-IDN", "id": p.number, "legalName": p.name}],
            },
        ),
    )
    yield "details", supplied("x", {"name": p.name, "details": {"note": p.name, p.family: 1}})
    yield "buyer", release("x", buyer={"name": p.name})
    yield "buyer in the list", release("x", buyer={"id": "b"}, parties=[party("b", p.name, "buyer")])
    yield "procuring entity", release("x", tender={"procuringEntity": {"name": p.name}})
    yield "tenderer", release("x", tender={"tenderers": [{"name": p.name}, {"name": FIRM}]})
    yield "embedded supplier", release("x", awards=[{"id": "1", "suppliers": [{"name": p.name}]}])
    yield (
        "reference under another name",
        release(
            "x",
            parties=[party("f", FIRM, "supplier")],
            awards=[{"id": "1", "suppliers": [{"id": "f", "name": p.name}]}],
        ),
    )
    yield (
        "second legal name of a firm",
        release(
            "x",
            parties=[
                party("f", FIRM, "supplier", **identified("ZA-CIPC", "1899/999001/07", legalName=p.name))
            ],
        ),
    )
    yield "role", supplied("x", {"name": p.name, "roles": ["supplier", f"{p.name}"]})
    yield "name in another language", release("x", buyer={**CITY, "name_fr": p.name})


def in_person_fields(p: Person) -> Iterator[tuple[str, Json]]:
    yield "contactPoint of a firm", release("x", parties=[party("f", FIRM, "buyer", contactPoint=contact(p))])
    yield "contactPoint of a person", supplied("x", {"name": p.name, "contactPoint": contact(p)})
    yield (
        "additional contact points",
        release("x", parties=[party("f", FIRM, "buyer", additionalContactPoints=[contact(p)])]),
    )
    yield "contactPerson of the portal", release("x", tender={"title": VISIBLE, "contactPerson": contact(p)})
    yield "contactPoint of the tender", release("x", tender={"title": VISIBLE, "contactPoint": contact(p)})
    yield (
        "contact and free text",
        release(
            "x",
            tender={
                "contactPerson": contact(p),
                "description": f"Ask {p.name}, {p.number} or {p.email}, {VISIBLE}",
            },
        ),
    )
    yield (
        "beneficial owners",
        release("x", parties=[party("f", FIRM, "supplier", beneficialOwners=[{"name": p.name}])]),
    )
    yield "directors", release("x", parties=[party("f", FIRM, "supplier", directors=[{"name": p.name}])])
    tender = {"title": f"{VISIBLE} for {p.name}"}
    yield "a buyer that is only text", release("x", buyer=p.name, tender=tender)
    yield "a buyer in a list", release("x", buyer=[{"name": p.name}], tender=tender)
    yield "a party that is only text", release("x", parties=[p.name], tender=tender)
    for field in ("supplier", "signedBy", "subcontractors", "responsibleParties", "directors"):
        contract = {"id": "1", field: [{"name": p.name}], "title": f"{VISIBLE} by {p.name}"}
        yield f"a field outside the standard, {field}", release("x", contracts=[contract])
    yield (
        "signatories",
        release("x", contracts=[{"id": "1", "awardID": "1", "signatories": [{"name": p.name}]}]),
    )
    yield "a field nobody knows", release("x", tender={"title": VISIBLE, "officer_in_charge": p.name})
    yield "a key that is a name", release("x", tender={"title": VISIBLE, p.name: p.number})


def in_texts(p: Person) -> Iterator[tuple[str, Json]]:
    who = {"name": p.name, **identified("ZA-IDN", p.number)}
    ways = {
        "as it is": p.name,
        "turned round": f"{p.family}, {p.given}",
        "in capitals": p.name.upper(),
        "with an initial": f"{p.given[0]}. {p.family}",
        "with a title": f"Mr {p.family}",
        "by the surname alone": f"the {p.family} family",
        "by the given name alone": f"{p.given}'s stall",
        "with a middle name": f"{p.name} {p.family}",
        "over two lines": f"{p.given}\n{p.family}",
        "underscored": f"{p.given}_{p.family}",
        "without a blank": f"{p.given}{p.family}",
        "without a blank in an address": f"https://example.test/{p.family}{p.given}.pdf".lower(),
        "percent-encoded": f"https://example.test/{p.given}%20{p.family}.pdf",
        "with an entity": f"{p.given}&nbsp;{p.family}",
        "the number": f"ID {p.number}.",
    }
    for way, text in ways.items():
        yield f"title, {way}", supplied("x", who, tender={"title": f"Awarded to {text} and {VISIBLE}"})
    text = f"{p.name} ({p.number})"
    for field in (
        "description",
        "eligibilityCriteria",
        "procurementMethodDetails",
        "category",
        "awardCriteriaDetails",
    ):
        yield field, supplied("x", who, tender={"title": VISIBLE, field: text})
    yield "items", supplied("x", who, tender={"items": [{"id": "1", "description": text}]})
    yield (
        "documents",
        supplied(
            "x",
            who,
            tender={
                "documents": [
                    {
                        "id": text,
                        "title": text,
                        "description": text,
                        "url": f"https://a.test/{p.given}-{p.family}",
                    }
                ]
            },
        ),
    )
    yield (
        "milestones",
        supplied("x", who, tender={"milestones": [{"id": "1", "title": text, "description": text}]}),
    )
    yield (
        "amendments",
        supplied("x", who, tender={"amendments": [{"id": "1", "rationale": text, "description": text}]}),
    )
    yield (
        "planning",
        supplied("x", who, planning={"rationale": text, "budget": {"description": text, "project": text}}),
    )
    yield (
        "contracts",
        supplied("x", who, contracts=[{"id": "1", "awardID": "1", "title": text, "description": text}]),
    )
    yield "title in another language", supplied("x", who, tender={"title": VISIBLE, "title_fr": text})
    yield "tag", {**supplied("x", who), "tag": [p.name]}
    yield "status", supplied("x", who, tender={"title": VISIBLE, "status": p.name})
    yield (
        "name of a firm's address",
        {
            **supplied("x", who),
            "parties": [
                party("f", FIRM, "buyer", address={"streetAddress": text}),
                {**who, "id": "w", "roles": ["supplier"]},
            ],
        },
    )


def in_texts_where_nobody_is_withheld(p: Person) -> Iterator[tuple[str, Json]]:
    for way, text in {
        "an address of e-mail": p.email,
        "Mr": f"Mr {p.name}, room 5",
        "Mrs with initials": f"Mrs. Z.Q. van der {p.family} agreed",
    }.items():
        yield f"by {way}", release("x", buyer=CITY, tender={"title": f"{VISIBLE}, ask {text}"})
    street = {"streetAddress": f"c/o {p.name}, 1 Long Street"}
    yield "care of somebody", release("x", parties=[party("f", FIRM, "buyer", address=street)])
    grouped = f"+{p.number[:3]} ({p.number[3:5]}) {p.number[5:9]}-{p.number[9:]}"
    yield (
        "a telephone grouped otherwise",
        release(
            "x",
            parties=[party("f", FIRM, "buyer", contactPoint={"telephone": grouped})],
            tender={"title": f"{VISIBLE}, call {p.number} or 0{p.number[4:]}"},
        ),
    )


def in_keys(p: Person) -> Iterator[tuple[str, Json]]:
    yield "ocid", {**supplied("x", {"name": p.name}), "ocid": f"ocds-{p.given}-{p.family}"}
    yield "release id", {**supplied("x", {"name": p.name}), "id": f"{p.given}-{p.family}"}


def planted() -> dict[str, tuple[Person, Json]]:
    """Every field, each with a person of its own."""
    contents: dict[str, tuple[Person, Json]] = {}
    number = 100
    for generator in (in_parties, in_person_fields, in_texts, in_texts_where_nobody_is_withheld, in_keys):
        for label, _ in list(generator(person(0))):
            number += 1
            somebody = person(number)
            content = dict(generator(somebody))[label]
            if content["ocid"] == "ocds-test-x":
                content["ocid"] = f"ocds-test-{number}"
            contents[label] = somebody, content
    return contents


PLANTED = planted()
NAMED_FILE, NAMED_MEMBER, BROKEN = person(901), person(902), person(903)
EVERYONE = [*(somebody for somebody, _ in PLANTED.values()), NAMED_FILE, NAMED_MEMBER, BROKEN]
TOKEN = re.compile(r"zq(?:given|family|mail|host)[a-j]+|7\d{3}0415\d{3}87")
"""One expression for all names above. Every byte is searched."""
