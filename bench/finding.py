"""Finding things: a search, a page of the issuers of a day, and a statement of ten years.

    python -m bench.finding [--issuers 2000] [--rounds 5] [--seconds 3] [--only search] [--fresh]

Each answer is compared with a constant body of the same size from the same server: once with the default
settings, once without a cache of answers. There are 2,000 different questions of each kind: words of names
(complete, incomplete, with a typing error), days, issuers. A further kind has so many searches that few occur
twice. The issuers are those of `bench.metrics`, with twenty years of a hundred facts.
"""

import argparse
import random
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import quote

from bench import histories
from bench.fundamentals import issue_key
from bench.history import report
from bench.identifiers import lei, organisation, write_files
from bench.load import CONNECTIONS, Contender, Question, Server, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of
from sankofa.model.identifiers import service_id

_ORGANISATIONS = 30_000
"""Organisations that can be found, besides the issuers."""
_QUESTIONS = 2_000
_SEARCHES = 60_000
_TARGETS = {"search": 0.30, "searches hardly made twice": 0.30, "issuers": 0.30, "statement": 0.25}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.finding")
    parser.add_argument("--issuers", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", nargs="*", default=list(_TARGETS), choices=_TARGETS)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    home = _published(options.issuers, fresh=options.fresh)
    print(f"load: {load_tool()}, {CONNECTIONS} connections; {options.rounds} rounds of {options.seconds:g} s")
    questions_of = {
        "search": list(_searches(_QUESTIONS)),
        "searches hardly made twice": list(_searches(_SEARCHES)),
        "issuers": list(_universes()),
        "statement": list(_statements(options.issuers)),
    }
    with ExitStack() as running:
        server = running.enter_context(commands.sankofa(home))
        forgetful = running.enter_context(commands.sankofa(home, keeps_answers=False))
        key = {"X-API-Key": issue_key(home, "professional")}
        for name, questions in ((name, questions_of[name]) for name in options.only):
            ours = Contender(name, server, questions, key)
            anew = Contender(f"{name}, made anew", forgetful, questions, key)
            size = _median_size(server, questions, key)
            with server.fetch(questions[0], key) as answer:
                sent = answer.getheaders()
            fields = {n: v for n, v in sent if n not in ("content-length", "date", "server")}
            ceiling = running.enter_context(commands.static(home, fields))
            static = Contender(f"static, {size:,} bytes", ceiling, [Question(f"/{size}")])
            measure([ours, static, anew], options.rounds, options.seconds)
            print(table([ours, static, anew], ours))
            for one in (ours, anew):
                by_rate, by_cpu = ratio(one, static), cpu_ratio(one, static)
                report(f"{one.name}, rate to a static body", by_rate, least=_TARGETS[name])
                report(f"{one.name}, processor time to a static body", by_cpu)


def _published(issuers: int, *, fresh: bool) -> Path:
    home = CACHE / f"home-finding-{issuers}"
    if (home / "made").exists() and not fresh:
        return home
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "gate-secret").write_text(histories.SECRET)
    histories.fill(home, range(issuers))
    golden, _ = write_files(CACHE / f"files-identifiers-{_ORGANISATIONS}", _ORGANISATIONS)
    environment = environment_of(home)
    for arguments in (("ingest", "gleif-lei", str(golden)), ("publish",)):
        subprocess.run([SANKOFA, *arguments], env=environment, check=True, capture_output=True)
    (home / "made").touch()
    return home


def _searches(number_of_them: int) -> Iterator[Question]:
    chance = random.Random(1)
    for _ in range(number_of_them):
        number = chance.randrange(_ORGANISATIONS)
        name, _ = organisation(number)
        first, second, *_ = name.split()
        query = chance.choice((name, f"{first} {second[:4]}", first[:-1] + "x", lei(number)))
        yield Question(f"/v1/search?q={quote(query)}&limit=10")


def _universes() -> Iterator[Question]:
    chance = random.Random(2)
    for _ in range(_QUESTIONS):
        day = date(2008, 1, 1) + timedelta(days=chance.randrange(16 * 365))
        yield Question(f"/v1/issuers?as_of={day}&limit=100")


def _statements(issuers: int) -> Iterator[Question]:
    """Ten full years: those of a twenty-year history that were known halfway."""
    chance = random.Random(3)
    for _ in range(_QUESTIONS):
        issuer = service_id(histories.subject(chance.randrange(issuers)))
        yield Question(f"/v1/statements/{issuer}?period_type=FY&as_of=2013-12-31")


def _median_size(server: Server, questions: list[Question], key: Mapping[str, str]) -> int:
    sizes = sorted(len(server.body(question, key)) for question in questions[:101])
    return sizes[len(sizes) // 2]


if __name__ == "__main__":
    main()
