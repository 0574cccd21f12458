"""The time from `sankofa serve` to the first answer.

    python -m bench.start [--scale small|300k|3m|7m] [--rounds 5]

Each round starts the command as an operator does. Every few milliseconds it asks for the 50 rows of an
issuer, with a key and counted, until they come; and it asks over MCP for the list of tools, as soon as it can
connect. Between the first row and the list of tools it keeps asking for the same rows.
"""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import threading
import time
from contextlib import suppress
from typing import NamedTuple

from bench.fundamentals import issue_key
from bench.history import report
from bench.load import HOST
from bench.world import SANKOFA, SCALES, environment_of, published_home
from tests.services import free_port

_PATIENCE = 60.0
_AGAIN_SECONDS = 0.005
_TOOLS = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()


class Start(NamedTuple):
    """Seconds since the command started, and its cost."""

    rows: float
    tools: float
    slowest: float
    processor: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.start")
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    scale = SCALES[options.scale]
    home = published_home(scale)
    environment, key = environment_of(home), issue_key(home, "professional")
    path = f"/v1/fundamentals/{scale.shapes[0].service_ids()[0]}"
    print(f"{'first rows s':>14}{'MCP tools s':>14}{'slowest of others ms':>24}{'processor s':>14}")
    starts = []
    for number in range(options.rounds + 1):
        start = _start(environment, path, key)
        if number == 0:  # compiles modules not compiled yet, and fills the page cache
            continue
        starts.append(start)
        print(f"{start.rows:14.2f}{start.tools:14.2f}{start.slowest * 1000:24.0f}{start.processor:14.2f}")
    report(
        "from `serve` to the first 50 rows", statistics.median(one.rows for one in starts), unit="s", most=1
    )
    report("from `serve` to the list of MCP tools", statistics.median(one.tools for one in starts), unit="s")


def _start(environment: dict[str, str], path: str, key: str) -> Start:
    port = free_port()
    request = f"GET {path} HTTP/1.1\r\nhost: {HOST}\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n".encode()
    began = time.monotonic()
    process = subprocess.Popen(
        [SANKOFA, "serve", "--host", HOST, "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    listed: list[float] = []
    agent = threading.Thread(
        target=lambda: listed.append(_answered(port, _listing(key)) - began), daemon=True
    )
    try:
        agent.start()
        rows = _answered(port, request) - began
        slowest = 0.0
        while agent.is_alive():
            sent = time.monotonic()
            slowest = max(slowest, _answered(port, request) - sent)
            time.sleep(_AGAIN_SECONDS)
    finally:
        process.send_signal(signal.SIGTERM)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    if not listed:
        raise SystemExit("the tools were never listed")
    return Start(rows, listed[0], slowest, used.ru_utime + used.ru_stime)


def _listing(key: str) -> bytes:
    fields = (
        *(f"host: {HOST}", f"x-api-key: {key}", "content-type: application/json"),
        *("accept: application/json, text/event-stream", "mcp-protocol-version: 2025-06-18"),
        *(f"content-length: {len(_TOOLS)}", "connection: close"),
    )
    return "\r\n".join(("POST /mcp HTTP/1.1", *fields, "", "")).encode() + _TOOLS


def _answered(port: int, request: bytes) -> float:
    """Repeats the request until it is answered with 200; the time of that answer."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=_PATIENCE) as connection:
            connection.sendall(request)
            if connection.recv(64).startswith(b"HTTP/1.1 200"):
                return time.monotonic()
        time.sleep(_AGAIN_SECONDS)
    raise SystemExit("no answer")


if __name__ == "__main__":
    main()
