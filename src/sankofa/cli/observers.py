"""Who is told of the requests of a worker, as the settings say: metrics, the access log, traces.

A request only joins a list, which is worked off a few times a second: together they cost a fraction of what
each costs alone, between the parts of an answer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sankofa.cli.access_log import AccessLog
from sankofa.cli.metrics import RequestCounter, write_counts
from sankofa.operations.observing import ObservedRequest
from sankofa.operations.service import Service

_EVERY_SECONDS: Final = 0.2
_AT_ONCE: Final = 2_000
"""Requests worked off in one turn of the event loop: two milliseconds."""

Observer = Callable[[Sequence[ObservedRequest]], object]


@dataclass(frozen=True)
class Observing:
    """What observing takes: coroutines that run beside the application, and what to do at the end."""

    observers: list[Observer] = field(default_factory=list)
    duties: list[Callable[[object], Coroutine[Any, Any, None]]] = field(default_factory=list)
    endings: list[Callable[[], object]] = field(default_factory=list)
    waiting: list[ObservedRequest] = field(default_factory=list)

    async def work_off(self, _: object) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            while self.waiting:
                self._hand_on(_AT_ONCE)
                await asyncio.sleep(0)

    def _hand_on(self, most: int) -> None:
        requests = self.waiting[:most]
        del self.waiting[:most]
        for observer in self.observers:
            observer(requests)

    def stop(self) -> None:
        self._hand_on(len(self.waiting))
        for end in self.endings:
            with suppress(Exception):  # nobody to tell: the service stops
                end()


def observe_requests(service: Service, metrics_folder: Path | None) -> Observing:
    """Have the service tell of its requests, where anybody wants to know. Raises SettingsError."""
    observing = Observing()
    if metrics_folder is not None:
        counter = RequestCounter()
        observing.observers.append(counter)
        observing.duties.append(lambda _: write_counts(counter, service, metrics_folder))
    if service.settings.access_log == "json":
        log = AccessLog()
        observing.observers.append(log)
        observing.duties.append(lambda _: log.write())
        observing.endings.append(log.flush)
    if service.settings.otlp_endpoint:
        from sankofa.cli.tracing import tracer

        observer, shutdown = tracer(service.settings.otlp_endpoint)
        observing.observers.append(observer)
        observing.endings.append(shutdown)
    if observing.observers:
        service.observe = observing.waiting.append
        observing.duties.append(observing.work_off)
    return observing
