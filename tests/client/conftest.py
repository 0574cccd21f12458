"""The client against a real server over the sample world, and against one that follows a script."""

import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_httpfs
import pytest

from sankofa.client import Client
from tests.live import LiveServer


@pytest.fixture(scope="module")
def client(server: LiveServer, paid_key: str) -> Iterator[Client]:
    with Client(paid_key, server.url) as client:
        yield client


class Scripted:
    """A real HTTP server on a free port that gives scripted answers in order."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], bytes] | None] = []
        """Status, header fields and body; None to close the connection without an answer."""
        self.requests: list[tuple[str, dict[str, str]]] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                script.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                answer = script.answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Log nothing: the test asked for the refusal."""

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="session")
def httpfs() -> None:
    """The path of the extension, which DuckDB would download otherwise."""
    package = Path(str(duckdb_extension_httpfs.__file__)).parent
    (extension,) = package.glob("extensions/*/httpfs.duckdb_extension")
    duckdb.execute(f"LOAD '{extension}'")


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    script = Scripted()
    yield script
    script.close()
