"""Metrics, access log and traces of a running service."""

import json
import os
import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.live import Copies, LiveServer, free_port, run
from tests.patience import until
from tests.publisher import answering_posts

SECRET_WORD = "Ubuntu-Holdings-query"


@pytest.fixture(scope="module")
def spans() -> Iterator[tuple[str, list[bytes]]]:
    """A collector of traces: its address and the spans it received."""
    received: list[bytes] = []

    def collect(_: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        received.append(body)
        return 200, b""

    with answering_posts(collect) as url:
        yield f"{url}/v1/traces", received


@pytest.fixture(scope="module")
def observed(copy_sample: Copies, spans: tuple[str, list[bytes]]) -> Iterator[LiveServer]:
    port = str(free_port())
    with LiveServer(
        copy_sample(), workers=2, metrics_port=port, access_log="json", otlp_endpoint=spans[0]
    ) as server:
        yield server


def metrics(server: LiveServer) -> dict[str, float]:
    """Every sample as Prometheus reads it, by name and labels."""
    text = httpx.get(f"http://127.0.0.1:{server.settings['metrics_port']}/metrics").text
    return {
        f"{sample.name}{json.dumps(sample.labels, sort_keys=True)}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labelled(name: str, **labels: str) -> str:
    return f"{name}{json.dumps(labels, sort_keys=True)}"


def logged(server: LiveServer) -> list[dict[str, object]]:
    return [json.loads(line) for line in server.log.splitlines() if line.startswith('{"time"')]


@pytest.mark.deep
@pytest.mark.slow
def test_requests_of_every_worker_are_added_up_by_operation_and_status(observed: LiveServer) -> None:
    key = observed.key("starter")
    requests = labelled("sankofa_requests_total", operation="get_screen", status="200")
    before = metrics(observed).get(requests, 0)
    for _ in range(20):  # each on its own connection, so that both workers get some
        response = httpx.get(f"{observed.url}/v1/screen?metric=net_margin", headers={"X-API-Key": key})
        assert response.status_code == 200
    until(lambda: metrics(observed).get(requests, 0) == before + 20)
    after = metrics(observed)
    count = labelled("sankofa_request_duration_seconds_count", operation="get_screen")
    assert after[count] >= before + 20
    assert after[labelled("sankofa_response_size_bytes_sum", operation="get_screen")] > 20 * 500
    assert after[labelled("sankofa_quota_requests_total", tier="starter")] >= 20


def test_refusals_are_counted_by_kind(observed: LiveServer) -> None:
    assert observed.get("/v1/screen?metric=net_margin").status_code == 401
    assert observed.get("/v1/screen", observed.key("starter")).status_code == 400
    kinds = ("unauthorized", "invalid-parameter")
    until(lambda: all(metrics(observed).get(labelled("sankofa_refusals_total", kind=k), 0) for k in kinds))


def test_edition_dependencies_memory_and_ingest_are_measured(observed: LiveServer) -> None:
    edition = observed.get("/v1/status").json()["edition"]
    until(lambda: metrics(observed).get(labelled("sankofa_edition_workers", edition=edition)) == 2)
    values = metrics(observed)
    assert values[labelled("sankofa_edition_age_seconds", edition=edition)] >= 0
    for name in ("datastore", "keystore", "usagestore"):
        assert values[labelled("sankofa_dependency_up", dependency=name)] == 1
    assert values[labelled("sankofa_worker_memory_bytes", worker="2")] > 1e6
    until(lambda: labelled("sankofa_ingest_captures_total", source="sample-lei") in metrics(observed))
    values = metrics(observed)
    assert values[labelled("sankofa_ingest_rows_total", source="sample-lei", outcome="withheld")] == 1
    assert labelled("sankofa_ingest_rows_total", source="sample-lei", outcome="rejected") in values


@pytest.mark.deep
def test_calls_of_agents_are_counted_by_tool(observed: LiveServer) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "get_quality_metrics", "arguments": {"sku": "macro"}},
    }
    headers = {"X-API-Key": observed.key("starter"), "Accept": "application/json, text/event-stream"}
    response = httpx.post(f"{observed.url}/mcp", json=message, headers=headers)
    assert response.status_code == 200, response.text
    name = labelled("sankofa_requests_total", operation="mcp:get_quality_metrics", status="200")
    until(lambda: metrics(observed).get(name, 0) >= 1)


def test_the_process_that_forks_has_no_thread(observed: LiveServer) -> None:
    """A lock held by a thread during a fork stays locked in the worker."""
    assert psutil.Process(observed.pid).num_threads() == 1


@pytest.mark.deep
@pytest.mark.slow
def test_counts_of_a_worker_that_dies_are_kept(observed: LiveServer) -> None:

    name = labelled("sankofa_requests_total", operation="page", status="200")
    observed.get("/health")
    until(lambda: metrics(observed).get(name, 0) > 0)
    before = metrics(observed)[name]
    for worker in psutil.Process(observed.pid).children():
        os.kill(worker.pid, signal.SIGKILL)
    until(lambda: metrics(observed).get(labelled("sankofa_worker_memory_bytes", worker="2")) is not None)
    assert metrics(observed)[name] >= before


def test_the_access_log_has_a_line_for_each_request_and_no_value_of_a_query(observed: LiveServer) -> None:
    key = observed.key("starter")
    response = observed.get(f"/v1/fundamentals/{SECRET_WORD}?as_of={SECRET_WORD}", key)
    identifier = response.headers["x-request-id"]
    until(lambda: any(line["request_id"] == identifier for line in logged(observed)))
    (line,) = [line for line in logged(observed) if line["request_id"] == identifier]
    assert line["operation"] == "get_fundamentals"
    assert line["status"] == response.status_code
    assert line["bytes"] == len(response.content)
    assert line["tier"] == "starter"
    assert isinstance(line["ms"], float)
    keys = run(observed.home, "keys", "list", **observed.settings).stdout
    assert str(line["key"]) in keys
    assert key not in observed.log
    assert SECRET_WORD not in observed.log


def test_a_span_of_each_request_is_sent_and_follows_the_callers_trace(
    observed: LiveServer, spans: tuple[str, list[bytes]]
) -> None:
    trace = os.urandom(16)
    header = f"00-{trace.hex()}-{os.urandom(8).hex()}-01"
    assert observed.get(f"/health?{SECRET_WORD}", traceparent=header).status_code == 200
    until(lambda: any(trace in body for body in spans[1]))
    assert not any(SECRET_WORD.encode() in body for body in spans[1])


def test_nothing_is_reported_unless_enabled(server: LiveServer) -> None:
    server.get("/health")
    assert logged(server) == []
    assert "Metrics at" not in server.log


def test_a_metrics_port_in_use_or_invalid_is_an_error_of_one_line(
    sample_home: Path, server: LiveServer
) -> None:
    in_use = run(sample_home, "serve", "--port", str(free_port()), metrics_port=str(server.port))
    assert in_use.returncode == 1
    assert in_use.stderr.splitlines()[-1].startswith("Error: cannot serve metrics on 127.0.0.1:")
    wrong = run(sample_home, "serve", metrics_port="ninety")
    assert "SANKOFA_METRICS_PORT: expected a port" in wrong.stderr
