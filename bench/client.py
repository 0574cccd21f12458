"""The client: a frame of 100,000 rows by Arrow against the same frame by JSON.

    python -m bench.client [--rounds 5] [--rows 100000]

One issuer has that many facts, published by the real commands, and a paid key gets all of them in one answer.
The client asks in both formats in turn over the loopback, measured from the call to the finished frame. First
the two frames are compared.
"""

import argparse
import gc
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pandas
import polars.testing

from bench.history import report
from bench.load import serving
from bench.world import CACHE, SANKOFA, SOURCE, environment_of
from sankofa.client import Client
from sankofa.model.identifiers import cik, service_id

_CIK = 800_000
_PERIODS = 40
_TARGET = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.client")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--fresh", action="store_true", help="ingest and publish again")
    options = parser.parse_args()
    home = _home(options.rows, fresh=options.fresh)
    environment = environment_of(home)
    create = [SANKOFA, "keys", "create", "--tier", "professional"]
    key = subprocess.run(create, env=environment, check=True, capture_output=True, text=True).stdout.strip()
    issuer = service_id(cik(_CIK))

    def command(port: int) -> list[str]:
        return [SANKOFA, "serve", "--port", str(port)]

    with (
        serving(command, environment, "/health") as server,
        Client(key, f"http://127.0.0.1:{server.port}") as client,
    ):
        for library, assert_equal in (
            ("pandas", pandas.testing.assert_frame_equal),
            ("polars", polars.testing.assert_frame_equal),
        ):

            def frame_of(caller: Client, to: str = f"to_{library}") -> Any:
                return getattr(caller.get_fundamentals(issuer), to)()

            by_json, by_arrow = frame_of(client), frame_of(client.columns)
            assert_equal(by_json, by_arrow)
            assert len(by_json) == options.rows, len(by_json)
            del by_json, by_arrow
            seconds: dict[str, list[float]] = {"JSON": [], "Arrow": []}
            spent: dict[str, list[float]] = {"JSON": [], "Arrow": []}
            for _ in range(options.rounds):
                for way, caller in (("JSON", client), ("Arrow", client.columns)):
                    before = server.cpu_seconds()
                    wall, own = _timed(partial(frame_of, caller))
                    seconds[way].append(wall)
                    spent[way].append(own + server.cpu_seconds() - before)
            _report(library, options.rows, seconds, spent)


def _report(library: str, rows: int, seconds: dict[str, list[float]], spent: dict[str, list[float]]) -> None:
    print(f"{rows:,} rows of fundamentals as a frame of {library}")
    for way in seconds:
        wall, both = statistics.median(seconds[way]), statistics.median(spent[way])
        print(f"  by {way:<6} {wall:7.3f} s   processor, client and server: {both:7.3f} s")
    ratios = [a / b for a, b in zip(seconds["JSON"], seconds["Arrow"], strict=True)]
    cpu = [a / b for a, b in zip(spent["JSON"], spent["Arrow"], strict=True)]
    ratio = statistics.median(ratios)
    report(f"frame of {library} by Arrow, times faster than by JSON", ratio, least=_TARGET)
    report(f"the same by processor time, {library}", statistics.median(cpu))


def _timed(make: Callable[[], object]) -> tuple[float, float]:
    gc.collect()
    own, began = time.process_time(), time.perf_counter()
    frame = make()
    took = time.perf_counter() - began, time.process_time() - own
    del frame
    return took


def _home(rows: int, *, fresh: bool) -> Path:
    """A home with one issuer that has so many facts; kept between runs."""
    home = CACHE / f"home-client-{rows}"
    if fresh:
        shutil.rmtree(home, ignore_errors=True)
    if not (home / "made").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        document = home / f"CIK{_CIK:010d}.json"
        document.write_text(json.dumps(_document(rows)))
        for arguments in (("ingest", "--strict", SOURCE, str(document)), ("publish",)):
            subprocess.run([SANKOFA, *arguments], env=environment_of(home), check=True, capture_output=True)
        (home / "made").touch()
    return home


def _document(rows: int) -> dict[str, object]:
    """A companyfacts document: each concept in forty quarters, one figure in twenty restated."""
    concepts: dict[str, object] = {}
    for number in range(rows // _PERIODS):
        reported = []
        for quarter in range(_PERIODS):
            year, part = divmod(2014 * 4 + quarter, 4)
            start = date(year, 3 * part + 1, 1)
            end = (start + timedelta(days=95)).replace(day=1) - timedelta(days=1)
            filed = end + timedelta(days=45)
            value = (number * 7919 + quarter * 104729) % 10**9 * 1000 + number % 7
            restated = [(filed + timedelta(days=365), value + 1000)] if (number + quarter) % 20 == 0 else []
            for day, figure in ((filed, value), *restated):
                reported.append(
                    {
                        "start": start.isoformat(),
                        "end": end.isoformat(),
                        "val": figure / 100 if number % 5 == 0 else figure,
                        "accn": f"{_CIK:010d}-{day:%y}-{day.timetuple().tm_yday:06d}",
                        "fy": year,
                        "fp": f"Q{part + 1}",
                        "form": "10-Q",
                        "filed": day.isoformat(),
                    }
                )
        name = f"BenchmarkConcept{number}"
        concepts[name] = {"label": name, "description": name, "units": {"USD": reported}}
    return {"cik": _CIK, "entityName": "BENCHMARK CLIENT HOLDINGS INC", "facts": {"us-gaap": concepts}}


if __name__ == "__main__":
    main()
