"""Requests as bytes on a socket, for what no HTTP client agrees to send."""

import re
import socket

from tests.patience import PATIENCE

STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")


def exchange(port: int, request: bytes, seconds: float = PATIENCE) -> bytes:
    """Everything the server answers until it closes; raises TimeoutError when it does not."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        try:
            connection.sendall(request)
            while received := connection.recv(65536):
                answer += received
        except (BrokenPipeError, ConnectionResetError):
            pass  # it hung up on a request it would not read to its end
    return answer


def statuses(answer: bytes) -> list[int]:
    """The status of each response in what a server sent."""
    return [int(code) for code in STATUS_LINE.findall(answer)]


def request(target: str, *fields: str, method: str = "GET", version: str = "1.1") -> bytes:
    """A request that asks for the connection to be closed; no field is added besides, not even Host."""
    lines = [f"{method} {target} HTTP/{version}", *fields, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()
