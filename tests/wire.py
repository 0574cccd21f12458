"""Requests as raw bytes on a socket, for tests of what no HTTP client sends."""

import re
import socket

from tests.patience import PATIENCE

STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")


def exchange(port: int, request: bytes, seconds: float = PATIENCE) -> bytes:
    """Everything that the server answers until it closes. Raises TimeoutError if it does not close."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        try:
            connection.sendall(request)
            while received := connection.recv(65536):
                answer += received
        except (BrokenPipeError, ConnectionResetError):
            pass  # it closed the connection before reading the whole request
    return answer


def statuses(answer: bytes) -> list[int]:
    """The status of each response in the server's output."""
    return [int(code) for code in STATUS_LINE.findall(answer)]


def request(target: str, *fields: str, method: str = "GET", version: str = "1.1") -> bytes:
    """A request that asks to close the connection; it has no other fields, not even Host."""
    lines = [f"{method} {target} HTTP/{version}", *fields, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()
