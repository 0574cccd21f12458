"""Commands that save everything that cannot be made again, and bring it back."""

from pathlib import Path

import click

from sankofa import settings
from sankofa.cli.backup import back_up, count_rows, has_vault
from sankofa.cli.backup import restore as restore_backup
from sankofa.cli.progress import progress_bar

_FILE = click.argument("file", type=click.Path(path_type=Path))


@click.command()
@_FILE
@click.option("--with-vault", is_flag=True, help="Save the files in the vault, too, as they came.")
def backup(file: Path, with_vault: bool) -> None:
    """Save ledger, keys, secrets and sources in a new FILE, while serving and ingesting go on.

    The file opens everything: keep it as safe as HOME. Editions are not in it; `publish` builds them again.
    """
    current = settings.load()
    with progress_bar("backup", count_rows(current)) as progress:
        listing, damaged = back_up(current, file, progress, with_vault=with_vault)
    for line in damaged:
        click.echo(f"left out: {line}", err=True)
    parts = "keys, secrets, sources and the vault" if with_vault else "keys, secrets and sources"
    click.echo(f"saved {listing.rows} rows of the ledger, {parts} in {file}")
    if not with_vault and has_vault(current):
        click.echo("the vault is not in it: copy HOME/vault, or use --with-vault")


@click.command()
@_FILE
def restore(file: Path) -> None:
    """Bring a backup back into an empty HOME; then `sankofa publish` builds the same edition as before."""
    current = settings.load()
    with progress_bar("restore", None) as progress:
        restored = restore_backup(current, file, progress)
    taken = f"{restored.listing.rows} rows of {restored.captures} captures, {restored.records} key records"
    click.echo(f"restored {taken}, as saved at {restored.listing.created_at}; now run: sankofa publish")
