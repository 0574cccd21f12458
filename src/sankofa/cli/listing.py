"""The --json option of every command that lists something, and its output."""

import click
import msgspec

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON array instead of lines.")


def print_json(rows: object) -> None:
    """Print an array, indented, for people and programs alike."""
    click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
