"""OpenTelemetry spans of requests, sent by OTLP over HTTP where SANKOFA_OTLP_ENDPOINT is set."""

import time
from collections.abc import Callable
from typing import NamedTuple

from sankofa import __version__
from sankofa.model.errors import SettingsError
from sankofa.operations.service import ObservedRequest

_ERROR = 500


class Tracer(NamedTuple):
    trace: Callable[[ObservedRequest], None]
    """Makes the span of a request."""
    stop: Callable[[], object]
    """Sends the spans that are left."""


def tracer(endpoint: str) -> Tracer:
    """Raises SettingsError if the exporter is not installed."""
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

    def trace(request: ObservedRequest) -> None:
        caller = {
            name.decode(): value.decode("latin-1")
            for name, value in request.headers
            if name in (b"traceparent", b"tracestate")
        }
        began = int(request.began * 1e9) + offset
        span = spans.start_span(
            request.operation,
            context=propagator.extract(caller) if caller else None,
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
        if request.status >= _ERROR:
            span.set_status(Status(StatusCode.ERROR))
        span.end(began + int(request.seconds * 1e9))

    return Tracer(trace, provider.shutdown)
