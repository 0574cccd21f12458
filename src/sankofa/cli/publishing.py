"""What the commands that move data do: ingest, publish, roll back, compare."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from sankofa.edition.build.context import left_out as left_out_of
from sankofa.edition.build.publish import publish, without_cycle_collection
from sankofa.edition.format.edition_id import may_hold, may_name_a_person
from sankofa.edition.read.diff import Difference, diff
from sankofa.edition.read.edition import open_edition
from sankofa.engines.datastore import Datastore, EditionList
from sankofa.ledger.clock import refuse_doubtful_clock
from sankofa.ledger.ingest import Summary, files_under, ingest
from sankofa.ledger.seals import Checked
from sankofa.ledger.store import Ledger
from sankofa.model.errors import EditionError
from sankofa.operations.service import open_store
from sankofa.settings import Settings
from sankofa.sources.base import Limits
from sankofa.sources.registry import find_source, load_sources


def ingest_files(
    settings: Settings, source_id: str, paths: Iterable[Path], *, clock_is_right: bool = False
) -> Summary:
    """Read files of a source into the ledger, with a progress bar on a terminal."""
    source = find_source(settings.home, source_id)
    source.refuse_unless_redistributable()
    files = files_under(paths)
    in_home = list(settings.home.glob("*"))  # before this command itself changes any
    witnesses = [path for path in (*in_home, *files) if not path.name.startswith("ledger.sqlite")]
    with (
        _ledger(settings) as ledger,
        _progress(source_id, len(files)) as started,
        without_cycle_collection(),
    ):
        if not clock_is_right:
            refuse_doubtful_clock(_now(), ledger.newest_capture(), witnesses)
        return ingest(
            ledger,
            source,
            files,
            rejects_folder=settings.home / "rejects",
            clock=_now,
            started=lambda p: started(p.name),
            limits=Limits.of(settings),
        )


def publish_edition(settings: Settings, *, despite_floors: bool = False) -> dict[str, Any]:
    """Build, check and switch to the next edition."""
    sources = load_sources(settings.home)
    with _ledger(settings) as ledger, _progress("publish", None) as started:
        return publish(
            open_store(settings),
            ledger,
            settings.editions_kept,
            started,
            sources=sources,
            despite_floors=despite_floors,
            issuer_cache=settings.home / "derived",
            waiting=lambda: click.echo("another publish is running; waiting for it to end", err=True),
        )


def verify_ledger(settings: Settings) -> Checked:
    """Hold every row of the ledger against its seals. Raises LedgerDamaged."""
    with _ledger(settings) as ledger:
        return ledger.verify()


def edition_list(settings: Settings) -> EditionList:
    return open_store(settings).list_editions()


def captured_sources(settings: Settings) -> frozenset[str]:
    """The sources with a capture in the ledger."""
    with _ledger(settings) as ledger:
        return frozenset(capture.source_id for capture in ledger.captures().values())


def roll_back(settings: Settings, edition: str) -> None:
    """Make a kept edition current, after checking that it is intact."""
    store = open_store(settings)
    with store.exclusive("switch"):  # no publisher removes it meanwhile
        if edition not in store.list_editions().editions:
            raise EditionError(f"no edition {edition!r} is kept: see `sankofa editions`")
        if any(may_name_a_person(edition, capture) for capture in _person_captures(store)):
            raise EditionError(
                f"{edition} is withdrawn: somebody it may name was proven a natural person since"
            )
        withdrawn = _withdrawn(settings, store)
        if edition in withdrawn:
            sources = ", ".join(withdrawn[edition])
            raise EditionError(
                f"{edition} is withdrawn: what it holds may not be redistributed today: {sources}"
            )
        # Told by the list, too: the newer edition that withdrew it may be damaged or gone by now.
        if edition in store.withdrawn() - {store.list_editions().current}:
            raise EditionError(
                f"{edition} is withdrawn by a later edition: it may name a natural person, or hold what "
                "may not be redistributed; `sankofa publish` builds one that does not"
            )
        open_edition(store, edition, check_all=True).close()
        # Withdrawn editions are removed: an older edition cannot know what a newer one left out.
        store.set_current_and_prune(
            [name for name in store.list_editions().editions if name not in withdrawn], edition
        )


def _withdrawn(settings: Settings, store: Datastore) -> dict[str, list[str]]:
    """Editions that may hold sources not redistributable today, each with those sources."""
    sources = load_sources(settings.home)
    permitted = {name for name, source in sources.items() if source.commercial_redistribution}
    with _ledger(settings) as ledger:
        left_out = [omission.source for omission in left_out_of(ledger, sources)]
    withdrawn = {}
    for name in store.list_editions().editions:
        with suppress(EditionError), closing(open_edition(store, name)) as edition:
            refused = set(edition.manifest.get("sources", left_out)) - permitted
            if may_hold(edition.manifest, refused):
                withdrawn[name] = sorted(refused)
    return withdrawn


def _person_captures(store: Datastore) -> Iterator[int]:
    """For each readable edition, its last capture that proved somebody a natural person."""
    for name in store.list_editions().editions:
        with suppress(EditionError), closing(open_edition(store, name)) as edition:
            yield edition.last_person_capture


def difference(settings: Settings, before: str, after: str, examples: int) -> dict[str, Difference]:
    """What changed between two kept editions, by dataset."""
    store = open_store(settings)
    kept = store.list_editions().editions
    for edition in (before, after):
        if edition not in kept:
            raise EditionError(f"no edition {edition!r} is kept: see `sankofa editions`")

    async def compare() -> dict[str, Difference]:
        old, new = open_edition(store, before), open_edition(store, after)
        try:
            return await diff(old, new, examples)
        finally:
            old.close()
            new.close()
            store.close()

    return asyncio.run(compare())


@contextmanager
def _ledger(settings: Settings) -> Iterator[Ledger]:
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    ledger = Ledger(
        open_store(settings), settings.gate_key(), _now, notify=lambda line: click.echo(line, err=True)
    )
    try:
        yield ledger
    finally:
        ledger.close()


@contextmanager
def _progress(title: str, total: int | None) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal; nothing anywhere else."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda name: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)

        def started(name: str) -> None:
            progress.update(task, description=f"{title}: {name}", advance=1)

        yield started


def _now() -> datetime:
    return datetime.now(UTC)
