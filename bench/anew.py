"""Uncached answers: the processor time of each kind, in this process and without HTTP.

    python -m bench.anew [--rounds 5] [--repeat] [--only NAME...] [--fresh]

The world is the sample world and 420 issuers with 50 or 1,000 facts. Every question of every round asks about
another day, and no answer is cached. `--repeat` asks the same questions again with the cache of answers on,
and reports them separately. The figure of a kind is that of its fastest round, so that other work on the
machine hardly matters. Each round asks about the same 150 issuers (except proofs, which are cached by
issuer): the blocks of more do not fit the cache of blocks. The first round reads the blocks of these issuers,
and in locked views removes their capture; its figures are reported separately. To compare two kinds, their
questions alternate, and the ratio is that of the medians: other work then slows both alike.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from bench.fundamentals import issue_key
from bench.history import report
from bench.loop import Question, ask
from bench.world import CACHE, SANKOFA, SMALL, SOURCE, environment_of, files
from sankofa.rest.formats import ARROW, CSV

_FIRST_DAY = date(2021, 1, 1)
_DAYS = 1_700
_QUESTIONS_A_ROUND = 150
_FEW, _MANY = (shape.service_ids() for shape in SMALL.shapes)
Kind = Callable[[int], Question]
"""The question with this number."""


def day(number: int) -> date:
    return _FIRST_DAY + timedelta(days=number * 7919 % _DAYS)


def _rest(template: str, headers: dict[str, str] | None = None) -> Kind:
    def question(n: int) -> Question:
        issuers = {
            "few": _FEW[n % _QUESTIONS_A_ROUND],
            "other": _FEW[n % len(_FEW)],
            "many": _MANY[n % len(_MANY)],
        }
        return Question(
            "",
            template.format(**issuers, day=day(n), n=n, cik=f"{100_000 + n % _QUESTIONS_A_ROUND:010d}"),
            headers or {},
        )

    return question


def _tool(n: int) -> Question:
    arguments = {"service_id": _FEW[n % _QUESTIONS_A_ROUND], "as_of": str(day(n))}
    call = {"name": "get_fundamentals", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return Question("", "/mcp", body=json.dumps(body).encode())


def _typed(n: int) -> Question:
    """A name as people type it: a letter left out or two exchanged, and the last word incomplete."""
    first, last = "benchmark", "holdings"
    at = n % (len(first) - 2) + 1
    swapped = first[at + 1] + first[at] if n % 2 else first[at + 1]
    misspelt = first[:at] + swapped + first[at + 2 :]
    return Question("", f"/v1/search?q={misspelt}%20{100_000 + n % 420}%20{last[: 3 + n % 5]}&limit=10")


_FUNDAMENTALS = "/v1/fundamentals/{few}?as_of={day}"
_SCREEN = "/v1/screen?metric=net_margin&basis=as_known&limit=50"
KINDS: dict[str, Kind] = {
    "50 rows": _rest(_FUNDAMENTALS),
    "50 rows, locked": _rest("/at/{day}/v1/fundamentals/{few}"),
    "50 rows, proven": _rest("/v1/fundamentals/{other}?limit=50&proof=true"),
    "50 rows, zstd": _rest(_FUNDAMENTALS, {"accept-encoding": "zstd"}),
    "50 rows, gzip": _rest(_FUNDAMENTALS, {"accept-encoding": "gzip"}),
    "50 rows, MCP": _tool,
    "1,000 rows": _rest("/v1/fundamentals/{many}?as_of={day}"),
    "1,000 rows, CSV": _rest("/v1/fundamentals/{many}?as_of={day}", {"accept": CSV}),
    "1,000 rows, Arrow": _rest("/v1/fundamentals/{many}?as_of={day}", {"accept": ARROW}),
    "macro series": _rest("/v1/macro?series=CPI.ZA&limit=50&as_of={day}"),
    "macro series, locked": _rest("/at/{day}/v1/macro?series=CPI.ZA&limit=50"),
    "statement": _rest("/v1/statements/{few}?limit=50&as_of={day}"),
    "statement, locked": _rest("/at/{day}/v1/statements/{few}?limit=50"),
    "screen": _rest(_SCREEN + "&as_of={day}"),
    "screen, locked": _rest("/at/{day}" + _SCREEN),
    "metrics of an issuer": _rest("/v1/metrics/{few}?as_of={day}"),
    "shared facts": _rest("/v1/shared/facts?entity_id={few}&limit=50&as_of={day}"),
    "shared facts, locked": _rest("/at/{day}/v1/shared/facts?entity_id={few}&limit=50"),
    "crosswalk": _rest("/v1/crosswalk/{few}"),
    "search": _typed,
    "search that finds nothing": _rest("/v1/search?q=quixotic%20zebu{n}"),
    "FRED observations": _rest("/fred/series/observations?series_id=CPI.ZA&limit=1{n:04d}"),
    "companyfacts": _rest("/at/{day}/sec/api/xbrl/companyfacts/CIK{cik}.json"),
}
_MOST = {"50 rows, MCP": 1.54}
_TWINS = {"50 rows, MCP": "50 rows"}
"""Kinds that ask the same as another one, apart from the locked ones."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.anew")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", action="store_true", help="ask the same questions in every round")
    parser.add_argument("--only", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--fresh", action="store_true", help="ingest and publish the world again")
    options = parser.parse_args()
    home = make_home(fresh=options.fresh)
    os.environ["SANKOFA_HOME"] = str(home)
    if not options.repeat:
        os.environ["SANKOFA_ANSWER_CACHE_BYTES"] = "1"
    rounds, ratios = asyncio.run(
        _measure(options.only, issue_key(home, "professional"), options.rounds, repeat=options.repeat)
    )
    how = "asked again" if options.repeat else "made anew"
    costs = {name: min(own) for name, own in rounds.items()}
    for name, cost in costs.items():
        report(f"{name}, {how}, processor time", cost * 1e6, unit="us")
    for name in costs if not options.repeat else ():
        report(f"{name}, first round, processor time", rounds[name][0] * 1e6, unit="us")
    for name, ratio in ratios.items():
        most = _MOST.get(name, 1.1)
        report(f"{name}, {how}, to the same by REST with as_of", ratio, unit="times", most=most)


def make_home(*, fresh: bool) -> Path:
    """The sample world and the issuers, published."""
    home = CACHE / "home-anew"
    if fresh or not (home / "made").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        for command in (["sample"], ["ingest", SOURCE, *map(str, files(SMALL))], ["publish"]):
            subprocess.run(
                [SANKOFA, *command], env=environment_of(home), check=True, stdout=subprocess.DEVNULL
            )
        (home / "made").touch()
    return home


async def _measure(
    names: list[str], key: str, rounds: int, *, repeat: bool
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """The processor time of a question of each kind in each round, and relative to the same by REST."""
    from sankofa.cli.application import application  # it reads the environment

    app = application()
    started, over = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        if started.is_set():
            await over.wait()
        return {}

    async def send(_: object) -> None:
        started.set()

    serving = asyncio.ensure_future(app({"type": "lifespan"}, receive, send))
    await started.wait()

    async def cost(*questions: Question) -> float:
        """The processor time of a question."""
        began = time.process_time()
        for question in questions:
            status, _ = await ask(app, question, key)
            if status != 200:
                raise SystemExit(f"{question.path}: status {status}")
        return (time.process_time() - began) / len(questions)

    for name in names:  # loads what is loaded on first use
        await cost(KINDS[name](_DAYS))
    costs: dict[str, list[float]] = {name: [] for name in names}
    each = range(_QUESTIONS_A_ROUND)
    asked = [[n + (0 if repeat else number * len(each)) for n in each] for number in range(rounds)]
    for numbers in asked:
        for name in names:
            costs[name].append(await cost(*map(KINDS[name], numbers)))
    ratios = {}
    for name in names:
        twin = _TWINS.get(name) or name.removesuffix(", locked")
        if twin != name:
            pair: dict[str, list[float]] = {name: [], twin: []}
            for n in chain.from_iterable(asked):
                for one in sorted(pair, reverse=n % 2 > 0):
                    pair[one].append(await cost(KINDS[one](n)))
            ratios[name] = median(pair[name]) / median(pair[twin])
    over.set()
    await serving
    return costs, ratios


if __name__ == "__main__":
    main()
