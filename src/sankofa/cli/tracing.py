"""OpenTelemetry traces: one span for each request, sent by OTLP over HTTP from a thread of its own."""

import time
from collections.abc import Callable, Sequence

from sankofa import __version__
from sankofa.model.errors import SettingsError
from sankofa.operations.observing import ObservedRequest


def tracer(endpoint: str) -> tuple[Callable[[Sequence[ObservedRequest]], None], Callable[[], object]]:
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

    def observe_all(requests: Sequence[ObservedRequest]) -> None:
        for request in requests:
            observe(request)

    return observe_all, provider.shutdown
