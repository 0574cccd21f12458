"""Locked views: a request under `/at/DAY/` against the same request with `as_of`.

    python -m bench.locked [--rounds 5] [--seconds 3]

The sample world, another day each time, no answer from memory.
"""

import argparse
import subprocess
from contextlib import ExitStack
from datetime import date, timedelta

from bench.fundamentals import issue_key
from bench.history import report
from bench.load import Contender, Question, cpu_ratio, load_tool, measure, table
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of

_ISSUER = "DC46AF1B1AAA424B58D1368176"
_DAYS = [date(2022, 1, 1) + timedelta(days=number) for number in range(1_200)]
_PATHS = {
    "50 rows": f"/v1/fundamentals/{_ISSUER}?limit=50",
    "macro series": "/v1/macro?series=CPI.ZA&limit=50",
    "statement": f"/v1/statements/{_ISSUER}?period_type=FY&limit=50",
    "screen": "/v1/screen?metric=net_margin&basis=as_known",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=3.0)
    given = arguments.parse_args()
    home = CACHE / "locked" / "home"
    subprocess.run([SANKOFA, "sample", "--if-empty"], env=environment_of(home), check=True)
    with ExitStack() as running:
        headers = {"X-API-Key": issue_key(home, "professional")}
        server = running.enter_context(commands.sankofa(home, keeps_answers=False))
        print(f"load by {load_tool()}")
        for name, path in _PATHS.items():
            dated = [Question(f"{path}&as_of={day}") for day in _DAYS]
            locked = [Question(f"/at/{day}{path}") for day in _DAYS]
            contenders = [
                Contender(f"{name}, as_of", server, dated, headers),
                Contender(f"{name}, locked", server, locked, headers),
            ]
            measure(contenders, given.rounds, given.seconds)
            print(table(contenders, contenders[0]))
            cost = 1 / cpu_ratio(contenders[1], contenders[0])
            report(f"{name}: a locked view against as_of, by cpu", cost, unit="times", most=1.1)


if __name__ == "__main__":
    main()
