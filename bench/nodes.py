"""The cost of a request on PostgreSQL and Redis, and the gain of a second worker.

    python -m bench.nodes [--scale small|300k|3m] [--rounds 5] [--seconds 2] [--only stores|workers]

The requests ask for the same 50 rows of the same issuers, with a key, and are counted: from files with the
embedded stores, from PostgreSQL with Redis, and from a folder that follows pushed editions with Redis.
Database servers run on the core of the service but are not part of its processor time: on their own machine
they would not slow it. Then one worker is compared with two at twice the connections. Each worker is limited
to a third of a core, so that the load is not the limit. Without control groups the workers take what the load
leaves them, and the report says so.
"""

import argparse
import json
import os
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from bench.history import report
from bench.load import HOST, Contender, Question, cpu_ratio, load_tool, measure, ratio, serving, table
from bench.shares import limited_to
from bench.world import SANKOFA, SCALES, SOURCE, Scale, environment_of, files, published_home
from tests.services import PostgresServer, RedisServer, postgres_binaries, redis_binary

_TARGET_STORES, _TARGET_WORKERS = 0.5, 1.8
_SHARE = 0.35
"""Share of a core for each worker, in the comparison of one worker with two."""


def main() -> None:
    options = _options()
    scale = SCALES[options.scale]
    home = published_home(scale)
    cores = len(os.sched_getaffinity(0))
    print(f"load: {load_tool()}; {options.rounds} rounds of {options.seconds:g} s; {cores} cores")
    questions = [Question(f"/v1/fundamentals/{s}") for s in scale.shapes[0].service_ids()]
    if options.only != "workers":
        _compare_stores(options, scale, home, questions)
    if options.only != "stores":
        _compare_workers(options, home, questions)


def _compare_stores(options: argparse.Namespace, scale: Scale, home: Path, questions: list[Question]) -> None:
    with ExitStack() as running, tempfile.TemporaryDirectory() as folder:
        embedded = _contender("files, embedded stores", home, {}, questions, running)
        stores = _stores(running)
        shared = _filled(Path(folder, "shared"), scale, stores)
        others = [_contender("PostgreSQL, Redis", shared, stores, questions, running)]
        others.append(
            _contender("following, Redis", *_following(home, Path(folder), stores), questions, running)
        )
        expected = _figures(embedded, questions[0])
        for other in others:
            if _figures(other, questions[0]) != expected:
                raise SystemExit(f"{other.name} gives other figures")
        contenders = [embedded, *others]
        before = _processor_seconds(stores)
        measure(contenders, options.rounds, options.seconds)
        spent = _processor_seconds(stores) - before
        print(table(contenders, embedded))
        seconds = max(options.seconds, 1) + 1 / max(options.rounds, 1)  # including the warm-up
        counted = sum(one_round.rate * seconds for other in others for one_round in other.rounds)
        print(f"{spent / counted * 1e6:8.0f} us of the core of Redis for each request that is counted there")
        for other in others:
            _verdict(
                f"{other.name} to embedded",
                ratio(other, embedded),
                cpu_ratio(other, embedded),
                _TARGET_STORES,
            )


def _compare_workers(options: argparse.Namespace, home: Path, questions: list[Question]) -> None:
    with ExitStack() as running:
        one = _contender("one worker", home, {}, questions, running, workers=1)
        two = _contender("two workers", home, {}, questions, running, workers=2)
        two.connections = 2 * one.connections  # with fewer for each, fewer answers would be made in one go
        for contender in (one, two):
            contender.server.use_all_cores()
        workers = [process for contender in (one, two) for process in contender.server.processes()]
        if not running.enter_context(limited_to(_SHARE, workers)):
            print("no control groups: the load is on the cores of the workers and bounds the rate of two")
        measure([one, two], options.rounds, options.seconds)
        print(table([one, two], one))
        _verdict("two workers to one", ratio(two, one), cpu_ratio(two, one), _TARGET_WORKERS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.nodes")
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", choices=("stores", "workers"), help="one of the two comparisons")
    return parser.parse_args()


def _figures(contender: Contender, question: Question) -> list[object]:
    """Their instants of observation differ, because each service ingested the files itself."""
    rows = json.loads(contender.server.body(question, contender.headers))["data"]
    return [(row["record_ref"], row["value_reported"]) for row in rows]


def _processor_seconds(stores: dict[str, str]) -> float:
    """Processor time of Redis, as it reports it."""
    address = urlsplit(stores["SANKOFA_USAGESTORE"])
    with socket.create_connection((address.hostname or "", address.port or 0)) as link:
        link.sendall(b"INFO cpu\r\n")
        fields = dict(line.split(":") for line in link.recv(4096).decode().split("\r\n") if ":" in line)
    return float(fields["used_cpu_sys"]) + float(fields["used_cpu_user"])


def _verdict(what: str, by_rate: float, by_cpu: float, target: float) -> None:
    report(f"{what}, by rate", by_rate, least=target)
    report(f"{what}, by processor time", by_cpu)


def _contender(
    name: str,
    home: Path,
    settings: dict[str, str],
    questions: list[Question],
    running: ExitStack,
    workers: int = 1,
) -> Contender:
    environment = {**environment_of(home), **settings}
    server = running.enter_context(
        serving(
            lambda port: [SANKOFA, "serve", "--host", HOST, "--port", str(port), "--workers", str(workers)],
            environment,
            ready="/v1/status",
        )
    )
    return Contender(name, server, questions, {"X-API-Key": _key(home, settings)})


def _key(home: Path, settings: dict[str, str]) -> str:
    command = [SANKOFA, "keys", "create", "--tier", "professional", "--label", "bench"]
    limits = ["--per-minute", "1000000000", "--per-month", "1000000000"]
    environment = {**environment_of(home), **settings}
    done = subprocess.run([*command, *limits], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _stores(running: ExitStack) -> dict[str, str]:
    binaries, redis = postgres_binaries(), redis_binary()
    if binaries is None or redis is None:
        raise SystemExit("needs PostgreSQL and Redis")
    servers = PostgresServer(binaries), RedisServer(redis)
    for server in servers:
        running.callback(server.close)
        server.start()
    return {
        "SANKOFA_DATASTORE": servers[0].url,
        "SANKOFA_KEYSTORE": servers[1].url,
        "SANKOFA_USAGESTORE": servers[1].url,
        "SANKOFA_KEYS_SECRET": "bench",
    }


def _filled(home: Path, scale: Scale, stores: dict[str, str]) -> Path:
    environment = {**environment_of(home), **stores, "SANKOFA_VAULT": "off"}
    for command in (["ingest", SOURCE, *map(str, files(scale))], ["publish"]):
        subprocess.run([SANKOFA, *command], env=environment, check=True, capture_output=True)
    return home


def _following(home: Path, folder: Path, stores: dict[str, str]) -> tuple[Path, dict[str, str]]:
    subprocess.run([SANKOFA, "push", str(folder / "pushed")], env=environment_of(home), check=True)
    settings = {**stores, "SANKOFA_EDITIONS": f"file://{folder}/pushed"}
    settings.pop("SANKOFA_DATASTORE")
    node = folder / "node"
    subprocess.run([SANKOFA, "follow", "--once"], env={**environment_of(node), **settings}, check=True)
    return node, settings


if __name__ == "__main__":
    main()
