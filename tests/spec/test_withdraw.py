"""`sankofa withdraw`: a tombstone, an edition without the file, and a file that is ingested again."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.live import LiveServer, publish_files, succeed
from tests.spec.market import Desk, package, release
from tests.spec.market import desk as desk
from tests.spec.market import plain_desk as plain_desk
from tests.spec.register import lei
from tests.spec.tender_market import wait_for_edition


@pytest.mark.rule("ING-9", "ING-10")
def test_kept_editions_are_withdrawn_only_with_everywhere(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "good.json", package(release("good")))
    good = desk.publish()
    desk.ingest("portal-za", "bad.json", package(release("bad")))
    bad = desk.publish()
    desk.command("withdraw", "portal-za", "--file", "bad.json", "--reason", "wrong")
    with desk.serve() as caller:
        wait_for_edition(caller, desk.publish())
        assert caller.server.get(f"/v1/tenders?edition={bad}", caller.key).status_code == 200
        again = desk.command("ingest", "portal-za", desk.folder / "bad.json")
        assert "bad.json: was withdrawn on" in again.stdout
        assert "counts again" in again.stdout
        assert "appended 1" in again.stdout
        worse = desk.publish()
        done = desk.command(
            "withdraw", "portal-za", "--file", "bad.json", "--everywhere", "--reason", "wrong"
        )
        assert done.returncode == 0, done.stderr
        current = desk.publish()
        wait_for_edition(caller, current)
        codes = {
            e: caller.server.get(f"/v1/tenders?edition={e}", caller.key).status_code for e in (good, worse)
        }
        assert codes == {good: 200, worse: 410}
        assert [row["release_id"] for row in caller.tenders(country="ZA")] == ["good-1"]
        removed = caller.get("/v1/changes", since=worse, dataset="tenders")["data"]
        assert [(row["change"], row["row"]) for row in removed] == [("removed", None)]
    rolled = desk.command("editions", "rollback", worse)
    assert (rolled.returncode, "withdrawn everywhere" in rolled.stderr) == (1, True)


OVERLAP = [release(name, tender={"title": f"Works {name}"}) for name in ("a", "b", "c")]
RECORDS = {"version": "1.1", "records": [{"ocid": one["ocid"], "releases": [one]} for one in OVERLAP]}


@pytest.mark.both_engines
@pytest.mark.rule("ING-9", "ING-10")
def test_a_source_is_withdrawn_even_if_nothing_else_is_left(desk: Desk) -> None:
    assert desk.ingest("portal-za", "ocds.json", package(*OVERLAP))["appended"] == 3
    assert desk.ingest("portal-za", "records.json", RECORDS)["unchanged"] == 3
    before = desk.publish()
    done = desk.command("withdraw", "portal-za", "--everywhere", "--reason", "court order")
    assert (done.returncode, "withdrawn 2, still valid 0" in done.stdout) == (0, True), done.stderr
    with desk.publish_and_serve() as caller:
        get = caller.server.get
        for path in ("tenders", "tender-parties", "search?q=Works", "coverage", "sources"):
            assert get(f"/v1/{path}", caller.key).json()["count"] == 0, path
        assert get(f"/v1/tenders?edition={before}", caller.key).status_code == 410
        removed = [
            row["change"] for row in caller.get("/v1/changes", since=before, dataset="tenders")["data"]
        ]
        assert removed == ["removed"] * 3
        for path in ("", "tenders", "quality", "status", "editions"):
            page = get(f"/{path}", accept="text/html")
            assert (page.status_code, "Works a" in page.text) == (200, False), path
        assert caller.tool("search_tenders", country="ZA")[1]["count"] == 0
    again = desk.command("ingest", "portal-za", desk.folder / "records.json")
    assert "records.json: was withdrawn on" in again.stdout
    assert "counts again" in again.stdout
    with desk.publish_and_serve() as caller:
        assert len(caller.tenders(country="ZA")) == 3


@pytest.mark.both_engines
@pytest.mark.rule("ING-9")
def test_rows_that_another_file_has_too_stay_and_name_that_file(desk: Desk) -> None:
    """The other file was unchanged; a copy under another name is another file."""
    desk.ingest("portal-za", "ocds.json", package(*OVERLAP))
    desk.ingest("portal-za", "records.json", RECORDS)
    desk.ingest("portal-za", "copy.json", RECORDS)
    listed = json.loads(desk.command("ledger", "captures", "portal-za", "--json").stdout)
    assert [(row["file"], row["unchanged"]) for row in listed] == [
        ("ocds.json", False),
        ("records.json", True),
        ("copy.json", True),
    ]
    desk.publish()
    for withdrawn, remaining in (("ocds.json", "records.json"), ("records.json", "copy.json")):
        desk.succeed("withdraw", "portal-za", withdrawn, "--reason", "replaced")
        desk.publish()
        (file,) = [row for row in listed if row["file"] == remaining]
        with desk.serve() as caller:
            rows = caller.tenders(country="ZA")
        assert {row["observed_at"] for row in rows} == {file["observed_at"]}
        assert {row["source_ref"].partition("#")[0] for row in rows} == {
            f"portal-za:{remaining}@{file['sha256'][:8]}"
        }
        assert len(rows) == 3
    assert desk.command("vault", "verify").returncode == 0
    assert desk.command("ledger", "verify").returncode == 0


@pytest.mark.deep
@pytest.mark.rule("ING-9")
def test_a_restored_home_remembers_withdrawals(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    desk.ingest("portal-ke", "ke.json", package(release("k")))
    desk.ingest("portal-za", "ocds.json", package(*OVERLAP))
    desk.ingest("portal-za", "records.json", RECORDS)
    assert desk.command("withdraw", "portal-za", "ocds.json", "--reason", "x").returncode == 0
    first = desk.publish()
    assert desk.command("backup", tmp_path / "saved").returncode == 0
    other = Desk(tmp_path / "other")
    (other.home / "sources.toml").unlink()
    assert other.command("restore", tmp_path / "saved").returncode == 0
    shutil.copytree(desk.home / "vault", other.home / "vault")
    assert other.publish() == first
    assert other.command("withdraw", "portal-za", "records.json", "--reason", "x").returncode == 0
    with other.publish_and_serve() as caller:
        assert [len(caller.tenders(country=code)) for code in ("ZA", "KE")] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    deep_after(
        3,
        [
            (("--reason", " "), "--reason"),
            ((), "Missing option '--reason'"),
            (("--capture", "9", "--reason", "x"), "there is no capture 9"),
            (("--file", "c.json", "--reason", "x"), "no file 'c.json'"),
            (("--file", "c", "--capture", "1", "--reason", "x"), "exclude each other"),
        ],
    ),
)
def test_a_withdrawal_that_matches_nothing_is_refused(
    plain_desk: Desk, arguments: tuple[str, ...], message: str
) -> None:
    plain_desk.ingest("portal-za", "a.json", package(release("a")))
    refused = plain_desk.command("withdraw", "portal-za", *arguments)
    assert refused.returncode != 0
    assert message in refused.stderr
    assert "capture 1" not in plain_desk.command("ledger", "captures").stderr
    assert plain_desk.publish().split("-")[1] == "00001"


@pytest.mark.rule("ENT-1", "ING-9")
def test_an_organisation_keeps_its_id_after_its_first_identifier_is_withdrawn(tmp_path: Path) -> None:
    home, links, figures = tmp_path / "home", tmp_path / "links.csv", tmp_path / "figures.csv"
    cik = "registry:US-SEC-CIK:0000812070"
    links.write_text(f"entity,id_type,id_value,registry\n{cik},lei,{lei('ROADS')},\n")
    figures.write_text(
        "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
        f"confidence\n{cik},revenue,5,ZAR,2023-01-01,2023-12-31,FY,2024-03-01,report,p. 1,0.99\n"
    )

    def identifiers() -> tuple[str, list[str], int]:
        """The id of the single issuer, the kinds of its identifiers, and how many have the LEI."""
        with LiveServer(home) as server:
            key = server.key("starter")
            (row,) = server.get("/v1/issuers", key).json()["data"]
            crosswalk = server.get(f"/v1/crosswalk?id_type=lei&id_value={lei('ROADS')}", key).json()
            kinds = server.get(f"/v1/crosswalk/{row['service_id']}", key).json()["data"]
        return row["service_id"], [one["id_type"] for one in kinds], crosswalk["count"]

    publish_files(home, ("identifiers", links), ("filings", figures))
    issued, *before = identifiers()
    assert before == [["lei", "registry"], 1]
    succeed(home, "withdraw", "identifiers", links.name, "--everywhere", "--reason", "wrong")
    succeed(home, "publish")
    assert identifiers() == (issued, ["registry"], 0)


@pytest.mark.rule("GATE-4", "ING-9")
def test_a_file_named_after_a_withheld_person_is_found_by_its_number(plain_desk: Desk) -> None:
    desk = plain_desk
    content = release(
        "a", parties=[{"id": "p", "name": "Nelson Francisco Vera Quintana", "roles": ["supplier"]}]
    )
    assert desk.ingest("portal-za", "award-nelson-francisco-vera-quintana-1.json", package(content))[
        "withheld"
    ]
    refused = desk.command(
        "withdraw", "portal-za", "award-nelson-francisco-vera-quintana-1.json", "--reason", "wrong"
    )
    assert refused.returncode == 1
    (number,) = re.findall(r"if it is 'award-\[withheld\]-1.json', give --capture (\d+)", refused.stderr)
    assert "nelson" not in refused.stderr.casefold()
    desk.succeed("withdraw", "portal-za", "--capture", number, "--reason", "wrong")
    other = desk.command("withdraw", "portal-za", "another.json", "--reason", "wrong")
    assert "nothing of source 'portal-za' is in the ledger" in other.stderr
