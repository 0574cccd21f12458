"""`sankofa withdraw`: a tombstone, an edition as if the file had never come, and a file that comes again."""

import json
from pathlib import Path
from typing import Any

import pytest

from sankofa.replication.stores import open_store
from sankofa.settings import Settings
from tests.depth import deep_after
from tests.spec.market import Desk, package, party, release
from tests.spec.market import desk as desk
from tests.spec.market import plain_desk as plain_desk
from tests.spec.register import COLUMNS, lei, record, sid
from tests.spec.tender_market import wait_for_edition

ISSUER, OTHER, TRADER = lei("ISSUER"), lei("OTHER"), lei("TRADER")
SHARED = release("shared", "2025-05-01T10:00:00Z", buyer={"name": "Department of Shared Figures"})
PERSONAL = release(
    "personal", "2025-05-02T10:00:00Z", parties=[party("p", "Zebulon Quentin Marchbanks", "supplier")]
)
REGISTRY = "".join(
    f"""
[sources.{name}]
adapter = "{adapter}"
{f'sku = "{sku}"' if sku else ""}
{'country = "ZA"' if adapter == "ocds" else ""}
license_class = "cc-by"
commercial_redistribution = true
"""
    for name, adapter, sku in (
        ("names", "gleif-lei", None),
        ("filed", "filings-csv", "AF-FUND"),
        ("portal", "ocds", "AF-TENDER"),
        ("bank", "worldbank", "AF-MACRO"),
        ("other-bank", "worldbank", "AF-MACRO"),
        ("rates", "series-csv", "AF-MACRO"),
    )
)
FILINGS = (
    "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
    "confidence\n"
)
SERIES = "series,series_type,frequency,country,date,value,unit,release_date\n"
TABLE = "Country Name,Country Code,Year,Value\n"
PATHS = (
    f"/v1/fundamentals/{sid(f'lei:{ISSUER}')}?vintages=all",
    f"/v1/entities/{sid(f'lei:{ISSUER}')}",
    f"/v1/entities/{sid(f'lei:{OTHER}')}",
    f"/v1/metrics/{sid(f'lei:{ISSUER}')}",
    "/v1/tenders?country=ZA",
    "/v1/tender-parties",
    "/v1/macro?country=ZA&indicator=NY.GDP.MKTP.CD",
    "/v1/macro?country=KE&indicator=NY.GDP.MKTP.CD",
    "/v1/macro?series=CPI.ZA",
    "/v1/quality-metrics/AF-MACRO",
    "/v1/quality-metrics/AF-TENDER",
    "/v1/changes",
)


def filing(value: int, year: int, document: str) -> str:
    days = f"{year}-01-01,{year}-12-31,FY,{year + 1}-03-01"
    return f"lei:{ISSUER},revenue,{value},ZAR,{days},{document},p. 4,0.99\n"


def rate(month: int, value: str, release: str) -> str:
    return f"CPI.ZA,cpi,monthly,ZA,2025-0{month}-01,{value},index,{release}\n"


def ingest_all(desk: Desk, *, bad: bool) -> None:
    """Three files of each source; the second is bad, and the third repeats some of what only it had."""
    (desk.home / "sources.toml").write_text(REGISTRY)
    desk.ingest("names", "names.csv", names(ISSUER))
    desk.ingest("filed", "first.csv", FILINGS + filing(10, 2021, "a"))
    desk.ingest("bank", "NY.GDP.MKTP.CD.csv", TABLE + "S,ZAF,2019,1\nS,ZAF,2020,2\n")
    desk.ingest("rates", "first.csv", SERIES + rate(1, "1.5", "2025-02-01"))
    desk.ingest("portal", "first.json", package(release("one")))
    if bad:
        desk.ingest("names", "bad.csv", names(OTHER, TRADER))
        desk.ingest("filed", "bad.csv", FILINGS + filing(99, 2021, "b") + filing(20, 2022, "c"))
        wrong = TABLE + "S,ZAF,2019,7\nS,ZAF,2020,8\nS,ZAF,2021,4\nK,KEN,2020,5\n"
        desk.ingest("bank", "NY.GDP.MKTP.CD.csv", wrong)
        desk.ingest("rates", "bad.csv", SERIES + rate(1, "9.5", "2025-03-01") + rate(2, "2.5", "2025-03-01"))
        wrong_buyer = release("bad", buyer={"name": "Department of Wrong Figures"})
        desk.ingest("portal", "bad.json", package(wrong_buyer, SHARED, PERSONAL))
    desk.ingest("other-bank", "NY.GDP.MKTP.CD.csv", TABLE + "K,KEN,2020,6\n")
    desk.ingest("names", "third.csv", names(OTHER))
    desk.ingest("filed", "third.csv", FILINGS + filing(20, 2022, "c") + filing(30, 2023, "d"))
    desk.ingest("bank", "NY.GDP.MKTP.CD.csv", TABLE + "S,ZAF,2019,1\nS,ZAF,2020,8\nS,ZAF,2021,4\n")
    desk.ingest("rates", "third.csv", SERIES + rate(2, "2.5", "2025-03-01"))
    desk.ingest("portal", "third.json", package(SHARED, PERSONAL))
    desk.ingest("portal", "fourth.json", package(SHARED, release("four", "2025-07-01T10:00:00Z")))


def names(*leis: str) -> str:
    return "\n".join([COLUMNS, *(record(one, f"{one} Holdings Ltd", "ZA") for one in leis)]) + "\n"


def served(desk: Desk) -> dict[str, Any]:
    with desk.serve() as asked:
        answers = {path: asked.server.get(path, asked.key).json() for path in PATHS}
    return {path: [_timeless(row) for row in _rows(body)] for path, body in answers.items()}


def _rows(body: dict[str, Any]) -> list[dict[str, Any]]:
    assert "data" in body, body
    return list(body["data"])


def _timeless(row: Any) -> Any:
    """Without what depends on the second in which a test ran."""
    if isinstance(row, dict):
        names = ("observed_at", "measured_at")
        return {name: _timeless(value) for name, value in row.items() if name not in names}
    return [_timeless(value) for value in row] if isinstance(row, list) else row


@pytest.mark.deep
@pytest.mark.both_engines
@pytest.mark.rule("ING-9")
def test_an_edition_without_withdrawn_files_is_that_of_a_ledger_that_never_had_them(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ingest_all(desk, bad=True)
    before = desk.publish()
    captures = json.loads(desk.command("ledger", "captures", "bank", "--json").stdout)
    withdraw = ("--reason", "wrong figures")
    for source in ("filed", "rates", "names"):
        assert desk.command("withdraw", source, "--file", "bad.csv", *withdraw).returncode == 0
    assert desk.command("withdraw", "portal", "--file", "bad.json", *withdraw).returncode == 0
    done = desk.command("withdraw", "bank", "--capture", str(captures[1]["capture"]), *withdraw)
    assert done.returncode == 0, done.stderr
    assert "withdrawn 1, still valid 2" in done.stdout
    said = desk.command("publish")
    assert said.returncode == 0, said.stderr
    assert "without 1 withdrawn files of bank: wrong figures" in said.stdout
    after = said.stdout.splitlines()[-1].split()[2].rstrip(":")
    assert after > before
    never = Desk(tmp_path_factory.mktemp("never"))
    ingest_all(never, bad=False)
    never.publish()
    expected, found = served(never), served(desk)
    for path in PATHS:
        assert found[path] == expected[path], path
    assert len(json.loads(desk.command("ledger", "captures", "bank", "--json").stdout)) == 2
    assert desk.command("ledger", "verify").returncode == 0
    manifest = (
        open_store(Settings(home=desk.home, datastore=desk.settings.get("datastore", "sqlite:")))
        .open(after)
        .manifest
    )
    sources = [one["source"] for one in manifest["withdrawals"]]
    assert sources == ["filed", "rates", "names", "portal", "bank"]
    assert "wrong figures" not in json.dumps(manifest), "everybody can read the manifest"
    assert "wrong figures" in desk.command("publish").stdout
    replayed = desk.command("vault", "replay")
    assert replayed.returncode == 0, replayed.stderr + replayed.stdout
    assert "not rebuilt: portal: 4 files" in replayed.stdout
    with desk.serve() as asked:
        changes = asked.get("/v1/changes", since=before, limit=10000)["data"]
    removed = {row["dataset"] for row in changes if row["change"] == "removed"}
    assert {"fundamentals", "tenders"} <= removed


@pytest.mark.rule("ING-9", "ING-10")
def test_only_with_everywhere_kept_editions_that_hold_it_are_withdrawn(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "good.json", package(release("good")))
    good = desk.publish()
    desk.ingest("portal-za", "bad.json", package(release("bad")))
    bad = desk.publish()
    desk.command("withdraw", "portal-za", "--file", "bad.json", "--reason", "wrong")
    with desk.serve() as asked:
        wait_for_edition(asked, desk.publish())
        assert asked.server.get(f"/v1/tenders?edition={bad}", asked.key).status_code == 200
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
        wait_for_edition(asked, current)
        codes = {
            e: asked.server.get(f"/v1/tenders?edition={e}", asked.key).status_code for e in (good, worse)
        }
        assert codes == {good: 200, worse: 410}
        assert [row["release_id"] for row in asked.tenders(country="ZA")] == ["good-1"]
        gone = asked.get("/v1/changes", since=worse, dataset="tenders")["data"]
        assert [(row["change"], row["row"]) for row in gone] == [("removed", None)]
    rolled = desk.command("editions", "rollback", worse)
    assert (rolled.returncode, "withdrawn everywhere" in rolled.stderr) == (1, True)


OVERLAP = [release(name, tender={"title": f"Works {name}"}) for name in ("a", "b", "c")]
RECORDS = {"version": "1.1", "records": [{"ocid": one["ocid"], "releases": [one]} for one in OVERLAP]}


@pytest.mark.both_engines
@pytest.mark.rule("ING-9", "ING-10")
def test_a_source_is_withdrawn_with_its_unchanged_files_though_nothing_else_is_left(desk: Desk) -> None:
    assert desk.ingest("portal-za", "ocds.json", package(*OVERLAP))["appended"] == 3
    assert desk.ingest("portal-za", "records.json", RECORDS)["unchanged"] == 3
    before = desk.publish()
    done = desk.command("withdraw", "portal-za", "--everywhere", "--reason", "court order")
    assert (done.returncode, "withdrawn 2, still valid 0" in done.stdout) == (0, True), done.stderr
    desk.publish()
    with desk.serve() as asked:
        get = asked.server.get
        for path in ("tenders", "tender-parties", "search?q=Works", "coverage", "sources"):
            assert get(f"/v1/{path}", asked.key).json()["count"] == 0, path
        assert get(f"/v1/tenders?edition={before}", asked.key).status_code == 410
        removed = [row["change"] for row in asked.get("/v1/changes", since=before, dataset="tenders")["data"]]
        assert removed == ["removed"] * 3
        for path in ("", "tenders", "quality", "status", "editions"):
            page = get(f"/{path}", accept="text/html")
            assert (page.status_code, "Works a" in page.text) == (200, False), path
        assert asked.tool("search_tenders", country="ZA")[1]["count"] == 0
    again = desk.command("ingest", "portal-za", desk.folder / "records.json")
    assert "records.json: was withdrawn on" in again.stdout
    assert "counts again" in again.stdout
    desk.publish()
    with desk.serve() as asked:
        assert len(asked.tenders(country="ZA")) == 3


@pytest.mark.both_engines
@pytest.mark.rule("ING-9")
def test_rows_that_another_file_gives_too_stay_and_are_that_files(desk: Desk) -> None:
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
    for withdrawn, left in (("ocds.json", "records.json"), ("records.json", "copy.json")):
        done = desk.command("withdraw", "portal-za", withdrawn, "--reason", "replaced")
        assert done.returncode == 0, done.stderr
        desk.publish()
        (file,) = [row for row in listed if row["file"] == left]
        with desk.serve() as asked:
            rows = asked.tenders(country="ZA")
        assert {row["observed_at"] for row in rows} == {file["observed_at"]}
        assert {row["source_ref"].partition("#")[0] for row in rows} == {
            f"portal-za:{left}@{file['sha256'][:8]}"
        }
        assert len(rows) == 3
    assert desk.command("vault", "verify").returncode == 0
    assert desk.command("ledger", "verify").returncode == 0


@pytest.mark.deep
@pytest.mark.rule("ING-9")
def test_a_restored_home_knows_what_was_withdrawn(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    desk.ingest("portal-ke", "ke.json", package(release("k")))
    desk.ingest("portal-za", "ocds.json", package(*OVERLAP))
    desk.ingest("portal-za", "records.json", RECORDS)
    assert desk.command("withdraw", "portal-za", "ocds.json", "--reason", "x").returncode == 0
    first = desk.publish()
    assert desk.command("backup", "--with-vault", tmp_path / "saved").returncode == 0
    other = Desk(tmp_path / "other")
    (other.home / "sources.toml").unlink()
    assert other.command("restore", tmp_path / "saved").returncode == 0
    assert other.publish() == first
    assert other.command("withdraw", "portal-za", "records.json", "--reason", "x").returncode == 0
    other.publish()
    with other.serve() as asked:
        assert [len(asked.tenders(country=code)) for code in ("ZA", "KE")] == [0, 1]


@pytest.mark.deep
def test_a_whole_source_is_withdrawn_and_comes_again(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "a.json", package(release("a")))
    desk.ingest("portal-ke", "b.json", package(release("b")))
    assert desk.command("withdraw", "portal-za", "--reason", "no longer ours").returncode == 0
    desk.publish()
    refused = desk.command("withdraw", "portal-za", "--reason", "no longer ours")
    assert (refused.returncode, "nothing of source 'portal-za'" in refused.stderr) == (1, True)
    with desk.serve() as asked:
        assert [len(asked.tenders(country=place)) for place in ("ZA", "KE")] == [0, 1]
        assert desk.ingest("portal-za", "a2.json", package(release("a"), release("c")))["appended"] == 2
        wait_for_edition(asked, desk.publish())
        assert [len(asked.tenders(country=place)) for place in ("ZA", "KE")] == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
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
def test_a_withdrawal_of_nothing_is_refused_and_leaves_nothing(
    plain_desk: Desk, arguments: tuple[str, ...], said: str
) -> None:
    plain_desk.ingest("portal-za", "a.json", package(release("a")))
    refused = plain_desk.command("withdraw", "portal-za", *arguments)
    assert refused.returncode != 0
    assert said in refused.stderr
    assert "capture 1" not in plain_desk.command("ledger", "captures").stderr
    assert plain_desk.publish().split("-")[1] == "00001"
