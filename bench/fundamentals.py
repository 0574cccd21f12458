"""Fundamentals, against the limit of the server and against four peers on the same three million facts.

    python -m bench.fundamentals [--scale 3m|small] [--rounds 7] [--seconds 3] [--fresh] [--only NAME...]

Before the timing, every contender gets the same questions and must give the same rows. Each request asks for
another issuer, in random order, so no row stays hot.
"""

import argparse
import json
import random
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.history import report
from bench.load import CONNECTIONS, Contender, Question, Server, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands, facts
from bench.world import PAST_DAY, SANKOFA, SCALES, Shape, environment_of, published_home

_MANY = "1000000000"
_PEERS = ("Datasette", "FastAPI", "DuckDB", "ROAPI")
_TARGETS = {"50 rows": 0.30, "1,000 rows": 0.15}
_PEER_TARGETS = {"Datasette": 20, "FastAPI": 12, "DuckDB": 40, "ROAPI": 100}
"""The least factor of processor time by which uncached answers must be faster."""
_CHECKED = 5


def main() -> None:
    options = _options()
    scale = SCALES[options.scale]
    home = published_home(scale, fresh=options.fresh)
    print(f"load: {load_tool()}, {CONNECTIONS} connections; {options.rounds} rounds of {options.seconds:g} s")
    with ExitStack() as running:
        bench = Bench(home, [s for shape in scale.shapes for s in shape.service_ids()], options.only, running)
        for shape in scale.shapes:
            contenders = bench.contenders(shape)
            measure(contenders, options.rounds, options.seconds)
            print(f"\n{shape.name}, {bench.size(shape):,} bytes\n{table(contenders, contenders[0])}")
            _report(contenders, shape)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.fundamentals")
    parser.add_argument("--scale", choices=SCALES, default="3m")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--fresh", action="store_true", help="ingest and publish the world again")
    parser.add_argument("--only", nargs="*", default=_PEERS, choices=_PEERS, help="which peers to run")
    return parser.parse_args()


class Bench:
    """The running servers and their questions."""

    def __init__(
        self, home: Path, service_ids: Sequence[str], peers: Sequence[str], running: ExitStack
    ) -> None:
        self._today = datetime.now(UTC).date()
        self._keys = {tier: issue_key(home, tier) for tier in ("professional", "sample")}
        self._sankofa = running.enter_context(commands.sankofa(home))
        self._forgetful = running.enter_context(commands.sankofa(home, keeps_answers=False))
        self._paid = {"X-API-Key": self._keys["professional"]}
        self._static = running.enter_context(commands.static(home, self._headers(service_ids[0])))
        self._peers: dict[str, Server] = {}
        flat = facts.sqlite_file(home, service_ids) if peers else Path()
        if "Datasette" in peers:
            self._peers["Datasette"] = running.enter_context(commands.datasette(flat, facts.QUESTION))
            self._database = flat.stem
        if "FastAPI" in peers:
            started = commands.fastapi(flat, facts.QUESTION, facts.COLUMNS)
            self._peers["FastAPI"] = running.enter_context(started)
        python = commands.PEERS / "python"
        if "DuckDB" in peers:
            table = facts.duckdb_file(facts.parquet_file(flat, python), python)
            started = commands.fastapi(table, facts.QUESTION, facts.COLUMNS)
            self._peers["DuckDB"] = running.enter_context(started)
        if "ROAPI" in peers:
            file = facts.parquet_file(flat, python)
            self._peers["ROAPI"] = running.enter_context(commands.roapi(file, in_memory=False))

    def contenders(self, shape: Shape) -> list[Contender]:
        """Sankofa first, the ceiling second; a peer only after it gave the same answers."""
        service_ids = shape.service_ids()
        random.Random(shape.rows).shuffle(service_ids)
        own = [Question(f"/v1/fundamentals/{s}") for s in service_ids]
        past = [Question(f"{q.path}?as_of={PAST_DAY}") for q in own]
        shared = [Question(f"/v1/shared/facts?entity_id={s}&limit={shape.rows}") for s in service_ids]
        listed = [
            Contender("Sankofa", self._sankofa, own, self._paid),
            Contender("static body", self._static, [Question(f"/{self.size(shape)}")]),
            Contender("Sankofa, made anew", self._forgetful, own, self._paid),
            Contender(f"Sankofa, as_of {PAST_DAY}", self._sankofa, past, self._paid),
            Contender("Sankofa, as shared facts", self._sankofa, shared, self._paid),
            Contender("Sankofa, shared facts, made anew", self._forgetful, shared, self._paid),
            Contender("Sankofa, gzip", self._sankofa, own, {**self._paid, "Accept-Encoding": "gzip"}),
            Contender("Sankofa, sample key", self._sankofa, own, {"X-API-Key": self._keys["sample"]}),
        ]
        for name, server in self._peers.items():
            theirs = [self._question(name, s) for s in service_ids]
            for one, other in list(zip(own, theirs, strict=True))[:_CHECKED]:
                _agree(
                    name,
                    shape,
                    self._rows(self._sankofa.body(one, self._paid)),
                    self._rows(server.body(other)),
                )
            listed.append(Contender(name, server, theirs))
        return listed

    def size(self, shape: Shape) -> int:
        """Size of a typical answer in bytes."""
        middle = shape.service_ids()[:_CHECKED]
        sizes = [len(self._sankofa.body(Question(f"/v1/fundamentals/{s}"), self._paid)) for s in middle]
        return sorted(sizes)[len(sizes) // 2]

    def _question(self, peer: str, service_id: str) -> Question:
        if peer == "Datasette":
            return Question(
                f"/{self._database}/known.json?service_id={service_id}&day={self._today}&_shape=array"
            )
        if peer in ("FastAPI", "DuckDB"):
            return Question(f"/facts/{service_id}?day={self._today}")
        return Question("/api/sql", facts.QUESTION % (f"'{service_id}'", *(f"'{self._today}'",) * 3))

    def _headers(self, service_id: str) -> Mapping[str, str]:
        with self._sankofa.fetch(Question(f"/v1/fundamentals/{service_id}"), self._paid) as answer:
            fields = answer.getheaders()
        return {name: value for name, value in fields if name not in ("content-length", "date", "server")}

    def _rows(self, body: bytes) -> list[dict[str, Any]]:
        answer: Any = json.loads(body)
        rows: list[dict[str, Any]] = answer["data"] if isinstance(answer, dict) else answer
        return rows


def issue_key(home: Path, tier: str) -> str:
    limits = ["--per-minute", _MANY, "--per-month", _MANY]
    command = [SANKOFA, "keys", "create", "--tier", tier, "--label", "bench", *limits]
    done = subprocess.run(command, env=environment_of(home), check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _agree(name: str, shape: Shape, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Whether the rows are equal and in the same order. Null equals absent, 1 equals true, and 2.0 equals
    2, as peers write them.
    """
    if len(ours) != shape.rows:
        raise SystemExit(f"expected {shape.rows} rows, Sankofa gives {len(ours)}")
    if len(ours) != len(theirs):
        raise SystemExit(f"{name} gives {len(theirs)} rows where Sankofa gives {len(ours)}")
    for one, other in zip(ours, theirs, strict=True):
        for field, value in one.items():
            if other.get(field) != value:
                raise SystemExit(f"{name}: {field} is {other.get(field)!r} where Sankofa has {value!r}")


def _report(contenders: Sequence[Contender], shape: Shape) -> None:
    ours, ceiling, *others = contenders
    anew = next(other for other in others if other.name.endswith("made anew"))
    report(f"{shape.name}, rate to a static body", ratio(ours, ceiling), least=_TARGETS[shape.name])
    report(f"{shape.name}, processor time to a static body", cpu_ratio(ours, ceiling))
    for other in others:
        if other.server is not ours.server and other.name.startswith(ours.name):
            report(f"{shape.name}, {other.name}, rate to a static body", ratio(other, ceiling))
        if other.name in _PEER_TARGETS:
            report(f"{shape.name}, times {other.name} by rate", ratio(ours, other))
            times = cpu_ratio(anew, other)
            report(
                f"{shape.name}, made anew, times {other.name} by processor time",
                times,
                least=_PEER_TARGETS[other.name],
            )


if __name__ == "__main__":
    main()
