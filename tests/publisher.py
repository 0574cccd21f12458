"""Local servers that misbehave on purpose: a publisher, a server for POST, a proxy that can be cut."""

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ReceivedRequest:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Document:
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


Fault = Callable[["_Handler", Document], bool]
"""Answers a request in the place of the document; False to let it be answered as usual."""


class Publisher:
    """`with Publisher() as publisher: publisher.put("/a.json", b"{}")`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.documents: dict[str, Document] = {}
        self.faults: dict[str, list[Fault]] = {}
        """The faults of the next requests of each path, one after another."""
        self.received: list[ReceivedRequest] = []
        publisher = self

        class Handler(_Handler):
            owner = publisher

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self.url = f"https://localhost:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "Publisher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put(self, path: str, content: bytes | str, **headers: str) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.documents[path] = Document(data, {n.replace("_", "-"): v for n, v in headers.items()})

    def fail(self, path: str, *faults: Fault) -> None:
        self.faults.setdefault(path, []).extend(faults)

    def requests(self, path: str) -> list[ReceivedRequest]:
        return [request for request in self.received if request.path == path]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: clients are killed on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    owner: Publisher

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.owner.received.append(ReceivedRequest(self.command, self.path, headers, body))
        document = self.owner.documents.get(self.path)
        waiting = self.owner.faults.get(self.path)
        try:
            if waiting and waiting.pop(0)(self, document or Document(b"")):
                return
            if document is None:
                self.answer(404, b"not found")
                return
            self.usual(document)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_POST = do_GET  # noqa: N815 - the name that the base class looks for

    def usual(self, document: Document) -> None:
        """Answer as a good server does: validators, ranges and the document."""
        etag = '"' + sha256(document.content).hexdigest()[:16] + '"'
        if self.headers.get("If-None-Match") == etag:
            self.answer(304, b"", {"ETag": etag})
            return
        start, headers = self.part(document)
        self.answer(206 if start else 200, document.content[start:], headers | document.headers)

    def part(self, document: Document) -> tuple[int, dict[str, str]]:
        """The first byte that the request asks for, and the header fields of its answer."""
        etag, size = '"' + sha256(document.content).hexdigest()[:16] + '"', len(document.content)
        headers, start = {"ETag": etag, "Accept-Ranges": "bytes"}, 0
        byte_range = self.headers.get("Range", "")
        if byte_range and self.headers.get("If-Range") == etag:
            start = int(byte_range.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        return start, headers

    def answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.begin(status, len(content), headers)
        self.wfile.write(content)

    def begin(self, status: int, length: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def status(code: int, **headers: str) -> Fault:
    """An error; `retry_after="1"` for a header."""

    def fault(handler: _Handler, _: Document) -> bool:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.answer(code, b"not now", fields)
        return True

    return fault


def cut_after(count: int) -> Fault:
    """Close the connection after so many bytes of the content, whole or the rest of it."""

    def fault(handler: _Handler, document: Document) -> bool:
        start, headers = handler.part(document)
        handler.begin(206 if start else 200, len(document.content) - start, headers)
        handler.wfile.write(document.content[start : start + count])
        handler.wfile.flush()
        handler.close_connection = True
        return True

    return fault


def slow(seconds: float) -> Fault:
    def fault(handler: _Handler, document: Document) -> bool:
        time.sleep(seconds)
        return False

    return fault


def drips(seconds: float = 0.1, *, head: bool = False, chunked: bool = False) -> Fault:
    """Send byte by byte: endless header fields, or the document."""

    def fault(handler: _Handler, document: Document) -> bool:
        etag = '"' + sha256(document.content).hexdigest()[:16] + '"'
        if head:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        elif chunked:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        else:
            handler.begin(200, len(document.content), {"ETag": etag, "Accept-Ranges": "bytes"})
        for byte in document.content:
            handler.wfile.write(b"1\r\n%c\r\n" % byte if chunked else b"x" if head else bytes([byte]))
            time.sleep(seconds)
        handler.close_connection = True
        return True

    return fault


def page(html: str = "<!DOCTYPE html><html><body>Try later</body></html>") -> Fault:
    """An error page with status 200."""

    def fault(handler: _Handler, _: Document) -> bool:
        handler.answer(200, html.encode(), {"Content-Type": "text/html"})
        return True

    return fault


def not_gzip(handler: _Handler, document: Document) -> bool:
    """Claim to be compressed without being so."""
    handler.answer(200, document.content, {"Content-Encoding": "gzip"})
    return True


def as_gzip(handler: _Handler, document: Document) -> bool:
    handler.answer(200, gzip.compress(document.content), {"Content-Encoding": "gzip"})
    return True


def redirect(target: str) -> Fault:
    def fault(handler: _Handler, _: Document) -> bool:
        handler.answer(302, b"", {"Location": target})
        return True

    return fault


def sends(content: bytes, **headers: str) -> Fault:
    def fault(handler: _Handler, _: Document) -> bool:
        fields = {"Date": formatdate(usegmt=True)} | {n.replace("_", "-"): v for n, v in headers.items()}
        handler.answer(200, content, fields)
        return True

    return fault


Answer = Callable[[BaseHTTPRequestHandler, bytes], tuple[int, bytes]]
"""The status and the body for a request, whose own body is given."""


@contextmanager
def answering_posts(answer: Answer) -> Iterator[str]:
    """The address of a server that gives these answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = answer(self, self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            if status == 302:
                self.send_header("location", "/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):  # the client did not wait
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def slowly(request: BaseHTTPRequestHandler, _: bytes) -> tuple[int, bytes]:
    """Send a header that never ends and never pauses for long."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(300):
        request.wfile.write(b"x-%d: y\r\n" % number)
        time.sleep(0.1)
    return 200, b""


class Proxy:
    """`with Proxy(port) as proxy:` forwards `proxy.port` to that port until `cut`, and again after `mend`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listening.getsockname()[1]
        self._cut = threading.Event()
        self._links: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._drop()

    def cut(self) -> None:
        """Stop forwarding. Connections are still accepted."""
        self._cut.set()

    def mend(self) -> None:
        """Forward new connections again; reset those that lost bytes."""
        self._cut.clear()
        self._drop()

    def _drop(self) -> None:
        links, self._links = self._links, []
        for link in links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._links.append(client)
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        if self._cut.is_set():
            self._swallow(client)
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        self._links.append(server)
        threading.Thread(target=self._pump, args=(server, client), daemon=True).start()
        self._pump(client, server)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self._cut.is_set():
                    target.sendall(data)
            if not self._cut.is_set():
                target.shutdown(socket.SHUT_WR)

    def _swallow(self, client: socket.socket) -> None:
        with suppress(OSError):
            while client.recv(65536):
                pass
