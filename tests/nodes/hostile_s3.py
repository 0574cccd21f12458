"""An S3 server in the hands of an attacker: a real one behind a server that alters its answers."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple, Self

import httpx

_CHUNK: Final = bytes(1 << 16)


class Answer(NamedTuple):
    """An answer of the real server."""

    status: int
    headers: dict[str, str]
    body: bytes


Way = Callable[["Handler", Answer], None]
"""Sends something else instead."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hostile: "HostileS3"

    def do_GET(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        real = self.hostile.real.get(self.path, headers=headers)
        answer = Answer(
            real.status_code, {k: v for k, v in real.headers.items() if k in _PASSED}, real.content
        )
        attacked = self.hostile.way is not None and self.hostile.is_victim(self.path)
        self.hostile.attacks += attacked
        with suppress(OSError):
            if attacked and self.hostile.way is not None:
                self.hostile.way(self, answer)
            else:
                self.reply(answer)

    def reply(self, answer: Answer, **changed: str) -> None:
        self.send_response(answer.status)
        headers = {"content-length": str(len(answer.body)), **answer.headers}
        for name, value in {**headers, **{k.replace("_", "-"): v for k, v in changed.items()}}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        pass


_PASSED: Final = ("content-type", "etag", "last-modified", "content-range")


class HostileS3:
    """`with HostileS3(url) as s3`; then set `s3.way`, and `s3.is_victim`, which tells the paths to attack."""

    def __init__(self, url: str) -> None:
        self.real = httpx.Client(base_url=url, timeout=60)
        self.way: Way | None = None
        self.is_victim: Callable[[str], bool] = lambda path: True
        self.attacks = 0
        handler = type("Attacking", (Handler,), {"hostile": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.real.close()


def altered(handler: Handler, answer: Answer) -> None:
    middle = len(answer.body) // 2
    flipped = bytes([answer.body[middle] ^ 1]) if answer.body else b""
    handler.reply(answer._replace(body=answer.body[:middle] + flipped + answer.body[middle + 1 :]))


def cut_short(handler: Handler, answer: Answer) -> None:
    """Fewer bytes than announced, then the connection is closed."""
    half = answer._replace(body=answer.body[: len(answer.body) // 2])
    handler.reply(half, content_length=str(len(answer.body)))
    handler.close_connection = True


def shortened(handler: Handler, answer: Answer) -> None:
    handler.reply(answer._replace(body=answer.body[: len(answer.body) // 2]))


def emptied(handler: Handler, answer: Answer) -> None:
    handler.reply(answer._replace(body=b""))


def swapped(handler: Handler, answer: Answer) -> None:
    handler.reply(answer._replace(body=b"another object" * 1000))


def endless(handler: Handler, answer: Answer) -> None:
    """The right headers, and a body that does not end."""
    handler.send_response(answer.status)
    for name, value in {**answer.headers, "transfer-encoding": "chunked"}.items():
        handler.send_header(name, value)
    handler.end_headers()
    for _ in range(1 << 16):  # 4 GiB; whoever reads has to stop
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(_CHUNK), _CHUNK))
    handler.close_connection = True


def enormous(handler: Handler, answer: Answer) -> None:
    """One that says that it has a terabyte."""
    handler.reply(answer, content_length=str(1 << 40))
    handler.close_connection = True


def another_range(handler: Handler, answer: Answer) -> None:
    handler.reply(answer._replace(status=206), content_range=f"bytes 7-{6 + len(answer.body)}/{1 << 40}")


def nonsense_range(handler: Handler, answer: Answer) -> None:
    handler.reply(answer._replace(status=206), content_range="bytes 9-3/-1")


def refused(handler: Handler, answer: Answer) -> None:
    handler.reply(Answer(403, {"content-type": "application/xml"}, b"<Error><Code>" + bytes(1 << 20)))


def failing(handler: Handler, answer: Answer) -> None:
    handler.reply(Answer(500, {}, b"\xff\xfe" * 1000))


def redirected(handler: Handler, answer: Answer) -> None:
    handler.reply(Answer(307, {"location": f"{handler.hostile.url}/nowhere"}, b""))


def dripping(handler: Handler, answer: Answer) -> None:
    """A byte now and then."""
    handler.send_response(answer.status)
    for name, value in {"content-length": str(len(answer.body)), **answer.headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    for position in range(len(answer.body)):
        handler.wfile.write(answer.body[position : position + 1])
        time.sleep(0.1)


WAYS: Final[dict[str, Way]] = {
    way.__name__: way
    for way in (
        *(altered, cut_short, shortened, emptied, swapped, endless, enormous, another_range, nonsense_range),
        *(refused, failing, redirected, dripping),
    )
}
