"""What a long command shows on a terminal: what it is at, how much is done and the time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Advance = Callable[[int, str], None]
"""Called with how many more are begun or done, and of what."""


@contextmanager
def shown_progress(title: str, total: int | None) -> Iterator[Advance]:
    """A bar on a terminal, with counts, the time taken and the time left; nothing anywhere else."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda number, name: None
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

        def advance(number: int, name: str) -> None:
            progress.update(task, description=f"{title}: {name}", advance=number)

        yield advance
