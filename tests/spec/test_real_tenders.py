"""OCDS files as portals ship them, through the command line and HTTP, against a simple reference.

The reference parses the raw JSON and shares no code with the adapter.
"""

import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sankofa.model.ocds.redaction import CUT
from tests.live import run
from tests.spec.ingesting import source_entry
from tests.spec.market import Desk as Home
from tests.spec.market import PaidCaller, counts, instant
from tests.torture import rounds

pytestmark = pytest.mark.ci

COUNTRIES = dict(
    pair.split("=")
    for pair in (
        "armenia=AM australia=AU awkward-cove=GB fictional-1.0-1.1=GB mexico-cdmx=MX mexico-cdmx-2016=MX "
        "moldova=MD nigeria=NG ocds-helper=PY ocdskit-realdata=BR paraguay=PY paraguay-viz=PY "
        "south-africa=ZA taiwan=TW uganda=UG"
    ).split()
)
TWICE = ("awkward-cove", "moldova", "paraguay")[: rounds(1, 3)]
"""Taken in a second time: one with every kind of repetition, one of records, one with corrections."""
Triple = tuple[str, str, datetime]


class IngestedFolder(NamedTuple):
    """A portal's folder: the output of the command, and what is really in it."""

    output: str
    errors: str
    again: str
    releases: dict[str, set[Triple] | None]
    """The releases of each file; None if it is not OCDS at all."""


class Real(NamedTuple):
    caller: PaidCaller
    folders: dict[str, IngestedFolder]
    rejects: list[dict[str, str]]


def source_id(folder: str) -> str:
    return f"real-{folder.replace('.', '-')}"


@pytest.fixture(scope="module")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    folders = shared_data / "ocds"
    if not folders.is_dir():
        pytest.skip(f"NOT TESTED: real tenders (no folder {folders})")
    desk = Home(tmp_path_factory.mktemp("real-tenders"))
    (desk.home / "sources.toml").write_text(
        "".join(source_entry(source_id(name), "ocds", country=country) for name, country in COUNTRIES.items())
    )
    ingested = {}
    for folder in sorted(path for path in folders.iterdir() if path.is_dir()):
        assert folder.name in COUNTRIES, f"a portal nobody told the country of: {folder.name}"
        done = run(desk.home, "ingest", source_id(folder.name), folder)
        again = run(desk.home, "ingest", source_id(folder.name), folder) if folder.name in TWICE else done
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        expected = {str(path): releases_in(path) for path in paths}
        ingested[folder.name] = IngestedFolder(done.stdout, done.stderr, again.stdout, expected)
    rejects = desk.rejects()
    with desk.publish_and_serve() as caller:
        yield Real(caller, ingested, rejects)


def releases_in(path: Path) -> set[Triple] | None:
    """The usable releases of a file, parsed whole."""
    raw = path.read_bytes()
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        try:
            # One publisher has an extra comma between its releases, which is accepted.
            value = documents(re.sub(r"\},\s*,\s*\{", "},{", raw.decode(encoding)))
            break
        except ValueError:
            continue
    else:
        return None
    members = {"releases", "records", "compiledRelease", "ocid"}
    if isinstance(value, dict):
        lists = [value[name] for name in ("releases", "records") if name in value]
        if not value.keys() & members or not all(isinstance(listed, list) for listed in lists):
            return None
    elif not isinstance(value, list):
        return None
    rows = list(unpacked(value))
    usable = {key for release in rows if (key := triple(release))}
    return usable if usable or not rows else None  # a file without an accepted row is refused


def documents(text: str) -> Any:
    """The single value of a text, or the list of values that follow each other."""
    values, rest = [], text.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    if not values:
        raise ValueError("empty")
    return values[0] if len(values) == 1 else values


def unpacked(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from unpacked(inner)
    elif isinstance(value, dict):
        for record in value.get("records") or ():
            yield from unpacked(record)
        embedded = [r for r in value.get("releases") or () if not (isinstance(r, dict) and is_link(r))]
        yield from embedded
        if not embedded and "compiledRelease" in value:
            yield value["compiledRelease"]
        if not value.keys() & {"releases", "records", "compiledRelease"} and not is_link(value):
            yield value


def is_link(release: dict[str, Any]) -> bool:
    return "url" in release and not release.keys() & {"ocid", "id"}


def triple(release: Any) -> Triple | None:
    if not isinstance(release, dict):
        return None
    ocid, number, date = (release.get(name) for name in ("ocid", "id", "date"))
    if not (isinstance(ocid, str) and ocid.strip() and isinstance(number, str | int) and str(number).strip()):
        return None
    try:
        when = instant(date) if isinstance(date, str) else None
    except ValueError:
        return None
    if when is None or when.year < 1800 or when > datetime.now(UTC) + timedelta(days=1):
        return None
    return ocid.strip(), str(number).strip(), when


def test_every_file_is_ingested_or_refused_by_name(real: Real) -> None:
    refused = 0
    for folder, ingested in real.folders.items():
        refused_names = re.findall(r"^Error: (.+?): ", ingested.errors, re.MULTILINE)
        wrong = [Path(path).name for path, usable in ingested.releases.items() if usable is None]
        assert sorted(refused_names) == sorted(wrong), folder
        refused += len(wrong)
    assert refused > 10
    assert sum(len(ingested.releases) for ingested in real.folders.values()) > 300


def test_every_usable_release_is_served_once_and_nothing_else(real: Real) -> None:
    for country in sorted(set(COUNTRIES.values())):
        expected: set[Triple] = set()
        for folder, ingested in real.folders.items():
            if COUNTRIES[folder] == country:
                expected |= {key for usable in ingested.releases.values() for key in usable or ()}
        rows = real.caller.tenders(country=country)
        served = [(row["ocid"], row["release_id"], instant(row["release_date"])) for row in rows]
        assert len(set(served)) == len(served)
        masked = {key for key in served if CUT in key[0] + key[1]}  # they repeat withheld names
        assert set(served) - masked <= expected, country
        missing = expected - set(served)
        assert len(missing) == len(masked), (country, sorted(missing)[:3])


def test_everything_read_is_counted_and_ingesting_again_changes_nothing(real: Real) -> None:
    for folder, ingested in real.folders.items():
        first = counts(ingested.output)
        whole = [row for row in real.rejects if ": " not in row["position"]]
        names = {Path(path).name for path in ingested.releases}
        ours = [row for row in whole if Path(row["file"]).name in names]
        assert first["read"] > 0, folder
        assert first["read"] <= first["appended"] + first["unchanged"] + first["skipped"] + len(ours), folder
        if folder in TWICE:
            again = counts(ingested.again)
            assert (again["appended"], again["read"]) == (0, first["read"]), folder


def test_rejects_name_file_position_and_reason(real: Real) -> None:
    names = {Path(path).name for ingested in real.folders.values() for path in ingested.releases}
    assert real.rejects
    for row in real.rejects:
        assert row.keys() - {"count"} == {"file", "position", "reason"}
        assert Path(row["file"]).name in names or "[withheld]" in row["file"]
        assert row["position"] or int(row["count"]) > 0  # after 1,000 lines, only reasons are counted
        assert row["reason"]


def test_nobody_labelled_a_person_is_served(real: Real, shared_data: Path) -> None:
    with (shared_data / "names" / "paraguay_suppliers_labelled.csv").open(encoding="utf-8-sig") as stream:
        labelled = list(csv.DictReader(stream))
    people = {fold(row["name"]) for row in labelled if row["label"] == "natural_person"}
    firms = {fold(row["name"]) for row in labelled if row["label"] == "organisation"}
    assert len(people) > 1000
    served = {fold(row["name"]) for row in real.caller.parties()}
    assert not people & served
    assert firms & served, "the labels and the releases have nothing in common"
    text = fold(json.dumps(real.caller.tenders(country="PY"), ensure_ascii=False, default=str))
    assert not [name for name in people if name in text]


def fold(text: str) -> str:
    return " ".join(text.lower().split())


@pytest.mark.rule("GATE-5")
def test_no_contact_is_served(real: Real) -> None:
    for country in sorted(set(COUNTRIES.values())):
        text = json.dumps(real.caller.tenders(country=country), default=str)
        for field in ("contactPoint", "contactPerson", "telephone", "faxNumber", "email"):
            assert f'"{field}"' not in text, (country, field)


@pytest.mark.rule("GATE-1")
def test_every_served_party_has_evidence_and_a_stub_has_only_roles(real: Real) -> None:
    rows = real.caller.parties()
    assert len(rows) > 100
    kinds = {row["org_evidence"].partition(":")[0] for row in rows}
    assert kinds <= {"lei", "registry", "legal_form", "public_body"}
    names = {row["name"] for row in rows}
    for country in sorted(set(COUNTRIES.values())):
        for row in real.caller.tenders(country=country):
            for party in row["release"].get("parties") or ():
                assert "name" not in party or " ".join(party["name"].split()) in names, row["ocid"]
                if not party.keys() & {"name", "identifier"}:
                    assert set(party) <= {"roles", "id"}, row["ocid"]
