"""Commands on the vault: what was fetched or ingested, as it came."""

import sys
from pathlib import Path

import click

from sankofa import settings
from sankofa.cli import replaying


@click.group()
def vault() -> None:
    """Look after the files that were fetched or ingested."""


@vault.command()
def verify() -> None:
    """Read every byte that is kept; exit code 1 where one is not what came in, naming its file."""
    verified = replaying.verify_vault(settings.load())
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


@vault.command()
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Make a new HOME there, on files; without it an empty ledger of HOME is filled.",
)
def replay(into: Path | None) -> None:
    """Rebuild the ledger from the vault alone.

    Where HOME has a ledger already, it is rebuilt on the side and compared: exit code 1 where they differ.
    """
    outcome = replaying.replay_vault(settings.load(), into)
    for source, files in outcome.replayed.missing.items():
        click.echo(f"not rebuilt: {source}: {files} files whose bytes are not in the vault")
    for failure in (*outcome.replayed.failures, *outcome.differences):
        click.echo(f"Error: {failure}", err=True)
    click.echo(f"captures {outcome.replayed.captures}: {outcome.result}")
    if outcome.replayed.failures or outcome.differences:
        sys.exit(1)
