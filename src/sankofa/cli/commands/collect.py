"""The command that fetches from publishers."""

import sys
from typing import Any

import click
import msgspec

from sankofa import settings
from sankofa.cli import collecting
from sankofa.cli.collecting import Run
from sankofa.cli.commands.data import print_published


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--publish", is_flag=True, help="Publish where something changed.")
@click.option("--watch", is_flag=True, help="Go on, each source on its schedule, until SIGTERM.")
@click.option("--dry-run", is_flag=True, help="Print the requests that would be made, and make none.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each run instead of lines.")
@click.option(
    "--accept-shrunk", is_flag=True, help="Take replies that have shrunk to less than half their size."
)
def collect(
    sources: tuple[str, ...], publish: bool, watch: bool, dry_run: bool, as_json: bool, accept_shrunk: bool
) -> None:
    """Fetch what is new from the publishers' own addresses, keep it in the vault and ingest it.

    Without SOURCE: every entry of HOME/sources.toml with a table `collect`, and the built-in ones of
    SANKOFA_COLLECT_SOURCES, as far as they are due. A SOURCE that is named is fetched, due or not.
    """
    if watch and (sources or dry_run or accept_shrunk):
        raise click.UsageError(
            "--watch follows the schedule: it takes no SOURCE, --dry-run or --accept-shrunk"
        )
    current = settings.load()
    if dry_run:
        _print_plan(collecting.plan(current, sources), as_json)
        return
    if watch:
        later = "; looking again every second"
        collecting.watch(current, publish=publish, report=lambda run: _print(run, as_json, later))
        return
    run = collecting.collect_once(current, sources, publish=publish, accept_shrunk=accept_shrunk)
    _print(run, as_json)
    if run.failed:
        sys.exit(1)


def _print(run: Run, as_json: bool, later: str = "") -> None:
    if as_json:
        document = {
            "sources": [_described(outcome) for outcome in run.outcomes],
            "published": run.manifest and run.manifest["edition"],
        }
        click.echo(msgspec.json.encode(document).decode())
        return
    for outcome in run.outcomes:
        for note in outcome.notes:
            click.echo(note)
        if outcome.failure:
            click.echo(f"Error: {outcome.source}: {outcome.failure}", err=True)
        click.echo(outcome.line())
    if not run.outcomes:
        click.echo(
            "nothing to collect: no entry of HOME/sources.toml has a table `collect`, and "
            f"SANKOFA_COLLECT_SOURCES names none{later or '; name a SOURCE'}"
        )
    if run.manifest is not None:
        print_published(run.manifest)


def _described(outcome: Any) -> dict[str, Any]:
    return {
        "source": outcome.source,
        "status": outcome.status,
        "documents": outcome.documents,
        "bytes": outcome.bytes,
        **vars(outcome.counts),
        "failure": outcome.failure or None,
    }


def _print_plan(planned: list[collecting.Planned], as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode({"requests": [one._asdict() for one in planned]}).decode())
        return
    for one in planned:
        click.echo(f"{one.source}: {one.method} {one.url} -> {one.file}")
    if not planned:
        click.echo("nothing is due")
