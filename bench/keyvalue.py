"""The cost of the key-value stores for one request: a get and a count of two windows.

    python bench/keyvalue.py [redis://host:port/database]

Measures the embedded engine in a temporary folder and, where a URL is given, Redis; in one process
and in four that share the store, on one name (every count meets the same lock) and on 500.
"""

import asyncio
import multiprocessing
import sys
import tempfile
import time
from typing import NamedTuple

import uvloop

from sankofa.engines.factory import open_keyvalue
from sankofa.engines.keyvalue import Window

WINDOWS = (Window("m:29384923", 120), Window("M:2026-11", 3_000_000))
SECONDS = 1.5


class Sample(NamedTuple):
    """Seconds per call, and the CPU seconds of the process over all of them."""

    gets: list[float]
    counts: list[float]
    cpu: float


async def measure(url: str, names: list[str], callers: int) -> Sample:
    store = open_keyvalue(url)
    await store.count(names[0], WINDOWS)
    gets: list[float] = []
    counts: list[float] = []
    clock, cpu = time.perf_counter, time.process_time()
    end = clock() + SECONDS

    async def call(turn: int) -> None:
        while (began := clock()) < end:
            turn += 1
            await store.get(names[turn % len(names)])
            got = clock()
            await store.count(names[turn % len(names)], WINDOWS)
            gets.append(got - began)
            counts.append(clock() - got)

    await asyncio.gather(*(call(caller * 7) for caller in range(callers)))
    cpu = time.process_time() - cpu
    await store.close()
    return Sample(gets, counts, cpu)


async def fill(url: str, names: list[str]) -> None:
    store = open_keyvalue(url)
    for name in names:
        await store.put(name, b"x" * 200)
    await store.close()


def work(url: str, names: list[str], callers: int, results: "multiprocessing.Queue[Sample]") -> None:
    results.put(uvloop.run(measure(url, names, callers)))


def line(url: str, processes: int, names: int, callers: int) -> str:
    results: multiprocessing.Queue[Sample] = multiprocessing.Queue()
    stored = [f"key:{number}" for number in range(names)]
    uvloop.run(fill(url, stored))
    arguments = (url, stored, callers, results)
    workers = [multiprocessing.Process(target=work, args=arguments) for _ in range(processes)]
    for worker in workers:
        worker.start()
    samples = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    gets = sorted(second for sample in samples for second in sample.gets)
    counts = sorted(second for sample in samples for second in sample.counts)
    cpu = sum(sample.cpu for sample in samples) / len(counts)
    shape = f"{url.partition(':')[0]:9}{processes:10}{callers:8}{names:6}"
    return f"{shape}{len(counts) / SECONDS:10.0f}{cpu * 1e6:8.1f}{spread(gets)}{spread(counts)}"


def spread(seconds: list[float]) -> str:
    return "".join(f"{seconds[int(len(seconds) * part)] * 1e6:10.1f}" for part in (0.5, 0.99, 0.999))


def main() -> None:
    heads = "".join(f"{call + part:>10}" for call in ("get ", "cnt ") for part in ("p50", "p99", "p99.9"))
    print(f"{'(in us)':9} processes callers names   pairs/s     cpu{heads}")
    with tempfile.TemporaryDirectory() as folder:
        for processes, names in ((1, 1), (4, 1), (4, 500)):
            print(line(f"embedded:{folder}/store", processes, names, 1), flush=True)
    for url in sys.argv[1:]:
        for processes, names, callers in ((1, 1, 1), (1, 500, 32), (4, 500, 1), (4, 500, 8)):
            print(line(url, processes, names, callers), flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
