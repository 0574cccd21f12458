"""Files as the SEC ships them, through the command line and out over HTTP, against a count made by hand.

The reference reads the raw JSON and tab-separated text itself, and knows nothing of the adapters.
"""

import json
import os
import pickle
import re
import shutil
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sankofa.model.identifiers import cik, service_id
from tests.live import LiveServer, create_key, run, succeed
from tests.once import made_once
from tests.real_inputs import statements_of
from tests.spec.sec_reference import (
    AMAZON,
    COMPANYFACTS,
    LPA,
    NVIDIA,
    STATEMENTS,
    Filing,
    _table,
    companyfacts,
    distinct,
    once,
    restated,
    statements,
)
from tests.torture import FULL, rounds
from tests.world.reference import MODES, Told, knowable, seen, told_in

pytestmark = pytest.mark.deep


class Raw(NamedTuple):
    """What the raw files of one source say."""

    rows: int
    reports: list[Filing]


class Real(NamedTuple):
    """The real files, taken in and published, beside what is really in them."""

    home: Path
    raw: dict[str, Raw]
    said: dict[str, list[str]]
    """What the ingest of each source said, and then that of its last file again."""
    told: dict[int, list[Told]]
    """Everything said of each issuer, whichever source says it, and what both say once."""


READERS = {COMPANYFACTS: companyfacts, STATEMENTS: statements}


@pytest.fixture(scope="module")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Real:
    """Taken in and published once, however many test processes there are."""

    def make(folder: Path) -> None:
        found = _take_in(folder / "home", files_of(shared_data / "fundamentals", folder))
        (folder / "real.pickle").write_bytes(pickle.dumps(found))

    made = made_once(tmp_path_factory, "real-files", make)
    found: Real = pickle.loads((made / "real.pickle").read_bytes())  # noqa: S301 - ours, just written
    return found._replace(home=made / "home")


def files_of(shared: Path, to: Path) -> dict[str, Path]:
    """Where the files of each source are; a twelfth of the registrants, but in `make torture` all of them."""
    found = {source: shared / name for source, name in READERS}
    if not FULL:
        some = (NVIDIA, AMAZON)
        found[STATEMENTS[0]] = statements_of(
            found[STATEMENTS[0]], to / "quarters", lambda number, _: number % 12 == 0 or number in some
        )
    return found


def _take_in(home: Path, files: dict[str, Path]) -> Real:
    said: dict[str, list[str]] = {}
    raw: dict[str, Raw] = {}
    told: defaultdict[int, list[Told]] = defaultdict(list)
    for (source, _), reader in READERS.items():
        last = max(files[source].iterdir())
        done = [run(home, "ingest", source, files[source]), run(home, "ingest", "--strict", source, last)]
        assert [d.returncode for d in done] == [0, 0], done
        said[source] = [d.stdout for d in done]
        rows = list(reader(files[source]))
        raw[source] = Raw(len(rows), [row for row in rows if row is not None])
    for number, report in once(raw[COMPANYFACTS[0]].reports, raw[STATEMENTS[0]].reports):
        told[number].append(report)
    succeed(home, "publish")
    return Real(home, raw, said, dict(told))


@pytest.fixture(scope="module")
def served(real: Real, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """From links to the files of the edition, which nobody writes to."""
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(real.home / "editions", home / "editions", copy_function=os.link)
    os.link(real.home / "edition-key", home / "edition-key")
    with LiveServer(home) as server:
        yield server


class Client:
    def __init__(self, server: LiveServer, key: str) -> None:
        self._server = server
        self._key = key
        self._known: dict[tuple[int, str], list[dict[str, Any]]] = {}

    def text(self, number: int, query: str = "") -> str:
        answer = self._server.get(f"/v1/fundamentals/{service_id(cik(number))}?{query}", self._key)
        assert answer.status_code == 200, answer.text
        return answer.text

    def rows(self, number: int, query: str = "") -> list[dict[str, Any]]:
        if (number, query) not in self._known:
            whole = json.loads(self.text(number, query), parse_int=Decimal, parse_float=Decimal)
            assert (whole["count"], whole["truncated"]) == (len(whole["data"]), False)
            self._known[number, query] = whole["data"]
        return self._known[number, query]

    def metrics(self, number: int, day: str) -> list[dict[str, Any]]:
        return self._server.rows(f"/v1/metrics/{service_id(cik(number))}?as_of={day}", self._key)


@pytest.fixture(scope="module")
def client(served: LiveServer) -> Client:
    return Client(served, create_key(served.home, "professional"))


def counts(line: str) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", line)}


@pytest.mark.parametrize("source", [COMPANYFACTS[0], STATEMENTS[0]])
def test_every_row_is_accounted_for_and_a_second_reading_changes_nothing(real: Real, source: str) -> None:
    raw = real.raw[source]
    appended = distinct(raw.reports)
    first = counts(real.said[source][0])
    assert first == {
        "read": raw.rows,
        "appended": appended,
        "unchanged": len(raw.reports) - appended,
        "withheld": 0,
        "rejected": 0,
        "skipped": raw.rows - len(raw.reports),
    }
    again = counts(real.said[source][1])
    assert (again["appended"], again["rejected"]) == (0, 0)
    assert again["unchanged"] == again["read"] - again["skipped"] > 0


def test_the_facts_and_the_restated_facts_are_as_many_as_counted_by_hand(real: Real, client: Client) -> None:
    today = datetime.now(UTC).date()
    told = real.told
    facts: Counter[tuple[int, bool]] = Counter()
    restated_facts = set()
    for number in told:
        for row in client.rows(number, f"vintages=all&as_of={today}"):
            facts[number, row["restated"]] += 1
            if row["restated"]:
                restated_facts.add(
                    (number, row["concept"], row["unit"], row["period_start"], row["period_end"])
                )
    by_hand: Counter[tuple[int, bool]] = Counter()
    for number, reports in told.items():
        by_hand.update((number, vintage.restated) for vintage in knowable(reports, today, "all"))
    assert facts == by_hand
    assert restated_facts == {
        (number, concept, unit, start and start.isoformat(), end.isoformat())
        for number, (concept, unit, start, end) in restated(told)
    }
    assert len([fact for fact in restated_facts if fact[0] == NVIDIA]) > 900


@pytest.mark.rule("VINT-1")
@pytest.mark.parametrize(
    ("number", "days"),
    [
        (NVIDIA, ("2009-08-19", "2009-08-20", "2012-03-13", "2021-07-20", "2025-12-31")),
        (LPA, ("2024-04-25", "2024-04-26", "2025-04-02", "2025-12-31")),
    ],
)
def test_every_concept_is_served_as_a_replay_of_the_raw_file_has_it(
    real: Real, client: Client, number: int, days: Sequence[str]
) -> None:
    told = real.told[number]
    for day in days:
        for mode in MODES:
            rows = client.rows(number, f"as_of={day}&vintages={mode}")
            assert seen(rows) == told_in(mode, knowable(told, date.fromisoformat(day), mode)), (day, mode)


def test_statements_are_served_as_a_replay_of_the_raw_tables_has_them(real: Real, client: Client) -> None:
    of = real.told
    for number in sorted(of)[:: rounds(5, 5, 20)]:
        for day in ("2009-09-30", "2010-02-26", "2010-06-30"):
            for mode in MODES:
                rows = client.rows(number, f"as_of={day}&vintages={mode}")
                expected = knowable(of[number], date.fromisoformat(day), mode)
                assert seen(rows) == told_in(mode, expected), (number, day, mode)


def test_a_filing_held_with_real_and_with_rounded_dates_is_served_once(real: Real, client: Client) -> None:
    said = [filing for filing in real.raw[STATEMENTS[0]].reports if filing.number == NVIDIA]
    alone = {(told.document, told.concept, told.unit, told.end) for told in real.told[NVIDIA]}
    rows = client.rows(NVIDIA, "vintages=all")
    figures = Counter(
        (row["source_ref"].partition("#")[0], row["concept"], row["unit"], row["period_type"],
         row["fiscal_year"], row["value_reported"])
        for row in rows
        if row["period_type"] != "other"
    )  # fmt: skip
    assert max(figures.values()) == 1
    assert len(said) - sum((t.document, t.concept, t.unit, t.end) in alone for _, t in said) > 0


def test_a_row_says_whether_its_dates_are_rounded(real: Real, client: Client) -> None:
    exact = {filing.told[:5] for filing in real.raw[COMPANYFACTS[0]].reports if filing.number == NVIDIA}
    methods: Counter[str] = Counter()
    for row in client.rows(NVIDIA, "vintages=all"):
        start = row["period_start"] and date.fromisoformat(row["period_start"])
        document = row["source_ref"].partition("#")[0].partition(":")[2]
        end = date.fromisoformat(row["period_end"])
        is_exact = (row["concept"], row["unit"], start, end, document) in exact
        assert row["method"] == ("structured" if is_exact else "structured-rounded")
        methods[row["method"]] += 1
    assert methods["structured-rounded"] > 40
    assert {row["method"] for row in client.rows(AMAZON)} == {"structured-rounded"}


def test_figures_of_segments_and_co_registrants_are_never_served(
    shared_data: Path, real: Real, client: Client
) -> None:
    """A figure that stands only in such rows is looked for among everything served of its issuer."""
    elsewhere: defaultdict[int, set[Decimal]] = defaultdict(set)
    for path in sorted((shared_data / "fundamentals" / STATEMENTS[1]).glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            filings = {row["adsh"]: int(row["cik"]) for row in _table(archive, "sub.txt")}
            for row in _table(archive, "num.txt"):
                if (row["coreg"] or row.get("segments")) and row["value"]:
                    elsewhere[filings[row["adsh"]]].add(Decimal(row["value"]))
    consolidated = real.told
    looked_for = 0
    for number in sorted(consolidated.keys() & elsewhere.keys())[:40]:
        alone = elsewhere[number] - {told.value for told in consolidated[number]}
        looked_for += len(alone)
        assert not alone & {row["value_reported"] for row in client.rows(number, "vintages=all")}
    assert looked_for > 0


@pytest.mark.rule("PER-1")
@pytest.mark.parametrize(
    ("start", "end", "name"),
    [
        ("2009-01-26", "2010-01-31", ("FY", 2010)),
        ("2009-04-27", "2009-07-26", ("Q2", 2010)),
        ("2009-01-26", "2009-07-26", ("H1", 2010)),
        ("2008-01-28", "2009-01-25", ("FY", 2009)),
        ("2009-07-27", "2009-10-25", ("Q3", 2010)),
        ("2009-01-26", "2009-10-25", ("9M", 2010)),
        ("2010-02-01", "2010-05-02", ("Q1", 2011)),
        ("2016-02-01", "2017-01-29", ("FY", 2017)),
        ("2021-02-01", "2022-01-30", ("FY", 2022)),
        ("2022-01-31", "2022-05-01", ("Q1", 2023)),
        ("2022-01-31", "2022-07-31", ("H1", 2023)),
        ("2022-08-01", "2022-10-30", ("Q3", 2023)),
        ("2022-01-31", "2022-10-30", ("9M", 2023)),
        ("2024-01-29", "2025-01-26", ("FY", 2025)),
        ("2024-01-29", "2024-04-28", ("Q1", 2025)),
        (None, "2009-07-26", ("H1", 2010)),
        (None, "2009-01-25", ("FY", 2009)),
        (None, "2010-01-31", ("FY", 2010)),
        (None, "2010-05-02", ("Q1", 2011)),
        (None, "2022-10-30", ("9M", 2023)),
        (None, "2025-01-26", ("FY", 2025)),
    ],
)
def test_periods_of_a_year_that_ends_in_january_are_named(
    client: Client, start: str | None, end: str, name: tuple[str, int]
) -> None:
    rows = [
        r for r in client.rows(NVIDIA, "vintages=all") if (r["period_start"], r["period_end"]) == (start, end)
    ]
    assert rows
    assert {(row["period_type"], row["fiscal_year"]) for row in rows} == {name}
