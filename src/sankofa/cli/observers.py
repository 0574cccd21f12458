"""Observers of a worker's requests: Prometheus counts (`metrics`), the access log and OpenTelemetry traces.

A request only joins a list, which is worked off a few times a second: together they cost a fraction of what
each costs alone.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa import __version__
from sankofa.cli.metrics import RequestCounter, write_counts
from sankofa.model.errors import SettingsError
from sankofa.operations.service import ObservedRequest, Service

_LOG_SECONDS: Final = 0.2
_MOST_WAITING: Final = 50_000
_encode = msgspec.json.Encoder().encode


class AccessLog:
    """An observer of the service of one worker."""

    def __init__(self) -> None:
        self._requests: list[ObservedRequest] = []
        self._lost = 0
        self._offset = time.time() - time.perf_counter()

    def __call__(self, request: ObservedRequest) -> None:
        if len(self._requests) < _MOST_WAITING:
            self._requests.append(request)
        else:
            self._lost += 1

    async def write(self) -> None:
        """Write what is waiting, a few times a second, for as long as the worker runs."""
        try:
            while True:
                await asyncio.sleep(_LOG_SECONDS)
                if self._requests:
                    await asyncio.to_thread(self.flush)
        finally:
            self.flush()

    def flush(self) -> None:
        requests, self._requests = self._requests, []
        lines = b"".join(map(self._line, requests))
        if self._lost:
            lines += _encode({"lost": self._lost}) + b"\n"
            self._lost = 0
        with suppress(OSError):  # a reader that is gone stops no request
            while lines:
                lines = lines[os.write(sys.stderr.fileno(), lines) :]

    def _line(self, request: ObservedRequest) -> bytes:
        when = datetime.fromtimestamp(request.began + self._offset, UTC)
        return (
            _encode(
                {
                    "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                    "request_id": request.request_id,
                    "key": None if request.grant is None else request.grant.key_id,
                    "link": None if request.grant is None else request.grant.link or None,
                    "tier": None if request.grant is None else request.grant.tier,
                    "method": request.method if request.method in _METHODS else "other",
                    "operation": request.operation,
                    "status": request.status,
                    "problem": request.problem or None,
                    "bytes": request.size,
                    "ms": round(request.seconds * 1000, 3),
                }
            )
            + b"\n"
        )


_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


def tracer(endpoint: str) -> tuple[Callable[[ObservedRequest], None], Callable[[], object]]:
    """An observer that makes spans, and the function that sends what is left. Raises SettingsError."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError as missing:
        raise SettingsError(
            "SANKOFA_OTLP_ENDPOINT needs an exporter: make setup EXTRAS=1, or install sankofa[tracing]"
        ) from missing
    resource = Resource.create({"service.name": "sankofa", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=5)))
    spans = provider.get_tracer("sankofa", __version__)
    propagator = TraceContextTextMapPropagator()
    offset = time.time_ns() - time.perf_counter_ns()

    def observe(request: ObservedRequest) -> None:
        carrier = {
            name.decode(): value.decode("latin-1")
            for name, value in request.headers
            if name in (b"traceparent", b"tracestate")
        }
        began = int(request.began * 1e9) + offset
        span = spans.start_span(
            request.operation,
            context=propagator.extract(carrier) if carrier else None,
            kind=SpanKind.SERVER,
            start_time=began,
            attributes={
                "http.request.method": request.method,
                "http.response.status_code": request.status,
                "http.response.body.size": request.size,
                "sankofa.request_id": request.request_id,
                "sankofa.tier": request.grant.tier if request.grant else "",
                "error.type": request.problem,
            },
        )
        if request.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(began + int(request.seconds * 1e9))

    return observe, provider.shutdown


_EVERY_SECONDS: Final = 0.2
_AT_ONCE: Final = 2_000
"""Requests worked off in one round of the event loop: two milliseconds."""


@dataclass(frozen=True)
class Observing:
    """The observers of a worker, the coroutines they run beside the application, and their endings."""

    observers: list[Callable[[ObservedRequest], object]] = field(default_factory=list)
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
        for request in requests:
            for observe in self.observers:
                observe(request)

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
        observer, shutdown = tracer(service.settings.otlp_endpoint)
        observing.observers.append(observer)
        observing.endings.append(shutdown)
    if observing.observers:
        service.observe = observing.waiting.append
        observing.duties.append(observing.work_off)
    return observing
