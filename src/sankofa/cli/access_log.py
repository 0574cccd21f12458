"""The access log: one line of JSON for each request, with nothing in it that a client sent.

Lines are written a few times a second, not one by one: a write is a system call and a request has
microseconds.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec

from sankofa.operations.observing import ObservedRequest

_WRITE_SECONDS: Final = 0.2
_MOST_WAITING: Final = 50_000
_encode = msgspec.json.Encoder().encode


class AccessLog:
    """An observer of the service of one worker."""

    def __init__(self) -> None:
        self._requests: list[ObservedRequest] = []
        self._lost = 0
        self._offset = time.time() - time.perf_counter()

    def __call__(self, requests: Sequence[ObservedRequest]) -> None:
        if len(self._requests) < _MOST_WAITING:
            self._requests += requests
        else:
            self._lost += len(requests)

    async def write(self) -> None:
        """Write what is waiting, a few times a second, for as long as the worker runs."""
        try:
            while True:
                await asyncio.sleep(_WRITE_SECONDS)
                if self._requests:
                    await asyncio.to_thread(self.flush)
        finally:
            self.flush()

    def flush(self) -> None:
        requests, self._requests = self._requests, []
        lines = b"".join(map(self._line, requests))
        if self._lost:
            lines += _encode({"lost": self._lost}) + b"\n"
            self._lost = 0
        with suppress(OSError):  # a reader that is gone stops no request
            while lines:
                lines = lines[os.write(sys.stderr.fileno(), lines) :]

    def _line(self, request: ObservedRequest) -> bytes:
        when = datetime.fromtimestamp(request.began + self._offset, UTC)
        return (
            _encode(
                {
                    "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                    "request_id": request.request_id,
                    "key": None if request.grant is None else request.grant.key_id,
                    "tier": None if request.grant is None else request.grant.tier,
                    "method": request.method if request.method in _METHODS else "other",
                    "operation": request.operation,
                    "status": request.status,
                    "problem": request.problem or None,
                    "bytes": request.size,
                    "ms": round(request.seconds * 1000, 3),
                }
            )
            + b"\n"
        )


_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
