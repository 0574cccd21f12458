"""The cost of the protocol: the same calls over REST and over MCP at both revisions, on one server.

    python -m bench.mcp [seconds per measurement]

One worker runs on the first core, the load on the second; the three take turns in every round. The share is
the rate relative to REST for the same body in the same round; reported is the median of the rounds.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import uvloop

from bench.history import report
from tests.live import LiveServer, create_key, run

ISSUER = "DC46AF1B1AAA424B58D1368176"  # the first issuer of the sample world
CALLS: dict[str, tuple[str, str, dict[str, str]]] = {
    "entity": ("get_entity", f"/v1/entities/{ISSUER}", {}),
    "H1 rows": ("get_fundamentals", f"/v1/fundamentals/{ISSUER}", {"period_type": "H1"}),
    "default": ("get_fundamentals", f"/v1/fundamentals/{ISSUER}", {}),
    "series": ("get_macro", "/v1/macro", {"series": "FX.EUR.ZAR"}),
    "tenders": ("search_tenders", "/v1/tenders", {"country": "ZA", "detail": "compact"}),
}
"""Each call: tool, path and the arguments of both. If not all rows fit a tool's answer, REST gives more of
them.
"""
SURFACES = ("REST", "2026-07-28", "2025-11-25")
ROUNDS = 5
CONNECTIONS = 16
MANY = "1000000000"


class Sample(NamedTuple):
    """One measurement: answers per second, and the seconds each took."""

    rate: float
    latencies: list[float]
    size: int


def request(surface: str, call: str, key: str) -> bytes:
    """The bytes that a client sends."""
    tool, path, query = CALLS[call]
    if surface == "REST":
        target = path + "?" + "&".join(f"{name}={value}" for name, value in query.items())
        return f"GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {key}\r\n\r\n".encode()
    about = {"service_id": ISSUER} if ISSUER in path else {}
    params: dict[str, Any] = {"name": tool, "arguments": {**about, **query}}
    extra = ""
    if surface == "2026-07-28":
        name = "io.modelcontextprotocol"
        params["_meta"] = {f"{name}/protocolVersion": surface, f"{name}/clientCapabilities": {}}
        extra = f"mcp-method: tools/call\r\nmcp-name: {tool}\r\n"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    return (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {key}\r\n{extra}"
        "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
        f"mcp-protocol-version: {surface}\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def load(port: int, sent: bytes, seconds: float) -> Sample:
    """Keep a few connections busy for a while."""
    latencies: list[float] = []
    size = 0
    end = time.perf_counter() + seconds

    async def send_repeatedly() -> None:
        nonlocal size
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        while (began := time.perf_counter()) < end:
            writer.write(sent)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 200"), head
            size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(size)
            assert b'"count":' in body
            latencies.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(send_repeatedly() for _ in range(CONNECTIONS)))
    return Sample(len(latencies) / seconds, sorted(latencies), size)


@contextmanager
def served() -> Iterator[tuple[LiveServer, str]]:
    """The sample world on its own core, and a key with practically no limit."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        run(home, "sample")
        key = create_key(home, "professional", "--per-minute", MANY, "--per-month", MANY)
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:1])  # servers started now stay there, with all their threads
        with LiveServer(home) as server:
            os.sched_setaffinity(0, cores[-1:])
            yield server, key


def measure(seconds: float) -> None:
    with served() as (server, key):
        print(f"{'call':10}{'surface':12}{'bytes':>9}{'req/s':>8}{'share':>8}{'p50 ms':>9}{'p99 ms':>9}")
        for call in CALLS:
            samples: dict[str, list[Sample]] = {surface: [] for surface in SURFACES}
            for round_number in range(ROUNDS + 1):
                for surface in SURFACES:
                    sample = uvloop.run(load(server.port, request(surface, call, key), seconds))
                    if round_number:  # the first round only warms up
                        samples[surface].append(sample)
            rates = {surface: [sample.rate for sample in samples[surface]] for surface in SURFACES}
            for surface in SURFACES:
                share = statistics.median(a / b for a, b in zip(rates[surface], rates["REST"], strict=True))
                latencies = sorted(second for sample in samples[surface] for second in sample.latencies)
                p50, p99 = (latencies[int(len(latencies) * part)] * 1e3 for part in (0.5, 0.99))
                size, rate = samples[surface][-1].size, statistics.median(rates[surface])
                print(f"{call:10}{surface:12}{size:9}{rate:8.0f}{share:8.0%}{p50:9.2f}{p99:9.2f}", flush=True)
                if surface != "REST":
                    report(f"{call} over {surface}, rate to REST", share, least=0.25)
        memory = max(process.memory_info().rss for process in psutil.Process().children(recursive=True))
        print(f"memory of the worker after all that: {memory / 2**20:.0f} MiB")


def main() -> None:
    try:
        measure(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
    except subprocess.CalledProcessError as failure:
        sys.exit(failure.stderr)


if __name__ == "__main__":
    main()
