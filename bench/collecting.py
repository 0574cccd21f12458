"""Collecting, the vault and replay, each against its smallest possible cost, in processor time.

python -m bench.collecting [--documents 10000]

- vault: ingesting with the vault against ingesting without it (less than 15% more)
- replay: rows a second from the vault against ingesting the same files (at least 80%)
- collect: small documents from a local server, fetched and checked without politeness, against httpx alone
  (at least 60%)
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from bench.history import report
from bench.ingest import cost
from bench.world import CACHE, SANKOFA, environment_of
from sankofa.collect.fetch import Fetcher
from sankofa.collect.network import HostRates, Patience, open_client
from sankofa.collect.plan import request_lists
from sankofa.collect.run import discard
from sankofa.settings import Settings
from sankofa.sources.registry import Collect

STARTER = Path(__file__).parents[1] / "src" / "sankofa" / "starter"
FILES = (
    ("sec-companyfacts", "filings/companyfacts"),
    ("worldbank", "macro"),
    ("gleif-lei", "identifiers/lei-africa.csv.gz"),
    ("za-etenders", "tenders"),
)
ROUNDS = 3


def ingest_and_replay(folder: Path) -> None:
    """The starter world, by source; the best of some rounds, because others use the machine too."""
    for source, path in FILES:
        without = with_vault = replay = float("inf")
        starting = min(_cpu(folder, "editions") for _ in range(ROUNDS))
        for number in range(ROUNDS):
            off, on = folder / f"{source}-off-{number}", folder / f"{source}-on-{number}"
            without = min(without, _cpu(off, "ingest", source, str(STARTER / path), vault="off"))
            with_vault = min(with_vault, _cpu(on, "ingest", source, str(STARTER / path)))
            if source in ("sec-companyfacts", "worldbank"):
                target = folder / f"{source}-again-{number}"
                replay = min(replay, _cpu(on, "vault", "replay", "--into", str(target)))
        without, with_vault, replay = without - starting, with_vault - starting, replay - starting
        more = with_vault / without - 1
        line = f"{source:20}{without:7.2f} s without, {with_vault:7.2f} s with the vault: {more:+.1%}"
        if replay < float("inf"):
            line += f"; replay at {with_vault / replay:.0%} of the rate of ingest"
        print(line)
        report(f"{source}, processor time that the vault adds to ingesting", more * 100, unit="%", most=15)


def _cpu(home: Path, *arguments: str, vault: str = "on") -> float:
    return cost([SANKOFA, *arguments], environment_of(home) | {"SANKOFA_VAULT": vault}).cpu


class _Documents(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write for headers and content

    def do_GET(self) -> None:
        content = b'[{"page":1},[{"id":"%b","value":1}]]' % self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{self.path}"')
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def fetch(folder: Path, documents: int, address: str) -> None:
    urls = [f"{address}/{number}.json" for number in range(documents)]
    with httpx.Client() as client:
        alone = _timed(lambda: [client.get(url).content for url in urls])
    collect = Collect(urls, rate=1e9, allow_private=True)
    stop = threading.Event()
    folder.mkdir(parents=True)
    patience = Patience(collect, stop.is_set)
    with open_client(collect, patience) as client:
        fetcher = Fetcher(client, HostRates(stop), collect, folder, patience, "", 3)

        def run() -> None:
            from datetime import UTC, datetime

            for requests in request_lists(Settings(home=folder), collect, datetime.now(UTC), None):
                fetched = fetcher.fetch(requests.first, None)
                assert fetched is not None
                discard([fetched])

        collected = _timed(run)
    print(f"httpx alone {documents / alone:,.0f} documents/s, the collector {documents / collected:,.0f}")
    report("documents collected to documents fetched by httpx alone, by rate", alone / collected, least=0.60)


def _timed(work: Callable[[], object]) -> float:
    """Processor time of this process: the server has its own."""
    began = time.process_time()
    work()
    return time.process_time() - began


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Documents)
    print(server.server_port, flush=True)
    server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.collecting")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        ingest_and_replay(Path(folder))
        command = [sys.executable, "-m", "bench.collecting", "--serve"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                fetch(
                    Path(folder) / "partial",
                    options.documents,
                    f"http://127.0.0.1:{server.stdout.readline().strip()}",
                )
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
