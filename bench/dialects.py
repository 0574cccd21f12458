"""Dialects: observations in FRED's form and companyfacts of the SEC, against a constant body of their size;
and `load_as_pandas` of delta-sharing against pandas reading the same file, and against the client's own work
on a local file.

    python -m bench.dialects [--rounds 3] [--seconds 2]

Answers come from the sample world. Each is measured with the default cache of answers, and uncached. The
table is the largest file of the starter world, loaded in .venv-foreign (`make foreign`).
"""

import argparse
import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.fundamentals import issue_key
from bench.history import report
from bench.load import Contender, Question, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.world import CACHE, ROOT, SANKOFA, environment_of

_TARGET = 0.20
_PATHS = {
    "FRED observations": "/fred/series/observations?series_id=CPI.ZA",
    "companyfacts": "/sec/api/xbrl/companyfacts/CIK9999900002.json",
}
_FOREIGN = ROOT / ".venv-foreign" / "bin" / "python"
_LOAD = """
import json, sys, time
import delta_sharing, fsspec, pandas
from delta_sharing.protocol import AddFile
from delta_sharing.reader import DeltaSharingReader
profile, table, path, rounds = sys.argv[1:]
shared = next(t for t in delta_sharing.SharingClient(profile).list_all_tables() if t.name == table)
address = f"{profile}#{shared.share}.{shared.schema}.{shared.name}"
fsspec.filesystem("memory").pipe("/table.parquet", open(path, "rb").read())
file = AddFile(url="memory://table.parquet", id="", partition_values={}, size=0)
def own():  # what the client does with a file that is here already
    frame = DeltaSharingReader._to_pandas(file, {}, False, None)
    merged = pandas.concat([frame], axis=0, ignore_index=True, copy=False)
    return merged[list(merged.columns)]
ways = [lambda: delta_sharing.load_as_pandas(address), own, lambda: pandas.read_parquet(path)]
clocks = time.process_time, time.perf_counter
costs = [[[] for _ in clocks] for _ in ways]
for _ in range(int(rounds) + 1):
    for way, spent in zip(ways, costs):
        began = [clock() for clock in clocks]
        rows = len(way())
        for clock, start, seconds in zip(clocks, began, spent):
            seconds.append(clock() - start)
print(json.dumps([rows, *([min(seconds[1:]) for seconds in spent] for spent in costs)]))
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=2.0)
    options = arguments.parse_args()
    home = CACHE / "dialects" / "home"
    subprocess.run([SANKOFA, "sample", "--if-empty"], env=environment_of(home), check=True)
    key = {"X-API-Key": issue_key(home, "professional")}
    print(f"load by {load_tool()}")
    for name, path in _PATHS.items():
        with ExitStack() as running:
            server = running.enter_context(commands.sankofa(home))
            forgetful = running.enter_context(commands.sankofa(home, keeps_answers=False))
            question = Question(path)
            with server.fetch(question, key) as answer:
                sent, size = answer.getheaders(), len(answer.read())
            fields = {n: v for n, v in sent if n not in ("content-length", "date", "server")}
            ceiling = running.enter_context(commands.static(home, fields))
            ours = Contender(name, server, [question], key)
            anew = Contender(f"{name}, made anew", forgetful, [question], key)
            static = Contender(f"static, {size:,} bytes", ceiling, [Question(f"/{size}")])
            measure([ours, static, anew], options.rounds, options.seconds)
            print(table([ours, static, anew], ours))
            report(f"{name}, rate to a static body", ratio(ours, static), least=_TARGET)
            report(f"{name}, made anew, processor time to a static body", cpu_ratio(anew, static))
    _load_shared_table(options.rounds)


def _load_shared_table(rounds: int) -> None:
    if not _FOREIGN.exists():
        print("load_as_pandas is left out: `make foreign` installs delta-sharing")
        return
    home = CACHE / "web-starter"
    command = [SANKOFA, "starter", "--if-empty"]
    subprocess.run(command, env=environment_of(home), check=True, capture_output=True)
    key = issue_key(home, "professional")
    path = max(home.glob("editions/*/files/*.parquet"), key=lambda one: one.stat().st_size)
    with commands.sankofa(home) as server, TemporaryDirectory() as folder:
        profile = Path(folder, "profile.share")
        endpoint = f"http://127.0.0.1:{server.port}/delta-sharing"
        profile.write_text(
            json.dumps({"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": key})
        )
        command = [str(_FOREIGN), "-c", _LOAD, str(profile), path.stem, str(path), str(rounds)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows, ours, own, reading = json.loads(done.stdout)
    for n, kind in enumerate(("processor time of the client", "time")):
        name = f"load_as_pandas of {rows:,} rows, {kind}"
        report(f"{name} to reading the file", ours[n] / reading[n], unit="times", most=1.3)
        report(f"{name} to its own work on a file that is here", ours[n] / own[n], unit="times")


if __name__ == "__main__":
    main()
