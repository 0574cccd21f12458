"""A connection of an HTTP client whose every wait may be ended: by a deadline, a least rate, or a stop."""

import time
from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Final

import httpcore

_LOOK_SECONDS: Final = 0.25
"""How often a wait calls `look`."""

Look = Callable[[int], None]
"""Called with the number of bytes that came, also with none; raises to end the wait."""


class PatientStream(httpcore.NetworkStream):
    """Calls `look` before and after every read, and while it waits."""

    def __init__(self, inner: httpcore.NetworkStream, look: Look) -> None:
        self._inner = inner
        self._look = look

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        until = time.monotonic() + (timeout or 60)
        while True:
            self._look(0)
            try:
                content = self._inner.read(max_bytes, _LOOK_SECONDS)
            except httpcore.ReadTimeout:
                if time.monotonic() >= until:
                    raise httpcore.ReadTimeout("no answer in time") from None
            else:
                self._look(len(content))
                return content

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return PatientStream(self._inner.start_tls(ssl_context, server_hostname, timeout), self._look)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
