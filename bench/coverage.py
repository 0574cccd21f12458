"""Coverage: for how many issuers with a published full year the inputs of each metric exist.

    python -m bench.coverage [--world companyfacts|starter|fsds] [--as-of DAY] [--shared FOLDER] [--fresh]

A quarter of the registrants of `companyfacts` has a separate column, `aside`: no route was designed on them.
The files are real and not part of this project. Their ledgers stay in `build/bench` between runs. Deriving is
repeated in each run, on one core, and its processor time is reported.
"""

import argparse
import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from bench.world import CACHE, ROOT
from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import metrics
from sankofa.derive.metrics.derive import Derived, derive
from sankofa.edition.write.context import BuildContext
from sankofa.engines.datastore import open_datastore
from sankofa.ledger.ingest import ingest
from sankofa.ledger.reader import without_cycle_collection
from sankofa.ledger.store import SCHEMA, Ledger
from sankofa.model.rows import State
from sankofa.sources.registry import load_sources

SHARED = ROOT.parent / "shared"
WORLDS = {
    "companyfacts": ("sec-companyfacts", "data/fundamentals/companyfacts-2021", "2020-06-30"),
    "starter": ("sec-companyfacts", "starter/filings/companyfacts", "2024-06-30"),
    "fsds": ("sec-financial-statements", "data/fundamentals/sec-fsds", "2010-06-30"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage")
    parser.add_argument("--world", choices=WORLDS, action="append")
    parser.add_argument("--as-of", type=date.fromisoformat)
    parser.add_argument("--shared", type=Path, default=SHARED, help="the folder of the real files")
    parser.add_argument("--fresh", action="store_true", help="make the ledgers again")
    options = parser.parse_args()
    shares: dict[str, dict[str, float]] = {}
    for name in options.world or WORLDS:
        source, folder, usual = WORLDS[name]
        day = options.as_of or date.fromisoformat(usual)
        world = opened(name, source, options.shared / folder, fresh=options.fresh)
        shares |= _measured(name, world, day.toordinal())
    print(f"{'metric':<28}" + "".join(f"{name:>14}" for name in shares))
    for metric in metrics():
        print(f"{metric.slug:<28}" + "".join(f"{share[metric.slug]:>14.3f}" for share in shares.values()))


def opened(name: str, source: str, folder: Path, *, fresh: bool = False) -> BuildContext:
    """The world of a folder of files, ingested once."""
    home = CACHE / f"coverage-{name}"
    if fresh:
        shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ledger = Ledger(open_datastore("sqlite:", home, SCHEMA), b"coverage", lambda: now)
    if not (home / "made").exists():
        files = sorted(path for path in folder.iterdir() if path.is_file())
        ingest(ledger, load_sources(home)[source], files, rejects_folder=home, clock=lambda: now)
        (home / "made").touch()
    return BuildContext(ledger)


def derived(world: BuildContext) -> Iterator[tuple[Issuer, Derived]]:
    for entity in world.entities:
        issuer = Issuer(entity, world.ledger, world.captures)
        yield issuer, derive(issuer.years)


def aside(world: BuildContext) -> set[str]:
    """A quarter of the issuers of a world, chosen by a digest: no route is designed on them."""
    ids = [entity.service_id for entity in world.entities]
    order = sorted(ids, key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    return set(order[: len(order) // 4])


def _measured(name: str, world: BuildContext, day: int) -> dict[str, dict[str, float]]:
    with without_cycle_collection():
        spent = time.process_time()
        issuers = list(derived(world))
        spent = time.process_time() - spent
    ((facts,),) = world.ledger.rows("SELECT count(*) FROM fact")
    print(f"{name}: {len(issuers)} issuers; {facts:,} facts, {spent / max(facts, 1) * 1e6:.2f} us a fact")
    if name != "companyfacts":
        return {name: _shares(name, [of_issuer for _, of_issuer in issuers], day)}
    apart = aside(world)
    groups: dict[str, list[Derived]] = {name: [], "aside": []}
    for issuer, of_issuer in issuers:
        groups["aside" if issuer.entity.service_id in apart else name].append(of_issuer)
    return {group: _shares(group, some, day) for group, some in groups.items()}


def _shares(name: str, issuers: list[Derived], day: int) -> dict[str, float]:
    states: list[Counter[State]] = [Counter() for _ in metrics()]
    for of_issuer in issuers:
        for number, history in enumerate(of_issuer.histories):
            states[number].update(s.state for s in history if s.first <= day < s.until)
    published = sum(states[0].values()) - states[0][State.NOT_PUBLISHED]
    print(f"{name}: {published} of {len(issuers)} issuers with a full year by {date.fromordinal(day)}")
    return {
        metric.slug: 1 - _without(states[number]) / published if published else 0.0
        for number, metric in enumerate(metrics())
    }


def _without(states: Counter[State]) -> int:
    """Issuers without the inputs. A revised or completed year has them on another day."""
    return states[State.INPUT_ABSENT] + states[State.CURRENCY_MIXED]


if __name__ == "__main__":
    main()
