"""Servers in front of nodes or for nodes to follow: nginx with static files, a server that speaks S3."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import httpx

from tests.patience import until
from tests.services import REPOSITORY, free_port, missing


def nginx_binary() -> str:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if nginx is None:
        missing("a web server (no nginx in PATH)")
    return nginx


class Nginx:
    """`with Nginx(folder, http="server {...}")`: its configuration and temporary files live in a folder."""

    def __init__(self, folder: Path, http: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        user = "user root;" if os.geteuid() == 0 else ""
        own = f"{user} worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;"
        paths = "".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(f"{own} events {{}} http {{ access_log off; {paths}\n{http}\n}}\n")
        self._command = [nginx_binary(), "-p", str(folder), "-c", str(folder / "nginx.conf")]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None


class StaticServer(Nginx):
    """Serves a folder, as any web server would."""

    def __init__(self, served: Path, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(folder, f"server {{ listen 127.0.0.1:{self.port}; root {served}; }}")

    def start(self) -> None:
        super().start()
        until(self._answers)

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/", timeout=5).status_code in (200, 403, 404)
        return False


@contextmanager
def s3_server(bucket: str) -> Iterator[str]:
    """The address of moto, a real HTTP server that speaks S3 and stores objects in memory."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:

        def answers() -> bool:
            assert process.poll() is None
            with suppress(httpx.TransportError):
                return httpx.put(f"{url}/{bucket}", timeout=30).status_code == 200
            return False

        until(answers, every=0.2)
        yield url
    finally:
        process.kill()
        process.wait()


class PlainServer:
    """`python -m http.server`, which does not support ranges."""

    def __init__(self, folder: Path) -> None:
        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class CuttingServer:
    """Serves a folder; sends `most` bytes of the object `name` and closes, `times` times."""

    def __init__(self, folder: Path, name: str, most: int, times: int) -> None:
        self.requests: list[tuple[str, int]] = []
        """The path and the first byte of each request."""
        self.sent = 0
        self._cuts_left = times
        self._name = name
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._answer(self, folder, most)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> "CuttingServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, folder: Path, most: int) -> None:
        path = folder / handler.path.lstrip("/")
        if not path.exists():
            handler.send_error(404)
            return
        content = path.read_bytes()
        byte_range = handler.headers.get("range")
        start = int(byte_range.removeprefix("bytes=").split("-")[0]) if byte_range else 0
        self.requests.append((handler.path, start))
        body = content[start:]
        handler.send_response(206 if byte_range else 200)
        handler.send_header("content-length", str(len(body)))
        if byte_range:
            handler.send_header("content-range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        handler.end_headers()
        if handler.path.endswith(self._name) and self._cuts_left:
            self._cuts_left -= 1
            body = body[:most]
            handler.close_connection = True
        self.sent += len(body)
        with suppress(OSError):
            handler.wfile.write(body)


class HaProxy:
    """The example of deploy/haproxy.cfg in front of the nodes of a test."""

    def __init__(self, folder: Path, nodes: Sequence[int]) -> None:
        binary = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
        if binary is None:
            missing("a balancer (no haproxy in PATH)")
        folder.mkdir(parents=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        written = (REPOSITORY / "deploy" / "haproxy.cfg").read_text()
        changes = [
            ("bind :443 ssl crt /etc/haproxy/sankofa.pem alpn h2,http/1.1", f"bind 127.0.0.1:{self.port}"),
            *((f"10.0.0.{number}:8000", f"127.0.0.1:{port}") for number, port in enumerate(nodes, 1)),
        ]
        for there, here in changes:
            assert there in written, "the example is another one by now"
            written = written.replace(there, here)
        assert "10.0.0." not in written, "the example has more nodes"
        (folder / "haproxy.cfg").write_text(written)
        self._command = [binary, "-db", "-f", str(folder / "haproxy.cfg")]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "HaProxy":
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._answers)
        return self

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        return False

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
