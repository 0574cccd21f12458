"""Connections: only to addresses of the public internet, unless the operator says otherwise.

A name is resolved once, every address that it has is looked at, and the connection is made to the very
address that was looked at: a name that changes its mind in between leads nowhere. Behind a proxy it is the
proxy that resolves names, and that decides what it reaches.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final
from urllib.request import getproxies

import httpcore
import httpx

from sankofa.collect.errors import ReplyRefused, Stopped

_TIMEOUT: Final = httpx.Timeout(60, connect=15)


def refuse_private(host: str, address: str) -> None:
    """Raises ReplyRefused where an address is not of the public internet."""
    number = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(number, "ipv4_mapped", None) or getattr(number, "sixtofour", None)
    for one in filter(None, (number, mapped)):
        if not one.is_global or one.is_multicast or one.is_reserved:
            raise ReplyRefused(f"{host} leads to {address}, which is not an address of the public internet")


def refuse_private_behind_proxy(host: str) -> None:
    """As far as it can be told here: a proxy resolves names by itself, maybe to something else."""
    if getproxies():
        with suppress(OSError):
            for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                refuse_private(host, str(entry[4][0]))


class GuardedBackend(httpcore.NetworkBackend):
    """Connects to what was checked, and nothing else."""

    def __init__(self) -> None:
        self._own = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as failure:
            raise httpcore.ConnectError(f"{host}: {failure}") from failure
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in resolved))
        for address in addresses:
            refuse_private(host, address)
        failed: Exception | None = None
        for address in addresses:
            try:
                return self._own.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failure:
                failed = failure
        raise failed or httpcore.ConnectError(f"{host}: has no address")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise ReplyRefused("a socket of this machine")

    def sleep(self, seconds: float) -> None:
        self._own.sleep(seconds)


class _GuardedTransport(httpx.HTTPTransport):
    def __init__(self) -> None:
        super().__init__()
        self._pool._network_backend = GuardedBackend()  # httpx has no parameter for this


class _NoCookies(httpx.Cookies):
    """What a publisher wants remembered is not: a request is the same whatever was asked before it."""

    def extract_cookies(self, response: httpx.Response) -> None:
        pass


def open_client(*, allow_private: bool) -> httpx.Client:
    """A client that follows no redirect by itself, takes no cookie and asks through the usual proxies."""
    if allow_private:
        client = httpx.Client(follow_redirects=False, timeout=_TIMEOUT)
    else:
        client = httpx.Client(
            transport=_GuardedTransport(), mounts=_proxies(), follow_redirects=False, timeout=_TIMEOUT
        )
    client._cookies = _NoCookies()  # httpx copies what it is given
    return client


def _proxies() -> dict[str, httpx.BaseTransport]:
    """Those of the environment, which httpx looks for only where it is given no transport."""
    proxies = getproxies()
    mounts: dict[str, httpx.BaseTransport] = {}
    for scheme in ("http", "https", "all"):
        if address := proxies.get(scheme):
            url = address if "://" in address else f"http://{address}"
            mounts[f"{scheme}://"] = httpx.HTTPTransport(proxy=url)
    if mounts:
        for host in filter(None, (name.strip() for name in proxies.get("no", "").split(","))):
            mounts["all://" if host == "*" else f"all://*{host.lstrip('*')}"] = _GuardedTransport()
    return mounts


class HostRates:
    """Keeps requests to one host apart, whoever makes them."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    def wait(self, host: str, per_second: float) -> None:
        """Return when it is this request's turn. Raises Stopped."""
        with self._lock:
            at = max(time.monotonic(), self._next.get(host, 0.0))
            self._next[host] = at + 1 / per_second
        self.sleep(at - time.monotonic())

    def hold(self, host: str, seconds: float) -> None:
        """Send nothing to a host for a while: it asked for that."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)

    def sleep(self, seconds: float) -> None:
        if (seconds > 0 and self._stop.wait(seconds)) or self._stop.is_set():
            raise Stopped("stopped")
