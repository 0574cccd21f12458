"""What the commands that move data do: ingest, publish, roll back, compare."""

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from sankofa.cli.clock import now
from sankofa.cli.progress import progress_bar
from sankofa.cli.unchanged import publication_inputs, record_publication, unchanged_edition
from sankofa.edition.format.edition_id import holds_withdrawn, may_hold, may_name_a_person
from sankofa.edition.read.diff import Difference, diff
from sankofa.edition.read.edition import open_edition
from sankofa.edition.write.context import described, left_out_of
from sankofa.edition.write.issuer_workers import IssuerProcesses
from sankofa.edition.write.publish import count_parts, publish, without_cycle_collection
from sankofa.edition.write.pyarrow_alone import keep_pandas_out
from sankofa.engines.datastore import Datastore
from sankofa.engines.publication import (
    KEY_FILE,
    NOTE,
    read_signers,
    signers_of,
    signers_to_sign,
    write_signers,
)
from sankofa.ledger.clock import refuse_doubtful_clock
from sankofa.ledger.ingest import Summary, files_under, ingest
from sankofa.ledger.replaying import VaultFiles
from sankofa.ledger.store import Ledger
from sankofa.ledger.withdrawing import Withdrawn, withdraw
from sankofa.model.days import instant
from sankofa.model.errors import EditionError, OperatorError, StoreUnavailable
from sankofa.model.signed_notes import new_signer
from sankofa.replication.stores import open_store, refuse_where_editions_are_followed
from sankofa.settings import Settings
from sankofa.sources.base import Limits
from sankofa.sources.registry import find_source, load_sources
from sankofa.vault.journal import Withdrew
from sankofa.vault.store import Vault

_PROCESSES_AT_MOST: Final = 4
_WORTH_PROCESSES: Final = 256
"""Issuers: deriving as many small ones takes as long as starting a process."""


def ingest_files(
    settings: Settings,
    source_id: str,
    paths: Iterable[Path],
    *,
    clock_is_right: bool = False,
    dry_run: bool = False,
) -> Summary:
    """Read files of a source into the ledger, with a progress bar on a terminal.

    With `dry_run` nothing is written: where there is no ledger yet, one is made in a folder for the moment.
    """
    source = find_source(settings.home, source_id)
    source.refuse_unless_redistributable()
    paths = list(paths)
    files = files_under(paths)
    in_home = list(settings.home.glob("*"))  # before this command itself changes any
    witnesses = [path for path in (*in_home, *files) if not path.name.startswith("ledger.sqlite")]
    with (
        _ledger_to_try(settings) if dry_run else open_ledger(settings) as ledger,
        progress_bar(source_id, len(files)) as progress,
        without_cycle_collection(),
    ):
        if not clock_is_right:
            refuse_doubtful_clock(now(), ledger.newest_capture(), witnesses)
        return ingest(
            ledger,
            source,
            files,
            rejects_folder=settings.home / "rejects",
            clock=now,
            started=lambda p: progress(p.name),
            limits=Limits.of(settings),
            folders=[path for path in paths if path.is_dir()],
            vault=None if dry_run else open_vault(settings),
            dry_run=dry_run,
        )


@contextmanager
def _ledger_to_try(settings: Settings) -> Iterator[Ledger]:
    """The ledger, or an empty one elsewhere where HOME has none: what is only tried leaves nothing there."""
    if has_ledger(settings):
        with open_ledger(settings) as ledger:
            yield ledger
        return
    with (
        TemporaryDirectory(prefix="sankofa-try-") as folder,
        open_ledger(replace(settings, home=Path(folder))) as ledger,
    ):
        yield ledger


def open_vault(settings: Settings) -> Vault | None:
    """None where the operator wants none. What was kept beyond its time is removed."""
    if settings.vault == "off":
        return None
    vault = Vault.of(settings)
    vault.drop_expired(now())
    return vault


def publish_edition(settings: Settings, *, despite_floors: bool = False) -> dict[str, Any]:
    """Build, check and switch to the next edition; its manifest.

    With `unchanged` where the current one is what would be built.
    """
    sources = load_sources(settings.home)
    store = open_store(settings)
    with open_ledger(settings) as ledger:
        inputs = publication_inputs(ledger, sources, despite_floors=despite_floors)
        if (manifest := unchanged_edition(settings, store, ledger, inputs)) is not None:
            return {**manifest, "unchanged": True}
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
                processes=_issuer_processes(settings, store),
                waiting=lambda: click.echo("another publish is running; waiting for it to end", err=True),
            )
        after = publication_inputs(ledger, sources, despite_floors=despite_floors)
    if after == inputs:  # else something was ingested meanwhile, perhaps before the ledger was read
        record_publication(settings, store, manifest["edition"], inputs)
    return manifest


def _issuer_processes(settings: Settings, store: Datastore) -> IssuerProcesses:
    """Where the operator names a number they are started for any two issuers, else for as many as take longer
    than starting them does."""
    named = settings.processes_to_publish()
    number = named or min(_cores(), _PROCESSES_AT_MOST)
    return IssuerProcesses(number, 2 if named else _WORTH_PROCESSES, store.ledger_opener())


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def withdraw_files(
    settings: Settings, source_id: str, *, capture: int, file_name: str, everywhere: bool, reason: str
) -> Withdrawn:
    """Append a tombstone: the next edition is built as if that had never been ingested."""
    vault = open_vault(settings)
    source = load_sources(settings.home).get(source_id)
    at = now()

    def journalled(number: int) -> None:
        if vault is not None:
            vault.tell_withdrawal(
                Withdrew(instant(at), source_id, number, reason.strip(), capture, file_name, everywhere)
            )

    with open_ledger(settings) as ledger, without_cycle_collection():
        again = None
        if vault is not None and source is not None:
            again = VaultFiles(vault, source, Limits.of(settings))
        return withdraw(
            ledger,
            source_id,
            capture=capture,
            file_name=file_name,
            everywhere=everywhere,
            reason=reason,
            now=at,
            reads_again=again,
            appended=journalled,
        )


def roll_back(settings: Settings, edition: str) -> None:
    """Make a kept edition current, after checking that it is intact."""
    refuse_where_editions_are_followed(settings)
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
            raise EditionError(f"{edition} is withdrawn: {withdrawn[edition]}")
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


def edition_key(settings: Settings, *, rotate: bool, retire: bool, add: Path | None = None) -> str:
    """The verifier key of this HOME. A change of keys is signed at once. Raises OperatorError."""
    refuse_where_editions_are_followed(settings)
    signers = signers_of(settings.home)
    if not signers and not rotate:
        raise OperatorError(f"there is no {KEY_FILE} in HOME yet: the first `sankofa publish` creates it")
    if add is not None:
        added = read_signers(add)
        if not added:
            raise OperatorError(f"{add}: no such file")
        signers = tuple(dict.fromkeys((*signers, *added)))
    if rotate or retire or add is not None:
        store = open_store(settings)
        if rotate and signers:
            signers = (new_signer(signers[0].verifier.name), *signers)
        elif rotate:  # it was lost: what it signed counts no more
            if folder := settings.datastore_folder():
                (folder / "editions" / NOTE).unlink(missing_ok=True)
            signers = signers_to_sign(settings.home, signed_before=False)
        write_signers(settings.home, signers[:1] if retire else signers)
        with store.exclusive("switch"):
            listed = store.list_editions()
            if listed.current is not None:
                store.set_current_and_prune(listed.editions, listed.current)
    return signers[0].verifier.text


def verify_editions(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """Each kept edition, and what is wrong with it. Raises OperatorError where nothing is signed."""
    with closing(open_store(settings)) as store:
        try:
            if store.publication() is None:
                raise OperatorError("nothing is signed here yet: run `sankofa publish`")
            listed = store.list_editions()
        except StoreUnavailable as failure:
            raise OperatorError(failure.cause) from failure
        for edition in listed.editions:
            try:
                store.open(edition, check_all=True).close()
            except EditionError as failure:
                yield edition, str(failure).removeprefix(f"edition {edition}: ")
            else:
                yield edition, None
        if listed.current not in listed.editions:
            yield str(listed.current), "is current, and not there"


def _withdrawn(settings: Settings, store: Datastore) -> dict[str, str]:
    """Editions with what may not be redistributed today or was withdrawn everywhere; each with why."""
    sources = load_sources(settings.home)
    permitted = {name for name, source in sources.items() if source.commercial_redistribution}
    with open_ledger(settings) as ledger:
        left_out = [omission.source for omission in left_out_of(ledger, sources)]
        withdrawals = [described(withdrawal) for withdrawal in ledger.withdrawals()]
    withdrawn = {}
    for name in store.list_editions().editions:
        with suppress(EditionError), closing(open_edition(store, name)) as edition:
            refused = set(edition.manifest.get("sources", left_out)) - permitted
            if may_hold(edition.manifest, refused):
                named = ", ".join(sorted(refused))
                withdrawn[name] = f"what it holds may not be redistributed today: {named}"
            elif holds_withdrawn(name, edition.manifest, withdrawals):
                withdrawn[name] = "it holds what was withdrawn everywhere"
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


def has_ledger(settings: Settings) -> bool:
    """Whether there is one, or a server that has it."""
    folder = settings.datastore_folder()
    return folder is None or (folder / "ledger.sqlite").is_file()


@contextmanager
def open_ledger(settings: Settings, *, create: bool = True) -> Iterator[Ledger]:
    """The ledger of the settings; one begun by an older version is brought up to date.

    Without `create` there must be one: OperatorError.
    """
    refuse_where_editions_are_followed(settings)
    if not create and not has_ledger(settings):
        raise OperatorError(f"there is no ledger in HOME ({settings.home})")
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    ledger = Ledger(
        open_store(settings), settings.gate_key(), now, notify=lambda line: click.echo(line, err=True)
    )
    try:
        yield ledger
    finally:
        ledger.close()
