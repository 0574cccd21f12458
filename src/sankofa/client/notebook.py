"""What a notebook shows: an answer as a table, and how far a walk over its pages has come."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final, Protocol

PROVENANCE: Final = ("source_ref", "license_class", "observed_at")
_MOST_ROWS: Final = 20


class Progress(Protocol):
    def update(self, n: int) -> object: ...


class _Nothing:
    def update(self, n: int) -> None: ...


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A bar of tqdm, where it is installed and somebody is looking: on a terminal or in a notebook."""
    looking = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not (looking and find_spec("tqdm")):
        yield _Nothing()
        return
    tqdm: Any = import_module("tqdm.auto").tqdm

    with tqdm(desc=title, unit=" rows") as bar:
        yield bar


def html_table(title: str, notice: str, rows: list[dict[str, Any]]) -> str:
    """The first rows as a table, their provenance to be opened below it. Everything is escaped."""
    shown = list(islice(rows, _MOST_ROWS))
    names = [name for name in (shown[0] if shown else ()) if name not in PROVENANCE]
    return (
        f"<p><code>{escape(title)}</code></p>{_table(names, shown)}"
        f"<details><summary>Provenance</summary><p>{escape(notice)}</p>"
        f"{_table(list(PROVENANCE), shown)}</details>"
    )


def _table(names: list[str], rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return f"<td>{'' if value is None else escape(str(value))}</td>"
