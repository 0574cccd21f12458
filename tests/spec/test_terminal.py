"""The terminal: statements, completion, and a HOME that does not exist."""

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest

from sankofa.engines.keyvalue import open_keyvalue
from sankofa.settings import Settings
from tests.every import every
from tests.live import COMMAND, Copies, LiveServer, run, succeed

RIFTLINE = "DC8342E4A6CD9A7F25CAC383F4"


@pytest.mark.rule("WEB-11")
def test_a_statement_is_printed_as_it_was_known_on_a_day(sample_home: Path) -> None:
    then, now = (run(sample_home, "show", "riftline", "--as-of", day) for day in ("2023-12-31", "2024-12-31"))
    assert (then.returncode, now.returncode) == (0, 0), then.stderr
    assert "Riftline Sample Telecom PLC, as known on 2023-12-31" in then.stdout
    assert "restated" not in then.stdout
    (revenue,) = [line for line in now.stdout.splitlines() if line.startswith("revenue")]
    assert "147,348,157 restated" in revenue
    assert "147,348,157" not in then.stdout
    assert "\x1b" not in now.stdout, "no colour but on a terminal"
    rows = json.loads(run(sample_home, "show", RIFTLINE, "--as-of", "2024-12-31", "--json").stdout)
    assert {row["value_reported"] for row in rows if row["restated"] and row["line_item"] == "revenue"} == {
        147348157000
    }


@pytest.mark.rule("WEB-11")
def test_a_figure_in_another_currency_than_the_heading_has_its_unit_beside_it(tmp_path: Path) -> None:
    columns = (
        "line_item,value,currency,period_start,period_end,available_at,"
        "entity,legal_name,country,period_type,document"
    )
    same = "registry:ZA-CIPC:2001/000001/06,Two Moneys Ltd,ZA,FY,report"
    rows = [
        f"{item},{value},{money},{y}-01-01,{y}-12-31,{y + 1}-04-01,{same}"
        for y, money in ((2018, "USD"), (2019, "ZAR"), (2020, "ZAR"))
        for item, value in (("revenue", f"{y}000"), ("profit", "7000"))
    ]
    home, filed = tmp_path / "home", tmp_path / "filed.csv"
    filed.write_text("\n".join([columns, *rows]))
    succeed(home, "ingest", "--strict", "filings", filed)
    succeed(home, "publish")
    title, _, revenue, profit, *_ = run(home, "show", "Two Moneys Ltd").stdout.splitlines()
    assert title.endswith("(ZAR, in thousands)")
    assert revenue.split() == ["revenue", "2,020", "2,019", "2,018", "USD"]
    assert profit.split() == ["profit", "7", "7", "7", "USD"]
    with LiveServer(home) as live:
        hits = live.http.get("/search?q=Two+Moneys+Ltd", follow_redirects=True).text
        page = live.http.get(re.search(r"/company/DC[0-9A-F]{24}", hits)[0]).text  # type: ignore[index]
    table = page.split('class="statement"')[1]
    cells = [table.split(f'value="{figure}"')[1].split("</td>")[0] for figure in (2018000, 2020000)]
    assert ["USD</span>" in cell for cell in cells] == [True, False]


@pytest.mark.rule("WEB-11")
def test_an_unknown_company_is_an_error_of_one_line(sample_home: Path) -> None:
    refused = run(sample_home, "show", "zzqqxx")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
    refused = run(sample_home, "show", RIFTLINE, "--as-of", "2999-01-01")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
    assert "future" in refused.stderr


READING = [
    *(("editions",), ("keys", "list"), ("keys", "usage"), ("domains", "list"), ("sources",)),
    *(("status",), ("doctor",), ("show", RIFTLINE), ("ledger", "verify"), ("ledger", "captures")),
    *(("vault", "verify"), ("settings",), ("collect", "--dry-run")),
]
LISTS = [("editions",), ("keys", "list"), ("domains", "list"), ("sources",)]


@pytest.mark.rule("WEB-12")
@every("command", [*READING, ("backup", "{tmp}/saved"), ("keys", "revoke", "k")])
def test_a_mistyped_home_is_an_error_and_not_a_new_folder(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = tmp_path / "mistyped"
    done = run(home, *(part.format(tmp=tmp_path) for part in command))
    assert "Traceback" not in done.stderr
    assert not home.exists()
    if command not in (("settings",), ("collect", "--dry-run")):
        assert f"HOME ({home}) does not exist" in done.stdout + done.stderr
        assert done.returncode == (0 if command in LISTS else 1), done.stdout


def create_empty_key_store(home: Path) -> None:
    """Create a key store as a server leaves it that was only asked for its status: without records."""

    async def ask() -> None:
        store = open_keyvalue(f"embedded:{home}/keys")
        await store.ping()
        await store.close()

    Settings(home=home).keys_secrets()
    asyncio.run(ask())


@pytest.mark.rule("WEB-12")
def test_reading_commands_create_nothing(tmp_path: Path, copy_sample: Copies) -> None:
    empty, copied = tmp_path / "empty", copy_sample()
    empty.mkdir()
    create_empty_key_store(copied)
    for home in (empty, copied):
        before = sorted(home.rglob("*"))
        for command in READING:
            assert "Traceback" not in run(home, *command).stderr
            assert sorted(home.rglob("*")) == before, command


@pytest.mark.rule("CLI-4")
@pytest.mark.parametrize(
    ("command", "headings"),
    [
        (("sources",), "source adapter dataset licence"),
        (("editions",), "edition last capture (UTC) state"),
        (("keys", "list"), "id tier created state limits last use label"),
        (("keys", "usage"), "id tier minute month last use label"),
        (("domains", "list"), "host added keys"),
        (("ledger", "captures"), "capture source observed_at file"),
    ],
)
def test_tables_have_headings_in_a_pipe_too(sample_home: Path, command: tuple[str, ...], headings: str):
    listed = run(sample_home, *command)
    assert listed.stdout.splitlines()[0].split() == headings.split()
    assert "\x1b" not in listed.stdout, "no colour but on a terminal"


def test_the_shell_completes_commands() -> None:
    environment = {"_SANKOFA_COMPLETE": "bash_complete", "COMP_WORDS": "sankofa edi", "COMP_CWORD": "1"}
    done = subprocess.run([COMMAND], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "plain,editions"
