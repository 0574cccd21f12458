"""No natural person anywhere (contract: GATE-4).

People with names that nobody has are planted in every place of a release that can name one, and looked for in
every answer, every log line, every rejects file, every byte under HOME and every row of the database.
"""

import io
import json
import re
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.live import LiveServer
from tests.spec.market import CITY, Asked, Desk, identified, package, party, release
from tests.spec.market import desk as desk
from tests.spec.register import lei, record

FIRM = "Zqvisible Holdings Limited"
SEEN = "Zqvisible"
"""What must be found wherever a person must not: the tests can see."""

Json = dict[str, Any]


class Person(NamedTuple):
    """Somebody invented; every part of them must stay unseen."""

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
    """A release in which a firm and somebody else supply."""
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
    yield "contactPerson of the portal", release("x", tender={"title": SEEN, "contactPerson": contact(p)})
    yield "contactPoint of the tender", release("x", tender={"title": SEEN, "contactPoint": contact(p)})
    yield (
        "contact and free text",
        release(
            "x",
            tender={
                "contactPerson": contact(p),
                "description": f"Ask {p.name}, {p.number} or {p.email}, {SEEN}",
            },
        ),
    )
    yield (
        "beneficial owners",
        release("x", parties=[party("f", FIRM, "supplier", beneficialOwners=[{"name": p.name}])]),
    )
    yield "directors", release("x", parties=[party("f", FIRM, "supplier", directors=[{"name": p.name}])])
    told = {"title": f"{SEEN} for {p.name}"}
    yield "a buyer that is only text", release("x", buyer=p.name, tender=told)
    yield "a buyer in a list", release("x", buyer=[{"name": p.name}], tender=told)
    yield "a party that is only text", release("x", parties=[p.name], tender=told)
    for field in ("supplier", "signedBy", "subcontractors", "responsibleParties", "directors"):
        contract = {"id": "1", field: [{"name": p.name}], "title": f"{SEEN} by {p.name}"}
        yield f"a field outside the standard, {field}", release("x", contracts=[contract])
    yield (
        "signatories",
        release("x", contracts=[{"id": "1", "awardID": "1", "signatories": [{"name": p.name}]}]),
    )
    yield "a field nobody knows", release("x", tender={"title": SEEN, "officer_in_charge": p.name})
    yield "a key that is a name", release("x", tender={"title": SEEN, p.name: p.number})


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
        "percent-encoded": f"https://example.test/{p.given}%20{p.family}.pdf",
        "with an entity": f"{p.given}&nbsp;{p.family}",
        "the number": f"ID {p.number}.",
    }
    for way, text in ways.items():
        yield f"title, {way}", supplied("x", who, tender={"title": f"Awarded to {text} and {SEEN}"})
    text = f"{p.name} ({p.number})"
    for field in (
        "description",
        "eligibilityCriteria",
        "procurementMethodDetails",
        "category",
        "awardCriteriaDetails",
    ):
        yield field, supplied("x", who, tender={"title": SEEN, field: text})
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
    yield "title in another language", supplied("x", who, tender={"title": SEEN, "title_fr": text})
    yield "tag", {**supplied("x", who), "tag": [p.name]}
    yield "status", supplied("x", who, tender={"title": SEEN, "status": p.name})
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
        yield f"by {way}", release("x", buyer=CITY, tender={"title": f"{SEEN}, ask {text}"})
    street = {"streetAddress": f"c/o {p.name}, 1 Long Street"}
    yield "care of somebody", release("x", parties=[party("f", FIRM, "buyer", address=street)])
    grouped = f"+{p.number[:3]} ({p.number[3:5]}) {p.number[5:9]}-{p.number[9:]}"
    yield (
        "a telephone grouped otherwise",
        release(
            "x",
            parties=[party("f", FIRM, "buyer", contactPoint={"telephone": grouped})],
            tender={"title": f"{SEEN}, call {p.number} or 0{p.number[4:]}"},
        ),
    )


def in_keys(p: Person) -> Iterator[tuple[str, Json]]:
    yield "ocid", {**supplied("x", {"name": p.name}), "ocid": f"ocds-{p.given}-{p.family}"}
    yield "release id", {**supplied("x", {"name": p.name}), "id": f"{p.given}-{p.family}"}


def planted() -> dict[str, tuple[Person, Json]]:
    """Every place, each with somebody of its own."""
    found: dict[str, tuple[Person, Json]] = {}
    number = 100
    for places in (in_parties, in_person_fields, in_texts, in_texts_where_nobody_is_withheld, in_keys):
        for place, _ in list(places(person(0))):
            number += 1
            somebody = person(number)
            content = dict(places(somebody))[place]
            if content["ocid"] == "ocds-test-x":
                content["ocid"] = f"ocds-test-{number}"
            found[place] = somebody, content
    return found


PLANTED = planted()
NAMED_FILE, NAMED_MEMBER, BROKEN = person(901), person(902), person(903)
EVERYONE = [*(somebody for somebody, _ in PLANTED.values()), NAMED_FILE, NAMED_MEMBER, BROKEN]
TOKEN = re.compile(r"zq(?:given|family|mail|host)[a-j]+|7\d{3}0415\d{3}87")
"""What everyone above is made of, as one expression: every byte is looked at."""


class World(NamedTuple):
    desk: Desk
    asked: Asked
    said: str
    """Everything the commands printed."""


@pytest.fixture(scope="module")
def world(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    desk = Desk(tmp_path_factory.mktemp("people"), **engine, log_level="debug")
    faulty = {"numberOfTenderers": "many", "value": {"amount": "x", "currency": "ZZZ"}}
    contents = [content for _, content in PLANTED.values()]
    named = supplied("file", {"name": NAMED_FILE.name}, tender=faulty)
    broken = json.dumps({**supplied("broken", {"name": BROKEN.name}), "date": BROKEN.name})
    member = package(supplied("member", {"name": NAMED_MEMBER.name}, tender=faulty))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"{NAMED_MEMBER.given} {NAMED_MEMBER.family}.json", json.dumps(member))
    files = [
        desk.write("archive.zip", archive.getvalue()),
        desk.write("people.json", package(*contents)),
        desk.write(
            "people.jsonl", "\n".join(json.dumps({**c, "id": f"line-{n}"}) for n, c in enumerate(contents))
        ),
        desk.write(f"{NAMED_FILE.given}-{NAMED_FILE.family}.json", package(named)),
        desk.write(
            "broken.jsonl", f'{broken}\n{{"ocid": "{BROKEN.name}", \n{{"parties": "{BROKEN.number}"}}\n[1]'
        ),
    ]
    said = ""
    for path in files:
        done = desk.command("ingest", "portal-za", path)
        assert done.returncode == 0, done.stderr
        said += done.stdout + done.stderr
    done = desk.command("publish")
    assert done.returncode == 0, done.stderr
    said += done.stdout + done.stderr
    with desk.serve() as asked:
        yield World(desk, asked, said.replace(str(desk.folder), ""))


def leaked(text: str | bytes) -> list[str]:
    folded = text.lower() if isinstance(text, str) else text.lower().decode("latin-1")
    return sorted(set(TOKEN.findall(folded)))


def test_every_token_is_one_that_is_looked_for() -> None:
    for somebody in EVERYONE:
        for token in (*somebody.tokens, somebody.email):
            assert leaked(token), token


def test_every_planted_release_was_read(world: World) -> None:
    """But for those whose keys name somebody: these are rejected whole."""
    rows = world.asked.tenders()
    unusable = {"ocid", "release id"}
    expected = {content["ocid"] for place, (_, content) in PLANTED.items() if place not in unusable}
    assert {row["ocid"] for row in rows} >= expected
    assert {"ocds-test-file", "ocds-test-member"} <= {row["ocid"] for row in rows}


@pytest.mark.parametrize("place", [place for place in PLANTED if place not in ("ocid", "release id")])
def test_nobody_planted_is_in_the_release_served(world: World, place: str) -> None:
    somebody, content = PLANTED[place]
    rows = [row for row in world.asked.tenders() if row["ocid"] == content["ocid"]]
    assert rows
    told = json.dumps(rows, default=str).lower()
    assert not [token for token in (*somebody.tokens, somebody.email) if token.lower() in told]


def test_a_firm_beside_a_person_is_served(world: World) -> None:
    assert FIRM in {row["name"] for row in world.asked.parties(role="supplier")}
    for place in ("party", "contactPoint of a person", "title, as it is"):
        ocid = PLANTED[place][1]["ocid"]
        row = next(row for row in world.asked.tenders() if row["ocid"] == ocid)
        assert row["withheld_parties"] == 1
        assert [p["name"] for p in row["release"]["parties"] if "name" in p] == [CITY["name"], FIRM]
        assert {"roles": ["supplier"]} in row["release"]["parties"]


@pytest.mark.rule("GATE-4")
def test_no_answer_of_any_endpoint_names_anybody(world: World) -> None:
    server: LiveServer = world.asked.server
    paths = ["/v1/tenders?limit=10000", "/v1/tender-parties?limit=10000", "/openapi.json", "/v1/status", "/"]
    paths += [f"/v1/tender-parties?role={role}&limit=10000" for role in ("buyer", "supplier", "tenderer")]
    seen = False
    for path in paths:
        answer = server.get(path, world.asked.key)
        assert answer.status_code == 200
        assert leaked(answer.text + str(answer.headers)) == []
        seen = seen or SEEN in answer.text
    assert seen


@pytest.mark.rule("GATE-4")
def test_no_tool_names_anybody_and_no_word_of_a_name_finds_anything(world: World) -> None:
    for tool, arguments in (
        ("search_tenders", {"limit": 10000, "detail": "full"}),
        ("search_tenders", {"limit": 10000}),
        ("get_resolved_parties", {"limit": 10000}),
    ):
        pages: list[str] = []
        cursor: dict[str, Any] = {}
        while not pages or cursor["cursor"]:
            failed, body = world.asked.tool(tool, **arguments, **cursor)
            assert not failed
            pages.append(json.dumps(body))
            cursor = {"cursor": body["next_cursor"]}
        assert SEEN in "".join(pages)
        assert leaked("".join(pages)) == []
    for place in ("title, as it is", "title, with an initial", "description", "contact and free text"):
        for word in PLANTED[place][0].tokens:
            _, body = world.asked.tool("search_tenders", query=word)
            assert body["count"] == 0, (place, word)
    _, body = world.asked.tool("search_tenders", query=SEEN)
    assert body["count"] > 0


@pytest.mark.rule("GATE-4")
def test_nothing_printed_or_logged_names_anybody(world: World) -> None:
    assert "withheld" in world.said
    assert leaked(world.said) == []
    assert leaked(world.asked.server.log) == []


@pytest.mark.rule("GATE-4")
@pytest.mark.both_engines
def test_no_rejects_file_names_anybody(world: World) -> None:
    rejects = world.desk.rejects()
    assert len(rejects) > 5
    assert leaked(json.dumps(rejects)) == []


@pytest.mark.rule("GATE-4")
@pytest.mark.both_engines
def test_no_file_under_home_names_anybody(world: World) -> None:
    paths = [path for path in world.desk.home.rglob("*") if path.is_file()]
    holding = [(path.name, leaked(path.read_bytes())) for path in paths]
    assert [found for found in holding if found[1]] == []
    assert [path.name for path in paths if leaked(path.name)] == []
    if "datastore" not in world.desk.settings:
        content = b"".join(path.read_bytes() for path in paths)
        assert SEEN.encode() in content


@pytest.mark.rule("GATE-4")
@pytest.mark.both_engines
def test_no_row_of_the_database_names_anybody(world: World) -> None:
    """On PostgreSQL: every column of every table of every schema that is not the server's own."""
    url = world.desk.settings.get("datastore")
    if url is None:
        return
    seen = 0
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert len(tables) > 8
        for schema, table in tables:
            for row in connection.execute(f'SELECT * FROM "{schema}"."{table}"'.encode()):
                for value in row:
                    text = bytes(value) if isinstance(value, bytes | memoryview) else str(value)
                    assert leaked(text) == [], (schema, table)
                    seen += SEEN.encode() in text if isinstance(text, bytes) else SEEN in text
    assert seen > 0


# The store itself, and the builder, enforce it again


def insert(desk: Desk, table: str, *values: object) -> None:
    """As somebody with the database at hand, past everything the code checks, seals included."""
    url = desk.settings.get("datastore")
    marks = ", ".join(["?" if url is None else "%s"] * len(values))
    if url is None:
        with closing(sqlite3.connect(desk.home / "ledger.sqlite")) as database, database:
            database.execute(f"INSERT INTO {table} VALUES ({marks})", values)
            database.execute("DROP TABLE IF EXISTS seal")
        return
    with psycopg.connect(url) as connection:
        (schema,) = connection.execute(
            "SELECT schemaname FROM pg_tables WHERE tablename = 'party'"
        ).fetchone() or ("",)
        connection.execute(f'INSERT INTO "{schema}".{table} VALUES ({marks})'.encode(), values)
        connection.execute(f'DROP TABLE IF EXISTS "{schema}".seal'.encode())


def row_of(body: Json, party_id: str) -> tuple[object, ...]:
    text = json.dumps(body)
    parties = json.dumps([[party_id, "supplier"]])
    return body["ocid"], body["id"], "2025-06-01T10:00:00Z", 1, "digest", "ZA", "x", "{}", parties, text, 1


@pytest.mark.rule("GATE-1")
@pytest.mark.both_engines
def test_the_store_refuses_a_party_without_a_name_or_without_evidence(desk: Desk) -> None:
    desk.ingest("portal-za", "a.json", package(supplied("a", {"name": person(1).name})))
    for values in (
        ("id1", "Somebody", "ZA", "[]", "", 1),
        ("id2", "Somebody", "ZA", "[]", None, 1),
        ("id3", "", "ZA", "[]", "legal_form: Ltd", 1),
        ("id4", None, "ZA", "[]", "legal_form: Ltd", 1),
    ):
        with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
            insert(desk, "party", *values)
    insert(desk, "party", "id5", "Somebody Ltd", "ZA", "[]", "legal_form: Ltd", 1)


@pytest.mark.rule("GATE-6")
@pytest.mark.both_engines
def test_an_edition_with_a_party_without_evidence_cannot_be_built(desk: Desk) -> None:
    desk.ingest("portal-za", "a.json", package(supplied("a", {"name": person(1).name})))
    edition = desk.publish()
    insert(desk, "release", *row_of(release("b", parties=[party("1", "Somebody", "supplier")]), "nobody"))
    done = desk.command("publish")
    assert done.returncode != 0
    assert "without evidence" in done.stderr
    assert edition in desk.command("editions").stdout
    with desk.serve() as asked:
        answer = asked.get("/v1/tenders")
        assert (answer["edition"], answer["count"]) == (edition, 1)


@pytest.mark.rule("GATE-6")
@pytest.mark.both_engines
def test_evidence_that_does_not_stand_up_is_not_believed_by_the_builder(desk: Desk) -> None:
    somebody = person(2)
    desk.ingest("portal-za", "a.json", package(supplied("a", {"name": person(1).name})))
    insert(desk, "party", "forged", somebody.name, "ZA", "[]", "legal_form: Ltd", 1)
    body = release(
        "b", parties=[party("1", somebody.name, "supplier")], tender={"title": f"For {somebody.name}"}
    )
    insert(desk, "release", *row_of(body, "forged"))
    desk.publish()
    with desk.serve() as asked:
        row = asked.tender("b")
        assert somebody.family not in json.dumps(row, default=str)
        assert row["withheld_parties"] == 1
        assert somebody.name not in {p["name"] for p in asked.parties()}


@pytest.mark.rule("GATE-7")
@pytest.mark.both_engines
def test_a_party_whose_lei_turns_out_to_be_a_persons_vanishes_at_the_next_publish(desk: Desk) -> None:
    number, name = lei("TURNS"), "Zqlater Zqtrading"
    desk.records(record(number, name, "ZA"))
    who = {"name": name, **identified("XI-LEI", number)}
    desk.ingest(
        "portal-za",
        "a.json",
        package(supplied("a", who, tender={"title": f"Works by {name}", "category": name})),
    )
    before = desk.publish()
    with desk.serve() as asked:
        assert name in {p["name"] for p in asked.parties()}
        assert asked.tender("a")["withheld_parties"] == 0
    later = record(number, name, "ZA", category="SOLE_PROPRIETOR").replace("2026-01-05", "2026-02-05")
    desk.records(later)
    desk.publish()
    with desk.serve() as asked:
        row = asked.tender("a")
        assert row["withheld_parties"] == 1
        assert row["title"] == "Works by [withheld]"
        bodies = [asked.server.get(f"/v1/{p}", asked.key).text for p in ("tenders", "tender-parties")]
        bodies.append(json.dumps(asked.tool("search_tenders", query="works")[1]))
        assert not [body for body in bodies if "Zqlater" in body or number in body]
        assert FIRM in {p["name"] for p in asked.parties()}
        for path in ("/v1/tenders", "/v1/export", "/open/procurement-demand.parquet"):
            refused = asked.server.get(f"{path}?edition={before}", asked.key)
            assert (refused.status_code, refused.json()["detail"]) == (
                410,
                f"edition: {before} is withdrawn.",
            )
        gone = asked.get("/v1/changes", since=before, dataset="entities")["data"]
        assert [(row["change"], row["row"]) for row in gone] == [("removed", None)]
    rolled = desk.command("editions", "rollback", before)
    assert (rolled.returncode, "withdrawn" in rolled.stderr) == (1, True)
