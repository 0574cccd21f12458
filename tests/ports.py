"""Ports for the servers of tests."""

import itertools
import os
import random
import socket

_FIRST, _LAST = 10_000, 32_000
"""Below those that the kernel gives to outgoing connections, one of which could take a port meanwhile."""
_NUMBERS = itertools.count(random.Random(os.getpid()).randrange(_LAST - _FIRST))


def free_port() -> int:
    """A loopback port that nobody listens on, and that no other test of this process was given lately."""
    for number in _NUMBERS:
        port = _FIRST + number % (_LAST - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError
