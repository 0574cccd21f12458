"""Tenders: ingesting releases, and pages of them at any depth with a hundred thousand and with ten million.

    python -m bench.tenders [--rounds 5] [--seconds 3] [--releases 100000] [--large 10000000] [--only NAME]

--only: ingest, release (one of 2,500, 5,000 and 10,000 awards, each won by a person) or pages.

Ingest is the real command, including gate and cleaning, in turn with a script that only parses the same JSON
Lines and stores the bytes in SQLite. The editions for paging are written directly by the edition's own writer
in the same layout: ingesting ten million releases would take an hour.
"""

import argparse
import json
import random
import shutil
import statistics
import sys
import time
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path

from bench.fundamentals import issue_key
from bench.history import report
from bench.ingest import Cost, cost
from bench.load import CONNECTIONS, Contender, Question, Server, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of
from sankofa.edition.format.keys import LAYOUT, TENDERS_PER_BLOCK
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.engines.block_file import stored_block
from sankofa.engines.datastore import open_datastore
from sankofa.engines.edition_folder import EditionWriter
from sankofa.ledger.store import SCHEMA

_SOURCE = """
[sources.bench-tenders]
adapter = "ocds"
sku = "AF-TENDER"
country = "ZA"
license_class = "synthetic"
commercial_redistribution = true
"""
_MERELY = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[3], isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = NORMAL")
database.execute("CREATE TABLE release (body)")
if sys.argv[1] == "json":
    from json import loads as parse
else:
    from msgspec.json import decode as parse
database.execute("BEGIN")
batch = []
for line in open(sys.argv[2], "rb"):
    parse(line)
    batch.append((line,))
    if len(batch) == 500:
        database.executemany("INSERT INTO release VALUES (?)", batch)
        batch.clear()
database.executemany("INSERT INTO release VALUES (?)", batch)
database.execute("COMMIT")
"""
_LONGEST_START = 300
_DEEP_PAGES = 500
_BUYERS = "City of Cape Town|Department of Health|National Treasury|Msunduzi Local Municipality".split("|")
_GOODS = (
    "bitumen emulsion|stationery|laboratory reagents|school furniture|diesel generators|water meters".split(
        "|"
    )
)


def release(number: int) -> dict[str, object]:
    """A release of about two kilobytes: a buyer with a contact person, a supplier, an item, an award."""
    chance = random.Random(number)
    buyer, goods = _BUYERS[number % 4], _GOODS[number % 6]
    supplier = {"id": f"S{number % 5000}", "name": f"Example Supplies {number % 5000} (Pty) Ltd"}
    amount = chance.randrange(10_000, 90_000_000) / 100
    day = (date(2020, 1, 1) + timedelta(days=number % 2000)).isoformat()
    return {
        "ocid": f"ocds-bench1-{number:09d}", "id": f"{number:09d}-1", "date": f"{day}T08:00:00Z",
        "tag": ["tender", "award"], "initiationType": "tender", "language": "en",
        "parties": [
            {
                "id": f"B{number % 4}", "name": buyer, "roles": ["buyer", "procuringEntity"],
                "identifier": {"scheme": "ZA-GOV", "id": f"{number % 4}"},
                "address": {
                    "streetAddress": "12 Hertzog Boulevard", "locality": "Cape Town", "postalCode": "8001",
                    "countryName": "South Africa",
                },
                "contactPoint": {
                    "name": f"Invented Person{number % 300}", "email": "someone@example.org",
                    "telephone": "+27 21 000 0000",
                },
            },
            {**supplier, "roles": ["supplier", "tenderer"],
             "identifier": {"scheme": "ZA-CIPC", "id": f"2001/{number % 5000:06d}/07"}},
        ],
        "buyer": {"id": f"B{number % 4}", "name": buyer},
        "tender": {
            "id": f"T{number}", "title": f"Supply and delivery of {goods} for district {number % 50}",
            "description": f"Bids are invited for the supply, delivery and off-loading of {goods} for "
            "three years in accordance with the attached specification and the general conditions.",
            "status": "complete", "procurementMethod": "open", "mainProcurementCategory": "goods",
            "value": {"amount": amount, "currency": "ZAR"},
            "items": [{
                "id": "1", "description": goods, "quantity": chance.randrange(1, 500),
                "classification": {"scheme": "CPV", "id": "44113610", "description": goods},
                "unit": {"name": "each", "value": {"amount": amount / 100, "currency": "ZAR"}},
            }],
            "tenderPeriod": {"startDate": f"{day}T00:00:00Z", "endDate": f"{day}T11:00:00Z"},
            "documents": [{
                "id": "d1", "documentType": "tenderNotice", "title": "Notice", "format": "application/pdf",
                "url": f"https://example.org/{number}.pdf", "datePublished": f"{day}T00:00:00Z",
            }],
        },
        "awards": [{
            "id": f"A{number}", "title": "Award", "status": "active", "date": f"{day}T07:00:00Z",
            "value": {"amount": amount, "currency": "ZAR"}, "suppliers": [supplier],
        }],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tenders")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--releases", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=10_000_000)
    parser.add_argument("--only", choices=("ingest", "release", "pages"))
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    if options.only in (None, "ingest"):
        _ingest(options.releases, options.rounds)
    if options.only in (None, "release"):
        _one_release()
    if options.only in (None, "pages"):
        _pages(100_000, options.large, options.rounds, options.seconds)


def _ingest(count: int, rounds: int) -> None:
    file = CACHE / f"tenders-{count}.jsonl"
    if not file.exists():
        file.write_text("".join(json.dumps(release(n)) + "\n" for n in range(count)))
    size = file.stat().st_size
    print(f"{count:,} releases of {size / count:,.0f} bytes, {rounds} rounds in turn")
    print(f"{'':36}{'rows':>12}{'rows/s':>12}{'per cpu s':>12}{'peak MB':>10}")
    folder = CACHE / "tenders-ingest"
    spent: dict[str, list[Cost]] = {}
    for _ in range(rounds):
        for what, command in _contenders(file, folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "sources.toml").write_text(_SOURCE)
            spent.setdefault(what, []).append(cost(command, environment_of(folder)))
    for what, costs in spent.items():
        print(min(costs, key=lambda c: c.cpu).line(what, count))
    ours = spent.pop("sankofa ingest")
    rate = count / statistics.median(c.cpu for c in ours)
    report("releases ingested on one core", rate, unit="releases/s", least=5000)
    for what, costs in spent.items():
        share = statistics.median(theirs.cpu / own.cpu for own, theirs in zip(ours, costs, strict=True))
        report(f"ingest, rate to: {what}", share, least=0.25)
    _memory(count, folder)
    shutil.rmtree(folder)


def _one_release() -> None:
    """Releases with many awards: their titles repeat withheld names, so they must be searched for all."""
    folder = CACHE / "tenders-ingest"
    print(f"{'one release':36}{'awards':>12}{'awards/s':>12}{'per cpu s':>12}{'peak MB':>10}")
    spent = []
    for awards in (2_500, 5_000, 10_000):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "sources.toml").write_text(_SOURCE)
        file = folder / "release.jsonl"
        file.write_text(json.dumps(_awarded_to_people(awards)))
        spent.append(cost([SANKOFA, "ingest", "bench-tenders", str(file)], environment_of(folder)))
        print(spent[-1].line("sankofa ingest", awards), flush=True)
    shutil.rmtree(folder)
    seconds, ratio_to_half = spent[2].cpu, spent[2].cpu / spent[1].cpu
    report("one release of 10,000 awards, processor time", seconds, unit="s", most=10)
    report("the same to one of 5,000 awards", ratio_to_half, unit="times")


def _awarded_to_people(awards: int) -> dict[str, object]:
    """A release whose every award names an invented person, with a number and an address."""
    chance = random.Random(awards)
    syllables = "ka mo lo ndi tha bo zu me ri sa ko ne wa li phe nga".split()
    people = []
    for number in range(awards):
        first, last = ("".join(chance.choices(syllables, k=3)).title() for _ in range(2))
        people.append(
            (f"S{number}", f"{first} {'de ' if number % 7 == 0 else ''}{last}", f"80{number:07d}083")
        )
    return {
        **release(1),
        "parties": [
            {
                "id": own, "name": name, "roles": ["supplier"],
                "identifier": {"scheme": "ZA-ID", "id": identity},
                "contactPoint": {"name": name, "email": f"{own.lower()}@example.org"},
            }
            for own, name, identity in people
        ],
        "awards": [
            {
                "id": f"A-{own}", "title": f"Lot {own} to {name}", "status": "active",
                "description": f"Supply and delivery of goods; contact {name.split()[-1]}",
                "value": {"amount": 100, "currency": "ZAR"}, "suppliers": [{"id": own, "name": name}],
            }
            for own, name, _ in people
        ],
    }  # fmt: skip


def _memory(count: int, folder: Path) -> None:
    """The peak with so many releases and with three times as many; both exceed the cache."""
    peaks = []
    for times in (1, 3):
        file = folder.with_name(f"tenders-memory-{times}.jsonl")
        with file.open("w") as lines:
            lines.writelines(json.dumps(release(n)) + "\n" for n in range(times * count))
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "sources.toml").write_text(_SOURCE)
        spent = cost([SANKOFA, "ingest", "bench-tenders", str(file)], environment_of(folder))
        file.unlink()
        print(spent.line("memory", times * count), flush=True)
        peaks.append(spent.peak)
    report("peak memory for three times the releases", peaks[1] / peaks[0], unit="times")


def _contenders(file: Path, folder: Path) -> Iterator[tuple[str, list[str]]]:
    yield "sankofa ingest", [SANKOFA, "ingest", "--strict", "bench-tenders", str(file)]
    for parser in ("json", "msgspec"):
        what = f"parse with {parser}, store the bytes"
        yield what, [sys.executable, "-c", _MERELY, parser, str(file), str(folder / "merely.sqlite")]


def _pages(few: int, many: int, rounds: int, seconds: float) -> None:
    print(f"load: {load_tool()}, {CONNECTIONS} connections; {rounds} rounds of {seconds:g} s")
    with ExitStack() as running:
        contenders = []
        for count in filter(None, (many, few)):
            home = _edition(count)
            server = running.enter_context(commands.sankofa(home))
            key = {"X-API-Key": issue_key(home, "professional")}
            _await_edition(server, key)
            contenders += [
                Contender(f"first page, {count:,}", server, [Question("/v1/tenders?limit=25")], key),
                Contender(f"any page, {count:,}", server, list(_deep(server, key)), key),
            ]
        first = contenders[1]
        body = len(first.server.body(first.questions[0], first.headers))
        with first.server.fetch(first.questions[0], first.headers) as answer:
            fields = {n: v for n, v in answer.getheaders() if n not in ("content-length", "date", "server")}
        ceiling = Contender(
            "static body",
            running.enter_context(commands.static(_edition(few), fields)),
            [Question(f"/{body}")],
        )
        measure([*contenders, ceiling], rounds, seconds)
    print(f"\n25 rows, {body:,} bytes\n{table([*contenders, ceiling], contenders[0])}")
    for one in contenders:
        report(f"25 rows, {one.name}, rate to a static body", ratio(one, ceiling), least=0.30)
        report(f"25 rows, {one.name}, processor time to a static body", cpu_ratio(one, ceiling))
    if many:
        report(
            "25 rows, 10 million releases to 100,000, by rate",
            ratio(contenders[1], contenders[3]),
            least=0.80,
        )


def _await_edition(server: Server, key: dict[str, str]) -> None:
    """Ten gigabytes are verified before they are served; until then the server answers without them."""
    began = time.monotonic()
    status = 503
    while status == 503 and time.monotonic() - began < _LONGEST_START:
        time.sleep(0.2)
        with server.fetch(Question("/v1/tenders?limit=1"), key) as answer:
            status = answer.status
    print(f"the edition is served {time.monotonic() - began:,.0f} s after the server answers")


def _deep(server: Server, key: dict[str, str]) -> Iterator[Question]:
    """Pages anywhere in the list: after each of the first so many thousands."""
    path = "/v1/tenders?country=ZA&limit={}{}"
    cursor = ""
    for _ in range(_DEEP_PAGES):
        following = json.loads(server.body(Question(path.format(1_000, cursor)), key))["next_cursor"]
        if following is None:
            return
        cursor = f"&cursor={following}"
        yield Question(path.format(25, cursor))


def _edition(count: int) -> Path:
    """A home whose edition has so many releases of about a kilobyte; kept between runs."""
    home = CACHE / f"home-tenders-{count}"
    if (home / "made").exists():
        return home
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    store = open_datastore("sqlite:", home, SCHEMA)
    writer = store.build()
    last = _write(writer, "tender", (Entry(_row(n, count)) for n in range(count)), TENDERS_PER_BLOCK, 1)
    days = array("i")
    per_day = max(1, count // 3000)
    for number in range(0, count, per_day):
        days.extend((date(2026, 6, 30).toordinal() - number // per_day, number))
    days.extend((0, count))
    _write(writer, "tender_day", [Entry(days.tobytes())], 0, last)
    name = f"20260701T000000Z-00001-{count:010d}"
    rows = {"tender": count}
    writer.finish(
        name, {"format": LAYOUT, "edition": name, "content_sha256": "", "rows": rows, "indexes": {}}
    )
    store.set_current_and_prune([name], name)
    (home / "made").touch()
    return home


def _write(
    writer: EditionWriter, kind: str, entries: Iterable[Entry], rows_per_block: int, first: int
) -> int:
    number = first
    for index, rows in pack(entries, rows_per_block):
        writer.write([stored_block(index, rows)])
        number += 1
    writer.register([(kind, "ZA", first, number - first)])
    return number


_TEXT = json.dumps(release(7)["tender"]).encode()[:700].replace(b'"', b"'")


def _row(number: int, count: int) -> bytes:
    return (
        b'{"source_ref":"bench.jsonl#line %d","license_class":"synthetic","observed_at":"2026-07-01T00:00Z",'
        b'"buyer_service_id":null,"country":"ZA","ocid":"ocds-bench1-%09d","release_id":"%d","release_date":'
        b'"2026-06-30T00:00:00Z","title":"Supply","release":{"ocid":"ocds-bench1-%09d","tender":{"title":"%b"}}}'
    ) % (number, number, number, count - number, _TEXT)


if __name__ == "__main__":
    main()
