"""What every command that lists something prints: a table, or JSON where asked for."""

import sys
from collections.abc import Sequence

import click
import msgspec
from rich.console import Console
from rich.table import Table

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON array instead of lines.")
_encode = msgspec.json.Encoder(decimal_format="number").encode


def print_json(rows: object) -> None:
    """Print an array, indented, for people and programs alike."""
    click.echo(msgspec.json.format(_encode(rows), indent=2).decode())


def print_table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """A table with headings; bold and folded to the width on a terminal, one line for each row elsewhere."""
    if sys.stdout.isatty():
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for line in lines:
            table.add_row(*(cell.replace("[", "\\[") for cell in line))
        Console().print(table)
        return
    widths = [max(len(line[n]) for line in (headings, *lines)) for n in range(len(headings))]
    for line in (headings, *lines):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
