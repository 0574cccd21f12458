"""GLEIF level 2: the parents of an organisation on a day, and in its history."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, run, succeed
from tests.spec.register import lei
from tests.spec.test_entities_in_time import golden_copy

HEAD = (
    "Relationship.StartNode.NodeID,Relationship.StartNode.NodeIDType,Relationship.EndNode.NodeID,"
    "Relationship.EndNode.NodeIDType,Relationship.RelationshipType,Relationship.RelationshipStatus,"
    "Relationship.Period.1.startDate,Relationship.Period.1.endDate,Relationship.Period.1.periodType,"
    "Registration.InitialRegistrationDate,Registration.LastUpdateDate,Registration.RegistrationStatus"
)
CHILD, OLD, NEW, TOP, ABROAD, PERSON = map(lei, ("CHILD", "OLD", "NEW", "TOP", "ABROAD", "SOLE"))
CHILD_ID, OLD_ID, NEW_ID, TOP_ID = (service_id(f"lei:{one}") for one in (CHILD, OLD, NEW, TOP))
DIRECT, ULTIMATE = "IS_DIRECTLY_CONSOLIDATED_BY", "IS_ULTIMATELY_CONSOLIDATED_BY"


def relationship(
    child: str, kind: str, parent: str, updated: str, status: str = "ACTIVE", first: str = "2016-01-01"
) -> str:
    end = updated if status == "OVER" else ""
    status_now = "ACTIVE" if status == "OVER" else status
    return (
        f"{child},LEI,{parent},LEI,{kind},{status_now},2010-01-01T00:00:00Z,{end},RELATIONSHIP_PERIOD,"
        f"{first}T00:00:00Z,{updated}T09:30:00Z,PUBLISHED"
    )


def relationships(folder: Path, day: str, *rows: str) -> Path:
    path = folder / f"{day.replace('-', '')}-0000-gleif-goldencopy-rr.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parents")
    people = (PERSON, "Quentin Marchbanks", "", "ISSUED", "2015-06-01", "2018-03-01")
    others = [
        (number, name, "", "ISSUED", "2015-06-01", "2018-03-01")
        for number, name in ((CHILD, "Child Limited"), (NEW, "New Parent Plc"), (TOP, "Top Holdings Plc"))
    ]
    old = (OLD, "Old Parent Plc", "", "ISSUED", "2015-06-01", "2018-03-01")
    renamed = (OLD, "Older Parent Plc", "", "ISSUED", "2015-06-01", "2019-02-01")
    copies = [
        golden_copy(folder, "2019-01-05", *others, old, people),
        golden_copy(folder, "2021-01-05", *others, renamed),
    ]
    text = copies[0].read_text().replace('Marchbanks",ZA,ZA,GENERAL', 'Marchbanks",ZA,ZA,SOLE_PROPRIETOR')
    copies[0].write_text(text)
    first = [
        relationship(CHILD, DIRECT, OLD, "2018-01-01"),
        relationship(CHILD, ULTIMATE, ABROAD, "2018-01-01"),
        relationship(NEW, DIRECT, PERSON, "2018-01-01"),
        relationship(CHILD, "IS_FUND-MANAGED_BY", TOP, "2018-01-01"),
        relationship(TOP, DIRECT, TOP, "2018-01-01"),
    ]
    second = [
        relationship(CHILD, DIRECT, OLD, "2020-05-04", "INACTIVE"),
        relationship(CHILD, DIRECT, NEW, "2020-05-04", first="2017-01-01"),
        relationship(CHILD, ULTIMATE, ABROAD, "2018-01-01"),
    ]
    third = [
        relationship(CHILD, DIRECT, NEW, "2022-03-01", "OVER"),
        relationship(CHILD, ULTIMATE, TOP, "2022-06-01"),
    ]
    packed = folder / "20230105-0000-gleif-goldencopy-rr.csv.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(relationships(folder, "2023-01-05", *third), "20230105-rr.csv")
    files = [
        relationships(folder, "2021-01-05", *second),
        relationships(folder, "2019-01-05", *first),
        packed,
    ]
    home = folder / "home"
    for source, path in [*(("gleif-lei", one) for one in copies), *(("gleif-rr", one) for one in files)]:
        done = succeed(home, "ingest", source, path)
        if path == files[1]:
            counts = "read 5, appended 1, unchanged 1, withheld 1, rejected 1, skipped 1"
            assert counts in done.stdout, done.stdout
    return home


@pytest.fixture(scope="module")
def world(home: Path) -> Iterator[tuple[LiveServer, str]]:
    succeed(home, "publish")
    with LiveServer(home) as server:
        yield server, create_key(home, "starter")


def get(world: tuple[LiveServer, str], path: str) -> dict[str, Any]:
    server, key = world
    return server.body(path, key)


@pytest.mark.rule("ENTY-8")
@pytest.mark.parametrize(
    ("day", "direct", "ultimate"),
    [
        ("2015-12-31", None, None),
        ("2019-01-31", (OLD_ID, OLD, "Old Parent Plc"), (None, ABROAD, None)),
        ("2020-05-03", (OLD_ID, OLD, "Older Parent Plc"), (None, ABROAD, None)),
        ("2020-05-04", (NEW_ID, NEW, "New Parent Plc"), (None, ABROAD, None)),
        ("2022-02-28", (NEW_ID, NEW, "New Parent Plc"), (None, ABROAD, None)),
        ("2022-05-31", None, (None, ABROAD, None)),
        ("2022-06-01", None, (TOP_ID, TOP, "Top Holdings Plc")),
    ],
)
def test_an_organisation_has_the_parents_of_the_day(
    world: tuple[LiveServer, str], day: str, direct: tuple[str, ...] | None, ultimate: tuple[str, ...] | None
) -> None:
    names = "service_id", "lei", "legal_name"
    for path in (f"/v1/entities/{CHILD_ID}?as_of={day}", f"/at/{day}/v1/entities/{CHILD_ID}"):
        (row,) = get(world, path)["data"]
        assert row["direct_parent"] == (dict(zip(names, direct, strict=True)) if direct else None)
        assert row["ultimate_parent"] == (dict(zip(names, ultimate, strict=True)) if ultimate else None)
        assert row["legal_name"] == "Child Limited"


@pytest.mark.rule("ENTY-5", "ENTY-8")
def test_the_history_has_both_parents_with_their_days(world: tuple[LiveServer, str]) -> None:
    def parents(path: str) -> set[tuple[str, str, str, str | None]]:
        rows = [row for row in get(world, path)["data"] if row["kind"] == "parent"]
        assert {row["source_ref"].split(":")[0] for row in rows} == {"gleif-rr"}
        return {(row["relationship"], row["value"], row["from"], row["until"]) for row in rows}

    path = f"/v1/entities/{CHILD_ID}/history"
    assert parents(path) == {
        ("direct", NEW, "2020-05-04", "2022-02-28"),
        ("direct", OLD, "2016-01-01", "2020-05-03"),
        ("ultimate", ABROAD, "2016-01-01", "2022-05-31"),
        ("ultimate", TOP, "2022-06-01", None),
    }
    then = {("direct", OLD, "2016-01-01", None), ("ultimate", ABROAD, "2016-01-01", None)}
    assert parents(f"{path}?as_of=2020-05-03") == then
    assert parents(f"/at/2020-05-03{path}") == then
    others = [row for row in get(world, path)["data"] if row["kind"] != "parent"]
    assert {row["relationship"] for row in others} == {None}


@pytest.mark.rule("ENTY-8", "GATE-1")
def test_a_person_is_never_a_parent(world: tuple[LiveServer, str]) -> None:
    (row,) = get(world, f"/v1/entities/{NEW_ID}")["data"]
    assert row["direct_parent"] is None
    assert PERSON not in str(get(world, f"/v1/entities/{NEW_ID}/history"))


@pytest.mark.rule("ENTY-8")
def test_the_page_of_a_company_links_to_its_parent(world: tuple[LiveServer, str]) -> None:
    server, _ = world
    page = server.http.get(f"/company/{CHILD_ID}", headers={"accept-language": "en"}).text
    assert "Ultimate parent" in page
    assert f"/company/{TOP_ID}" in page
    then = server.http.get(f"/company/{CHILD_ID}?as_of=2020-05-03", headers={"accept-language": "en"}).text
    assert f"/company/{OLD_ID}" in then
    assert f"<code>{ABROAD}</code>" in then


@pytest.mark.rule("ENTY-8")
def test_a_row_with_parents_is_proven_and_a_withdrawn_file_leaves_no_parent(home: Path) -> None:
    with LiveServer(home) as server:
        key = create_key(home, "starter")
        answer = server.get(f"/v1/entities/{CHILD_ID}?proof=true", key)
        (home.parent / "proof.json").write_text(answer.text)
        assert answer.json()["data"][0]["ultimate_parent"]["lei"] == TOP
    succeed(home, "verify", home.parent / "proof.json")
    packed = "20230105-0000-gleif-goldencopy-rr.csv.zip"
    succeed(home, "withdraw", "gleif-rr", "--file", packed, "--reason", "wrong")
    succeed(home, "publish")
    with LiveServer(home) as server:
        key = create_key(home, "starter")
        (row,) = server.get(f"/v1/entities/{CHILD_ID}", key).json()["data"]
        assert (row["direct_parent"]["lei"], row["ultimate_parent"]["lei"]) == (NEW, ABROAD)
        assert "2022-06-01" not in server.get(f"/v1/entities/{CHILD_ID}/history", key).text


@pytest.mark.rule("ADP-13")
def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "20230105-rr.csv"
    file.write_text("LEI,Entity.LegalName\n1,2\n")
    done = run(tmp_path / "home", "ingest", "gleif-rr", file)
    assert done.returncode == 1
    assert "expected a GLEIF relationship record golden copy CSV" in done.stderr
