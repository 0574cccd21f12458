"""Red flags: processor time of the build and of questions, by the number of releases.

    python -m bench.flags [--releases 60000 250000]

The processes are invented, with two releases, four bids and an award with a value each. The build is what a
publication adds for a country with a new release. A question is what the edition does for a page of 100 rows,
from blocks in memory: no HTTP, no disk.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Coroutine, Hashable, Iterator, Sequence
from typing import Any, cast

import msgspec

from bench.history import report
from sankofa.edition.format.flag_steps import (
    FLAG_DAYS,
    FLAG_FILTERS,
    FLAG_PARTIES,
    FLAGS,
    FLAGS_PER_BLOCK,
    flag_group_key,
    flag_party_key,
)
from sankofa.edition.format.keys import PROCESS_FACTS, filter_key
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.flags import CountryOnDay, flags_on, sort_key
from sankofa.edition.write.flag_steps import FlagSteps, FlagSweep
from sankofa.engines.block_file import Block, ByteCache
from sankofa.engines.edition_reader import EditionReader
from sankofa.model.ocds.red_flags import ProcessReleases, ReleaseFacts, day_states

_DAY = 739_000
_ROWS = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.flags")
    parser.add_argument("--releases", type=int, nargs="+", default=[60_000, 250_000])
    spent = []
    sizes = sorted(parser.parse_args().releases)
    for count in sizes:
        rows = list(_processes(count // 2))
        began = time.process_time()
        sweep = FlagSweep()
        for row in rows:
            sweep.add(msgspec.json.decode(row, type=ProcessReleases))
        stored = sweep.close()
        spent.append(time.process_time() - began)
        report(f"flags of a country built, {count:,} releases, processor time", spent[-1], unit="s")
        asyncio.run(_questions(cast("EditionReader", _Memory(rows, stored)), f"{count:,} releases"))
    growth = (spent[-1] / sizes[-1]) / (spent[0] / sizes[0])
    report("build time of a release, most to fewest releases", growth, unit="times", most=1.5)


async def _questions(reader: EditionReader, size: str) -> None:
    edition = Edition("", reader)

    async def measured(name: str, question: Coroutine[Any, Any, Any]) -> Any:
        began = time.process_time()
        answer = await question
        seconds = time.process_time() - began
        report(f"{name}, {size}, processor time", seconds * 1000, unit="ms", most=100)
        return answer

    first: CountryOnDay = await flags_on(edition, "ZA", _DAY) or _no_flags()
    await measured("thresholds of a day", flags_on(edition, "ZA", _DAY))
    page = await measured("first page of flags", first.flags((None, None), (), _ROWS))
    behind = sort_key(page[-1].finding)
    await measured("second page of flags", first.flags((None, None), behind, _ROWS))
    await measured("tenderers that stand out", first.flags((None, None), ("R038", "process", ""), _ROWS))
    await measured("flags of a buyer", first.flags(("department 7", None), (), _ROWS))
    await measured("flags of a supplier", first.flags((None, "t7"), (), _ROWS))
    await measured("flags of a process", first.of_process("ocds-0000777", (None, None)))


def _no_flags() -> CountryOnDay:
    raise SystemExit("nothing is known on the day")


class _Memory:
    def __init__(self, rows: list[bytes], stored: FlagSteps) -> None:
        self.cache = ByteCache[Hashable](0)
        self.scope = "memory"
        self.manifest: dict[str, Any] = {}
        self._blocks: dict[tuple[str, str], list[Block]] = {
            (PROCESS_FACTS, "ZA"): list(pack(Entry(row) for row in rows)),
            (FLAG_DAYS, "ZA"): list(pack(Entry(row, first, until) for first, until, row in stored.days)),
            (FLAGS, "ZA"): list(
                pack((Entry(row, first, until) for first, until, row in stored.flags), FLAGS_PER_BLOCK)
            ),
        }
        for group, days in stored.groups:
            entries = (Entry(row, first, until) for first, until, row in days)
            self._blocks[FLAG_DAYS, flag_group_key("ZA", group)] = list(pack(entries))
        for party, row in stored.parties:
            self._blocks[FLAG_PARTIES, flag_party_key("ZA", party)] = [(b"", row)]
        for field, text, row in stored.filters:
            self._blocks[FLAG_FILTERS, filter_key("ZA", field, text)] = [(b"", row)]

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, _: Any = None
    ) -> Sequence[Block] | None:
        blocks = self._blocks.get((kind, key))
        return None if blocks is None else blocks[skip : skip + most]


def _processes(count: int) -> Iterator[bytes]:
    chance = random.Random(1)
    for number in range(count):
        yield _process(chance, number)


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
    tendering = [
        {"id": one, "name": f"Firm {one} Ltd", "roles": ["tenderer"]} for one in dict.fromkeys(tenderers)
    ]
    period = {"startDate": "2024-01-01T00:00:00Z", "endDate": "2024-01-20T00:00:00Z"}
    award = {
        "id": "a",
        "status": "active",
        "suppliers": [{"id": tenderers[0]}],
        "date": f"2024-0{chance.randrange(1, 10)}-01T00:00:00Z",
        "value": {"amount": chance.randrange(1_000, 9_999), "currency": "ZAR"},
    }
    return {
        "ocid": f"ocds-{number:07}",
        "parties": [*tendering, buyer | {"roles": ["buyer"]}],
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
