"""Commands that move data: ingest, publish, and the bundled worlds."""

import sys
from pathlib import Path
from typing import Any

import click

from sankofa import settings
from sankofa.cli import publishing
from sankofa.cli.memory import leave_cycles_to_the_end
from sankofa.cli.worlds import SAMPLE, STARTER, BundledWorld, publish_world
from sankofa.model.errors import BuildFailed


@click.command()
@click.argument("source")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit non-zero when a row was rejected.")
@click.option(
    "--clock-is-right", is_flag=True, help="Believe the clock though it is far from the newest capture."
)
@click.option("--dry-run", is_flag=True, help="Read, check and count everything, and keep nothing.")
def ingest(source: str, paths: tuple[Path, ...], strict: bool, clock_is_right: bool, dry_run: bool) -> None:
    """Read files (plain, .gz, .zip, or folders of them) of a registered SOURCE into the ledger.

    Exits with 1 where a file is of another format, or not one of its rows was accepted.
    """
    summary = publishing.ingest_files(
        settings.load(), source, paths, clock_is_right=clock_is_right, dry_run=dry_run
    )
    for reason in summary.reasons:
        click.echo(f"rejected: {reason}", err=True)
    for warning in summary.first_warnings:
        click.echo(f"Warning: {warning}", err=True)
    if summary.warnings:
        click.echo(f"{source}: warnings {summary.warnings}", err=True)
    empty = [f"{name}: it has no rows" for name in summary.empty]
    for failure in (*summary.failures, *empty):
        click.echo(f"Error: {failure}", err=True)
    for note in summary.notes:
        click.echo(note)
    click.echo(f"{summary.line()}{'; nothing was kept (--dry-run)' if dry_run else ''}")
    if summary.failures or empty or (strict and summary.counts.rejected):
        sys.exit(1)


@click.command()
@click.argument("source")
@click.argument("file", required=False)
@click.option("--capture", type=click.IntRange(1), metavar="ID", help="One capture, by its number.")
@click.option("--file", "file_name", metavar="NAME", help="The file of this name; the same as FILE.")
@click.option("--everywhere", is_flag=True, help="Withdraw the kept editions that hold it, too.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; the edition's manifest says it.")
def withdraw(
    source: str, file: str | None, capture: int | None, file_name: str | None, everywhere: bool, reason: str
) -> None:
    """Build the next edition as if a SOURCE, or one FILE or capture of it, had never been ingested.

    Rows that another file of the source also gives stay where one FILE is withdrawn; they are that file's.
    """
    if sum(given is not None for given in (file, capture, file_name)) > 1:
        raise click.UsageError("FILE, --capture and --file exclude each other")
    withdrawn = publishing.withdraw_files(
        settings.load(), source, capture=capture or 0, file_name=file or file_name or "",
        everywhere=everywhere, reason=reason,
    )  # fmt: skip
    for one in withdrawn.files:
        click.echo(f"withdrawn {source} capture {one.capture_id}: {one.file_name}")
    for name in withdrawn.not_read_again:
        click.echo(
            f"{name}: came later and its bytes are not in the vault; rows that it repeated of the withdrawn "
            "file are missing until it is ingested again",
            err=True,
        )
    kept = "; kept editions that hold it are withdrawn with that" if everywhere else ""
    click.echo(
        f"{source}: withdrawn {len(withdrawn.files)}, still valid {withdrawn.valid}; "
        f"`sankofa publish` builds the edition without it{kept}"
    )


_verbose = click.option(
    "--verbose",
    is_flag=True,
    help="Every line: quality, rows of each dataset, each conflict; the traceback of a defect.",
)


@click.command()
@click.option(
    "--despite-floors", is_flag=True, help="Publish though a source misses a hard floor; the edition says so."
)
@_verbose
def publish(despite_floors: bool, verbose: bool) -> None:
    """Build and check the next edition, then switch to it."""
    leave_cycles_to_the_end()
    try:
        manifest = publishing.publish_edition(settings.load(), despite_floors=despite_floors)
    except BuildFailed as failure:
        if verbose:
            click.echo(failure.trace, err=True)
        raise
    print_published(manifest, verbose=verbose)


_if_empty = click.option("--if-empty", is_flag=True, help="Do nothing where an edition is published already.")


@click.command()
@_if_empty
def starter(if_empty: bool) -> None:
    """Ingest the bundled starter world, real African data under open licences, and publish it."""
    _publish_world(STARTER, if_empty)


@click.command()
@_if_empty
def sample(if_empty: bool) -> None:
    """Ingest the bundled sample world, which is fictional, and publish it."""
    _publish_world(SAMPLE, if_empty)


def _publish_world(world: BundledWorld, if_empty: bool) -> None:
    manifest, summaries = publish_world(settings.load(), world, if_empty=if_empty)
    for summary in summaries:
        click.echo(summary.line())
    if manifest is not None:
        print_published(manifest)


def print_published(manifest: dict[str, Any], *, verbose: bool = False) -> None:
    """At most ten lines, unless `verbose`."""
    to_stderr = [f"left unresolved: {conflict}" for conflict in manifest["conflicts"]]
    to_stderr += [
        f"published despite its floor: {shortfall}" for shortfall in manifest.get("despite_floors", ())
    ]
    lines = [
        f"left out {one['source']} ({one['why']}): captures {one['captures']}, rows {one['rows']}"
        for one in manifest.get("left_out", ())
    ]
    lines += [
        f"left out {one['rows']} figures of {one['source']} (capture {one['capture']}, {one['file']}): "
        "their dates are out of range"
        for one in manifest.get("impossible_dates", ())
    ]
    lines += [
        f"without {one['files']} withdrawn files of {one['source']}: {one['reason']}"
        for one in manifest.get("withdrawals", ())
    ]
    missed = [line for line in manifest["quality"] if line.rstrip().endswith(("FAIL", "UNMEASURED"))]
    lines += manifest["quality"] if verbose else sorted(missed, key=lambda line: "FAIL" not in line)
    for line in to_stderr if verbose else _first(to_stderr, _MOST_ON_STDERR):
        click.echo(line, err=True)
    for line in lines if verbose else _first(lines, _MOST_LINES):
        click.echo(line)
    if manifest.get("unchanged"):
        click.echo(f"nothing changed since edition {manifest['edition']} was published")
    rows = manifest["rows"]
    shown = [f"{kind} {count}" for kind, count in rows.items() if verbose or not kind.startswith("signal-")]
    click.echo(f"published edition {manifest['edition']}: {', '.join(shown)}")


_MOST_ON_STDERR, _MOST_LINES = 3, 5


def _first(lines: list[str], most: int) -> list[str]:
    """So many lines, the last of which says how many more there are."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"and {len(lines) - most + 1} more (`sankofa publish --verbose` prints all)"]
