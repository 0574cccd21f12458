"""Metrics: deriving them, and screening by them.

    python -m bench.metrics [--issuers 10000] [--rounds 7] [--seconds 3] [--only derive|screen] [--fresh]

Derive: every value of so many issuers with twenty years of a hundred facts, on one core, from the ledger
(organisations, reading, days, inputs and reasons), against one DuckDB query that gives the same from the same
facts in its own columns, in doubles. Again: the part that a build repeats after one issuer restated a figure.
Screen: the top 50 of a metric on a day, against a constant body from the same server, and against DuckDB
grouping the same values by issuer for each request, without a server.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path

from bench import histories
from bench.fundamentals import issue_key
from bench.history import report
from bench.load import SERVER_CORES, Contender, Question, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of
from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import PRIOR, metrics
from sankofa.derive.metrics.derive import derive
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.derived_parts import Issuers
from sankofa.edition.write.metric_rows import METRICS
from sankofa.engines.datastore import open_datastore
from sankofa.ledger.reader import without_cycle_collection
from sankofa.ledger.store import SCHEMA, Ledger
from sankofa.model.line_items import routes

_SCREENED = ("net_margin", "return_on_assets", "revenue_growth", "asset_turnover")
_DAYS = [date(2008, 1, 1).toordinal(), date(2024, 1, 1).toordinal()]


def main() -> None:
    options = _options()
    if options.only in (None, "derive"):
        _derive(options.issuers, fresh=options.fresh)
    if options.only in (None, "screen"):
        _screen(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.metrics")
    parser.add_argument("--issuers", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", choices=("derive", "screen"))
    parser.add_argument("--fresh", action="store_true", help="make the ledger and the home again")
    return parser.parse_args()


def _derive(issuers: int, *, fresh: bool) -> None:
    home = _home(f"histories-{issuers}", fresh, lambda h: histories.fill(h, range(issuers)))
    facts = issuers * histories.YEARS * histories.PER_YEAR
    print(f"derive: {issuers:,} issuers, {facts:,} facts")
    os.sched_setaffinity(0, SERVER_CORES)
    with without_cycle_collection():
        began, spent = time.perf_counter(), time.process_time()
        world = _world(home)
        values = sum(
            len(derive(Issuer(entity, world.ledger, world.captures).years).values)
            for entity in world.entities
        )
        clock, cpu = time.perf_counter() - began, time.process_time() - spent
    print(f"{values:,} values: {clock:.1f} s by the clock, {cpu:.1f} s of processor,")
    print(f"{cpu / facts * 1e6:.1f} us a fact; {_peak():,.0f} MB at most")
    report("derive 20 million facts, processor time", cpu / facts * 20e6, unit="s", most=180)
    report("derive, peak memory", _peak() / 1024, unit="GiB", most=2)
    peer = _duckdb("derive", str(home), json.dumps(_computation((*histories.FLOWS, *histories.STOCKS))))
    if peer["rows"] != values:
        raise SystemExit(f"DuckDB gives {peer['rows']:,} values where Sankofa gives {values:,}")
    print(f"DuckDB, one thread: {peer['cpu']:.1f} s of processor, {peer['memory'] / 1024:,.0f} MB at most")
    report("derive, processor time to DuckDB", cpu / peer["cpu"], unit="times", most=2)
    _derive_again(home, cpu)


def _derive_again(home: Path, fresh: float) -> None:
    """Like a build: encode and keep the rows, then repeat after one issuer restated a figure."""
    path = home / "derived" / "bench-metrics"
    path.unlink(missing_ok=True)
    _build(home, path)
    histories.fill(home, range(1), changed=int(time.time()))
    cpu = _build(home, path)
    print(f"{path.stat().st_size / 1e6:,.0f} MB kept; {_peak():,.0f} MB of memory at most")
    report("derive after one changed issuer, share of deriving everything", cpu / fresh, most=0.05)


def _build(home: Path, path: Path) -> float:
    with without_cycle_collection():
        spent = time.process_time()
        world = _world(home)
        issuers = Issuers(world.ledger, world.captures, world.entities, path)
        size = sum(len(issuers.part(METRICS, entity.service_id)) for entity in world.entities)
        cpu = time.process_time() - spent
    print(f"with all rows: {cpu:.1f} s of processor, {size / 1e6:,.0f} MB of metrics")
    return cpu


def _world(home: Path) -> BuildContext:
    return BuildContext(
        Ledger(open_datastore("sqlite:", home, SCHEMA), histories.SECRET.encode(), histories.now)
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _computation(concepts: Sequence[str]) -> dict[str, object]:
    """Each metric that is computable from the concepts, as its page writes it, and the concept of each
    item.
    """
    items = {name.removeprefix(PRIOR) for m in metrics() for name in m.forms[0].inputs}
    there = {item: [r.single for r in routes(item) if r.single in concepts] for item in sorted(items)}
    there = {item: concept_names for item, concept_names in there.items() if concept_names}
    formulas = {
        m.slug: m.explanation.split("\n")[0].strip()
        for m in metrics()
        if all(name.removeprefix(PRIOR) in there for name in m.forms[0].inputs)
    }
    return {"formulas": formulas, "candidates": there}


def _screen(options: argparse.Namespace) -> None:
    def make(home: Path) -> None:
        histories.fill(home, range(options.issuers), only=histories.SCREENED)
        subprocess.run([SANKOFA, "publish"], env=_environment(home), check=True)

    home = _home(f"screens-{options.issuers}", options.fresh, make)
    chance = random.Random(5)
    drawn = [
        (chance.choice(_SCREENED), date.fromordinal(chance.randrange(*_DAYS)).isoformat())
        for _ in range(2000)
    ]
    questions = [Question(f"/v1/screen?metric={slug}&as_of={day}&limit=50") for slug, day in drawn]
    print(f"screen: load {load_tool()}; {options.rounds} rounds of {options.seconds:g} s")
    with ExitStack() as running:
        headers = {"X-API-Key": issue_key(home, "professional")}
        server = running.enter_context(commands.sankofa(home))
        forgetful = running.enter_context(commands.sankofa(home, keeps_answers=False))
        bodies = [server.body(q, headers) for q in questions[:20]]
        with server.fetch(questions[0], headers) as answer:
            fields = {n: v for n, v in answer.getheaders() if n not in ("content-length", "date", "server")}
        static = running.enter_context(commands.static(home, fields))
        size = sorted(map(len, bodies))[len(bodies) // 2]
        contenders = [
            Contender("Sankofa", server, questions, headers),
            Contender("static body", static, [Question(f"/{size}")]),
            Contender("Sankofa, made anew", forgetful, questions, headers),
            Contender("Sankofa, asc", server, [Question(q.path + "&order=asc") for q in questions], headers),
            Contender(
                "Sankofa, a country", server, [Question(q.path + "&country=NG") for q in questions], headers
            ),
        ]
        measure(contenders, options.rounds, options.seconds)
    print(f"\ntop 50, {size:,} bytes\n{table(contenders, contenders[0])}")
    for one in (contenders[0], contenders[2]):
        by_rate, by_cpu = ratio(one, contenders[1]), cpu_ratio(one, contenders[1])
        report(f"top 50, {one.name}, rate to a static body", by_rate, least=0.25)
        report(f"top 50, {one.name}, processor time to a static body", by_cpu)
    ours = sorted(r.cpu for r in contenders[0].rounds)[options.rounds // 2]
    expected = [[r["value"] for r in json.loads(body)["data"]] for body in bodies]
    task = {"questions": drawn, "expected": expected, **_computation(histories.SCREENED)}
    peer = _duckdb("screen", str(home), json.dumps(task))
    print(f"DuckDB grouping per request, one thread, no server: {peer['cpu'] * 1e6:,.0f} us")
    report("top 50, times faster than DuckDB by processor time", peer["cpu"] / ours, least=15)


def _home(name: str, fresh: bool, make: "histories.Make") -> Path:
    home = CACHE / name
    if fresh and home.exists():
        shutil.rmtree(home)
    if not (home / "made").exists():
        shutil.rmtree(home, ignore_errors=True)
        print(f"making {name}: some minutes", flush=True)
        make(home)
        (home / "made").touch()
    return home


def _environment(home: Path) -> dict[str, str]:
    return {**environment_of(home), "SANKOFA_GATE_SECRET": histories.SECRET}


def _duckdb(what: str, home: str, task: str) -> dict[str, float]:
    """Runs in the environment of the peers, on the same core."""
    python = os.environ.get("BENCH_PEER_PYTHON") or str(commands.PEERS / "python")
    done = subprocess.run(
        [python, str(Path(__file__).parent / "peers" / "duckdb_metrics.py"), what, home],
        input=task,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, SERVER_CORES),
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
