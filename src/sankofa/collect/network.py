"""Connections to publishers: allowed addresses, time limits, and refused replies.

OperatorError
└─ CollectFailed      a source could not be fetched; earlier data stays
   ├─ ReplyRefused         a reply is not what it claims to be
   ├─ DeadlinePassed       a document took too long
   └─ Stopped              the operator ended the run

A name is resolved once for each connection, all its addresses are checked, and the connection is made to a
checked address: changing the name in between has no effect. Redirects are checked the same way. Behind a
proxy, the proxy resolves names and decides which addresses it reaches.
"""

import base64
import binascii
import gzip
import hashlib
import ipaddress
import re
import socket
import threading
import time
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.request import getproxies

import httpcore
import httpx

from sankofa.engines.object_http import PatientStream
from sankofa.model.errors import OperatorError
from sankofa.model.limits import limit
from sankofa.sources.registry import Collect


class CollectFailed(OperatorError):
    """A source could not be fetched; earlier data stays."""


class ReplyRefused(CollectFailed):
    """A reply is not what it claims to be."""


class DeadlinePassed(CollectFailed):
    """A document took longer than its source allows; the next run resumes it."""


class Stopped(CollectFailed):
    """The operator ended the collection."""


_HTML: Final = re.compile(
    rb"\s*+(?><!--.*?-->\s*+)*+<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_LOGIN: Final = re.compile(r"/(login|log-in|signin|sign-in|sso|auth|account/login)\b", re.IGNORECASE)
_DIGEST: Final = re.compile(r"(sha-256|sha-512|md5)=:?([A-Za-z0-9+/_-]+={0,2}):?", re.IGNORECASE)
_CHUNK: Final = 1 << 20


def refuse_login(url: httpx.URL, first_url: httpx.URL) -> None:
    """A redirect to a login page is not a reply."""
    if url != first_url and _LOGIN.search(url.path) and not _LOGIN.search(first_url.path):
        raise ReplyRefused(f"redirected to a login ({url.host}{url.path})")


def refuse_untrue(path: Path, name: str, headers: Mapping[str, str], start: bytes, most: int) -> None:
    """Raises ReplyRefused if the content, which begins so, is not of the kind that its name says, or
    unpacks to more than `most` bytes."""
    if not start.strip():
        raise ReplyRefused("the reply is empty")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if _HTML.match(start) or kind in ("text/html", "application/xhtml+xml"):
        raise ReplyRefused("the reply is an HTML page")
    lower = name.lower()
    if lower.endswith(".zip") and not zipfile.is_zipfile(path):
        raise ReplyRefused("the reply is not a complete zip archive")
    if lower.endswith(".gz"):
        deque(unpacked(path, most), maxlen=0)
    first = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if lower.endswith((".json", ".jsonl")) and first not in (b"{", b"["):
        raise ReplyRefused("the reply is not JSON")


def refuse_other_digest(path: Path, headers: Mapping[str, str], *, is_part: bool = False) -> None:
    """Compare the bytes as sent with the digests in the headers.

    `is_part`: the headers belong to the last part only.
    """
    fields = ("digest", "repr-digest") if is_part else ("digest", "repr-digest", "content-digest")
    named = [(m[1].lower(), m[2]) for name in fields if name in headers
             for m in _DIGEST.finditer(headers[name])]  # fmt: skip
    if "content-md5" in headers and not is_part:
        named.append(("md5", headers["content-md5"]))
    for algorithm, text in named:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, algorithm.replace("-", "")).digest()
        if digest != _decoded(text):
            raise ReplyRefused(f"the {algorithm} of the reply differs from its header")


def refuse_shrunk(size: int, before: int | None) -> None:
    if before and size < before / 2:
        raise ReplyRefused(f"the reply shrank from {before:,} to {size:,} bytes (--accept-shrunk accepts it)")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(
            text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else None
        )
    except (binascii.Error, ValueError):
        return b""


def unpacked(path: Path, most: int) -> Iterator[bytes]:
    """The content of a gzip file, up to a number of bytes. A truncated file raises at its end."""
    size = 0
    try:
        with gzip.open(path) as stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > most:
                    raise ReplyRefused(f"the reply has more than max_bytes ({most:,}) unpacked")
                yield chunk
    except EOFError:
        raise ReplyRefused("the reply is a gzip file that was cut short") from None
    except (gzip.BadGzipFile, zlib.error) as failure:
        raise ReplyRefused(f"the reply is not valid gzip: {failure}") from failure


_TRIED: Final = "tried again, SANKOFA_COLLECT_ATTEMPTS times in all"
_CONNECT_SECONDS: Final = limit("connecting to a publisher", 15.0, "seconds", _TRIED)
_SILENT_SECONDS: Final = limit("silence of a publisher", 60.0, "seconds", _TRIED)
_TIMEOUT: Final = httpx.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS)
_RATE_SECONDS: Final = 60
"""Over how long the rate of a transfer is measured."""
_METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
"""Addresses of cloud metadata services that are not link-local."""
_SITE_LOCAL: Final = ipaddress.ip_network("fec0::/10")
"""Private addresses of IPv6 before fc00::/7; Python calls them global."""
_NAT64: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def refuse_unsafe(host: str, address: str, *, allow_private: bool) -> None:
    """Raises ReplyRefused if an address may not be fetched from.

    Link-local and cloud metadata addresses are always refused, private networks unless allowed.
    """
    for one in _reached_by(ipaddress.ip_address(address.partition("%")[0])):
        if not allow_private and (not one.is_global or one.is_reserved or one in _SITE_LOCAL):
            raise ReplyRefused(f"{host} leads to {address}, which is not an address of the public internet")
        if one.is_link_local or one.is_multicast or one.is_unspecified or one in _METADATA:
            raise ReplyRefused(f"{host} leads to {address}, which is never fetched from")


def _reached_by(address: _Address) -> Iterator[_Address]:
    """The address, and the IPv4 address inside it that a gateway or this machine would connect to."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if any(address in network for network in _NAT64) or 1 < int(address) < 1 << 32:
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def refuse_unsafe_behind_proxy(host: str, *, allow_private: bool) -> None:
    """Best effort: a proxy resolves names by itself, perhaps to other addresses."""
    if getproxies():
        with suppress(OSError):
            for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                refuse_unsafe(host, str(entry[4][0]), allow_private=allow_private)


class Patience:
    """How long a document may take, and how slowly it may arrive. Every wait for a publisher checks this."""

    def __init__(
        self, collect: Collect, stopped: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._collect = collect
        self._stopped = stopped
        self._clock = clock
        self._until = 0.0
        self._since = 0.0
        self._bytes = 0

    def begin_document(self) -> None:
        self._until = self._clock() + self._collect.longest.total_seconds()

    def begin_request(self) -> None:
        """The rate is measured from the first byte on: until then a publisher may think."""
        self._since = 0.0

    def look(self, received: int = 0) -> None:
        """Count received bytes. Raises Stopped or DeadlinePassed; httpcore.ReadTimeout if they are too
        few."""
        now = self._clock()
        if self._stopped():
            raise Stopped("stopped")
        if now > self._until:
            raise DeadlinePassed(f"incomplete after {self._collect.deadline} (deadline)")
        if received and not self._since:
            self._since, self._bytes = now, 0
        self._bytes += received
        if self._since and (took := now - self._since) >= _RATE_SECONDS:
            if self._bytes < self._collect.min_rate * took:
                raise httpcore.ReadTimeout(
                    f"{self._bytes:,} bytes came in {took:.0f} s, fewer than min_rate "
                    f"({self._collect.min_rate:,} a second)"
                )
            self._since, self._bytes = now, 0


class _Backend(httpcore.SyncBackend):
    """Connects only to checked addresses; the operator's proxy is not checked."""

    def __init__(self, look: Callable[[int], None], *, allow_private: bool, to_proxy: bool) -> None:
        self._look = look
        self._allow_private = allow_private
        self._to_proxy = to_proxy

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
        for address in () if self._to_proxy else addresses:
            refuse_unsafe(host, address, allow_private=self._allow_private)
        failed: Exception | None = None
        for address in addresses:
            self._look(0)
            try:
                stream = super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failure:
                failed = failure
            else:
                return PatientStream(stream, self._look)
        raise failed or httpcore.ConnectError(f"{host}: has no address")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise ReplyRefused("a socket of this machine")


class _NoCookies(httpx.Cookies):
    """Ignores cookies: a request does not depend on earlier ones."""

    def extract_cookies(self, response: httpx.Response) -> None:
        pass


def guarded_transport(
    look: Callable[[int], None] = lambda _: None, *, allow_private: bool, proxy: str | None = None
) -> httpx.HTTPTransport:
    """Connects only to addresses that `refuse_unsafe` lets through; `look` is called with the number of
    bytes received."""
    opened = httpx.HTTPTransport(proxy=proxy)
    backend = _Backend(look, allow_private=allow_private, to_proxy=proxy is not None)
    opened._pool._network_backend = backend  # httpx has no parameter for this
    return opened


def open_client(collect: Collect, patience: Patience) -> httpx.Client:
    """An HTTP client that follows no redirects, stores no cookies and uses the environment's proxies."""

    def transport(proxy: str | None = None) -> httpx.HTTPTransport:
        return guarded_transport(patience.look, allow_private=collect.allow_private, proxy=proxy)

    proxies = getproxies()  # httpx reads proxy settings only if no transport is given
    mounts: dict[str, httpx.BaseTransport] = {}
    for scheme in ("http", "https", "all"):
        if address := proxies.get(scheme):
            mounts[f"{scheme}://"] = transport(address if "://" in address else f"http://{address}")
    if mounts:
        for host in filter(None, (name.strip() for name in proxies.get("no", "").split(","))):
            mounts["all://" if host == "*" else f"all://*{host.lstrip('*')}"] = transport()
    client = httpx.Client(transport=transport(), mounts=mounts, follow_redirects=False, timeout=_TIMEOUT)
    client._cookies = _NoCookies()  # httpx copies what it is given
    return client


class HostRates:
    """Spaces the requests to one host, across all threads."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    def wait(self, host: str, per_second: float) -> None:
        """Wait until this request may be sent. Raises Stopped."""
        with self._lock:
            at = max(time.monotonic(), self._next.get(host, 0.0))
            self._next[host] = at + 1 / per_second
        self.sleep(at - time.monotonic())

    def hold(self, host: str, seconds: float) -> None:
        """Send nothing to a host for a while, as it asked."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)

    def sleep(self, seconds: float) -> None:
        if (seconds > 0 and self._stop.wait(seconds)) or self._stop.is_set():
            raise Stopped("stopped")
