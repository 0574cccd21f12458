"""/sec: edgartools with its own setting, and plain requests, get every vintage of /v1/fundamentals."""

import gzip
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.depth import deep_after
from tests.live import Copies, LiveServer, publish_files
from tests.real_inputs import companyfacts_of
from tests.spec.test_links import link

CIK = 9999900002
DAYS = (None, date(2022, 6, 30), date(2024, 12, 31))
ASK_EDGARTOOLS = """
import json
import edgar
company = edgar.Company({cik})
facts = company.get_facts()
rows = [[f.taxonomy, f.concept, f.unit, str(f.period_start), str(f.period_end), float(f.value),
         str(f.filing_date), f.accession] for f in facts]
print(json.dumps({{"name": company.name, "cik": company.cik, "rows": rows}}))
"""


@pytest.fixture(scope="module")
def live(copy_sample: Copies) -> Iterator[LiveServer]:
    with LiveServer(copy_sample()) as server:
        yield server


@pytest.fixture(scope="module")
def key(live: LiveServer) -> str:
    return live.key("starter", "--per-minute", "100000")


def at(day: date | None) -> str:
    return "" if day is None else f"/at/{day}"


def vintages(live: LiveServer, key: str, day: date | None) -> list[dict[str, Any]]:
    (match,) = live.get(f"/v1/crosswalk?id_type=registry&id_value={CIK}", key).json()["data"]
    as_of = "" if day is None else f"&as_of={day}"
    path = f"/v1/fundamentals/{match['service_id']}?vintages=all{as_of}"
    rows = live.get(path, key).json()["data"]
    return [row for row in rows if row["value_reported"] is not None]


def as_reported(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *row["concept"].split(":"),
        row["unit"],
        row["period_start"],
        row["period_end"],
        float(row["value_reported"]),
        row["available_at"],
        row["source_ref"].partition(":")[2].partition("#")[0],
    )


@pytest.mark.rule("DIAL-1")
@pytest.mark.parametrize("day", DAYS)
def test_plain_requests_get_every_vintage_of_a_registrant(live: LiveServer, key: str, day: date | None):
    root, headers = f"{live.url}{at(day)}/sec", {"X-API-Key": key}
    body = requests.get(
        f"{root}/api/xbrl/companyfacts/CIK{CIK:010d}.json", headers=headers, timeout=60
    ).json()
    assert body["cik"] == CIK
    entries = [
        (taxonomy, tag, unit, one.get("start"), one["end"], float(one["val"]), one["filed"], one["accn"])
        for taxonomy, concepts in body["facts"].items()
        for tag, concept in concepts.items()
        for unit, ones in concept["units"].items()
        for one in ones
    ]
    own = vintages(live, key, day)
    assert own
    assert sorted(map(repr, entries)) == sorted(map(repr, map(as_reported, own)))
    assert day is None or all(entry[6] <= str(day) for entry in entries)
    concept = requests.get(
        f"{root}/api/xbrl/companyconcept/CIK{CIK:010d}/ifrs-full/Assets.json", headers=headers, timeout=60
    ).json()
    assert concept["units"] == body["facts"]["ifrs-full"]["Assets"]["units"]


@pytest.mark.parametrize("day", DAYS)
def test_a_frame_has_one_figure_of_each_registrant(live: LiveServer, key: str, day: date | None) -> None:
    path = f"{at(day)}/sec/api/xbrl/frames/ifrs-full/Assets/USD/CY2020Q4I.json"
    frame = live.get(path, key).json()
    tickers = live.get(f"{at(day)}/sec/files/company_tickers.json", key).json()
    assert {one["cik_str"] for one in tickers.values()} >= {CIK}
    own_rows = [
        row
        for row in vintages(live, key, day)
        if (row["concept"], row["unit"], row["period_end"]) == ("ifrs-full:Assets", "USD", "2020-12-31")
    ]
    latest = max(own_rows, key=lambda row: row["vintage"])
    (own,) = [one for one in frame["data"] if one["cik"] == CIK]
    assert (own["val"], own["end"]) == (latest["value_reported"], "2020-12-31")
    assert frame["pts"] == len(frame["data"]) == len({one["cik"] for one in frame["data"]})
    assert live.get(path.replace("CY2020", "CY1990"), key).status_code == 404
    assert live.get(path.replace("CY2020Q4I", "2020"), key).status_code == 400


CONCEPTS = ("Assets", "NetIncomeLoss", "Revenues", "SalesRevenueNet", "IncomeTaxExpenseBenefit")


def test_the_frames_of_a_year_that_ends_in_june_are_those_of_the_sec(
    shared_data: Path, tmp_path: Path
) -> None:
    """The SEC's files mark which figure it chose for which frame."""
    folder = shared_data / "fundamentals" / "companyfacts-2021"
    paths = [folder / f"CIK{cik:010}.json.gz" for cik in (93676, 817720, 1438535)]
    marked: defaultdict[str, dict[int, str]] = defaultdict(dict)
    home = tmp_path / "home"
    concepts = {f"us-gaap:{concept}" for concept in CONCEPTS}
    parts = companyfacts_of(paths, tmp_path / "parts", lambda *_: True, concepts, quarters=True)
    for path in paths:
        cik = int(path.name[3:13])
        facts = json.loads(gzip.decompress(path.read_bytes()), parse_float=str, parse_int=str)
        for concept in CONCEPTS:
            for one in facts["facts"]["us-gaap"].get(concept, {"units": {"USD": []}})["units"]["USD"]:
                if frame := one.get("frame"):
                    marked[f"{concept}/USD/{frame}"][cik] = one["val"]
    publish_files(home, *(("sec-companyfacts", path) for path in parts))
    with LiveServer(home) as server:
        key = server.key("starter", "--per-minute", "100000")
        for name, chosen in marked.items():
            frame = server.get(f"/sec/api/xbrl/frames/us-gaap/{name}.json", key).json()
            assert {one["cik"]: str(one["val"]) for one in frame["data"]} == chosen, name
    assert len(marked) > 200


@pytest.mark.rule("ENV-5")
def test_an_answer_has_one_entity_tag_for_each_encoding_and_is_not_sent_again(
    live: LiveServer, key: str
) -> None:
    path = f"/sec/api/xbrl/companyfacts/CIK{CIK:010d}.json"
    tags = {}
    for encoding in ("identity", "gzip", "zstd"):
        answer = live.get(path, key, accept_encoding=encoding)
        tags[encoding] = answer.headers["etag"]
        assert answer.headers.get("content-encoding", "identity") == encoding
    assert len({*tags.values()}) == len(tags)
    for sent in (*tags.values(), "*", f"W/{tags['gzip']}"):
        assert live.get(path, key, if_none_match=sent).status_code == 304, sent
    assert live.get(path, key, if_none_match='"other"').status_code == 200


def test_unknown_registrants_and_tiers_are_refused_in_json(live: LiveServer, key: str) -> None:
    path = f"/sec/api/xbrl/companyfacts/CIK{CIK:010d}.json"
    for status, answer in (
        (404, live.get("/sec/api/xbrl/companyfacts/CIK0000000001.json", key)),
        (404, live.get("/at/2001-01-01" + path, key)),
        (404, live.get("/sec/api/xbrl/nothing", key)),
        (401, live.get(path)),
        (402, live.get(path, live.key("sample"))),
        (402, live.get("/sec/files/company_tickers.json", live.key("sample"))),
    ):
        assert answer.status_code == status, answer.text
        assert answer.json()["message"]


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("day", deep_after(1, [DAYS[1], None]))
def test_edgartools_reads_a_company_by_its_own_setting(
    live: LiveServer, key: str, day: date | None, tmp_path: Path
) -> None:
    token = link(live, key, "--dialect", "sec")[1]
    root = f"{live.url}{at(day)}/link/{token}/sec"
    environment = {
        **{name: value for name, value in os.environ.items() if "PROXY" not in name.upper()},
        "EDGAR_DATA_URL": root,
        "EDGAR_BASE_URL": root,
        "EDGAR_IDENTITY": "Sankofa tests@example.org",
        "EDGAR_LOCAL_DATA_DIR": str(tmp_path),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK_EDGARTOOLS.format(cik=CIK)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    body = json.loads(done.stdout.splitlines()[-1])
    assert body["cik"] == CIK
    own = {(*as_reported(row)[3:7],) for row in vintages(live, key, day)}
    assert {
        (None if start == "None" else start, end, value, filed)
        for _, _, _, start, end, value, filed, _ in body["rows"]
    } == own
