"""Fetches one request completely: redirects, retries and resuming. An interrupted transfer resumes where
it stopped if the server supports that and the document is unchanged. Partial content is in a separate file
until it is complete. Each source has one small file of its last replies, replaced whole: losing it costs a
download and nothing else."""

import hashlib
import os
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import msgspec

from sankofa import __version__
from sankofa.collect import network
from sankofa.collect.network import (
    CollectFailed,
    DeadlinePassed,
    HostRates,
    Patience,
    ReplyRefused,
    refuse_unsafe_behind_proxy,
)
from sankofa.collect.plan import PlannedRequest, hide, without_credentials
from sankofa.engines.private_files import open_private, replace_file
from sankofa.model.days import instant
from sankofa.model.limits import limit
from sankofa.sources.registry import Collect
from sankofa.vault.store import HttpExchange


class LastReply(msgspec.Struct, frozen=True, omit_defaults=True):
    sha256: str
    size: int
    etag: str = ""
    last_modified: str = ""


class SourceState(msgspec.Struct, omit_defaults=True):
    succeeded_at: str = ""
    replies: dict[str, LastReply] = {}


class StateFile:
    def __init__(self, home: Path, source_id: str) -> None:
        self._path = home / "collect" / "state" / f"{source_id}.json"
        self.state = SourceState()
        self._written = time.monotonic()
        with suppress(OSError, msgspec.MsgspecError):
            self.state = msgspec.json.decode(self._path.read_bytes(), type=SourceState)

    @property
    def succeeded_at(self) -> datetime | None:
        text = self.state.succeeded_at
        return datetime.fromisoformat(text) if text else None

    def reply(self, key: str) -> LastReply | None:
        return self.state.replies.get(key)

    def remember(self, key: str, reply: LastReply) -> None:
        """Written at most once a second: a source may have thousands of documents."""
        self.state.replies[key] = reply
        if time.monotonic() - self._written > 1:
            self.write()

    def succeed(self, now: datetime) -> None:
        self.state.succeeded_at = instant(now)
        self.write()

    def write(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._path, msgspec.json.encode(self.state), durable=False)
        self._written = time.monotonic()


_CHUNK: Final = 1 << 16


def _validator_of(partial: Path) -> Path:
    return partial.with_suffix(".validator")


def progress_of(partial: Path) -> tuple[int, str]:
    """The bytes of a transfer received so far, and the validator with which to ask for the rest, if any."""
    if not os.path.exists(f"{partial}.validator"):  # noqa: PTH110 - usual; catching costs more
        return 0, ""
    try:
        return partial.stat().st_size, _validator_of(partial).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return 0, ""


def note_validator(partial: Path, headers: Mapping[str, str]) -> None:
    """A transfer with a weak ETag starts again: weak tags do not identify bytes."""
    etag = headers.get("etag", "")
    validator = etag if etag and not etag.startswith("W/") else headers.get("last-modified", "")
    ranges = headers.get("accept-ranges", "").lower() != "none"
    _validator_of(partial).write_text(validator if ranges else "", "utf-8")


@contextmanager
def noted_when_cut(partial: Path, headers: Mapping[str, str]) -> Iterator[None]:
    """Records a small transfer only if it is interrupted."""
    try:
        yield
    except httpx.TransportError:
        if not _validator_of(partial).exists():
            note_validator(partial, headers)
        raise


def forget(partial: Path) -> None:
    """Forgets a transfer: the next one starts from the beginning."""
    partial.unlink(missing_ok=True)
    _validator_of(partial).unlink(missing_ok=True)


_SMALL: Final = 1 << 20
"""Transfers up to this size start again after a kill."""
_MOST_REDIRECTS: Final = limit("redirects of a publisher", 8, "redirects", "the reply is refused")
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_LONGEST_WAIT: Final = limit("wait that a publisher asks for", 900.0, "seconds", "the source has failed")
_REMEMBERED_HEADERS: Final = (
    "content-type", "content-length", "content-encoding", "content-disposition", "etag", "last-modified",
    "date", "digest", "repr-digest", "content-digest", "content-md5", "server", "cache-control", "expires",
)  # fmt: skip


WHOLE: Final = "whole-"
"""Prefix of the folders in which complete files wait to be ingested."""


class Fetched(NamedTuple):
    call: PlannedRequest
    path: Path
    exchange: HttpExchange
    reply: LastReply


class _Cut(Exception):
    """The transfer ended early, or the server asks to retry."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class Fetcher:
    def __init__(
        self,
        client: httpx.Client,
        rates: HostRates,
        collect: Collect,
        folder: Path,
        patience: Patience,
        contact: str,
        attempts: int,
        *,
        accept_shrunk: bool = False,
    ) -> None:
        self._client = client
        self._rates = rates
        self._collect = collect
        self._folder = folder
        self._patience = patience
        self._attempts = attempts
        self._accept_shrunk = accept_shrunk or collect.may_shrink
        who = f" ({contact})" if contact else ""
        self._folders: set[int] = set()
        self._headers = {
            "User-Agent": f"Sankofa/{__version__}{who}",
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
        }
        client.headers.update(self._headers)  # once: httpx parses the headers of a request again each time

    def fetch(
        self, call: PlannedRequest, before: LastReply | None, *, conditional: bool = True
    ) -> Fetched | None:
        """The reply; None if unchanged, or if it is missing and may be. Raises CollectFailed."""
        partial = self._folder / hashlib.sha256(call.key.encode()).hexdigest()[:24]
        why = ""
        self._patience.begin_document()
        for attempt in range(self._attempts):
            try:
                return self._attempt(call, before if conditional else None, before, partial)
            except _Cut as cut:
                why = str(cut)
                if cut.wait > _LONGEST_WAIT:
                    raise CollectFailed(f"{call.public_url}: {why}; come again in {cut.wait:.0f} s") from None
                if attempt + 1 < self._attempts:
                    self._pause(call, attempt, cut.wait)
            except DeadlinePassed as failure:
                raise DeadlinePassed(f"{call.public_url}: {failure}") from None
            except ReplyRefused as failure:
                forget(partial)
                raise ReplyRefused(f"{call.public_url}: {hide(str(failure), call.hidden)}") from None
        raise CollectFailed(f"{call.public_url}: {hide(why, call.hidden)} ({self._attempts} attempts)")

    def _pause(self, call: PlannedRequest, attempt: int, retry_after: float) -> None:
        """The pause that the server asked for; otherwise exponential with jitter."""
        seconds = retry_after or min(60.0, 0.25 * 2**attempt) * (0.5 + random.random())  # noqa: S311 - no secret
        if retry_after:
            self._rates.hold(httpx.URL(call.url).host, retry_after)
        self._rates.sleep(seconds)

    def _attempt(
        self, call: PlannedRequest, conditional: LastReply | None, before: LastReply | None, partial: Path
    ) -> Fetched | None:
        self._patience.look()
        headers = self._headers | call.headers
        size, validator = progress_of(partial)
        if size and validator:
            headers |= {"Range": f"bytes={size}-", "If-Range": validator}
        elif size:
            forget(partial)
        if "Range" not in headers and conditional is not None:
            if conditional.etag:
                headers["If-None-Match"] = conditional.etag
            if conditional.last_modified:
                headers["If-Modified-Since"] = conditional.last_modified
        try:
            return self._follow(call, headers, before, partial)
        except httpx.TimeoutException as failure:
            raise _Cut(str(failure) or "no answer in time") from None
        except (httpx.TransportError, httpx.StreamError) as failure:
            raise _Cut(f"the connection failed: {failure}") from None
        except (httpx.InvalidURL, httpx.DecodingError) as failure:
            raise ReplyRefused(str(failure)) from None

    def _follow(
        self, call: PlannedRequest, headers: dict[str, str], before: LastReply | None, partial: Path
    ) -> Fetched | None:
        url = first_url = httpx.URL(call.url)
        visited: list[httpx.URL] = []
        method, body = call.method, call.body
        for _ in range(_MOST_REDIRECTS + 1):
            self._refuse_unsafe(url)
            if url in visited:
                raise ReplyRefused(f"redirects in a circle at {url.host}{url.path}")
            visited.append(url)
            self._rates.wait(url.host, self._collect.rate)
            self._patience.begin_request()
            own = {name: text for name, text in headers.items() if self._headers.get(name) != text}
            with self._client.stream(method, url, headers=own, content=body or None) as reply:
                target = reply.headers.get("location")
                if reply.status_code in _REDIRECTS and target:
                    following = url.join(target)
                    if following.host != url.host:  # never send one host's credentials to another
                        headers = {n: v for n, v in headers.items() if n not in call.headers}
                    if reply.status_code == 303:
                        method, body = "GET", b""
                    url = following
                    continue
                if url is not first_url:
                    network.refuse_login(url, first_url)
                return self._received(call, reply, url, before, partial, headers)
        raise ReplyRefused(f"more than {_MOST_REDIRECTS} redirects")

    def _refuse_unsafe(self, url: httpx.URL) -> None:
        allow_private = self._collect.allow_private
        if url.scheme != "https" and not allow_private:
            raise ReplyRefused(f"redirected to plain {url.scheme} ({url.host})")
        refuse_unsafe_behind_proxy(url.host, allow_private=allow_private)

    def _received(
        self,
        call: PlannedRequest,
        reply: httpx.Response,
        url: httpx.URL,
        before: LastReply | None,
        partial: Path,
        sent: dict[str, str],
    ) -> Fetched | None:
        status = reply.status_code
        headers = dict(reply.headers)  # a plain loop: httpx scans all headers each time
        if status == 304:
            return None
        if status in (404, 410) and self._collect.may_be_missing:
            return None
        if status == 416:  # the rest of a document that has changed
            forget(partial)
            raise _Cut("the document changed since the transfer began")
        if status in _AGAIN:
            raise _Cut(f"status {status}", _retry_after(headers))
        if status not in (200, 206):
            raise CollectFailed(f"{call.public_url}: status {status}")
        path = self._free_path(call.file_name)
        try:
            self._store(reply, headers, partial, resumed=status == 206)
            network.refuse_other_digest(partial, headers, is_part=status == 206)
            size, sha256 = self._unpacked(path, partial, call.file_name, headers)
            if not self._accept_shrunk:
                network.refuse_shrunk(size, None if before is None else before.size)
        except ReplyRefused:
            path.unlink(missing_ok=True)
            raise
        exchange = HttpExchange(
            call.method,
            call.public_url,
            status,
            {name: text if name.lower() in _JOURNALLED else "***" for name, text in sent.items()},
            {name: headers[name] for name in _REMEMBERED_HEADERS if name in headers},
            without_credentials(hide(str(url), call.hidden), call.url) if str(url) != call.url else "",
            hashlib.sha256(call.body).hexdigest() if call.body else "",
        )
        known = LastReply(sha256, size, headers.get("etag", ""), headers.get("last-modified", ""))
        return Fetched(call, path, exchange, known)

    def _store(
        self, reply: httpx.Response, headers: Mapping[str, str], partial: Path, *, resumed: bool
    ) -> None:
        """Write the bytes as they come. Raises _Cut if they end too soon."""
        size, validator = progress_of(partial)
        if resumed and not (validator and headers.get("content-range", "").startswith(f"bytes {size}-")):
            forget(partial)
            raise _Cut("the server sent a different part than requested")
        expected = headers.get("content-length", "")
        if not resumed:
            if size:
                forget(partial)
            size = 0
            if not expected.isdigit() or int(expected) > _SMALL:
                note_validator(partial, headers)
        most = self._collect.max_bytes
        if expected.isdigit() and int(expected) + size > most:
            raise ReplyRefused(
                f"the reply has {int(expected) + size:,} bytes, more than max_bytes ({most:,})"
            )
        received = 0
        # Chunks as they come: bytes held in a buffer are lost with the connection.
        with (
            noted_when_cut(partial, headers),
            open(partial, "ab" if resumed else "wb", opener=open_private) as stream,
        ):
            for chunk in reply.iter_raw():
                stream.write(chunk)
                received += len(chunk)
                if received + size > most:
                    raise ReplyRefused(f"the reply has more than max_bytes ({most:,})")
        if expected.isdigit() and received != int(expected):
            raise _Cut(f"{received:,} bytes arrived, {int(expected):,} were announced")

    def _free_path(self, name: str) -> Path:
        """A free path for a whole file: others of the same name may be waiting to be ingested."""
        for number in count():
            folder = f"{self._folder}/{WHOLE}{number}"
            if number not in self._folders:
                Path(folder).mkdir(mode=0o700, exist_ok=True)
                self._folders.add(number)
            if not os.path.exists(path := f"{folder}/{name}"):  # noqa: PTH110 - there are thousands
                return Path(path)
        raise AssertionError

    def _unpacked(self, path: Path, partial: Path, name: str, headers: Mapping[str, str]) -> tuple[int, str]:
        """Stores the content, unpacked and checked; returns its size and SHA-256. Raises ReplyRefused."""
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding in ("gzip", "x-gzip"):
            with open(path, "wb", opener=open_private) as stream:
                stream.writelines(network.unpacked(partial, self._collect.max_bytes))
            forget(partial)
        elif encoding in ("", "identity"):
            partial.replace(path)
            _validator_of(partial).unlink(missing_ok=True)
        else:
            raise ReplyRefused(f"the reply is encoded as {encoding!r}, which was not requested")
        with path.open("rb") as stream:
            network.refuse_untrue(path, name, headers, stream.read(1024), self._collect.max_bytes)
            stream.seek(0)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return stream.tell(), digest


_JOURNALLED: Final = frozenset(
    {"user-agent", "accept", "accept-encoding", "accept-language", "content-type", "range", "if-range"}
    | {"if-none-match", "if-modified-since", "from", "connection"}
)
"""Header fields whose values are recorded. Any other may be a credential: publishers name them freely."""


def _retry_after(headers: Mapping[str, str]) -> float:
    text = headers.get("retry-after", "").strip()
    if text.isdigit():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
