"""No natural person anywhere (contract: GATE-4).

People with invented names are planted in every field of a release that can name one. The tests look for them
in every answer, log line and rejects file, in every byte under HOME and in every row of the database.
"""

import io
import json
import re
import sqlite3
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import psycopg
import pytest

from sankofa.settings import Settings
from tests.live import LiveServer
from tests.spec.market import CITY, Desk, PaidCaller, identified, package, party, release
from tests.spec.market import desk as desk
from tests.spec.market import plain_desk as plain_desk
from tests.spec.planted_persons import (
    BROKEN,
    EVERYONE,
    FIRM,
    NAMED_FILE,
    NAMED_MEMBER,
    PLANTED,
    TOKEN,
    VISIBLE,
    Json,
    person,
    supplied,
)
from tests.spec.register import lei, record
from tests.tampering import seal_again


class World(NamedTuple):
    desk: Desk
    caller: PaidCaller
    output: str
    """Everything the commands printed."""


@pytest.fixture(scope="module")
def world(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    desk = Desk(tmp_path_factory.mktemp("people"), **engine, log_level="debug")
    faulty = {"numberOfTenderers": "many", "value": {"amount": "x", "currency": "ZZZ"}}
    contents = [content for _, content in PLANTED.values()]
    file = supplied("file", {"name": NAMED_FILE.name}, tender=faulty)
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
        desk.write(f"{NAMED_FILE.given}-{NAMED_FILE.family}.json", package(file)),
        desk.write(
            "broken.jsonl", f'{broken}\n{{"ocid": "{BROKEN.name}", \n{{"parties": "{BROKEN.number}"}}\n[1]'
        ),
    ]
    output = ""
    for path in files:
        done = desk.command("ingest", "portal-za", path)
        assert done.returncode == int(path.name == "broken.jsonl"), done.stderr  # no row of it is accepted
        output += done.stdout + done.stderr
    done = desk.succeed("publish")
    output += done.stdout + done.stderr
    with desk.serve() as caller:
        yield World(desk, caller, output.replace(str(desk.folder), ""))


def leaked(text: str | bytes) -> list[str]:
    folded = text.lower() if isinstance(text, str) else text.lower().decode("latin-1")
    return sorted(set(TOKEN.findall(folded)))


def test_every_planted_token_is_searched_for() -> None:
    for somebody in EVERYONE:
        for token in (*somebody.tokens, somebody.email):
            assert leaked(token), token


def test_every_planted_release_was_read(world: World) -> None:
    """Releases whose keys name a person are rejected whole."""
    rows = world.caller.tenders()
    unusable = {"ocid", "release id"}
    expected = {content["ocid"] for label, (_, content) in PLANTED.items() if label not in unusable}
    assert {row["ocid"] for row in rows} >= expected
    assert {"ocds-test-file", "ocds-test-member"} <= {row["ocid"] for row in rows}


def test_nobody_planted_is_in_the_release_served(world: World) -> None:
    served = defaultdict(list)
    for row in world.caller.tenders():
        served[row["ocid"]].append(row)
    for label, (somebody, content) in PLANTED.items():
        rows = served[content["ocid"]]
        assert rows or label in ("ocid", "release id"), label
        text = json.dumps(rows, default=str).lower()
        assert not [token for token in (*somebody.tokens, somebody.email) if token.lower() in text], label


def test_a_firm_beside_a_person_is_served(world: World) -> None:
    assert FIRM in {row["name"] for row in world.caller.parties(role="supplier")}
    for label in ("party", "contactPoint of a person", "title, as it is"):
        ocid = PLANTED[label][1]["ocid"]
        row = next(row for row in world.caller.tenders() if row["ocid"] == ocid)
        assert row["withheld_parties"] == 1
        assert [p["name"] for p in row["release"]["parties"] if "name" in p] == [CITY["name"], FIRM]
        assert {"roles": ["supplier"]} in row["release"]["parties"]


@pytest.mark.rule("GATE-4")
def test_no_answer_of_any_endpoint_names_anybody(world: World) -> None:
    server: LiveServer = world.caller.server
    paths = ["/v1/tenders?limit=10000", "/v1/tender-parties?limit=10000", "/openapi.json", "/v1/status", "/"]
    paths += [f"/v1/tender-parties?role={role}&limit=10000" for role in ("buyer", "supplier", "tenderer")]
    visible = False
    for path in paths:
        answer = server.get(path, world.caller.key)
        assert answer.status_code == 200
        assert leaked(answer.text + str(answer.headers)) == []
        visible = visible or VISIBLE in answer.text
    assert visible


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
            failed, body = world.caller.tool(tool, **arguments, **cursor)
            assert not failed
            pages.append(json.dumps(body))
            cursor = {"cursor": body["next_cursor"]}
        assert VISIBLE in "".join(pages)
        assert leaked("".join(pages)) == []
    for label in ("title, as it is", "title, with an initial", "description", "contact and free text"):
        for word in PLANTED[label][0].tokens:
            _, body = world.caller.tool("search_tenders", query=word)
            assert body["count"] == 0, (label, word)
    _, body = world.caller.tool("search_tenders", query=VISIBLE)
    assert body["count"] > 0


@pytest.mark.rule("GATE-4")
def test_nothing_printed_or_logged_names_anybody(world: World) -> None:
    assert "withheld" in world.output
    assert leaked(world.output) == []
    assert leaked(world.caller.server.log) == []


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
    assert [leak for leak in holding if leak[1]] == []
    assert [path.name for path in paths if leaked(path.name)] == []
    if "datastore" not in world.desk.settings:
        content = b"".join(path.read_bytes() for path in paths)
        assert VISIBLE.encode() in content


@pytest.mark.rule("GATE-4")
@pytest.mark.both_engines
def test_no_row_of_the_database_names_anybody(world: World) -> None:
    """On PostgreSQL: every column of every table of every schema but the server's own."""
    url = world.desk.settings.get("datastore")
    if url is None:
        return
    visible = 0
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
                    visible += VISIBLE.encode() in text if isinstance(text, bytes) else VISIBLE in text
    assert visible > 0


# The store itself, and the builder, enforce it again


def insert(desk: Desk, table: str, *values: object) -> None:
    """Insert a row like someone with the database and the gate secret, and seal the ledger again."""
    url = desk.settings.get("datastore")
    marks = ", ".join(["?" if url is None else "%s"] * len(values))
    if url is None:
        with closing(sqlite3.connect(desk.home / "ledger.sqlite")) as database, database:
            database.execute(f"INSERT INTO {table} VALUES ({marks})", values)
            database.execute("DROP TABLE IF EXISTS seal")
    else:
        with psycopg.connect(url) as connection:
            (schema,) = connection.execute(
                "SELECT schemaname FROM pg_tables WHERE tablename = 'party'"
            ).fetchone() or ("",)
            connection.execute(f'INSERT INTO "{schema}".{table} VALUES ({marks})'.encode(), values)
            connection.execute(f'DROP TABLE IF EXISTS "{schema}".seal'.encode())
    seal_again(Settings(home=desk.home, datastore=url or Settings.datastore))


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
    with desk.serve() as caller:
        answer = caller.get("/v1/tenders")
        assert (answer["edition"], answer["count"]) == (edition, 1)


@pytest.mark.rule("GATE-6")
@pytest.mark.both_engines
def test_the_builder_rejects_false_evidence(desk: Desk) -> None:
    somebody = person(2)
    desk.ingest("portal-za", "a.json", package(supplied("a", {"name": person(1).name})))
    insert(desk, "party", "forged", somebody.name, "ZA", "[]", "legal_form: Ltd", 1)
    body = release(
        "b", parties=[party("1", somebody.name, "supplier")], tender={"title": f"For {somebody.name}"}
    )
    insert(desk, "release", *row_of(body, "forged"))
    with desk.publish_and_serve() as caller:
        row = caller.tender("b")
        assert somebody.family not in json.dumps(row, default=str)
        assert row["withheld_parties"] == 1
        assert somebody.name not in {p["name"] for p in caller.parties()}


@pytest.mark.rule("GATE-7")
@pytest.mark.both_engines
def test_a_party_whose_lei_proves_to_be_a_persons_is_removed_by_the_next_publish(desk: Desk) -> None:
    number, name = lei("TURNS"), "Zqlater Zqtrading"
    desk.records(record(number, name, "ZA"))
    who = {"name": name, **identified("XI-LEI", number)}
    desk.ingest(
        "portal-za",
        "a.json",
        package(supplied("a", who, tender={"title": f"Works by {name}", "category": name})),
    )
    before = desk.publish()
    with desk.serve() as caller:
        assert name in {p["name"] for p in caller.parties()}
        assert caller.tender("a")["withheld_parties"] == 0
    later = record(number, name, "ZA", category="SOLE_PROPRIETOR").replace("2026-01-05", "2026-02-05")
    desk.records(later)
    with desk.publish_and_serve() as caller:
        row = caller.tender("a")
        assert row["withheld_parties"] == 1
        assert row["title"] == "Works by [withheld]"
        bodies = [caller.server.get(f"/v1/{p}", caller.key).text for p in ("tenders", "tender-parties")]
        bodies.append(json.dumps(caller.tool("search_tenders", query="works")[1]))
        assert not [body for body in bodies if "Zqlater" in body or number in body]
        assert FIRM in {p["name"] for p in caller.parties()}
        for path in ("/v1/tenders", "/v1/export", "/open/procurement-demand.parquet"):
            refused = caller.server.get(f"{path}?edition={before}", caller.key)
            assert (refused.status_code, refused.json()["detail"]) == (
                410,
                f"edition: {before} is withdrawn.",
            )
        removed = caller.get("/v1/changes", since=before, dataset="entities")["data"]
        assert [(row["change"], row["row"]) for row in removed] == [("removed", None)]
    rolled = desk.command("editions", "rollback", before)
    assert (rolled.returncode, "withdrawn" in rolled.stderr) == (1, True)


@pytest.mark.rule("GATE-2", "GATE-7")
def test_the_category_in_the_register_outweighs_the_name_of_a_company(plain_desk: Desk) -> None:
    """Proprietors trade as `Zqkotak Sales Limited`: withheld under the LEI and under the name alone."""
    desk, number, name = plain_desk, lei("TRADES"), "Zqkotak Sales Limited"
    abroad = "Zqpadmini Sales Corporation"  # no proof in India, where it trades
    by_lei = {"name": "Zqother Sales Limited", **identified("XI-LEI", number)}
    suppliers = (("a", by_lei), ("b", {"name": name}), ("d", {"name": abroad}))
    desk.ingest("portal-za", "a.json", package(*(supplied(ocid, who) for ocid, who in suppliers)))
    before = desk.publish()
    with desk.serve() as caller:
        assert {name, abroad, "Zqother Sales Limited"} <= {p["name"] for p in caller.parties()}
        desk.records(
            record(number, name.upper(), "ZA", category="SOLE_PROPRIETOR"),
            record(lei("ABROAD"), abroad.upper(), "IN", category="SOLE_PROPRIETOR"),
        )
        desk.publish()
        assert caller.server.get(f"/v1/tenders?edition={before}", caller.key).status_code == 410
    desk.ingest("portal-za", "c.json", package(supplied("c", {"name": "Zqkotak Sales Ltd."})))
    for publish in (False, True):
        if publish:
            desk.publish()
        with desk.serve() as caller:
            served = caller.server.get("/v1/tenders", caller.key).text
            assert not re.search("zqkotak|zqother|zqpadmini", served, re.IGNORECASE)
            ocids = "abcd" if publish else "abd"
            assert {caller.tender(ocid)["withheld_parties"] for ocid in ocids} == {1}
            assert FIRM in {p["name"] for p in caller.parties()}


TEXT = (
    "Qseen works. Contact person: Zqthemba Zqkhoza; cell 0825550199. "
    "Evaluation by Dr Q. Zqpillay for Mr Price Group Limited."
)
WITHHELD_TEXT = (
    "Qseen works. Contact person: [withheld]; cell [withheld]. "
    "Evaluation by Dr [withheld] for Mr Price Group Limited."
)
FIELDS: dict[str, Any] = {
    "tender": {
        "title": TEXT,
        "title_fr": TEXT,
        "description": TEXT,
        "category": TEXT,
        "procurementMethodDetails": TEXT,
        "statusDetails": TEXT,
        "eligibilityCriteria": TEXT,
        "documents": [{"id": "1", "title": TEXT, "description": TEXT}],
        "items": [{"id": "1", "description": TEXT, "attributes": [{"id": "1", "name": TEXT, "value": TEXT}]}],
        "amendments": [{"id": "1", "rationale": TEXT, "description": TEXT}],
        "lots": [{"id": "1", "title": TEXT, "submissionTerms": {"subcontractingClauses": [TEXT, TEXT]}}],
    },
    "planning": {"rationale": TEXT, "budget": {"description": TEXT, "project": TEXT}},
    "awards": [{"id": "1", "title": TEXT, "description": TEXT, "items": [{"id": "1", "description": TEXT}]}],
    "contracts": [
        {"id": "1", "title": TEXT, "milestones": [{"id": "1", "title": TEXT, "description": TEXT}]}
    ],
    "bids": {"statistics": [{"id": "1", "measure": "bids", "notes": TEXT}]},
}


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


@pytest.mark.rule("GATE-8")
def test_no_surface_names_a_contact_from_a_free_text(plain_desk: Desk) -> None:
    copies = texts(FIELDS).count(TEXT) - 1  # the portal's category is on the row, not in the release
    plain_desk.ingest("portal-za", "a.json", package(release("a", **FIELDS)))
    with plain_desk.publish_and_serve() as caller:
        row = caller.tender("a")
        assert texts(row["release"]).count(WITHHELD_TEXT) == copies
        assert (row["title"], row["category"]) == (WITHHELD_TEXT, WITHHELD_TEXT)
        answers = [
            caller.server.get(path, caller.key).text
            for path in ("/v1/tenders", "/tenders", "/v1/tender-parties")
        ]
        answers += [json.dumps(caller.tool("search_tenders", query="qseen", detail="full")[1])]
        assert "Qseen" in answers[0] + answers[3]
        assert caller.tool("search_tenders", query="zqthemba")[1]["count"] == 0
    files = [path.read_bytes() for path in plain_desk.home.rglob("*") if path.is_file()]
    for secret in ("zqthemba", "zqkhoza", "zqpillay", "0825550199"):
        assert not [answer for answer in answers if secret in answer.lower()]
        assert not [content for content in files if secret.encode() in content.lower()]


@pytest.mark.rule("GATE-4")
def test_a_person_withheld_in_one_release_is_withheld_in_the_whole_process(plain_desk: Desk) -> None:
    person = {"id": "w", "name": "Zqlindiwe Zqmokgatle", "roles": ["supplier"]}
    call = {"tender": {"title": "Qfirst call, Zqmokgatle Zqlindiwe asked"}}
    awarded = {"parties": [person], "awards": [{"id": "1", "suppliers": [{"id": "w"}]}]}
    signed = {"contracts": [{"id": "1", "documents": [{"id": "1", "title": "Qlast ZQLINDIWE ZQMOKGATLE"}]}]}
    parts: tuple[dict[str, Any], ...] = (call, awarded, signed)
    days = (f"2025-06-0{number}T10:00:00Z" for number in (1, 2, 3))
    releases = [release("p", day, int(day[9]), **one) for day, one in zip(days, parts, strict=True)]
    other = release("q", tender={"title": "Qother process"})
    plain_desk.ingest("portal-za", "a.json", package(releases[0], other, *releases[1:]))
    with plain_desk.publish_and_serve() as caller:
        text = caller.server.get("/v1/tenders", caller.key).text
        assert "Qfirst call, [withheld] asked" in text
        assert "Qlast [withheld]" in text
        assert [row["withheld_parties"] for row in caller.tenders() if row["ocid"].endswith("-p")] == [
            0,
            1,
            0,
        ]
        contract = caller.server.get("/v1/contracts/ocds-test-p", caller.key).text
        assert "zqmokgatle" not in (text + contract).lower()
    files = [path.read_bytes().lower() for path in plain_desk.home.rglob("*") if path.is_file()]
    assert not [content for content in files if b"zqmokgatle" in content]


@pytest.mark.rule("GATE-4")
def test_no_source_ref_contains_a_name_that_another_release_withholds(plain_desk: Desk) -> None:
    person = {"id": "w", "name": "Zqlindiwe Zqmokgatle", "roles": ["supplier"]}
    parties: tuple[list[dict[str, Any]], ...] = ([], [person], [])
    releases = [release(name, parties=own) for name, own in zip("abc", parties, strict=True)]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("award-zqmokgatle-zqlindiwe.json", json.dumps(package(*releases)))
    plain_desk.ingest("portal-za", "a.zip", archive.getvalue())
    with plain_desk.publish_and_serve() as caller:
        refs = [row["source_ref"].partition("#")[2] for row in caller.tenders()]
    assert refs == [f"award-[withheld].json: releases[{number}]" for number in range(3)]
