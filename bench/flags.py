"""The first question about red flags of a country and day: processor time by the number of releases.

    python -m bench.flags [--releases 60000 250000]

Made-up processes of two releases each, with four bids and an award. What is measured is what the edition does
after it read its blocks: no HTTP, no disk.
"""

import argparse
import random
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.history import report
from sankofa.edition.read.flags import FlagDay
from sankofa.model.ocds.red_flags import ProcessReleases, ReleaseFacts, day_states

_DAY = 739_000
_PER_BLOCK = 64


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.flags")
    parser.add_argument("--releases", type=int, nargs="+", default=[60_000, 250_000])
    spent = []
    sizes = sorted(parser.parse_args().releases)
    for count in sizes:
        day = FlagDay(_DAY)
        seconds = 0.0
        for block in blocks(count // 2):
            begun = time.process_time()
            day.add([block])
            seconds += time.process_time() - begun
        begun = time.process_time()
        day.close()
        spent.append(seconds + time.process_time() - begun)
        report(f"first question of a day, {count:,} releases, processor time", spent[-1], unit="s")
    growth = (spent[-1] / sizes[-1]) / (spent[0] / sizes[0])
    report("processor time of a release, most to fewest releases", growth, unit="times", most=1.5)


def blocks(processes: int) -> Iterator[tuple[bytes, bytes]]:
    chance = random.Random(1)
    for start in range(0, processes, _PER_BLOCK):
        rows = [_process(chance, n) for n in range(start, min(start + _PER_BLOCK, processes))]
        yield b"", b",".join(rows)


def _process(chance: random.Random, number: int) -> bytes:
    before, after = _facts(chance, number), _facts(chance, number)
    before |= {"bids": {}, "awards": []}
    releases = [
        ReleaseFacts(
            _DAY - 900 + number % 800 + later, "2024-01-01T00:00:00Z", "s#1", "cc-by", "", _raw(one), {}
        )
        for later, one in enumerate((before, after))
    ]
    return msgspec.json.encode(ProcessReleases(f"ocds-{number:07}", day_states(releases)))


def _raw(facts: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(facts))


def _facts(chance: random.Random, number: int) -> dict[str, Any]:
    tenderers = [f"T{chance.randrange(5_000)}" for _ in range(4)]
    buyer = {"id": f"B{number % 300}", "name": f"Department {number % 300}"}
    bids = [
        {
            "id": f"{at}",
            "status": chance.choice(["valid", "valid", "disqualified"]),
            "tenderers": [{"id": one}],
            "value": {"amount": chance.randrange(1_000, 9_999), "currency": "ZAR"},
        }
        for at, one in enumerate(tenderers)
    ]
    named = [
        {"id": one, "name": f"Firm {one} Ltd", "roles": ["tenderer"]} for one in dict.fromkeys(tenderers)
    ]
    period = {"startDate": "2024-01-01T00:00:00Z", "endDate": "2024-01-20T00:00:00Z"}
    award = {"id": "a", "status": "active", "suppliers": [{"id": tenderers[0]}]}
    return {
        "ocid": f"ocds-{number:07}",
        "parties": [*named, buyer | {"roles": ["buyer"]}],
        "buyer": buyer,
        "tender": {
            "title": "Works",
            "procurementMethod": "open",
            "numberOfTenderers": 4,
            "tenderPeriod": period,
        },
        "bids": {"details": bids},
        "awards": [
            award | {"items": [{"id": "1", "classification": {"id": f"{chance.randrange(10, 99)}12"}}]}
        ],
    }


if __name__ == "__main__":
    main()
