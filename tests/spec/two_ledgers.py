"""Two ledgers that agree up to a day: the sample world cut at that day, and with all later data.

Both also have releases whose parties could be mistaken for later organisations. The second one adds a renamed
organisation, a new one with figures and releases, namesakes, a new series, restated figures and its own
sources. It also had rows of every kind, some from before the day, that were withdrawn: no view shows a
withdrawn row, so the first ledger never had them.
"""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import sankofa
from tests.live import succeed
from tests.spec.ingesting import source_entry
from tests.spec.register import lei

SAMPLE: Final = Path(sankofa.__file__).parent / "sample"
RENAMED: Final = "999900SAMPLEZA000189"
NEW: Final = "999900SAMPLEKE000326"
BUYER: Final = lei("ROADS")
GONE: Final = lei("GONE")
LATE: Final = "sample-late"
"""A source of identifiers that is ingested after the day."""
_SOURCES: Final = "".join(
    source_entry(name, "identifiers-csv", title="A source that comes later", attribution=name)
    for name in (LATE, "sample-gone")
)
Rows = list[list[str]]


def publish_both(folder: Path, day: str, **engine: str) -> None:
    """Publish the ledger in `short/home`, and the longer one in `long/home` on an engine.

    Each ingests the files itself, so the instants and the order of the captures differ.
    """
    before, after = folder / "before", folder / "after"
    split(SAMPLE, day, before, after)
    named_parties(before)
    short, long = folder / "short" / "home", folder / "long" / "home"
    _take(short, before)
    _run(short, "publish", "--despite-floors")
    long.mkdir(parents=True, mode=0o700)
    for secret in short.glob("*-secret"):  # equal secrets make equal cursors
        shutil.copy(secret, long)
    (long / "sources.toml").write_text(_SOURCES)
    later_events(after)
    _take(long, before, **engine)
    _withdraw(long, folder / "gone", before, **engine)
    _take(long, after, **engine)
    _run(long, "publish", "--despite-floors", **engine)


def _withdraw(home: Path, newer: Path, before: Path, **engine: str) -> None:
    """Files and a source that an edition held and that were withdrawn; one of the files came again."""
    withdrawn_files(newer)
    _take(home, newer, **engine)
    _run(home, "publish", "--despite-floors", **engine)
    options = "--everywhere", "--reason", "wrong"
    for path in sorted(newer.iterdir()):
        names = [one for file in path.iterdir() for one in ("--file", file.name)]
        _run(
            home,
            "withdraw",
            f"sample-{path.name}",
            *(names if path.name != "gone" else ()),
            *options,
            **engine,
        )
    again = before / "filings" / "za-kgalagadi.csv"
    _run(home, "withdraw", "sample-filings", "--file", again.name, *options, **engine)
    _run(home, "ingest", "sample-filings", again, **engine)


def _take(home: Path, folder: Path, **settings: str) -> None:
    for path in sorted(folder.iterdir()):
        _run(home, "ingest", f"sample-{path.name}", path, **settings)


def _run(home: Path, *arguments: str | Path, **settings: str) -> None:
    succeed(home, *arguments, **settings)


def split(world: Path, day: str, before: Path, after: Path) -> None:
    """Write the data that was public on the day into one folder, and the rest into another."""
    for path in (p for p in sorted(world.rglob("*")) if p.is_file() and p.parent != world):
        kind = path.relative_to(world).parts[0]
        if kind == "fx":  # twenty thousand rates would take long to publish
            continue
        if kind == "filings":
            _split_csv(path, kind, "available_at", day, before, after)
        elif kind == "series":
            _split_csv(path, kind, "release_date", day, before, after)
        elif kind.startswith("tenders"):
            _split_releases(path, kind, day, before, after)
        elif kind == "companyfacts":
            _split_facts(path, day, before, after)
        elif "2-second" in path.parts:
            _write(after / kind / path.name, path.read_bytes())
        else:
            _write(before / kind / path.name, path.read_bytes())


def _split_csv(path: Path, kind: str, column: str, day: str, before: Path, after: Path) -> None:
    header, *rows = list(csv.reader(path.read_text().splitlines()))
    at = header.index(column)
    for folder, own in (
        (before, [r for r in rows if r[at] <= day]),
        (after, [r for r in rows if r[at] > day]),
    ):
        if own:
            name = path.name if folder == before else f"later-{path.name}"
            _write(folder / kind / name, _csv([header, *own]))


def _csv(rows: Rows) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _split_releases(path: Path, kind: str, day: str, before: Path, after: Path) -> None:
    text = path.read_text()
    package: dict[str, Any] = {}
    if path.suffix == ".jsonl":
        releases = [json.loads(line) for line in text.splitlines()]
    else:
        package = json.loads(text)
        if "records" in package:  # compiled, all from before
            _write(before / kind / path.name, path.read_bytes())
            return
        releases = package["releases"]
    parts = [r for r in releases if r["date"][:10] <= day], [r for r in releases if r["date"][:10] > day]
    for folder, own in zip((before, after), parts, strict=True):
        if own:
            _write(folder / kind / f"{path.stem}.json", json.dumps({**package, "releases": own}).encode())


def _split_facts(path: Path, day: str, before: Path, after: Path) -> None:
    def write(folder: Path, name: str, keep: Callable[[str], bool]) -> None:
        document = json.loads(path.read_text())
        remaining = 0
        for concepts in document["facts"].values():
            for concept in concepts.values():
                for unit, facts in concept["units"].items():
                    concept["units"][unit] = [fact for fact in facts if keep(fact["filed"])]
                    remaining += len(concept["units"][unit])
        if remaining:
            _write(folder / "companyfacts" / name, json.dumps(document).encode())

    write(before, path.name, lambda filed: filed <= day)
    write(after, f"later-{path.name}", lambda filed: filed > day)


NAMES: Final = {
    "TWIN": "Twin Sample Works Limited",  # a namesake comes later
    "AWARDED": "Awarded Sample Builders Limited",  # reports figures later, and is listed
    "NEAR": "The Nearly Sample Quarries Limited",  # is later renamed to the name in releases
    "TAKER": "Earlier Sample Name Limited",  # later takes the name of a party
}
PARTIES: Final = (
    *("Twin Sample Works Limited", "Awarded Sample Builders Limited", "Nearly Sample Quarries Ltd"),
    *("Later Sample Name Limited", "Numbered Sample Mills Limited"),
    *("Minted Sample Stores Limited", "Doubtful Sample Traders Limited"),
)
NUMBERS: Final = {PARTIES[5]: "PVT-MINTED1", PARTIES[6]: "PVT-DOUBTFUL1"}
"""Only tenders know them. A register records the first later; the other has another name then."""


def named_parties(folder: Path) -> None:
    """Organisations of 2015, and releases that name them and others, each as a buyer and as a supplier."""
    names = {lei(stem): name for stem, name in NAMES.items()}
    _write(folder / "lei" / "20150601-parties.csv", _register(names, "2015-05-04T00:00:00Z", REGISTERED))
    _release(folder, "parties", [f"{year}-{month:02}-15" for year in (2022, 2023, 2024) for month in (3, 8)])


def _register(names: dict[str, str], day: str, numbers: list[str]) -> bytes:
    """LEI records of organisations of Kenya, registered on a day."""
    header, *rows = list(csv.reader((SAMPLE / "lei" / "golden-copy.csv").read_text().splitlines()))
    header.append("Registration.InitialRegistrationDate")
    like = dict(zip(header, [*rows[0], day], strict=True))
    like |= {f"Entity.{column}.Country": "KE" for column in ("LegalAddress", "HeadquartersAddress")}
    like |= {"Entity.LegalJurisdiction": "KE", "Registration.LastUpdateDate": day}
    like["Entity.OtherEntityNames.OtherEntityName.1"] = ""
    number = "Entity.RegistrationAuthority.RegistrationAuthorityEntityID"
    own = [
        {**like, "LEI": one, "Entity.LegalName": name, number: at}
        for at, (one, name) in zip(numbers, names.items(), strict=True)
    ]
    return _csv([header, *([*one.values()] for one in own)])


REGISTERED: Final = [f"2015/{400_000 + at}/07" for at in range(len(NAMES))]


def _release(
    folder: Path,
    name: str,
    days: list[str],
    parties: tuple[str, ...] = PARTIES,
    numbers: dict[str, str] = NUMBERS,
) -> None:
    package = json.loads((SAMPLE / "tenders-ke" / "ke-releases-1.0.json").read_text())
    releases = []
    for at, day in enumerate(days):
        for number, party in enumerate(parties):
            supplier: dict[str, Any] = {"name": parties[number - 1]}
            if known := numbers.get(parties[number - 1]):
                supplier["identifier"] = {"scheme": "KE-RCO", "id": known}
            award: dict[str, Any] = {"id": "a", "date": day, "value": {"amount": 10 + at, "currency": "KES"}}
            award["suppliers"] = [supplier]
            ocid = f"ocds-{name}-{number}"
            title = {"id": ocid, "title": f"Works of {name}", "mainProcurementCategory": "works"}
            one = {"ocid": ocid, "id": f"{ocid}-{at}", "date": f"{day}T09:00:00Z", "tag": ["award"]}
            releases.append({**one, "tender": title, "buyer": {"name": party}, "awards": [award]})
    path = folder / "tenders-ke" / f"{name}.json"
    _write(path, json.dumps({**package, "releases": releases}).encode())


def later_events(folder: Path) -> None:
    """A new name, a new organisation with figures, releases and a listing, a new series, and restatements.

    Also namesakes of earlier parties, and figures and numbers of such parties.
    """
    namesakes = {lei("TWINTWO"): NAMES["TWIN"], lei("NEARTWO"): PARTIES[2], lei("TAKER"): PARTIES[3]}
    numbers = [REGISTERED[0], "2015/500001/07", "2015/500002/07"]  # the first belongs to its namesake
    _write(folder / "lei" / "20260602-parties.csv", _register(namesakes, "2026-06-01T00:00:00Z", numbers))
    later = NUMBERS | {PARTIES[4]: "PVT-NUMBERED1", "Another Sample Limited": NUMBERS[PARTIES[6]]}
    _release(folder, "later-parties", ["2026-05-15"], (*PARTIES[:6], "Another Sample Limited"), later)
    recorded = _register({lei("MINTED"): PARTIES[5]}, "2026-06-01T00:00:00Z", [NUMBERS[PARTIES[5]]])
    _write(folder / "lei" / "20260603-parties.csv", recorded.replace(b"RA990001", b"KE-RCO"))
    header, *rows = list(csv.reader((SAMPLE / "lei" / "golden-copy.csv").read_text().splitlines()))
    header.append("Registration.InitialRegistrationDate")
    updated, name = header.index("Registration.LastUpdateDate"), header.index("Entity.LegalName")
    renamed = next(row for row in rows if row[0] == RENAMED)
    renamed = [*renamed, "2014-05-06T00:00:00Z"]
    renamed[name], renamed[updated] = "Zebra Later Stores Limited", "2026-06-01T00:00:00Z"
    new = [*renamed]
    new[0], new[name] = NEW, "Quagga Newcomer Limited"
    new[header.index("Entity.RegistrationAuthority.RegistrationAuthorityEntityID")] = "2026/111111/07"
    new[updated] = new[-1] = "2026-05-01T00:00:00Z"
    buyer = [*new]  # releases name it long before it is registered
    buyer[0], buyer[name] = BUYER, "Kenya Sample Roads Authority"
    for column in ("LegalAddress.Country", "HeadquartersAddress.Country", "LegalJurisdiction"):
        buyer[header.index(f"Entity.{column}")] = "KE"
    buyer[header.index("Entity.RegistrationAuthority.RegistrationAuthorityEntityID")] = "2026/222222/07"
    _write(folder / "lei" / "20260601-golden-copy.csv", _csv([header, renamed, new, buyer]))
    figures = f"""\
lei:{NEW},revenue,9000000,ZAR,2025-01-01,2025-12-31,FY,2026-05-02,quagga-2025
lei:{NEW},profit,900000,ZAR,2025-01-01,2025-12-31,FY,2026-05-02,quagga-2025
lei:{RENAMED},revenue,1234567,ZAR,2020-06-29,2021-06-27,FY,2026-05-02,restates a year of before
"""
    figures += f"lei:{lei('AWARDED')},revenue,77,KES,2025-01-01,2025-12-31,FY,2026-05-02,awarded-2025\n"
    _write(folder / "filings" / "later-events.csv", f"{_FIGURES}{figures}".encode())
    values = "QUAGGA.INDEX,cpi,monthly,ZA,2026-03-31,17,index,2026-04-20\n"
    values += 'CPI.KE,cpi,monthly,KE,2022-01-31,1,"index, 2019=100",2026-04-20\n'
    _write(folder / "series" / "later-events.csv", f"{_VALUES}{values}".encode())
    listed = f"lei:{RENAMED},ticker,NGX:ZEBRA,,,2026-06-01\nlei:{RENAMED},registry,Z-1,ZA-CIPC,,2026-06-01\n"
    listed += f"lei:{lei('TWINTWO')},ticker,NGX:TWIN,,,2026-06-01\n"
    listed += f"lei:{lei('AWARDED')},ticker,NGX:AWARDED,,,2026-06-01\n"
    _write(folder / "late" / "late.csv", f"{_LISTED}{listed}".encode())


_FIGURES: Final = (
    "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document\n"
)
_VALUES: Final = "series,series_type,frequency,country,date,value,unit,release_date\n"
_LISTED: Final = "entity,id_type,id_value,registry,legal_name,from\n"


def withdrawn_files(folder: Path) -> None:
    """Figures, an organisation, a series, a release and identifiers from before the day."""
    header, *rows = list(csv.reader((SAMPLE / "lei" / "golden-copy.csv").read_text().splitlines()))
    record = [*next(row for row in rows if row[0] == RENAMED)]
    record[0], record[header.index("Entity.LegalName")] = GONE, "Gone Sample Mills Limited"
    record[header.index("Entity.RegistrationAuthority.RegistrationAuthorityEntityID")] = "2011/333333/07"
    _write(folder / "lei" / "gone.csv", _csv([header, record]))
    figures = f"""\
lei:{GONE},revenue,5000000,ZAR,2022-01-01,2022-12-31,FY,2023-05-02,gone-2022
lei:{RENAMED},revenue,7654321,ZAR,2020-06-29,2021-06-27,FY,2023-05-02,restates a year of before
"""
    _write(folder / "filings" / "gone.csv", f"{_FIGURES}{figures}".encode())
    values = "GONE.INDEX,cpi,monthly,ZA,2023-03-31,17,index,2023-04-20\n"
    values += 'CPI.KE,cpi,monthly,KE,2022-01-31,2,"index, 2019=100",2023-04-20\n'
    _write(folder / "series" / "gone.csv", f"{_VALUES}{values}".encode())
    package = json.loads((SAMPLE / "tenders-ke" / "ke-releases-1.0.json").read_text())
    release = package["releases"][0] | {"ocid": "ocds-gone-1", "id": "gone-1", "date": "2024-02-02T00:00:00Z"}
    release |= {"buyer": {"name": "Gone Sample Mills Limited"}}
    _write(folder / "tenders-ke" / "gone.json", json.dumps({**package, "releases": [release]}).encode())
    listed = f"lei:{RENAMED},ticker,NGX:GONE,,,\nlei:{RENAMED},registry,G-1,ZA-CIPC,,\n"
    for name in ("identifiers", "gone"):
        _write(folder / name / "gone.csv", f"{_LISTED}{listed}".encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
