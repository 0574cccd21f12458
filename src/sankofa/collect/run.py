"""Collects several sources at once: a thread fetches each, and documents are ingested as they are ready.

The documents of a source are ingested in order, so an interrupted collection gives the same captures. All
pages of a list are fetched before the first is ingested; a list that changes meanwhile is fetched again. A
slow publisher delays no other source. If a document fails, the rest of its source waits for the next run.

See docs/decisions/collecting.md. See contract: COL-1, COL-2, COL-3, COL-4.
"""

import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from sankofa.collect.fetch import WHOLE, Fetched, Fetcher, StateFile
from sankofa.collect.network import CollectFailed, HostRates, Patience, ReplyRefused, Stopped, open_client
from sankofa.collect.plan import RequestList, next_call, request_lists
from sankofa.engines.private_files import locked, make_private_folder
from sankofa.ledger.ingest import Summary
from sankofa.model.errors import OperatorError
from sankofa.model.records import Counts
from sankofa.settings import Settings
from sankofa.sources.base import adapters
from sankofa.sources.registry import Collect, Source, variables_in

_ATTEMPTS: Final = 3


class _Changed(Exception):
    """A page contradicts the first page about the whole list."""


def documents(
    fetcher: Fetcher, collect: Collect, requests: RequestList, state: StateFile
) -> Iterator[Fetched | None]:
    """The replies of a list, in order; None for one that has not changed. Raises CollectFailed."""
    if not (collect.next or collect.pages or "page" in variables_in(requests.template)):
        yield fetcher.fetch(requests.first, state.reply(requests.first.key))
        return
    for _ in range(_ATTEMPTS):
        pages: list[Fetched] = []
        try:
            for page in _pages(fetcher, collect, requests, state):
                pages.append(page)
        except _Changed:
            discard(pages)
            continue
        except BaseException:
            discard(pages)
            raise
        yield from pages
        return
    raise ReplyRefused(f"{requests.first.public_url}: the list changed while it was read, {_ATTEMPTS} times")


def discard(fetched: list[Fetched]) -> None:
    """Remove files that are not needed any more."""
    for one in fetched:
        one.path.unlink(missing_ok=True)


def _pages(fetcher: Fetcher, collect: Collect, requests: RequestList, state: StateFile) -> Iterator[Fetched]:
    call = next_call(collect, requests, 1)
    first: list[Any] | None = None
    before = ""
    for page in range(1, collect.most_pages + 1):
        fetched = fetcher.fetch(call, state.reply(call.key), conditional=False)
        if fetched is None:  # it may be missing
            return
        yield fetched
        content = _json(fetched.path) if collect.next or collect.pages or collect.same else None
        claims = [pointed(content, pointer) for pointer in filter(None, (*collect.same, collect.pages))]
        first = claims if first is None else first
        if claims != first:
            raise _Changed
        if fetched.reply.sha256 == before:
            raise ReplyRefused(f"{call.public_url}: is the same as the page before")
        before = fetched.reply.sha256
        if collect.next:
            url = pointed(content, collect.next)
            if not url:
                return
            call = next_call(collect, requests, page + 1, str(httpx.URL(call.url).join(str(url))))
        elif collect.pages:
            if page >= _count(pointed(content, collect.pages), call.public_url):
                return
            call = next_call(collect, requests, page + 1)
        else:
            if _is_empty(_json(fetched.path)):
                return
            call = next_call(collect, requests, page + 1)
    raise CollectFailed(f"{requests.first.public_url}: more than {collect.most_pages} pages (most_pages)")


def pointed(content: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901); None if there is none."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(content, dict):
            content = content.get(name)
        elif isinstance(content, list) and name.isdigit() and int(name) < len(content):
            content = content[int(name)]
        else:
            return None
    return content


def _count(value: Any, url: str) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ReplyRefused(f"{url}: does not say how many pages there are")
    return value


def _is_empty(content: Any) -> bool:
    """Whether a page has no list with anything in it."""
    lists = content.values() if isinstance(content, dict) else [content]
    return not any(isinstance(one, list) and one for one in lists)


def _json(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except (msgspec.MsgspecError, RecursionError) as failure:
        raise ReplyRefused(f"{path.name}: a page that is not JSON: {failure}") from failure


_AHEAD: Final = 64
"""Documents of a source that wait to be ingested, at most."""
_LOOK_SECONDS: Final = 0.2
_END_SECONDS: Final = 1.0
"""Seconds to wait for a thread to stop. One that resolves a name cannot be interrupted."""


@dataclass
class SourceOutcome:
    source: str
    status: str = "unchanged"
    """`fetched`, `unchanged`, `fresh` (not due yet), `failed`, `stopped`."""
    documents: int = 0
    bytes: int = 0
    counts: Counts = field(default_factory=Counts)
    notes: list[str] = field(default_factory=list)
    failure: str = ""

    def line(self) -> str:
        if self.status == "fresh":
            return f"{self.source}: fresh enough"
        return f"{self.source}: {self.status}: documents {self.documents}, bytes {self.bytes}, {self.counts}"


class _End:
    """Marks the end of a source."""


_Item = Fetched | CollectFailed | _End | None
"""None: the document is unchanged."""


class _SourceUnderWay:
    """A source that is being fetched, and its results so far."""

    def __init__(self, source: Source, state: StateFile, stop: threading.Event, locks: ExitStack) -> None:
        self.source = source
        self.state = state
        self.outcome = SourceOutcome(source.id)
        self.locks = locks
        self.closed = False
        self.thread: threading.Thread | None = None
        self._stop = stop
        self.room = threading.Semaphore(_AHEAD)

    def await_room(self) -> None:
        """Called in the source's thread. Waits until there is room for one more document. Raises Stopped."""
        while not self.room.acquire(timeout=_LOOK_SECONDS) and not self.is_stopped():
            pass
        if self.is_stopped():
            raise Stopped("stopped")

    def is_stopped(self) -> bool:
        return self.closed or self._stop.is_set()


Ingest = Callable[[Source, Fetched], Summary]


class Collector:
    """Collects from sources. Two processes may do so at a time, but not from the same source."""

    def __init__(self, settings: Settings, now: Callable[[], datetime], stop: threading.Event) -> None:
        self._settings = settings
        self._now = now
        self._stop = stop
        self._rates = HostRates(stop)
        self._folder = settings.home / "collect"
        self._ready: queue.SimpleQueue[tuple[_SourceUnderWay, _Item]] = queue.SimpleQueue()
        self.under_way: dict[str, _SourceUnderWay] = {}

    def state(self, source: Source) -> StateFile:
        return StateFile(self._settings.home, source.id)

    def due_at(self, source: Source) -> datetime | None:
        """When to fetch it again; None if it was never fetched."""
        last = self.state(source).succeeded_at
        return None if last is None or source.collect is None else last + source.collect.interval

    def begin(self, source: Source, *, accept_shrunk: bool = False) -> SourceOutcome | None:
        """Starts to fetch a source; returns its outcome if that fails at once."""
        folder = self._folder / "locks"
        make_private_folder(folder)
        locks = ExitStack()
        try:
            refusal = "another `sankofa collect` is fetching it"
            locks.enter_context(locked(folder / source.id, refusal=refusal))
        except OperatorError as failure:
            return SourceOutcome(source.id, "failed", failure=str(failure))
        self._tidy(source)
        one = _SourceUnderWay(source, self.state(source), self._stop, locks)
        one.thread = threading.Thread(target=self._fetch, args=(one, accept_shrunk), daemon=True)
        one.thread.start()
        self.under_way[source.id] = one
        return None

    def take(
        self, ingest: Ingest, started: Callable[[str], None] = lambda name: None
    ) -> SourceOutcome | None:
        """Ingests one document from any source that has one ready. Returns the source's outcome if it was the
        last. Waits briefly if none is ready."""
        try:
            one, item = self._ready.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            return None
        started(one.source.id)
        try:
            if isinstance(item, CollectFailed):
                raise item
            if isinstance(item, Fetched):
                self._ingest(one, item, ingest)
            if not isinstance(item, _End):
                one.room.release()
                return None
            one.state.succeed(self._now())
        except CollectFailed as failure:
            one.outcome.status, one.outcome.failure = "failed", str(failure)
        return self._end(one, time.monotonic() + _END_SECONDS)

    def close(self) -> list[SourceOutcome]:
        """Stop all transfers under way; returns their outcomes."""
        running = list(self.under_way.values())
        until = time.monotonic() + _END_SECONDS
        for one in running:
            one.closed = True
            one.outcome.status = "stopped"
        return [self._end(one, until) for one in running]

    def _end(self, one: _SourceUnderWay, until: float) -> SourceOutcome:
        one.closed = True
        one.state.write()
        del self.under_way[one.source.id]
        if one.thread is not None:
            one.thread.join(max(0.0, until - time.monotonic()))
        self._discard_ready_of(one)
        one.locks.close()
        return one.outcome

    def _discard_ready_of(self, ended: _SourceUnderWay) -> None:
        for _ in range(self._ready.qsize()):
            one, item = self._ready.get()
            if one is not ended:
                self._ready.put((one, item))
            elif isinstance(item, Fetched):
                discard([item])

    def _fetch(self, one: _SourceUnderWay, accept_shrunk: bool) -> None:
        """Runs in its own thread."""
        last: _Item = _End()
        try:
            self._fetch_all(one, accept_shrunk)
        except Stopped:
            return
        except OperatorError as failure:
            last = CollectFailed(str(failure))
        except Exception as failure:
            last = CollectFailed(f"{type(failure).__name__}: {failure}")
        self._ready.put((one, last))

    def _fetch_all(self, one: _SourceUnderWay, accept_shrunk: bool) -> None:
        collect = one.source.collect
        if collect is None:
            raise CollectFailed("its entry has no table collect")
        one.source.refuse_unless_redistributable()
        contact = self._settings.collect_contact
        if collect.needs_contact and not contact:
            raise CollectFailed("its publisher requires a contact: set SANKOFA_COLLECT_CONTACT")
        state = self.state(one.source)
        folder = self._partials(one.source)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        patience = Patience(collect, one.is_stopped)
        with open_client(collect, patience) as client:
            fetcher = Fetcher(
                client, self._rates, collect, folder, patience, contact,
                self._settings.collect_attempts, accept_shrunk=accept_shrunk,
            )  # fmt: skip
            for requests in request_lists(self._settings, collect, self._now(), state.succeeded_at):
                for fetched in documents(fetcher, collect, requests, state):
                    try:
                        one.await_room()
                    except Stopped:
                        discard([fetched] if fetched is not None else [])
                        raise
                    self._ready.put((one, fetched))

    def _ingest(self, one: _SourceUnderWay, fetched: Fetched, ingest: Ingest) -> None:
        """Earlier replies are not read again: they may have been withdrawn since."""
        outcome = one.outcome
        try:
            outcome.documents += 1
            outcome.bytes += fetched.reply.size
            before = one.state.reply(fetched.call.key)
            if before is None or before.sha256 != fetched.reply.sha256:
                summary = ingest(one.source, fetched)
                if summary.failures:
                    raise CollectFailed(f"{fetched.call.public_url}: {'; '.join(summary.failures)}")
                outcome.counts.add(summary.counts)
                outcome.notes += summary.notes
                outcome.status = "fetched"
            one.state.remember(fetched.call.key, fetched.reply)
        finally:
            discard([fetched])

    def _partials(self, source: Source) -> Path:
        return self._folder / "partial" / source.id

    def _tidy(self, source: Source) -> None:
        """Remove files of a killed collection: complete ones, and all files from sources that name people."""
        folder = self._partials(source)
        if adapters()[source.adapter].names_people:
            shutil.rmtree(folder, ignore_errors=True)
        for leftover in folder.glob(f"{WHOLE}*/"):
            shutil.rmtree(leftover, ignore_errors=True)


def scheduled(sources: dict[str, Source], own: Iterable[str], named: str) -> list[Source]:
    """Sources fetched by default: the operator's own entries, and built-in ones by setting."""
    ids = {name.strip() for name in named.split(",")}
    return [
        source
        for source in sources.values()
        if source.collect is not None
        and ((source.collect.scheduled and source.id in set(own)) or source.id in ids)
    ]
