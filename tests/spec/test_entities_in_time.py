"""`as_of` on organisations: names, status and identifiers of the day, and `/v1/entities/{id}/history`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, publish_files, run
from tests.spec.ingesting import source_entry
from tests.spec.register import lei

HEAD = (
    "LEI,Entity.LegalName,Entity.LegalAddress.Country,Entity.LegalJurisdiction,Entity.EntityCategory,"
    "Entity.SuccessorEntity.1.SuccessorLEI,Registration.RegistrationStatus,Registration.InitialRegistrationDate,"
    "Registration.LastUpdateDate"
)
MILL, HEIR, LATE = lei("MILL"), lei("HEIR"), lei("LATE")
MILL_ID, HEIR_ID, LATE_ID = (service_id(f"lei:{one}") for one in (MILL, HEIR, LATE))
FILER = "0009999123"
FILER_ID = service_id(f"registry:US-SEC-CIK:{FILER}")
SOURCES = source_entry("names", "sec-submissions", license_class="public-domain")


def golden_copy(folder: Path, day: str, *rows: tuple[str, str, str, str, str, str]) -> Path:
    """(LEI, name, successor, status, first registered, last update) of each record."""
    path = folder / f"{day.replace('-', '')}-0000-gleif-goldencopy-lei2.csv"
    lines = [
        f'{number},"{name}",ZA,ZA,GENERAL,{successor},{status},{first}T00:00:00Z,{updated}T00:00:00Z'
        for number, name, successor, status, first, updated in rows
    ]
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


LISTINGS = f"""entity,id_type,id_value,registry,from,to,legal_name,country
lei:{MILL},ticker,JSE:MIL,,2016-01-01,2019-12-31,,
lei:{HEIR},ticker,JSE:MIL,,2021-03-01,,,
lei:{HEIR},ticker,NGX:HEI,,2018-01-01,,,
lei:{HEIR},registry,RC77,NG-CAC,2018-01-01,2020-12-31,,
"""
FIGURES = f"""\
entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location
lei:{MILL},revenue,100,ZAR,2016-01-01,2016-12-31,FY,2017-03-31,report,p1
lei:{MILL},profit,10,ZAR,2016-01-01,2016-12-31,FY,2017-03-31,report,p1
lei:{HEIR},revenue,100,ZAR,2018-01-01,2018-12-31,FY,2019-03-29,report,p1
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, str]]:
    folder = tmp_path_factory.mktemp("spells")
    home = folder / "home"
    heir = (HEIR, "Heir Holdings Plc", "", "ISSUED", "2016-02-01", "2018-01-01")
    copies = [
        golden_copy(
            folder, "2019-01-05", (MILL, "Old Mill Limited", "", "ISSUED", "2015-06-01", "2018-03-01"), heir
        ),
        golden_copy(
            folder, "2021-01-05", (MILL, "New Mill Limited", "", "LAPSED", "2015-06-01", "2020-05-04"), heir
        ),
        golden_copy(
            folder,
            "2023-01-05",
            (MILL, "New Mill Limited", HEIR, "MERGED", "2015-06-01", "2022-07-01"),
            heir,
            (LATE, "Latecomer Limited", "", "ISSUED", "2022-11-11", "2022-11-11"),
        ),
    ]
    home.mkdir()
    (home / "sources.toml").write_text(SOURCES)
    submissions = folder / f"CIK{FILER}.json"
    formers = [
        {"name": "Second Name Corp", "from": "2012-03-01T00:00:00.000Z", "to": "2019-08-01T00:00:00.000Z"},
        {"name": "First Name Inc", "from": "2004-05-06T00:00:00.000Z", "to": "2012-02-29T00:00:00.000Z"},
    ]
    submissions.write_text(json.dumps({"cik": "9999123", "name": "Third Name Inc", "formerNames": formers}))
    listings, figures = folder / "listings.csv", folder / "figures.csv"
    listings.write_text(LISTINGS)
    figures.write_text(FIGURES)
    files = [("names", submissions), ("identifiers", listings), ("filings", figures)]
    publish_files(home, *(("gleif-lei", copy) for copy in copies), *files)
    with LiveServer(home) as server:
        yield server, create_key(home, "starter")


def get(world: tuple[LiveServer, str], path: str) -> dict[str, Any]:
    server, key = world
    return server.body(path, key)


@pytest.mark.rule("ENTY-4", "LOCK-4")
@pytest.mark.parametrize(
    ("day", "name", "status"),
    [
        ("2019-06-30", "Old Mill Limited", "ISSUED"),
        ("2020-05-03", "Old Mill Limited", "ISSUED"),
        ("2020-05-04", "New Mill Limited", "LAPSED"),
        ("2022-06-30", "New Mill Limited", "LAPSED"),
        ("2022-07-01", "New Mill Limited", "MERGED"),
    ],
)
def test_an_organisation_has_the_name_and_status_of_the_day(
    world: tuple[LiveServer, str], day: str, name: str, status: str
) -> None:
    answer = get(world, f"/v1/entities/{MILL_ID}?as_of={day}")
    (row,) = answer["data"]
    assert (row["legal_name"], row["status"], answer["as_of"]) == (name, status, day)
    assert answer["successor"] == (HEIR_ID if day >= "2022-07-01" else None)
    assert answer["edition"]
    assert row["observed_at"]
    (match,) = get(world, f"/v1/crosswalk?id_type=lei&id_value={MILL}&as_of={day}")["data"]
    assert match["legal_name"] == name
    names = [row["name"] for row in get(world, f"/v1/search?q=mill&as_of={day}")["data"]]
    assert names == [name]
    (inside,) = get(world, f"/at/2022-12-31/v1/entities/{MILL_ID}?as_of={day}")["data"]
    assert (inside["legal_name"], inside["status"]) == (name, status)


@pytest.mark.rule("ENTY-4")
def test_an_organisation_not_yet_known_has_no_row_and_an_unknown_one_is_404(world: tuple[LiveServer, str]):
    answer = get(world, f"/v1/entities/{LATE_ID}?as_of=2022-11-10")
    assert (answer["data"], answer["successor"], answer["predecessors"]) == ([], None, [])
    assert answer["absent"]["reason"]
    assert get(world, f"/v1/crosswalk/{LATE_ID}?as_of=2022-11-10")["data"] == []
    assert get(world, f"/v1/entities/{LATE_ID}/history?as_of=2022-11-10")["data"] == []
    server, key = world
    for path in ("", "/history"):
        unknown = f"/v1/entities/DC000000000000000000000000{path}?as_of=2022-11-10"
        assert server.get(unknown, key).status_code == 404
        assert server.get(f"/at/2022-11-10/v1/entities/{LATE_ID}{path}", key).status_code == 404


@pytest.mark.rule("ENTY-5")
def test_the_history_has_every_spell_and_nothing_later_than_the_day(world: tuple[LiveServer, str]):
    path = f"/v1/entities/{MILL_ID}/history"

    def spells(path: str) -> list[tuple[str, str, str, str | None]]:
        return [(r["kind"], r["value"], r["from"], r["until"]) for r in get(world, path)["data"]]

    assert spells(path) == [
        ("identifier", f"lei:{MILL}", "2015-06-01", None),
        ("jurisdiction", "ZA", "2015-06-01", None),
        ("listing", "JSE:MIL", "2016-01-01", "2019-12-31"),
        ("name", "Old Mill Limited", "2015-06-01", "2020-05-03"),
        ("name", "New Mill Limited", "2020-05-04", None),
        ("status", "ISSUED", "2015-06-01", "2020-05-03"),
        ("status", "LAPSED", "2020-05-04", "2022-06-30"),
        ("status", "MERGED", "2022-07-01", None),
        ("successor", HEIR_ID, "2022-07-01", None),
    ]
    sources = {(r["kind"], r["source_ref"].partition(":")[0]) for r in get(world, path)["data"]}
    assert sources - {("listing", "identifiers")} == {
        (kind, "gleif-lei") for kind in ("identifier", "jurisdiction", "name", "status", "successor")
    }
    then = [one for one in spells(f"{path}?as_of=2021-12-31") if one[0] in ("name", "status", "successor")]
    assert then == [
        ("name", "Old Mill Limited", "2015-06-01", "2020-05-03"),
        ("name", "New Mill Limited", "2020-05-04", None),
        ("status", "ISSUED", "2015-06-01", "2020-05-03"),
        ("status", "LAPSED", "2020-05-04", None),
    ]
    assert ("predecessor", MILL_ID, "2022-07-01", None) in spells(f"/v1/entities/{HEIR_ID}/history")
    server, key = world
    locked = server.get(f"/at/2021-12-31{path}", key).json()
    assert [r["value"] for r in locked["data"] if r["kind"] == "name"] == [
        "Old Mill Limited",
        "New Mill Limited",
    ]
    assert {row["observed_at"] for row in locked["data"]} == {None}
    by_tool = server.tool("get_entity_history", key, {"service_id": MILL_ID, "as_of": "2021-12-31"})
    assert [row["value"] for row in by_tool["data"] if row["kind"] == "status"] == ["ISSUED", "LAPSED"]


@pytest.mark.rule("ENTY-6")
def test_a_registrant_has_the_name_it_used_on_the_day(world: tuple[LiveServer, str]) -> None:
    names = [
        (row["value"], row["from"], row["until"])
        for row in get(world, f"/v1/entities/{FILER_ID}/history")["data"]
        if row["kind"] == "name"
    ]
    assert names == [
        ("First Name Inc", "2004-05-06", "2012-02-29"),
        ("Second Name Corp", "2012-03-01", "2019-08-01"),
        ("Third Name Inc", "2019-08-02", None),
    ]


@pytest.mark.rule("ENTY-6")
@pytest.mark.parametrize(
    ("document", "code", "message"),
    [
        ("[]", 1, "expected SEC submissions JSON"),
        ('{"cik": "x", "name": "A Inc", "formerNames": []}', 1, "not a CIK"),
        ('{"cik": "9999125", "name": "Marchbanks Quentin Z", "formerNames": []}', 0, "withheld 1"),
    ],
)
def test_a_person_and_a_broken_file_are_refused(tmp_path: Path, document: str, code: int, message: str):
    home = tmp_path / "home"
    home.mkdir()
    (home / "sources.toml").write_text(SOURCES)
    file = tmp_path / "CIK0009999125.json"
    file.write_text(document)
    done = run(home, "ingest", "names", file)
    assert done.returncode == code
    assert message in done.stdout + done.stderr
    assert "Marchbanks" not in done.stdout + done.stderr


@pytest.mark.rule("ENT-11", "ENTY-7")
@pytest.mark.parametrize(
    ("day", "holder", "sessions"),
    [
        ("2015-12-31", None, []),
        ("2016-01-01", MILL_ID, ["JSE:MIL"]),
        ("2019-12-31", MILL_ID, ["JSE:MIL"]),
        ("2020-06-30", None, []),
        ("2021-03-01", HEIR_ID, []),
    ],
)
def test_a_recycled_ticker_leads_to_its_owner_on_the_day(
    world: tuple[LiveServer, str], day: str, holder: str | None, sessions: list[str]
) -> None:
    for path in ("", f"/at/{day}"):
        owners = get(world, f"{path}/v1/crosswalk?id_type=ticker&id_value=JSE:MIL&as_of={day}")
        assert [row["service_id"] for row in owners["data"]] == ([holder] if holder else [])
        assert owners["ambiguous"] is False
        hits = get(world, f"{path}/v1/search?q=JSE:MIL&as_of={day}")["data"]
        identified = [hit["id"] for hit in hits if hit["matched"] == "ticker:JSE:MIL"]
        assert identified == ([holder] if holder else [])
        bare = get(world, f"{path}/v1/search?q=mil&as_of={day}")["data"]
        assert [hit["id"] for hit in bare if hit["matched"].startswith("ticker")] == identified
        (row,) = get(world, f"{path}/v1/entities/{MILL_ID}?as_of={day}")["data"]
        assert [f"{one['exchange']}:{one['ticker']}" for one in row["listings"]] == sessions
        identifiers = get(world, f"{path}/v1/crosswalk/{MILL_ID}?as_of={day}")["data"]
        assert [one["id_value"] for one in identifiers if one["id_type"] == "ticker"] == sessions
    now = get(world, "/v1/crosswalk?id_type=ticker&id_value=JSE:MIL")["data"]
    assert [row["service_id"] for row in now] == [HEIR_ID]
    ended = [row for row in get(world, f"/v1/entities/{HEIR_ID}/history")["data"] if "RC77" in row["value"]]
    assert [(row["value"], row["from"], row["until"]) for row in ended] == [
        ("registry:NG-CAC:RC77", "2018-01-01", "2020-12-31")
    ]
    (open_then,) = (
        row
        for row in get(world, f"/v1/entities/{HEIR_ID}/history?as_of=2020-06-30")["data"]
        if "RC77" in row["value"]
    )
    assert open_then["until"] is None


@pytest.mark.rule("ABS-1", "ABS-2")
def test_a_ticker_of_nobody_on_the_day_says_when_somebody_had_it(world: tuple[LiveServer, str]) -> None:
    lookup = "/v1/crosswalk?id_type=ticker&id_value=JSE:MIL"
    between = get(world, f"{lookup}&as_of=2020-06-30")["absent"]
    assert (between["first"], between["last"]) == ("2016-01-01", None)
    assert between["detail"] == (
        "No organisation has this identifier on 2020-06-30; one had it until 2019-12-31."
    )
    assert [one["arguments"].get("as_of") for one in between["try"]] == ["2019-12-31", None]
    before = get(world, f"{lookup}&as_of=2015-12-31")["absent"]
    assert (before["reason"], before["first"]) == ("not_yet_known", "2016-01-01")
    locked = get(world, f"/at/2020-06-30{lookup}")["absent"]
    assert (locked["reason"], locked["first"], locked["last"], locked["try"]) == (
        "nothing_known",
        None,
        None,
        [],
    )


@pytest.mark.rule("ISS-5")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("exchange=JSE&as_of=2018-06-30", [MILL_ID]),
        ("exchange=JSE&as_of=2020-06-30", []),
        ("exchange=JSE", [HEIR_ID]),
        ("exchange=NGX&as_of=2020-06-30", [HEIR_ID]),
        ("exchange=NGX&country=ZA&as_of=2020-06-30", [HEIR_ID]),
        ("country=ZA&as_of=2018-06-30", [MILL_ID]),
        ("country=ZA", sorted([MILL_ID, HEIR_ID])),  # merged and delisted, and still there
    ],
)
def test_filtering_by_exchange_gives_the_issuers_listed_on_the_day(
    world: tuple[LiveServer, str], query: str, expected: list[str]
) -> None:
    rows = get(world, f"/v1/issuers?{query}")["data"]
    assert [row["service_id"] for row in rows] == expected
    first = get(world, f"/v1/fundamentals/{MILL_ID}?line_items=revenue")["data"]
    assert [row["tradable_from"] for row in first] == ["2017-04-03"]  # the listing ended later


@pytest.mark.rule("PIT-9")
def test_screens_and_metrics_have_the_name_of_the_day(world: tuple[LiveServer, str]) -> None:
    for query, name in (("as_of=2019-06-30", "Old Mill Limited"), ("", "New Mill Limited")):
        for path in ("/v1/screen?metric=net_margin&", f"/v1/metrics/{MILL_ID}?metric=net_margin&"):
            for basis in ("current", "as_known"):
                (row,) = get(world, f"{path}basis={basis}&{query}")["data"]
                assert (row["legal_name"], row["service_id"]) == (name, MILL_ID), path


@pytest.mark.rule("ENTY-5")
def test_a_legal_form_and_a_jurisdiction_last_from_one_copy_of_the_register_to_the_next(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    states = [
        ("2019-01-05", "2015-06-01", "ZA", "XYGP", ""),
        ("2021-01-05", "2020-05-04", "ZA", "9999", "Trading society"),
        ("2023-01-05", "2022-07-01", "MU", "R155", ""),
    ]
    copies = []
    for day, updated, place, code, words in states:
        copy = golden_copy(tmp_path, day, (MILL, "One Mill Limited", "", "ISSUED", "2015-06-01", updated))
        head, row = copy.read_text().splitlines()
        columns = "Entity.LegalForm.EntityLegalFormCode,Entity.LegalForm.OtherLegalForm"
        copy.write_text(f"{head},{columns}\n{row.replace(',ZA,ZA,', f',ZA,{place},')},{code},{words}\n")
        copies.append(("gleif-lei", copy))
    publish_files(home, *copies)
    path = f"/v1/entities/{MILL_ID}"
    with LiveServer(home) as server:
        world = server, create_key(home, "starter")
        history = get(world, f"{path}/history")["data"]
        then = get(world, f"{path}/history?as_of=2020-05-04")["data"]
    spells = {
        kind: [(r["value"], r["from"], r["until"]) for r in history if r["kind"] == kind]
        for kind in ("legal_form", "jurisdiction")
    }
    assert spells == {
        "legal_form": [
            ("XYGP", "2015-06-01", "2020-05-03"),
            ("Trading society", "2020-05-04", "2022-06-30"),
            ("R155", "2022-07-01", None),
        ],
        "jurisdiction": [("ZA", "2015-06-01", "2022-06-30"), ("MU", "2022-07-01", None)],
    }
    assert [(r["value"], r["until"]) for r in then if r["kind"] == "legal_form"] == [
        ("XYGP", "2020-05-03"),
        ("Trading society", None),
    ]


@pytest.mark.rule("ENTY-4", "ENTY-10")
@pytest.mark.parametrize("dated", [True, False])
def test_copies_of_the_register_give_one_history_in_any_order(tmp_path: Path, dated: bool):
    """Four states, in a full copy and in deltas of other sources; the last file comes first."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "sources.toml").write_text(
        source_entry("a-delta", "gleif-lei") + source_entry("z-delta", "gleif-lei")
    )
    states = [
        ("2019-01-05", "One Mill Limited", "gleif-lei"),
        ("2020-05-04", "Two Mill Limited", "z-delta"),
        ("2021-01-05", "One Mill Limited", "a-delta"),
        ("2022-01-05", "Four Mill Limited", "gleif-lei"),
    ]
    for day, name, source in reversed(states):
        file = golden_copy(tmp_path, day, (MILL, name, "", "ISSUED", "2015-06-01", day))
        if not dated:
            file.write_text(file.read_text().replace(f",{day}T00:00:00Z", ","))
        done = run(home, "ingest", source, file)
        assert done.returncode == 0, done.stdout + done.stderr
    again = run(home, "ingest", states[0][2], tmp_path / "20190105-0000-gleif-goldencopy-lei2.csv")
    assert "appended 0, unchanged 1" in again.stdout
    assert run(home, "publish").returncode == 0
    with LiveServer(home) as server:
        world = server, create_key(home, "starter")
        history = get(world, f"/v1/entities/{MILL_ID}/history")["data"]
        (row,) = get(world, f"/v1/entities/{MILL_ID}")["data"]
        (then,) = get(world, f"/at/2020-12-31/v1/entities/{MILL_ID}")["data"]
    assert [(r["value"], r["from"], r["until"]) for r in history if r["kind"] == "name"] == [
        ("One Mill Limited", "2015-06-01", "2020-05-03"),
        ("Two Mill Limited", "2020-05-04", "2021-01-04"),
        ("One Mill Limited", "2021-01-05", "2022-01-04"),
        ("Four Mill Limited", "2022-01-05", None),
    ]
    assert (row["legal_name"], then["legal_name"]) == ("Four Mill Limited", "Two Mill Limited")


@pytest.mark.rule("ENT-11")
def test_days_of_an_identifier_are_checked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = tmp_path / "listings.csv"
    file.write_text(
        "entity,id_type,id_value,from,to\n"
        f"lei:{MILL},ticker,JSE:A,2020-01-01,2019-01-01\n"
        f"lei:{MILL},ticker,JSE:B,2020-13-01,\n"
        f"lei:{MILL},ticker,JSE:C,2040-01-01,\n"
        f"lei:{MILL},ticker,JSE:D,2020-01-01,2040-01-01\n"
    )
    done = run(home, "ingest", "identifiers", file)
    assert "rejected 3" in done.stdout, done.stdout + done.stderr
    again = run(home, "ingest", "identifiers", file)
    assert "appended 0" in again.stdout
    assert "unchanged 1" in again.stdout


def renamed_record(form: str, changes: list[str], previous: list[str]) -> str:
    """A record whose register recorded changes of its name, as a golden copy or a reply of the API."""
    registered, updated = "2015-06-01T00:00:00Z", "2022-07-01T00:00:00Z"
    if form == "csv":
        event = "Entity.LegalEntityEvents.LegalEntityEvent.{}.{}"
        names = (
            "LegalEntityEventType",
            "event_status",
            "LegalEntityEventEffectiveDate",
            "LegalEntityEventRecordedDate",
        )
        columns = [event.format(n, name) for n, _ in enumerate(changes, 1) for name in names]
        cells = [
            cell
            for day in changes
            for cell in ("CHANGE_LEGAL_NAME", "COMPLETED", "2018-01-01T00:00:00Z", f"{day}T09:00:00Z")
        ]
        other = "Entity.OtherEntityNames.OtherEntityName.{}"
        for n, name in enumerate(previous, 1):
            columns += [other.format(n), f"{other.format(n)}.type"]
            cells += [name, "PREVIOUS_LEGAL_NAME"]
        row = [MILL, "New Mill Limited", "ZA", "ZA", "GENERAL", "", "ISSUED", registered, updated, *cells]
        return "\n".join([",".join([HEAD, *columns]), ",".join(row)]) + "\n"
    events: list[Any] = [
        {
            "type": "CHANGE_LEGAL_NAME",
            "status": "COMPLETED",
            "effectiveDate": "2018-01-01T00:00:00Z",
            "recordedDate": f"{day}T09:00:00Z",
        }
        for day in changes
    ]
    entity: dict[str, Any] = {
        "legalName": {"name": "New Mill Limited"},
        "category": "GENERAL",
        "jurisdiction": "ZA",
        "legalAddress": {"country": "ZA"},
    }
    entity["otherNames"] = [{"name": name, "type": "PREVIOUS_LEGAL_NAME"} for name in previous]
    entity["eventGroups"] = [{"groupType": "STANDALONE", "events": events}]
    registration = {"initialRegistrationDate": registered, "lastUpdateDate": updated, "status": "ISSUED"}
    attributes = {"lei": MILL, "entity": entity, "registration": registration}
    return json.dumps({"data": [{"type": "lei-records", "id": MILL, "attributes": attributes}]})


@pytest.mark.rule("ENTY-12")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_change_of_name_counts_from_the_day_on_which_the_register_recorded_it(
    tmp_path: Path, form: str
) -> None:
    """One copy of the register is enough. The day on which a change took effect is no day of knowledge."""
    home, path = tmp_path / "home", tmp_path / f"20230105-0000-lei.{form}"
    path.write_text(renamed_record(form, ["2020-03-04"], ["Old Mill Limited"]))
    publish_files(home, ("gleif-lei", path))
    with LiveServer(home) as server:
        world = server, create_key(home, "starter")
        rows = get(world, f"/v1/entities/{MILL_ID}/history")["data"]
        assert [(r["value"], r["from"], r["until"]) for r in rows if r["kind"] == "name"] == [
            ("Old Mill Limited", "2015-06-01", "2020-03-03"),
            ("New Mill Limited", "2020-03-04", None),
        ]
        for day, name, others in (
            ("2020-03-03", "Old Mill Limited", []),
            ("2020-03-04", "New Mill Limited", ["Old Mill Limited"]),
        ):
            for path_ in (f"/v1/entities/{MILL_ID}?as_of={day}", f"/at/{day}/v1/entities/{MILL_ID}"):
                (row,) = get(world, path_)["data"]
                assert (row["legal_name"], row["other_names"], row["status"]) == (name, others, "ISSUED")
            names = [hit["name"] for hit in get(world, f"/at/{day}/v1/search?q=new")["data"]]
            assert names == ([name] if others else [])


@pytest.mark.rule("ENTY-12")
@pytest.mark.parametrize(
    ("changes", "previous"),
    [
        (["2018-03-04", "2020-03-04"], ["Old Mill Limited", "Older Mill Limited"]),
        (["2020-03-04"], []),
        (["2024-01-01"], ["Old Mill Limited"]),  # later than the record
        (["2014-01-01"], ["Old Mill Limited"]),  # earlier than its registration
    ],
)
def test_changes_that_cannot_be_dated_change_no_name(
    tmp_path: Path, changes: list[str], previous: list[str]
) -> None:
    home, path = tmp_path / "home", tmp_path / "20250105-0000-lei.csv"
    path.write_text(renamed_record("csv", changes, previous))
    publish_files(home, ("gleif-lei", path))
    with LiveServer(home) as server:
        rows = get((server, create_key(home, "starter")), f"/v1/entities/{MILL_ID}/history")["data"]
    assert [(r["value"], r["from"]) for r in rows if r["kind"] == "name"] == [
        ("New Mill Limited", "2015-06-01")
    ]
