"""The log of editions: its cost in a publication and an edition, and an answer with its proof.

    python -m bench.log [--scale small|300k] [--rounds 3] [--seconds 1]

A publication is measured in processor time: the real command, and its hashing of rows repeated separately.
The proof is for 50 rows, against a constant body of its size.
"""

import argparse
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.fundamentals import issue_key
from bench.history import report
from bench.ingest import cost
from bench.load import Contender, Question, cpu_ratio, load_tool, measure, ratio, table
from bench.peers import commands
from bench.peers.facts import current_edition
from bench.world import CACHE, SANKOFA, SCALES, SOURCE, document, environment_of, files
from sankofa.cli.editions import EditionLogWriter
from sankofa.replication.stores import open_store
from sankofa.settings import Settings

_PUBLISHED, _SIZE, _ANSWER_RATIO = 10, 8, 0.2
"""Goals: per cent added to a publication, per cent added to an edition, and the rate to a static body."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", choices=SCALES, default="small")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=1.0)
    options = arguments.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        home = Path(folder) / "home"
        environment = environment_of(home)
        cost([SANKOFA, "ingest", SOURCE, *map(str, files(SCALES[options.scale]))], environment)
        everything = cost([SANKOFA, "publish"], environment).cpu
        _report("publishing everything", everything, _hashing(home, anew=True))
        another = Path(folder) / "CIK0009999999.json"
        another.write_bytes(document(9_999_999, 50))
        cost([SANKOFA, "ingest", SOURCE, str(another)], environment)
        _report("publishing one issuer more", cost([SANKOFA, "publish"], environment).cpu, _hashing(home))
        edition = home / "editions" / current_edition(home)
        size = sum(path.stat().st_size for path in edition.rglob("*") if path.is_file())
        hashes = (home / "editions" / "log" / "rows" / edition.name).stat().st_size
        report("size that hashes of rows add to an edition", 100 * hashes / size, unit="%", most=_SIZE)
        _answers(home, options.rounds, options.seconds)


def _report(what: str, spent: float, hashing: float) -> None:
    share = 100 * hashing / (spent - hashing)
    report(f"processor time that hashing rows adds to {what}", share, unit="%", most=_PUBLISHED)


def _hashing(home: Path, *, anew: bool = False) -> float:
    """Processor time to hash the rows of the current edition again, with the cache of the last build."""
    settings = Settings(home=home)
    store = open_store(settings)
    edition = current_edition(home)
    (home / "editions" / "log" / "rows" / edition).unlink()
    if anew:
        shutil.rmtree(home / "derived" / "leaves")
    began = time.process_time()
    EditionLogWriter(settings, store).hash_rows(edition)
    return time.process_time() - began


def _answers(home: Path, rounds: int, seconds: float) -> None:
    print(f"load by {load_tool()}")
    key = {"X-API-Key": issue_key(home, "professional")}
    with ExitStack() as running:
        server = running.enter_context(commands.sankofa(home))
        forgetful = running.enter_context(commands.sankofa(home, keeps_answers=False))
        with server.fetch(Question("/v1/issuers?limit=1"), key) as answer:
            issuer = answer.read().partition(b'"service_id":"')[2].partition(b'"')[0].decode()
        question = Question(f"/v1/fundamentals/{issuer}?limit=50&proof=true")
        with server.fetch(question, key) as answer:
            sent, size = answer.getheaders(), len(answer.read())
        fields = {name: value for name, value in sent if name not in ("content-length", "date", "server")}
        ceiling = running.enter_context(commands.static(home, fields))
        ours = Contender("proof of 50 rows", server, [question], key)
        anew = Contender("proof of 50 rows, made anew", forgetful, [question], key)
        static = Contender(f"static, {size:,} bytes", ceiling, [Question(f"/{size}")])
        measure([ours, static, anew], rounds, seconds)
        print(table([ours, static, anew], ours))
        report("proof of 50 rows, rate to a static body", ratio(ours, static), least=_ANSWER_RATIO)
        title = "proof of 50 rows, made anew, processor time to a static body"
        report(title, cpu_ratio(anew, static), least=_ANSWER_RATIO)


if __name__ == "__main__":
    main()
