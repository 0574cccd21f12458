"""Commands on the ledger itself."""

import click

from sankofa import settings
from sankofa.cli import publishing


@click.group()
def ledger() -> None:
    """Look after the record of what was ingested."""


@ledger.command()
def verify() -> None:
    """Read every row and check that it is as it was appended; exit code 1 and the captures where it is not."""
    checked = publishing.verify_ledger(settings.load())
    click.echo(f"captures {checked.captures}, rows {checked.rows}: all as they were appended")
