"""Counts of requests in a worker, and the file by which the supervisor reads them.

A request costs a microsecond here: plain numbers are added up, and written to a file each second. The
values of prometheus-client, shared between processes, cost ten (docs/decisions/request-cost.md).
"""

import asyncio
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from sankofa.model.errors import StoreUnavailable
from sankofa.operations.observing import ObservedRequest
from sankofa.operations.service import Service, probe

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
BYTES: Final = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216)
_WRITE_SECONDS: Final = 1.0
_PROBE_EVERY: Final = 10  # writes


class Requests(msgspec.Struct):
    """Requests of one operation with one status."""

    count: int = 0
    seconds: float = 0.0
    bytes: int = 0
    by_seconds: list[int] = msgspec.field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    by_bytes: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BYTES) + 1))


class WorkerCounts(msgspec.Struct):
    """Everything a worker tells the supervisor."""

    requests: dict[str, dict[int, Requests]] = {}
    refusals: dict[str, int] = {}
    quota: dict[str, int] = {}
    over_quota: dict[str, int] = {}
    edition: str | None = None
    built_from: str | None = None
    dependencies: dict[str, tuple[bool, float]] = {}
    """Whether it answers, and within how many seconds."""


class RequestCounter:
    """An observer of the service of one worker."""

    def __init__(self) -> None:
        self._requests: defaultdict[str, defaultdict[int, Requests]] = defaultdict(
            lambda: defaultdict(Requests)
        )
        self._refusals: defaultdict[str, int] = defaultdict(int)
        self._quota: defaultdict[str, int] = defaultdict(int)
        self._over_quota: defaultdict[str, int] = defaultdict(int)

    def __call__(self, requests: Sequence[ObservedRequest]) -> None:
        for request in requests:
            self._count(request)

    def _count(self, request: ObservedRequest) -> None:
        seconds, size = request.seconds, request.size
        cell = self._requests[request.operation][request.status]
        cell.count += 1
        cell.seconds += seconds
        cell.bytes += size
        cell.by_seconds[bisect_left(SECONDS, seconds)] += 1
        cell.by_bytes[bisect_left(BYTES, size)] += 1
        if request.grant is not None:
            self._quota[request.grant.tier] += 1
        if request.problem:
            self._refusals[request.problem] += 1
            if request.status == 429 and request.grant is not None:
                self._over_quota[request.grant.tier] += 1

    def counts(self, service: Service, dependencies: dict[str, tuple[bool, float]]) -> bytes:
        """What the supervisor reads."""
        edition = built_from = None
        with suppress(StoreUnavailable):
            current = service.edition.get()
            edition, built_from = current.id, current.manifest.get("built_from")
        counts = WorkerCounts(
            {name: dict(by_status) for name, by_status in self._requests.items()},
            self._refusals,
            self._quota,
            self._over_quota,
            edition,
            built_from,
            dependencies,
        )
        return msgspec.json.encode(counts)


async def write_counts(counter: RequestCounter, service: Service, folder: Path) -> None:
    """Write them each second, for as long as the worker runs; look at the dependencies now and then."""
    path = folder / f"{os.getpid()}.json"
    dependencies: dict[str, tuple[bool, float]] = {}
    turn = 0
    while True:
        if turn % _PROBE_EVERY == 0:
            checks = await probe(service)
            dependencies = {name: (failure is None, took / 1000) for name, (failure, took) in checks.items()}
        turn += 1
        content = counter.counts(service, dependencies)
        with suppress(OSError):  # a full disk stops no request
            await asyncio.to_thread(_replace, path, content)
        await asyncio.sleep(_WRITE_SECONDS)


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_suffix(".new")
    partial.write_bytes(content)
    partial.replace(path)
