"""Lists as JSON, for programs: the same option and the same form on every command that lists something."""

import click
import msgspec

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON array instead of lines.")


def print_json(rows: object) -> None:
    """Print an array, indented, for people and programs alike."""
    click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
