"""A run over several sources: fetched in parallel, ingested one after another in a stable order.

Each source has a thread of its own that fetches a little ahead. Rows come to the ledger in the order of the
sources and of their documents, whoever was faster, so that a run that was cut and one that was not give the
same ledger. Where a document fails, the rest of its source waits for the next run, and the others go on.

See docs/decisions/0044-collecting.md. See contract: COL-1, COL-2, COL-3.
"""

import queue
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from sankofa.collect.errors import CollectFailed, Stopped
from sankofa.collect.fetch import WHOLE, Fetched, Fetcher
from sankofa.collect.network import HostRates, open_client
from sankofa.collect.plan import walks
from sankofa.collect.state import StateFile
from sankofa.collect.walk import discard, documents
from sankofa.ledger.capture import Counts
from sankofa.ledger.ingest import Summary
from sankofa.model.errors import OperatorError
from sankofa.settings import Settings
from sankofa.sources.base import adapters
from sankofa.sources.registry import Source

_AHEAD: Final = 64
"""Documents of a source that wait to be ingested, at most."""
_AT_ONCE: Final = 8


@dataclass
class SourceOutcome:
    """What a run did for one source."""

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
        counts = ", ".join(f"{name} {value}" for name, value in vars(self.counts).items())
        return f"{self.source}: {self.status}: documents {self.documents}, bytes {self.bytes}, {counts}"


class _Waiting:
    """What a source's thread has fetched and nobody has ingested yet."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._closed = False
        self.items: queue.Queue[Fetched | CollectFailed | Done | None] = queue.Queue(_AHEAD)

    def put(self, item: "Fetched | CollectFailed | Done | None") -> None:
        while not self._closed:
            try:
                self.items.put(item, timeout=0.2)
            except queue.Full:
                pass
            else:
                return
            if self._stop.is_set():
                break
        if isinstance(item, Fetched):
            discard([item])
        raise Stopped("stopped")

    def close(self) -> None:
        """Nobody takes anything any more: the thread ends with the next document."""
        self._closed = True
        while True:
            try:
                item = self.items.get_nowait()
            except queue.Empty:
                return
            if isinstance(item, Fetched):
                discard([item])


class Done:
    """The end of what a source has."""


Ingest = Callable[[Source, Fetched], Summary]


class Collector:
    """Collects from sources, one run after another."""

    def __init__(self, settings: Settings, now: Callable[[], datetime], stop: threading.Event) -> None:
        self._settings = settings
        self._now = now
        self._stop = stop
        self._rates = HostRates(stop)
        self._folder = settings.home / "collect"

    def state(self, source: Source) -> StateFile:
        return StateFile(self._folder / "state", source.id)

    def due_at(self, source: Source) -> datetime | None:
        """When it is to be fetched again; None where it never was."""
        last = self.state(source).succeeded_at
        return None if last is None or source.collect is None else last + source.collect.interval

    def run(
        self,
        sources: Iterable[Source],
        ingest: Ingest,
        *,
        accept_shrunk: bool = False,
        started: Callable[[str], None] = lambda name: None,
    ) -> list[SourceOutcome]:
        """Fetch and ingest. A source that fails does not keep the others."""
        chosen = list(sources)
        self._tidy(chosen)
        waiting = {source.id: _Waiting(self._stop) for source in chosen}
        outcomes = []
        with ThreadPoolExecutor(min(_AT_ONCE, len(chosen) or 1), "collect") as threads:
            for source in chosen:
                threads.submit(self._fetch, source, waiting[source.id], accept_shrunk)
            try:
                for source in chosen:
                    outcomes.append(self._take(source, waiting[source.id], ingest, started))
            finally:
                for one in waiting.values():
                    one.close()
        return outcomes

    def _fetch(self, source: Source, waiting: _Waiting, accept_shrunk: bool) -> None:
        """In a thread of its own."""
        try:
            try:
                self._fetch_all(source, waiting, accept_shrunk)
                waiting.put(Done())
            except Stopped:
                raise
            except CollectFailed as failure:
                waiting.put(failure)
            except OperatorError as failure:
                waiting.put(CollectFailed(str(failure)))
            except Exception as failure:
                waiting.put(CollectFailed(f"{type(failure).__name__}: {failure}"))
        except Stopped:
            pass

    def _fetch_all(self, source: Source, waiting: _Waiting, accept_shrunk: bool) -> None:
        collect = source.collect
        if collect is None:
            raise CollectFailed("its entry has no table collect")
        source.refuse_unless_redistributable()
        contact = self._settings.collect_contact
        if collect.needs_contact and not contact:
            raise CollectFailed("its publisher asks who is calling: set SANKOFA_COLLECT_CONTACT")
        state = self.state(source)
        folder = self._partials(source)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_client(allow_private=collect.allow_private) as client:
            fetcher = Fetcher(
                client, self._rates, collect, folder, self._stop, contact,
                self._settings.collect_attempts, accept_shrunk=accept_shrunk,
            )  # fmt: skip
            for walk in walks(self._settings, collect, self._now(), state.succeeded_at):
                for fetched in documents(fetcher, collect, walk, state):
                    waiting.put(fetched)

    def _take(
        self, source: Source, waiting: _Waiting, ingest: Ingest, started: Callable[[str], None]
    ) -> SourceOutcome:
        """Ingest what a source's thread fetched, as it comes."""
        outcome = SourceOutcome(source.id)
        state = self.state(source)
        try:
            while not isinstance(item := self._next(waiting), Done):
                if isinstance(item, CollectFailed):
                    raise item
                started(source.id)
                if item is not None:
                    self._ingest(source, item, state, ingest, outcome)
        except Stopped:
            outcome.status = "stopped"
        except CollectFailed as failure:
            outcome.status, outcome.failure = "failed", str(failure)
            waiting.close()
        else:
            state.succeed(self._now())
        state.write()
        return outcome

    def _next(self, waiting: _Waiting) -> "Fetched | CollectFailed | Done | None":
        while True:
            try:
                return waiting.items.get(timeout=0.2)
            except queue.Empty:
                if self._stop.is_set():
                    raise Stopped("stopped") from None

    def _ingest(
        self, source: Source, fetched: Fetched, state: StateFile, ingest: Ingest, outcome: SourceOutcome
    ) -> None:
        """What came before is not read again: it may have been withdrawn since."""
        try:
            outcome.documents += 1
            outcome.bytes += fetched.size
            before = state.reply(fetched.call.key)
            if before is None or before.sha256 != fetched.sha256:
                summary = ingest(source, fetched)
                if summary.failures:
                    raise CollectFailed(f"{fetched.call.public_url}: {'; '.join(summary.failures)}")
                outcome.counts.add(summary.counts)
                outcome.notes += summary.notes
                outcome.status = "fetched"
            state.remember(fetched.call.key, fetched.as_remembered())
        finally:
            discard([fetched])

    def _partials(self, source: Source) -> Path:
        return self._folder / "partial" / source.id

    def _tidy(self, sources: list[Source]) -> None:
        """Remove what a killed run left: whole files, and everything of sources that name people."""
        for source in sources:
            folder = self._partials(source)
            if adapters()[source.adapter].names_people:
                shutil.rmtree(folder, ignore_errors=True)
            for left in folder.glob(f"{WHOLE}*/"):
                shutil.rmtree(left, ignore_errors=True)


def scheduled(sources: dict[str, Source], own: Iterable[str], named: str) -> list[Source]:
    """What is fetched without being told to: the operator's own entries, and built-in ones by setting."""
    wanted = {name.strip() for name in named.split(",")}
    return [
        source
        for source in sources.values()
        if source.collect is not None
        and ((source.collect.scheduled and source.id in set(own)) or source.id in wanted)
    ]
