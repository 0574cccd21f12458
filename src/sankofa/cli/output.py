"""The output of commands: tables, JSON, progress bars, findings and advice."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, Protocol

import click
import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from sankofa.replication.stores import only_follows
from sankofa.settings import Settings

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON array instead of lines.")
_encode = msgspec.json.Encoder(decimal_format="number").encode


def print_json(rows: object) -> None:
    """Print an array, indented, for people and programs alike."""
    click.echo(msgspec.json.format(_encode(rows), indent=2).decode())


def print_table(headings: Sequence[str], lines: Sequence[Sequence[str]], *, figures: bool = False) -> None:
    """A table with headings. On a terminal they are bold and cells wrap; elsewhere each row is one line.

    With `figures`, all columns but the first are right-aligned.
    """
    if sys.stdout.isatty():
        table = Table(box=None, pad_edge=False, header_style="bold")
        for n, heading in enumerate(headings):
            table.add_column(heading, overflow="fold", justify="right" if figures and n else "left")
        for line in lines:
            table.add_row(*(cell.replace("[", "\\[") for cell in line))
        Console().print(table)
        return
    widths = [max(len(line[n]) for line in (headings, *lines)) for n in range(len(headings))]
    for line in (headings, *lines):
        padded = [
            cell.rjust(widths[n]) if figures and n else cell.ljust(widths[n]) for n, cell in enumerate(line)
        ]
        click.echo("  ".join(padded).rstrip())


class Advance(Protocol):
    """Called with the current item and the number of items done, 1 by default."""

    def __call__(self, name: str, number: int = 1, /) -> None: ...


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Advance]:
    """A bar on a terminal, with counts, the time taken and the time left; nothing anywhere else."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda name, number=1: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)

        def advance(name: str, number: int = 1, /) -> None:
            progress.update(task, description=f"{title}: {name}", advance=number)

        yield advance


class Finding(NamedTuple):
    """The result of one check. An `error` must be fixed; a `warning` is for your information."""

    check: str
    status: Literal["ok", "warning", "error"]
    message: str
    remedy: str = ""

    def line(self) -> str:
        advice = f"; {self.remedy}" if self.remedy else ""
        status = self.status if self.status == "ok" else self.status.upper()
        return f"{status:<8} {self.check:<12} {self.message}{advice}"


def to_have_an_edition(settings: Settings) -> str:
    """Advice if no edition is published."""
    if only_follows(settings):
        return "see `following` in `sankofa doctor`"
    if settings.datastore == "sqlite:" and not (settings.home / "ledger.sqlite").exists():
        return "try: sankofa starter"
    return "run: sankofa publish"
