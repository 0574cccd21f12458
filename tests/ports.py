"""Ports for the servers of tests."""

import itertools
import os
import random
import socket
from collections.abc import Iterator
from functools import cache

_FIRST, _LAST = 10_000, 32_000
"""Below those that the kernel gives to outgoing connections, one of which could take a port meanwhile."""


@cache
def _numbers(process: int) -> Iterator[int]:
    """Each test process goes its own way through them."""
    return itertools.count(random.Random(process).randrange(_LAST - _FIRST))


def free_port() -> int:
    """A loopback port that nobody listens on, and that no other test of this process was given lately."""
    for number in _numbers(os.getpid()):
        port = _FIRST + number % (_LAST - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError
