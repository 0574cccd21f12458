"""Commands on the ledger itself."""

import click

from sankofa import settings
from sankofa.cli.listing import as_json, print_json, print_table
from sankofa.cli.publishing import has_ledger, open_ledger
from sankofa.ledger.reader import CaptureInfo


@click.group()
def ledger() -> None:
    """Look after the record of what was ingested."""


@ledger.command()
def verify() -> None:
    """Check that every row is as it was appended; exit code 1 where one is not, naming its capture."""
    with open_ledger(settings.load(), create=False) as opened:
        checked = opened.verify()
    click.echo(f"captures {checked.captures}, rows {checked.rows}: all as they were appended")


@ledger.command()
@click.argument("source", required=False)
@as_json
def captures(source: str | None, as_json: bool) -> None:
    """The files that are not withdrawn, of one SOURCE or of all: number, source, instant, file, SHA-256."""
    current = settings.load()
    captured: dict[int, CaptureInfo] = {}
    unchanged: dict[int, CaptureInfo] = {}
    if has_ledger(current):
        with open_ledger(current, create=False) as opened:
            valid = opened.without(())
            captured, unchanged = valid.captures(), valid.unchanged_files()
    every = sorted((captured | unchanged).items())
    listed = {number: capture for number, capture in every if source in (None, capture.source_id)}
    if as_json:
        print_json(
            [
                {
                    "capture": number,
                    "source": capture.source_id,
                    "observed_at": capture.observed_at,
                    "file": capture.file_name,
                    "sha256": capture.content_sha256,
                    "unchanged": number in unchanged,
                }
                for number, capture in listed.items()
            ]
        )
        return
    lines = [
        (
            str(number),
            capture.source_id,
            capture.observed_at,
            capture.file_name,
            "unchanged" if number in unchanged else "",
        )
        for number, capture in listed.items()
    ]
    print_table(("capture", "source", "observed_at", "file", ""), lines)
