"""What a long command shows on a terminal: what it is at, how much is done and the time left."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Advance(Protocol):
    """Called with what is at hand, and how many of it are done; one where it is not said."""

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
