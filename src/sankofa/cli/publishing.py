"""`sankofa publish`: builds the next edition if anything changed since the last. Also the bundled worlds.

Worlds pass through the same pipeline as all other data. The starter world is real and openly licensed; the
sample world is fictional. The two never share an edition.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from typing import Any, Final, NamedTuple

import click
import msgspec

from sankofa.cli.editions import EditionLogWriter
from sankofa.cli.ledger import ingest_files, open_ledger
from sankofa.cli.output import progress_bar
from sankofa.cli.process import leave_cycles_to_the_end
from sankofa.edition.format.keys import LAYOUT
from sankofa.edition.write.context import with_reasons
from sankofa.edition.write.derived_parts import code_digest
from sankofa.edition.write.publish import count_parts, publish
from sankofa.edition.write.worker_processes import WorkerProcesses, keep_pandas_out
from sankofa.engines.datastore import Datastore
from sankofa.engines.private_files import replace_file
from sankofa.ledger.store import Ledger
from sankofa.model.errors import BuildFailed, EditionError, OperatorError
from sankofa.model.text import toml_table
from sankofa.replication.remote_log import parse_witnesses, take_pushed_logs
from sankofa.replication.stores import open_fresh_store
from sankofa.settings import Settings, load
from sankofa.sources.registry import Source, load_sources

_FILE: Final = ".last-publication.json"


class _Publication(msgspec.Struct, frozen=True):
    edition: str
    inputs: str
    """A digest of the ledger's last seal, the sources, the settings that change an edition, and the code."""
    written: str
    """`Datastore.written_state` when ledger and edition were last compared with their seals."""


def _publication_inputs(
    settings: Settings, ledger: Ledger, sources: Mapping[str, Source], *, despite_floors: bool
) -> str:
    head = list(ledger.rows("SELECT position, chain FROM seal ORDER BY position DESC LIMIT 1"))
    inputs = msgspec.json.encode([head, sources, despite_floors, settings.match_threshold])
    return hashlib.sha256(inputs + code_digest()).hexdigest()


def _unchanged_edition(
    settings: Settings, store: Datastore, ledger: Ledger, inputs: str
) -> dict[str, Any] | None:
    """The manifest of the current edition if publishing now would give the same edition, else None.

    Compares ledger and edition with their seals if either was written to since the last comparison.
    Raises OperatorError.
    """
    try:
        last = msgspec.json.decode((settings.home / _FILE).read_bytes(), type=_Publication)
    except (OSError, msgspec.DecodeError):
        return None
    if last.inputs != inputs or store.list_editions().current != last.edition:
        return None
    if not store.is_shared() or store.publication() is None:
        return None  # built by an older version: it must be signed
    written = store.written_state(last.edition)
    try:
        if last.written != written:
            ledger.verify()
            store.open(last.edition, check_all=True).close()
            _write(settings, msgspec.structs.replace(last, written=written))
        manifest = dict(store.manifest(last.edition))
    except EditionError:
        return None
    return manifest if manifest.get("format") == LAYOUT else None


def _write(settings: Settings, last: _Publication) -> None:
    with suppress(OSError, OperatorError):  # without it, the next publish only takes longer
        replace_file(settings.home / _FILE, msgspec.json.encode(last))


_PROCESSES_AT_MOST: Final = 4
_WORTH_PROCESSES: Final = 30_000
"""Number of figures whose derivation takes as long as starting two processes."""
_BYTES_OF_A_FIGURE: Final = 100
"""In a file that is not compressed. Compressed files have more figures."""


def publish_edition(
    settings: Settings, *, despite_floors: bool = False, processes: WorkerProcesses | None = None
) -> dict[str, Any]:
    """Build, check and switch to the next edition; its manifest.

    With `unchanged` if the current edition is the same as the one to be built.
    """
    sources = load_sources(settings.home)
    store = open_fresh_store(settings)
    processes = processes or _worker_processes(settings, store)
    log = EditionLogWriter(settings, store, processes)
    take_pushed_logs(store, settings.home, parse_witnesses(settings.log_witnesses))
    with open_ledger(settings) as ledger:
        inputs = _publication_inputs(settings, ledger, sources, despite_floors=despite_floors)
        if (manifest := _unchanged_edition(settings, store, ledger, inputs)) is not None:
            log.update()
            return {**with_reasons(manifest, ledger.withdrawals()), "unchanged": True}
        keep_pandas_out()
        with progress_bar("publish", count_parts()) as progress:
            manifest = publish(
                store,
                ledger,
                settings.editions_kept,
                progress,
                sources=sources,
                despite_floors=despite_floors,
                issuer_cache=settings.home / "derived",
                processes=processes,
                match_threshold=settings.match_threshold / 100,
                waiting=lambda: click.echo("another publish is running; waiting for it to end", err=True),
                log=log,
            )
        after = _publication_inputs(settings, ledger, sources, despite_floors=despite_floors)
    if after == inputs:  # else files were ingested meanwhile, perhaps before the ledger was read
        with suppress(OperatorError):
            edition = manifest["edition"]
            _write(settings, _Publication(edition, inputs, store.written_state(edition)))
    return manifest


def _worker_processes(settings: Settings, store: Datastore) -> WorkerProcesses:
    """Starts the configured number of processes for any work; with `auto`, only for work that takes longer
    than starting them."""
    named = settings.processes_to_publish()
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    number = named or min(cores, _PROCESSES_AT_MOST)
    return WorkerProcesses(number, 1 if named else _WORTH_PROCESSES, store.ledgers.opener())


_verbose = click.option(
    "--verbose",
    is_flag=True,
    help="Print every line: quality, rows of each dataset, each conflict, and the traceback of a defect.",
)


@click.command("publish")
@click.option(
    "--despite-floors",
    is_flag=True,
    help="Publish even if a source misses a hard floor; the edition says so.",
)
@_verbose
def publish_command(despite_floors: bool, verbose: bool) -> None:
    """Build and check the next edition, then switch to it."""
    leave_cycles_to_the_end()
    try:
        manifest = publish_edition(load(), despite_floors=despite_floors)
    except BuildFailed as failure:
        if verbose:
            click.echo(failure.trace, err=True)
        raise
    print_published(manifest, verbose=verbose)


def print_published(manifest: dict[str, Any], *, verbose: bool = False) -> None:
    """At most ten lines, and one for each source left out; all lines if `verbose`."""
    to_stderr = [f"left unresolved: {conflict}" for conflict in manifest.get("conflicts", ())]
    to_stderr += [
        f"published despite its floor: {shortfall}" for shortfall in manifest.get("despite_floors", ())
    ]
    left_out = [
        f"left out {one['source']} ({one['why']}): captures {one['captures']}, rows {one['rows']}"
        for one in manifest.get("left_out", ())
    ]
    lines = [
        f"without {one['files']} withdrawn files of {one['source']}: {one['reason']}"
        for one in manifest.get("withdrawals", ())
    ]
    missed = [line for line in manifest["quality"] if line.rstrip().endswith(("FAIL", "UNMEASURED"))]
    lines += manifest["quality"] if verbose else sorted(missed, key=lambda line: "FAIL" not in line)
    for line in to_stderr if verbose else _first(to_stderr, _MOST_ON_STDERR):
        click.echo(line, err=True)
    for line in (*left_out, *(lines if verbose else _first(lines, _MOST_LINES))):
        click.echo(line)
    if manifest.get("unchanged"):
        click.echo(f"nothing changed since edition {manifest['edition']} was published")
    rows = manifest["rows"]
    counts = [f"{kind} {count}" for kind, count in rows.items() if verbose or not kind.startswith("signal-")]
    click.echo(f"published edition {manifest['edition']}: {', '.join(counts)}")


_MOST_ON_STDERR, _MOST_LINES = 3, 5


def _first(lines: list[str], most: int) -> list[str]:
    """The first lines; the last one says how many more there are."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"and {len(lines) - most + 1} more (`sankofa publish --verbose` prints all)"]


class BundledWorld(NamedTuple):
    """A data folder of the package."""

    name: str

    @property
    def files(self) -> list[tuple[str, str]]:
        """Pairs of source and path, in the order they are ingested."""
        listed = toml_table("sankofa", f"{self.name}/files")["files"]
        return [(source, path) for source, path in listed]

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(source for source, _ in self.files)


SAMPLE: Final = BundledWorld("sample")
STARTER: Final = BundledWorld("starter")


def _has_older_layout(store: Datastore, edition: str) -> bool:
    with suppress(EditionError):
        layout = store.manifest(edition).get("format")
        return isinstance(layout, int) and layout < LAYOUT
    return False


_if_empty = click.option(
    "--if-empty",
    is_flag=True,
    help="Do nothing if an edition is published, unless an older version of Sankofa built it.",
)


@click.command()
@_if_empty
def starter(if_empty: bool) -> None:
    """Ingest the bundled starter world, real African data under open licences, and publish it."""
    _print_world(STARTER, if_empty)


@click.command()
@_if_empty
def sample(if_empty: bool) -> None:
    """Ingest the bundled sample world, which is fictional, and publish it."""
    _print_world(SAMPLE, if_empty)


def _print_world(world: BundledWorld, if_empty: bool) -> None:
    leave_cycles_to_the_end()
    settings = load()
    store = open_fresh_store(settings)
    if if_empty and (current := store.list_editions().current) is not None:
        if _has_older_layout(store, current):  # this version could not read it
            print_published(publish_edition(settings))
        return
    with open_ledger(settings) as ledger:
        captured = ledger.holdings().keys()
    for other in (SAMPLE, STARTER):  # fictional and real figures must not be mixed in one edition
        if (other.sources - world.sources) & captured:
            raise OperatorError(
                f"HOME ({settings.home}) holds data of the {other.name} world: "
                f"use another SANKOFA_HOME for the {world.name} world"
            )
    with (
        as_file(files("sankofa").joinpath(world.name)) as folder,
        _worker_processes(settings, store) as processes,
    ):
        processes.expect(sum(path.stat().st_size for path in folder.rglob("*")) // _BYTES_OF_A_FIGURE)
        summaries = [ingest_files(settings, source, [folder / path]) for source, path in world.files]
        manifest = publish_edition(settings, processes=processes)
    for summary in summaries:
        click.echo(summary.line())
    print_published(manifest)
