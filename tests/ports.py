"""Ports for the servers of tests."""

import itertools
import os
import random
import socket

_FIRST, _LAST = 10_000, 32_000
"""Below those that the kernel gives to outgoing connections, one of which could take a port meanwhile."""
_SHARES = 10
"""Each test worker has a share of them, the last is for who is none. A server lets another listen on its port
beside it, as its own workers do: two tests that were given the same one would get each other's answers."""
_SHARE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")) % _SHARES
_PORTS = range(_FIRST + _SHARE, _LAST, _SHARES)
_NUMBERS = itertools.count(random.Random(os.getpid()).randrange(len(_PORTS)))


def free_port() -> int:
    """A loopback port that nobody listens on, and that no other test of this process was given lately."""
    for number in _NUMBERS:
        port = _PORTS[number % len(_PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError
