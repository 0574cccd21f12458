"""Macro: ingest a table the size of the World Development Indicators, and read series out of millions of
values.

    python -m bench.macro [--rounds 7] [--seconds 3] [--only ingest|read] [--large]

The table has its publisher's format, and the real command ingests it. The real writer writes the editions,
from the blocks of two series that represent all others: one never revised, one revised.
"""

import argparse
import csv
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pycountry

from bench.fundamentals import issue_key
from bench.history import report
from bench.ingest import cost
from bench.load import CONNECTIONS, Contender, Question, Server, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of
from sankofa.edition.format.keys import LAYOUT, MACRO_SERIES, key_list, series_list
from sankofa.edition.format.macro import SeriesSummary, block_days, list_pages, pack_series, summary_of
from sankofa.edition.format.row_blocks import Entry
from sankofa.engines.block_file import stored_block
from sankofa.engines.checked_file import FileStates
from sankofa.engines.datastore import open_datastore
from sankofa.engines.edition_folder import EditionWriter
from sankofa.engines.edition_reader import OpenParts
from sankofa.ledger.store import SCHEMA
from sankofa.model.rows import MacroSeriesRow, wire

_INGEST_TARGET = 100_000
_READ_TARGET, _GROWTH_TARGET = 0.30, 1.25
_VALUES = 10_000
_PATIENCE = 600.0
_PLACEHOLDER = "CPI.000000"
_FIRST_DAY = date(1999, 1, 1)
_PAST_DAY = date(2010, 6, 30)
_COUNTRIES, _INDICATORS = 217, 1_500
_AGGREGATES = (
    "AFE AFR AFW ARB CEB CSS EAP EAR EAS ECA ECS EMU EUU FCS HIC HPC IBD IBT IDA IDB IDX INX LAC LCN LDC LIC "
    "LMC LMY LTE MEA MIC MNA NAC OED OSS PRE PSS PST SAS SSA SSF SST TEA TEC TLA TMN TSA TSS UMC WLD"
).split(" ")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.macro")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", choices=("ingest", "read"))
    parser.add_argument("--large", action="store_true", help="50 million values instead of 5: 16 GB of disk")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    if options.only != "read":
        _ingest()
    if options.only != "ingest":
        _read(5_000 if options.large else 500, options.rounds, options.seconds)


# In


def _ingest() -> None:
    path = CACHE / "WDICSV.csv"
    if not path.exists():
        _write_table(path)
    print(f"{'':36}{'rows':>12}{'rows/s':>12}{'per cpu s':>12}{'peak MB':>10}")
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        environment = environment_of(Path(folder) / "home")
        spent = {}
        for what in ("ingest", "the same again, nothing new"):
            done = cost([SANKOFA, "ingest", "--strict", "worldbank", str(path)], environment)
            read = int(done.output.partition("read ")[2].partition(",")[0])
            print(done.line(what, read), flush=True)
            spent[what] = read / done.cpu
        published = cost([SANKOFA, "publish"], environment)
        rows = int(published.output.partition("macro-annual ")[2].partition(",")[0])
        print(published.line("publish", rows), flush=True)
    rate = spent["ingest"]
    report("values ingested on one core", rate, unit="values/s", least=_INGEST_TARGET)


def _write_table(path: Path) -> None:
    """Some 2.1 million values in 400,000 lines, one in five of an aggregate."""
    chance = random.Random(1)
    years = [str(year) for year in range(1960, 2026)]
    codes = sorted(c.alpha_3 for c in pycountry.countries)[:_COUNTRIES]
    partial_file = path.with_suffix(".partial")
    with partial_file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["Country Name", "Country Code", "Indicator Name", "Indicator Code", *years])
        for code in sorted([*codes, *_AGGREGATES]):
            for number in range(_INDICATORS):
                cells = [""] * len(years)
                length = chance.choice((0, 0, 2, 5, 10, 15))
                first = chance.randrange(len(years) - length)
                for position in range(first, first + length):
                    cells[position] = repr(chance.random() * 10 ** chance.randrange(12))[:16]
                name = f"Indicator {number}, total (constant 2015 US$)"
                writer.writerow([f"Country {code}", code, name, f"AA.BBB.{number:04}.ZS", *cells])
    partial_file.rename(path)


# Out


def _read(series: int, rounds: int, seconds: float) -> None:
    few, many = _home(50), _home(series)
    print(f"load: {load_tool()}, {CONNECTIONS} connections; {rounds} rounds of {seconds:g} s")
    with ExitStack() as running:
        keys = {home: {"X-API-Key": issue_key(home, "professional")} for home in (few, many)}
        servers = {home: running.enter_context(commands.sankofa(home)) for home in (few, many)}
        forgetful = running.enter_context(commands.sankofa(many, keeps_answers=False))
        sample = Question(_paths(50)["one series"][0])
        for home in (few, many):
            _wait(servers[home], sample, keys[home])
        _wait(forgetful, sample, keys[many])
        size = len(servers[few].body(sample, keys[few]))
        static = running.enter_context(commands.static(few, _headers(servers[few], sample, keys[few])))
        for shape in _paths(50):
            contenders = [
                Contender(f"{shape}, of 500,000", servers[few], _questions(50, shape), keys[few]),
                Contender("static body", static, [Question(f"/{size}")]),
                Contender(f"of {series * _VALUES:,}", servers[many], _questions(series, shape), keys[many]),
                Contender("the same, made anew", forgetful, _questions(series, shape), keys[many]),
            ]
            measure(contenders, rounds, seconds)
            small, ceiling, large, anew = contenders
            print(f"\n{shape}, {size:,} bytes\n{table(contenders, ceiling)}")
            for one in (small, large, anew):
                report(f"{shape}, {one.name}, rate to a static body", ratio(one, ceiling), least=_READ_TARGET)
                report(f"{shape}, {one.name}, processor time to a static body", cpu_ratio(one, ceiling))
            report(f"{shape}, cost to the small edition", 1 / ratio(large, small), most=_GROWTH_TARGET)


def _wait(server: Server, question: Question, key: Mapping[str, str]) -> None:
    """Wait until the edition is served. Every byte is verified first, which takes a while for so many."""
    began = time.monotonic()
    while True:
        with server.fetch(question, key) as answer:
            answer.read()
        if answer.status == 200:
            return
        if time.monotonic() - began > _PATIENCE:
            raise SystemExit(f"{question.path}: status {answer.status}")
        time.sleep(0.2)


def _key(number: int) -> str:
    return f"CPI.{number:06}"


def _paths(series: int) -> dict[str, list[str]]:
    """The questions for 50 rows each, in a different order each time."""
    numbers = list(range(series))
    random.Random(3).shuffle(numbers)
    past, until = f"as_of={_PAST_DAY}", f"to={_PAST_DAY - timedelta(days=2000)}"
    return {
        "one series": [f"/v1/macro?series={_key(n)}&limit=50" for n in numbers],
        "one series, in the past": [f"/v1/macro?series={_key(n)}&limit=50&{past}" for n in numbers],
        "one series, long ago": [f"/v1/macro?series={_key(n)}&limit=50&{past}&{until}" for n in numbers],
        "by country and frequency": [
            f"/v1/macro?country={_country(n)}&frequency=daily&limit=50&{past}" for n in numbers
        ],
    }


def _questions(series: int, shape: str) -> list[Question]:
    return [Question(path) for path in _paths(series)[shape]]


def _country(number: int) -> str:
    return ("ZA", "NG", "KE", "GH", "EG")[number % 5]


def _home(series: int) -> Path:
    """A home with an edition of so many series of 10,000 values; kept between runs."""
    home = CACHE / f"home-macro-{series}"
    if not (home / "editions" / "CURRENT").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        print(f"making {home.name}", flush=True)
        store = open_datastore("sqlite:", home, SCHEMA)
        writer = EditionWriter(_editions(home), OpenParts(FileStates()))
        _write_edition(writer, series)
        edition = "20260101T000000Z-00001-0000000000"
        writer.finish(edition, {"format": LAYOUT, "content_sha256": str(series), "rows": {}, "indexes": {}})
        store.set_current_and_prune([edition], edition)
    return home


def _editions(home: Path) -> Path:
    (home / "editions").mkdir()
    return home / "editions"


def _write_edition(writer: EditionWriter, series: int) -> None:
    examples = [_entries(revised=False), _entries(revised=True)]
    blocks = [list(pack_series(entries)) for entries in examples]
    columns: list[SeriesSummary] = []
    number = 1
    for n in range(series):
        key = "|".join((_key(n), "cpi", "daily", _country(n)))
        here = [
            stored_block(
                index,
                rows.replace(_PLACEHOLDER.encode(), _key(n).encode()).replace(b"??", _country(n).encode()),
            )
            for index, rows in blocks[n % 2]
        ]
        writer.write(here)
        names = (key, key_list(_key(n)))
        writer.register([(MACRO_SERIES, name, number, len(here)) for name in names])
        number += len(here)
        writer.write([stored_block(b"", block_days(examples[n % 2]) or b"")])
        writer.register([(f"{MACRO_SERIES}-days", name, number, 1) for name in names])
        number += 1
        columns.append(summary_of(key, examples[n % 2]))
    for key, pages in list_pages(columns, _filters):
        packed = [stored_block(b"", page) for page in pages]
        writer.write(packed)
        writer.register([(f"{MACRO_SERIES}-list", key, number, len(packed))])
        number += len(packed)


def _filters(one: SeriesSummary) -> Iterator[str]:
    key, family, frequency, country = one.key.split("|")
    yield key_list(key)
    for country_or_any in ("", country):
        for kind in ("", family):
            yield from (series_list(country_or_any, kind, pace) for pace in ("", frequency))


def _entries(*, revised: bool) -> list[Entry]:
    """10,000 days, newest first; in the revised series, each third value differed for a fortnight."""
    chance = random.Random(2)
    entries = []
    for n in reversed(range(_VALUES)):
        day = _FIRST_DAY + timedelta(days=n)
        days = [day.toordinal(), *([day.toordinal() + 14] if revised and n % 3 == 0 else [])]
        for vintage, (first, until) in enumerate(zip(days, [*days[1:], 2**31 - 1], strict=True), 1):
            row = MacroSeriesRow(
                source_ref=f"series.csv#row {n}", license_class="synthetic",
                observed_at="2026-01-01T00:00:00Z", series=_PLACEHOLDER, series_type="cpi",
                frequency="daily", country="??", date=day,
                value=Decimal(chance.randrange(10**6)).scaleb(-4), note=None, unit="index",
                available_at=date.fromordinal(first),
                vintage=vintage,
            )  # fmt: skip
            entries.append(Entry(wire.encode(row), first, until, tag=day.toordinal()))
    return entries


def _headers(server: Server, question: Question, key: Mapping[str, str]) -> dict[str, str]:
    with server.fetch(question, key) as answer:
        fields = answer.getheaders()
    return {name: value for name, value in fields if name not in ("content-length", "date", "server")}


if __name__ == "__main__":
    main()
