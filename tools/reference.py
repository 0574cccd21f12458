"""Writes docs/reference from the registries of the code, so that the two always agree.

python -m tools.reference            write the pages
python -m tools.reference --check    exit 1 and name stale pages
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from tools.reference_pages.api_pages import api_page, problems_page
from tools.reference_pages.data_pages import (
    dictionary_page,
    line_items_page,
    metrics_page,
    signals_page,
    sources_page,
)
from tools.reference_pages.limits_page import limits_page
from tools.reference_pages.markdown import page
from tools.reference_pages.operator_pages import commands_page, settings_page

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
PAGES: Final[dict[str, Callable[[], str]]] = {
    "api.md": api_page,
    "problems.md": problems_page,
    "commands.md": commands_page,
    "settings.md": settings_page,
    "limits.md": limits_page,
    "sources.md": sources_page,
    "line-items.md": line_items_page,
    "metrics.md": metrics_page,
    "signals.md": signals_page,
    "data-dictionary.md": dictionary_page,
}
BY_HAND: Final = {
    "../contract.md": "The contract",
    "edition-log.md": "The log of editions",
    "versioning.md": "Versions and deprecation",
}
"""Pages of the reference written by hand."""


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    written = {name: write() for name, write in PAGES.items()}
    links = [f"- [{text.splitlines()[1].removeprefix('# ')}]({name})" for name, text in written.items()]
    by_hand = [f"- [{title}]({name})" for name, title in BY_HAND.items()]
    text = "\n".join([*links, "\nWritten by hand:\n", *by_hand])
    index = page("Reference", "Generated from the code by `make docs`:", text)
    return {"README.md": index, **written}


def stale(folder: Path = FOLDER) -> list[str]:
    """The pages that are missing, outdated or no longer written."""
    due = pages()
    there = {path.name for path in folder.glob("*.md")} - BY_HAND.keys()
    differ = {n for n in due if n not in there or (folder / n).read_text(encoding="utf-8") != due[n]}
    return sorted(differ | (there - due.keys()))


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when pages are stale.")
def main(check: bool) -> None:
    if check:
        if outdated := stale():
            raise click.ClickException(f"docs/reference is stale ({', '.join(outdated)}): run `make docs`")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    due = pages()
    for name in stale():
        path = FOLDER / name
        if name in due:
            path.write_text(due[name], encoding="utf-8")
        else:
            path.unlink()
        click.echo(f"{'wrote' if name in due else 'removed'} docs/reference/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
