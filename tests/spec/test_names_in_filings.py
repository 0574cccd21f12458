"""A past day has the name of the latest filing known by then, across all sources of filings."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, publish_files
from tests.spec.filed_names import FACTS, SETS, company_facts, data_set
from tests.spec.ingesting import source_entry
from tests.spec.inline_report import report, report_package, taxonomy

pytest.importorskip("arelle", reason="inline XBRL is an extra, which is not installed here")

CIK: Final = "0009999300"
ID: Final = service_id(f"registry:US-SEC-CIK:{CIK}")
SOURCES: Final = source_entry("a-reports", "ixbrl", license_class="statutory-filing")
NAMES_OF_REGISTRANTS: Final = source_entry("names", "sec-submissions")
NAME: Final = "Riftline Sample Telecom PLC"
"""In the report of `inline_report`."""


class Filing(NamedTuple):
    day: str
    name: str
    document: str
    """The document with its name: the part of `source_ref` after the source."""
    source: str
    write: Callable[[Path], Path]


def filed(day: str, name: str, number: int) -> Filing:
    accession = f"{CIK}-24-00000{number}"
    return Filing(
        day, name, accession, SETS, lambda folder: data_set(folder / f"{day}.zip", CIK, name, day, accession)
    )


def inline(folder: Path) -> Path:
    path = folder / "2018-03-28-annual.zip"
    path.write_bytes(report_package(report(scheme="http://www.sec.gov/CIK", identifier=CIK)))
    return path


def facts(folder: Path) -> Path:
    return company_facts(folder / f"CIK{CIK}.json", CIK, "Delta Mills Inc", "2021-05-03", f"{CIK}-21-000009")


FILINGS: Final = [
    filed("2010-02-12", "ALPHA MILLS INC", 1),
    filed("2015-02-13", "BETA MILLS INC", 2),
    Filing("2018-03-28", NAME, "2018-03-28-annual.zip/report.xhtml", "a-reports", inline),
    Filing("2021-05-03", "Delta Mills Inc", f"CIK{CIK}.json", FACTS, facts),
    filed("2024-02-13", "EPSILON MILLS INC", 3),
]


Served = tuple[LiveServer, str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("whole")
    home = folder / "home"
    (home / "taxonomies").mkdir(parents=True)
    (home / "taxonomies" / "ifrs.zip").write_bytes(taxonomy())
    (home / "sources.toml").write_text(SOURCES)
    publish_files(home, *((one.source, one.write(folder)) for one in FILINGS[::-1]))
    with LiveServer(home) as server:
        yield server, create_key(home, "starter")


def document(row: dict[str, Any]) -> str:
    """The source and document of its evidence."""
    return str(row["source_ref"].partition("#")[0].partition("@")[0])


def spells(served: Served, query: str = "") -> list[dict[str, Any]]:
    server, key = served
    return server.rows(f"/v1/entities/{ID}/history{query}", key)


@pytest.mark.rule("ENTY-11", "LOCK-2")
@pytest.mark.parametrize("number", range(len(FILINGS)))
def test_a_past_view_has_the_name_of_the_filing_known_on_the_day(whole: Served, number: int) -> None:
    server, key = whole
    filing = FILINGS[number]
    for view, day in (("", f"as_of={filing.day}"), (f"/at/{filing.day}", "")):
        (row,) = server.rows(f"{view}/v1/entities/{ID}?{day}", key)
        assert row["legal_name"] == filing.name
        assert document(row) == f"{filing.source}:{filing.document}"
        later = {one.name for one in FILINGS[number + 1 :]}
        assert not later & set(row["other_names"])
        for one in FILINGS[number:]:
            hits = server.rows(f"{view}/v1/search?q={one.name.split()[0]}&{day}", key)
            assert [hit["id"] for hit in hits] == ([ID] if one is filing else []), one.name
    (identifier,) = server.rows(f"/v1/crosswalk/{ID}?as_of={filing.day}", key)
    assert document(identifier) == f"{SETS}:{FILINGS[0].document}"


@pytest.mark.rule("ENTY-11", "ENTY-5")
def test_every_spell_of_a_name_has_its_own_filing_as_evidence(whole: Served) -> None:
    names = [row for row in spells(whole) if row["kind"] == "name"]
    assert [(row["value"], row["from"]) for row in names] == [(one.name, one.day) for one in FILINGS]
    assert [document(row) for row in names] == [f"{one.source}:{one.document}" for one in FILINGS]
    then = [row for row in spells(whole, "?as_of=2019-01-01") if row["kind"] == "name"]
    assert [row["source_ref"] for row in then] == [row["source_ref"] for row in names[:3]]


@pytest.mark.rule("ENTY-5")
def test_a_field_that_another_record_gives_has_that_record_as_evidence(tmp_path: Path) -> None:
    """The register of names has no jurisdiction: a data set does, and a file of listings the ticker."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "sources.toml").write_text(NAMES_OF_REGISTRANTS)
    former = {"name": "Old Mills Inc", "from": "2001-01-02", "to": "2009-12-31"}
    submissions, listings = tmp_path / f"CIK{CIK}.json", tmp_path / "listings.csv"
    submissions.write_text(json.dumps({"cik": CIK, "name": "Alpha Mills Inc", "formerNames": [former]}))
    listings.write_text(
        f"entity,id_type,id_value,from\nregistry:US-SEC-CIK:{CIK},ticker,NYSE:ALF,2011-05-05\n"
    )
    files = [("names", submissions), ("identifiers", listings), (SETS, FILINGS[0].write(tmp_path))]
    publish_files(home, *files)
    with LiveServer(home) as server:
        rows = spells((server, create_key(home, "starter")))
    assert [(row["kind"], row["value"], row["from"], document(row)) for row in rows] == [
        ("identifier", f"registry:US-SEC-CIK:{CIK}", "2001-01-02", f"names:CIK{CIK}.json"),
        ("jurisdiction", "US", "2001-01-02", f"{SETS}:{FILINGS[0].document}"),
        ("listing", "NYSE:ALF", "2011-05-05", "identifiers:listings.csv"),
        ("name", "Old Mills Inc", "2001-01-02", f"names:CIK{CIK}.json"),
        ("name", "Alpha Mills Inc", "2010-01-01", f"names:CIK{CIK}.json"),
    ]
