"""Dialects: observations in FRED's form and companyfacts of the SEC, against a constant body of their size.

    python -m bench.dialects [--rounds 3] [--seconds 2]

The sample world; each answer with the cache of answers of the default settings, and made anew.
"""

import argparse
import subprocess
from contextlib import ExitStack

from bench.fundamentals import issue_key
from bench.history import report
from bench.load import Contender, Question, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of

_TARGET = 0.20
_PATHS = {
    "FRED observations": "/fred/series/observations?series_id=CPI.ZA",
    "companyfacts": "/sec/api/xbrl/companyfacts/CIK9999900002.json",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=2.0)
    given = arguments.parse_args()
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
            measure([ours, static, anew], given.rounds, given.seconds)
            print(table([ours, static, anew], ours))
            report(f"{name}, rate to a static body", ratio(ours, static), least=_TARGET)
            report(f"{name}, made anew, processor time to a static body", cpu_ratio(anew, static))


if __name__ == "__main__":
    main()
