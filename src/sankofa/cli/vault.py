"""`sankofa vault`: verify what was fetched or ingested, and rebuild the ledger from it."""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from sankofa import settings
from sankofa.cli.backup import has_vault
from sankofa.cli.ledger import open_ledger
from sankofa.cli.output import progress_bar
from sankofa.cli.process import now
from sankofa.edition.write.publish import without_cycle_collection
from sankofa.ledger.rereading import Replayed, replay
from sankofa.ledger.store import Ledger
from sankofa.model.errors import OperatorError
from sankofa.replication.stores import open_store
from sankofa.settings import Settings
from sankofa.sources.base import Limits
from sankofa.sources.registry import load_sources
from sankofa.vault.journal import Received
from sankofa.vault.store import Vault, Verified

_NAMED_AT_MOST = 10


class ReplayOutcome(NamedTuple):
    """The outcome of a replay."""

    replayed: Replayed
    differences: list[str]
    """The differences from the ledger in HOME, if there is one."""
    result: str


def verify_vault(settings: Settings) -> Verified:
    """Read every byte that is kept."""
    if not has_vault(settings):
        return Verified(0, 0, 0, 0, 0, [])
    vault = Vault.of(settings)
    vault.drop_expired(now())
    return vault.verify()


def replay_vault(settings: Settings, into: Path | None) -> ReplayOutcome:
    """Rebuild the ledger: into a folder, into an empty ledger of HOME, or on the side to be compared."""
    vault = Vault.of(settings)
    vault.drop_expired(now())
    if not vault.events():
        raise OperatorError(f"there is no vault in HOME ({settings.home})")
    if into is not None:
        with _new_home(settings, into) as ledger:
            return ReplayOutcome(_replay(settings, vault, ledger), [], f"rebuilt in {into}")
    with open_ledger(settings) as ledger:
        if not ledger.position():
            return ReplayOutcome(_replay(settings, vault, ledger), [], "the ledger of HOME is rebuilt")
        with (
            TemporaryDirectory(prefix=".replay-", dir=settings.home) as folder,
            _new_home(settings, Path(folder) / "home") as rebuilt,
        ):
            replayed = _replay(settings, vault, rebuilt, until=ledger.position())
            replayed = replayed._replace(missing=_missing(vault, ledger, replayed.missing))
            differences = _differences(ledger, rebuilt, replayed)
    same = "not the ledger of HOME" if differences else "the same as the ledger of HOME"
    if replayed.missing and not differences:
        same += ", as far as its bytes are in the vault"
    return ReplayOutcome(replayed, differences, same)


def _missing(vault: Vault, ledger: Ledger, missing: dict[str, int]) -> dict[str, int]:
    """Files without stored bytes, by source; includes files ingested before there was a vault."""
    journalled = {(e.source, e.sha256) for e in vault.events() if isinstance(e, Received)}
    counted = Counter(missing)
    for capture in ledger.without(()).captures().values():
        if (capture.source_id, capture.content_sha256) not in journalled:
            counted[capture.source_id] += 1
    return dict(sorted(counted.items()))


def _replay(settings: Settings, vault: Vault, ledger: Ledger, until: int | None = None) -> Replayed:
    events = len(vault.events())
    with progress_bar("replay", events) as started, without_cycle_collection():
        return replay(vault, ledger, load_sources(settings.home), Limits.of(settings), started, until=until)


@contextmanager
def _new_home(settings: Settings, folder: Path) -> Iterator[Ledger]:
    """A ledger on files, with the gate secret and the sources of this HOME."""
    if folder.exists() and any(folder.iterdir()):
        raise OperatorError(f"{folder}: is not empty")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("gate-secret", "sources.toml"):
        if (settings.home / name).exists():
            shutil.copyfile(settings.home / name, folder / name)  # with the modes of a new file
    own = replace(settings, home=folder, datastore="sqlite:")
    with closing(Ledger(open_store(own), settings.gate_key(), now)) as ledger:
        yield ledger


def _differences(ledger: Ledger, rebuilt: Ledger, replayed: Replayed) -> list[str]:
    """The captures that hold other rows; of sources that could not be rebuilt nothing is compared."""
    passed_over = set(replayed.missing)
    held, again = ledger.contents(), rebuilt.contents()
    differences = []
    for number in sorted(held.keys() | again.keys()):
        source = (held.get(number) or again[number]).source_id
        if source not in passed_over and held.get(number) != again.get(number):
            differences.append(f"capture {number} of {source}: is not what the vault gives")
    if len(differences) > _NAMED_AT_MOST:
        differences[_NAMED_AT_MOST:] = [f"and {len(differences) - _NAMED_AT_MOST} more"]
    return differences


@click.group()
def vault() -> None:
    """Look after the files that were fetched or ingested."""


@vault.command()
def verify() -> None:
    """Read every byte that is kept; exit code 1 where one is not what came in, naming its file."""
    verified = verify_vault(settings.load())
    for fault in verified.faults:
        click.echo(f"damaged: {fault}", err=True)
    notes = [f"events {verified.events}, files {verified.objects}, bytes {verified.size}"]
    if verified.hash_only:
        notes.append(f"of {verified.hash_only} only the hash is kept")
    if verified.unreadable:
        notes.append(f"{verified.unreadable} encrypted and compared as stored, for want of SANKOFA_VAULT_KEY")
    result = f"damaged {len(verified.faults)}" if verified.faults else "all as they came"
    click.echo(f"{', '.join(notes)}: {result}")
    if verified.faults:
        sys.exit(1)


@vault.command("replay")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Create a new HOME there, on files; without it, fill the empty ledger of HOME.",
)
def replay_command(into: Path | None) -> None:
    """Rebuild the ledger from the vault alone.

    Where HOME has a ledger already, it is rebuilt on the side and compared: exit code 1 where they differ.
    """
    outcome = replay_vault(settings.load(), into)
    for source, files in outcome.replayed.missing.items():
        click.echo(f"not rebuilt: {source}: {files} files whose bytes are not in the vault")
    for failure in (*outcome.replayed.failures, *outcome.differences):
        click.echo(f"Error: {failure}", err=True)
    click.echo(f"captures {outcome.replayed.captures}: {outcome.result}")
    if outcome.replayed.failures or outcome.differences:
        sys.exit(1)
