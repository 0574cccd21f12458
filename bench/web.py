"""Pages of the explorer against a constant body of the same size from the same server.

    python -m bench.web [--rounds 5] [--seconds 2]

`home` and `company` are requested as by visitors: the same pages repeatedly, with a key that is checked and
counted each time. `a new day` requests the part of a company's page that a slider moves, each time for
another day, so nothing is cached.
"""

import argparse
import subprocess
from contextlib import ExitStack
from datetime import date, timedelta

import httpx

from bench.fundamentals import issue_key
from bench.history import report
from bench.load import HOST, Contender, Question, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of

_TARGET = 0.10
_ISSUERS = 16
_DAYS = 4000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.web")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    home = CACHE / "web-sample"
    if not (home / "editions" / "CURRENT").exists():
        subprocess.run([SANKOFA, "sample"], env=environment_of(home), check=True, capture_output=True)
    key = {"X-API-Key": issue_key(home, "professional")}
    with ExitStack() as running:
        server = running.enter_context(commands.sankofa(home))
        client = running.enter_context(httpx.Client(base_url=f"http://{HOST}:{server.port}", headers=key))
        issuers = [row["service_id"] for row in client.get("/v1/issuers?limit=16").json()["data"]][:_ISSUERS]
        days = [date(2020, 1, 1) + timedelta(days=number % 2000) for number in range(_DAYS)]
        pages = {
            "home": ["/"],
            "company": [f"/company/{issuer}" for issuer in issuers],
            "a new day": [
                f"/company/{issuers[n % len(issuers)]}?as_of={day}&part=statements&kind={kind}"
                for kind in ("income", "balance")
                for n, day in enumerate(days)
            ],
        }
        first = client.get("/")
        static = running.enter_context(commands.static(home, dict(first.headers)))
        print(f"load from {load_tool()}")
        for name, addresses in pages.items():
            sizes = [len(client.get(address).content) for address in addresses[:_ISSUERS]]
            size = sum(sizes) // len(sizes)
            page = Contender(name, server, [Question(address) for address in addresses], key)
            ceiling = Contender("static body", static, [Question(f"/{size}")])
            measure([page, ceiling], options.rounds, options.seconds)
            print(f"\n{name}: {size:,} bytes\n{table([page, ceiling], ceiling)}")
            if name != "a new day":
                rate, cpu = ratio(page, ceiling), cpu_ratio(page, ceiling)
                report(f"{name}, rate to a static body", rate, least=_TARGET)
                report(f"{name}, processor time to a static body", cpu)


if __name__ == "__main__":
    main()
