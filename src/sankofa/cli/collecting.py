"""`sankofa collect`: one run, or repeated runs on the schedule of the registry."""

import math
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import click
import msgspec

from sankofa.cli.ledger import open_ledger, open_vault
from sankofa.cli.output import progress_bar
from sankofa.cli.process import now, stop_on_signals
from sankofa.cli.publishing import print_published, publish_edition
from sankofa.collect.fetch import Fetched
from sankofa.collect.network import CollectFailed
from sankofa.collect.plan import request_lists
from sankofa.collect.run import Collector, SourceOutcome, scheduled
from sankofa.ledger.ingest import Summary, ingest
from sankofa.ledger.reader import without_cycle_collection
from sankofa.model.errors import EditionError, OperatorError, SettingsError, SourceError
from sankofa.replication.stores import open_fresh_store
from sankofa.settings import Settings, listed, load
from sankofa.sources.base import Limits
from sankofa.sources.registry import Source, load_sources

_RETRY: Final = timedelta(minutes=15)
"""Time after which a failed source is tried again, unless it is due earlier."""
_TOGETHER_SECONDS: Final = 60
"""Sources that finish within this time are published together, without waiting for slower ones."""
_DAY: Final = timedelta(days=1)


class Run(NamedTuple):
    outcomes: list[SourceOutcome]
    manifest: dict[str, Any] | None

    @property
    def failed(self) -> bool:
        return any(outcome.status in ("failed", "stopped") for outcome in self.outcomes)


def collect_once(settings: Settings, names: Sequence[str], *, publish: bool, accept_shrunk: bool) -> Run:
    """Fetch the sources that are due (or named), ingest the files, and publish if anything changed.

    On a stop signal it finishes the file being ingested and starts nothing else.
    """
    with stop_on_signals() as stop, closing(Collector(settings, now, stop)) as collector:
        chosen, fresh = _chosen(settings, collector, names)
        started = [collector.begin(source, accept_shrunk=accept_shrunk) for source in chosen]
        outcomes = [outcome for outcome in started if outcome is not None]
        manifest = None
        while True:
            ended, published = _gather(settings, collector, stop, publish=publish)
            outcomes += ended
            manifest = published or manifest
            if not collector.under_way:
                break
    order = [source.id for source in chosen]
    outcomes.sort(key=lambda outcome: order.index(outcome.source))
    return Run(outcomes + [SourceOutcome(source.id, "fresh") for source in fresh], manifest)


def collect_on_schedule(settings: Settings, *, publish: bool, report: Callable[[Run], None]) -> None:
    """Fetch each source when it is due, until SIGTERM or SIGINT."""
    with stop_on_signals() as stop, closing(Collector(settings, now, stop)) as collector:
        tried: dict[str, datetime] = {}
        refused: list[SourceOutcome] = []

        def begin_due() -> None:
            for source in _scheduled(settings):
                if source.id not in collector.under_way and _is_due(collector, source, tried, now()):
                    tried[source.id] = now()
                    refused.extend(filter(None, [collector.begin(source)]))

        if not _scheduled(settings):
            report(Run([], None))
        while not stop.is_set():
            begin_due()
            if collector.under_way or refused:
                ended, manifest = _gather(settings, collector, stop, publish=publish, begin_due=begin_due)
                report(Run(refused + ended, manifest))
                refused.clear()
            stop.wait(1)


def _gather(
    settings: Settings,
    collector: Collector,
    stop: threading.Event,
    *,
    publish: bool,
    begin_due: Callable[[], None] = lambda: None,
) -> tuple[list[SourceOutcome], dict[str, Any] | None]:
    """Ingests documents until no transfer is under way, or finished sources have waited long enough.
    Returns the finished sources and what was published from them."""
    outcomes: list[SourceOutcome] = []
    with (
        open_ledger(settings) as ledger,
        without_cycle_collection(),
        progress_bar("collect", None) as started,
    ):
        newest = ledger.newest_capture()
        if newest is not None and now() < newest - _DAY:
            raise OperatorError(
                f"the clock says {now():%Y-%m-%dT%H:%MZ}, but the newest capture is from "
                f"{newest:%Y-%m-%dT%H:%MZ}: set the clock"
            )
        vault = open_vault(settings)

        def take(source: Source, fetched: Fetched) -> Summary:
            return ingest(
                ledger,
                source,
                [fetched.path],
                rejects_folder=settings.home / "rejects",
                clock=now,
                limits=Limits.of(settings),
                vault=vault,
                exchange=fetched.exchange,
            )

        until = math.inf
        looked = time.monotonic()
        while collector.under_way and time.monotonic() < until and not stop.is_set():
            if (outcome := collector.take(take, started)) is not None:
                outcomes.append(outcome)
                until = min(until, time.monotonic() + _TOGETHER_SECONDS)
            if time.monotonic() > looked + 1:
                begin_due()
                looked = time.monotonic()
    if stop.is_set():
        return outcomes + collector.close(), None  # the next run publishes what this one ingested
    news = any(outcome.counts.appended for outcome in outcomes)
    if not publish or not (news or _holds_more_than_published(settings, newest)):
        return outcomes, None
    manifest = publish_edition(settings)
    return outcomes, None if manifest.get("unchanged") and not news else manifest


def _holds_more_than_published(settings: Settings, newest: datetime | None) -> bool:
    """Whether an interrupted earlier run left unpublished rows in the ledger."""
    if newest is None:
        return False
    with closing(open_fresh_store(settings)) as store:
        current = store.list_editions().current
        if current is None:
            return True
        try:
            built_from = store.manifest(current).get("built_from")
        except EditionError:  # publish rebuilds it
            return True
    return built_from is None or datetime.fromisoformat(built_from) < newest


def _chosen(
    settings: Settings, collector: Collector, names: Sequence[str]
) -> tuple[list[Source], list[Source]]:
    """The sources to fetch, and the sources that are fresh enough."""
    if names:
        sources = load_sources(settings.home)
        unknown = [name for name in names if name not in sources]
        if unknown:
            raise SourceError(f"no source {unknown[0]!r}: see `sankofa sources`")
        return [sources[name] for name in dict.fromkeys(names)], []
    every = _scheduled(settings)
    due = [source for source in every if _is_due(collector, source, {}, now())]
    return due, [source for source in every if source not in due]


def _scheduled(settings: Settings) -> list[Source]:
    sources = load_sources(settings.home)
    for name in listed(settings.collect_sources):
        if name not in sources:
            raise SettingsError(f"SANKOFA_COLLECT_SOURCES: no source {name!r}: see `sankofa sources`")
        if sources[name].collect is None:
            raise SettingsError(f"SANKOFA_COLLECT_SOURCES: {name} has no table `collect`")
    return scheduled(sources, _own(settings), settings.collect_sources)


def _own(settings: Settings) -> frozenset[str]:
    """The ids of the operator's entries."""
    with suppress(FileNotFoundError):
        tables = tomllib.loads((settings.home / "sources.toml").read_text("utf-8"))
        return frozenset(tables.get("sources", {}))
    return frozenset()


def _is_due(collector: Collector, source: Source, tried: dict[str, datetime], at: datetime) -> bool:
    due = collector.due_at(source)
    if due is not None and due > at:
        return False
    last = tried.get(source.id)
    interval = source.collect.interval if source.collect is not None else _RETRY
    return last is None or last + min(interval, _RETRY) <= at


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--publish", is_flag=True, help="Publish if anything changed.")
@click.option("--watch", is_flag=True, help="Keep running, each source on its schedule, until SIGTERM.")
@click.option("--dry-run", is_flag=True, help="Print the requests without making them.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each run instead of lines.")
@click.option(
    "--accept-shrunk", is_flag=True, help="Accept replies that shrank to less than half their size."
)
def collect(
    sources: tuple[str, ...], publish: bool, watch: bool, dry_run: bool, as_json: bool, accept_shrunk: bool
) -> None:
    """Fetch what is new from the publishers' own addresses, keep it in the vault and ingest it.

    Without SOURCE: every entry of HOME/sources.toml with a table `collect`, and the built-in ones of
    SANKOFA_COLLECT_SOURCES, as far as they are due. A SOURCE that is named is fetched, due or not.
    """
    if watch and (sources or dry_run or accept_shrunk):
        raise click.UsageError(
            "--watch follows the schedule: it takes no SOURCE, --dry-run or --accept-shrunk"
        )
    current = load()
    if dry_run:
        _print_plan(current, sources, as_json)
        return
    if watch:
        later = "; looking again every second"
        collect_on_schedule(current, publish=publish, report=lambda run: _print(run, as_json, later))
        return
    run = collect_once(current, sources, publish=publish, accept_shrunk=accept_shrunk)
    _print(run, as_json)
    if run.failed:
        sys.exit(1)


def _print(run: Run, as_json: bool, later: str = "") -> None:
    if as_json:
        document = {
            "sources": [
                {
                    "source": outcome.source,
                    "status": outcome.status,
                    "documents": outcome.documents,
                    "bytes": outcome.bytes,
                    **vars(outcome.counts),
                    "failure": outcome.failure or None,
                }
                for outcome in run.outcomes
            ],
            "published": run.manifest and run.manifest["edition"],
        }
        click.echo(msgspec.json.encode(document).decode())
        return
    for outcome in run.outcomes:
        for note in outcome.notes:
            click.echo(note)
        if outcome.failure:
            click.echo(f"Error: {outcome.source}: {outcome.failure}", err=True)
        click.echo(outcome.line())
    if not run.outcomes:
        click.echo(
            "nothing to collect: no entry of HOME/sources.toml has a table `collect`, and "
            f"SANKOFA_COLLECT_SOURCES names none{later or '; name a SOURCE'}"
        )
    if run.manifest is not None:
        print_published(run.manifest)


def _print_plan(settings: Settings, names: Sequence[str], as_json: bool) -> None:
    """Prints the first request of each list; makes no request."""
    collector = Collector(settings, now, threading.Event())
    planned: list[dict[str, str]] = []
    for source in _chosen(settings, collector, names)[0]:
        if source.collect is None:
            raise SourceError(f"source {source.id}: its entry has no table collect")
        try:
            since = collector.state(source).succeeded_at
            for requests in request_lists(settings, source.collect, now(), since):
                call = requests.first
                request = {"method": call.method, "url": call.public_url, "file": call.file_name}
                planned.append({"source": source.id, **request})
        except CollectFailed as failure:
            reason = f"cannot be fetched: {failure}"
            planned.append({"source": source.id, "method": "-", "url": reason, "file": "-"})
    if as_json:
        click.echo(msgspec.json.encode({"requests": planned}).decode())
        return
    for one in planned:
        click.echo("{source}: {method} {url} -> {file}".format(**one))
    if not planned:
        click.echo("nothing is due")
