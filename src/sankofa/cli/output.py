"""The output of commands: tables, JSON, progress bars, findings and advice."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Literal, NamedTuple, Protocol

import click
import msgspec

from sankofa.replication.stores import only_follows
from sankofa.settings import Settings

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON array instead of lines.")
_encode = msgspec.json.Encoder(decimal_format="number").encode


def print_json(rows: object) -> None:
    """Print an array, indented, for people and programs alike."""
    click.echo(msgspec.json.format(_encode(rows), indent=2).decode())


def print_table(headings: Sequence[str], lines: Sequence[Sequence[str]], *, figures: bool = False) -> None:
    """A table with headings, which are bold on a terminal.

    With `figures`, all columns but the first are right-aligned.
    """
    widths = [max(len(line[n]) for line in (headings, *lines)) for n in range(len(headings))]
    for number, line in enumerate((headings, *lines)):
        padded = [
            cell.rjust(widths[n]) if figures and n else cell.ljust(widths[n]) for n, cell in enumerate(line)
        ]
        text = "  ".join(padded).rstrip()
        click.echo(text if number else click.style(text, bold=True))


class Advance(Protocol):
    """Called with the current item and the number of items done, 1 by default."""

    def __call__(self, name: str, number: int = 1, /) -> None: ...


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Advance]:
    """A bar on a terminal, with counts and the time left; nothing anywhere else."""
    if not sys.stderr.isatty():
        yield lambda name, number=1: None
        return
    with click.progressbar(repeat(0), length=total, label=title, show_pos=True, file=sys.stderr) as bar:

        def advance(name: str, number: int = 1, /) -> None:
            bar.label = f"{title}: {name}"
            bar.update(number)

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
