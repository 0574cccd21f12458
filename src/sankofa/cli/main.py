"""The command `sankofa`."""

import asyncio
import functools
import json
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from sankofa import __version__, settings
from sankofa.access.keys import Keys
from sankofa.access.tiers import TIERS
from sankofa.cli import publishing, serving
from sankofa.edition.diff import COUNTED
from sankofa.engines.keyvalue import open_keyvalue
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.operations.service import Service, probe
from sankofa.rest.openapi import describe
from sankofa.sources.registry import load_sources

T = TypeVar("T")


class _Commands(click.Group):
    """Errors meant for the operator are one line on stderr and exit code 1, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StoreUnavailable as failure:
            raise click.ClickException(failure.logged) from failure
        except OperatorError as failure:
            raise click.ClickException(str(failure)) from failure


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sankofa")
def main() -> None:
    """Point-in-time data for African and emerging markets."""
    for variable in settings.unknown():
        click.echo(f"Warning: {variable} is no setting; see `sankofa settings`.", err=True)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Worker processes.")
def serve(host: str, port: int, workers: int) -> None:
    """Serve the current edition, and each newer one from the moment it is published."""
    serving.serve(settings.load(), host, port, workers)


@main.command()
@click.argument("source")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit non-zero when a row was rejected.")
def ingest(source: str, paths: tuple[Path, ...], strict: bool) -> None:
    """Read files (plain, .gz, .zip, or folders of them) of a registered SOURCE into the ledger."""
    summary = publishing.ingest_files(settings.load(), source, paths)
    for failure in summary.failures:
        click.echo(f"Error: {failure}", err=True)
    click.echo(summary.line())
    if summary.failures or (strict and summary.counts.rejected):
        sys.exit(1)


@main.command()
@click.option(
    "--despite-floors",
    is_flag=True,
    help="Publish though a source misses a hard floor; the edition says so.",
)
def publish(despite_floors: bool) -> None:
    """Build and check the next edition, then switch to it."""
    _published(publishing.publish_edition(settings.load(), despite_floors=despite_floors))


@main.command()
@click.option("--if-empty", is_flag=True, help="Do nothing where an edition is published already.")
def sample(if_empty: bool) -> None:
    """Ingest the bundled sample world and publish it."""
    manifest, summaries = publishing.publish_sample(settings.load(), if_empty=if_empty)
    for summary in summaries:
        click.echo(summary.line())
    if manifest is not None:
        _published(manifest)


def _published(manifest: dict[str, Any]) -> None:
    rows = ", ".join(f"{kind} {count}" for kind, count in manifest["rows"].items())
    for conflict in manifest["conflicts"]:
        click.echo(f"left unresolved: {conflict}", err=True)
    for line in manifest["quality"]:
        click.echo(line)
    for shortfall in manifest.get("despite_floors", ()):
        click.echo(f"published despite its floor: {shortfall}", err=True)
    click.echo(f"published edition {manifest['edition']}: {rows}")


@main.group()
def keys() -> None:
    """Issue, list and revoke API keys."""


def _with_keys(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a command on the key store, and close the store after it."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            current = settings.load()
            store = open_keyvalue(current.keyvalue_url(current.keystore, "keys"), "key store")
            try:
                return await command(Keys(store, current, lambda: datetime.now(UTC)), *args, **kwargs)
            finally:
                await store.close()

        return asyncio.run(opened())

    return run


@keys.command("create")
@click.option("--tier", required=True, type=click.Choice(TIERS), help="What the key may have.")
@click.option("--label", default="", help="What the key is for.")
@click.option("--per-minute", type=click.IntRange(1), help="Its own limit per UTC minute.")
@click.option("--per-month", type=click.IntRange(1), help="Its own cap per UTC calendar month.")
@_with_keys
async def create(store: Keys, tier: str, label: str, per_minute: int | None, per_month: int | None) -> None:
    """Print a new key, once: only its hash is stored."""
    click.echo(await store.create(tier, label, per_minute, per_month))


@keys.command("list")
@_with_keys
async def list_keys(store: Keys) -> None:
    """What is issued: id, tier, label, limits and whether it is revoked."""
    for key in await store.list():
        limits = f"{key.per_minute or '-'}/min {key.per_month or '-'}/month"
        state = f"revoked {key.revoked_at}" if key.revoked_at else "active"
        click.echo(f"{key.id}  {key.tier:<12}  {key.created_at}  {state}  {limits}  {key.label}")


@keys.command("revoke")
@click.argument("key_id", metavar="ID")
@_with_keys
async def revoke(store: Keys, key_id: str) -> None:
    """Revoke a key: it gets 401 from the next request on."""
    record = await store.revoke(key_id)
    click.echo(f"revoked {record.id} at {record.revoked_at}")


@main.command("sources")
def list_sources() -> None:
    """What is registered."""
    for source in load_sources(settings.load().home).values():
        licence = source.license_class
        if not source.commercial_redistribution:
            licence += "  REFUSED: no commercial redistribution"
        click.echo(f"{source.id:<28}  {source.adapter:<20}  {source.sku or '-':<10}  {licence}")


@main.group(invoke_without_command=True)
@click.pass_context
def editions(context: click.Context) -> None:
    """What is published."""
    if context.invoked_subcommand is None:
        shelf = publishing.shelf(settings.load())
        for name in shelf.editions:
            click.echo(f"{name}{'  current' if name == shelf.current else ''}")


@editions.command()
@click.argument("edition", metavar="ID")
def rollback(edition: str) -> None:
    """Go back to a kept edition."""
    publishing.roll_back(settings.load(), edition)
    click.echo(f"current edition is now {edition}")


@editions.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
@click.option(
    "--examples", default=5, show_default=True, type=click.IntRange(0), help="Keys to show of each dataset."
)
def diff_editions(before: str, after: str, as_json: bool, examples: int) -> None:
    """What changed from edition A to edition B: rows added, changed, removed (withheld now, or no longer
    served), and of those added or changed the restated: figures that a later vintage replaced."""
    found = publishing.difference(settings.load(), before, after, examples)
    if as_json:
        told = {"before": before, "after": after, "datasets": found}
        click.echo(msgspec.json.encode(told).decode())
        return
    for dataset, difference in found.items():
        counts = ", ".join(f"{name} {getattr(difference, name)}" for name in COUNTED)
        click.echo(f"{dataset}: {counts}")
        for example in difference.examples:
            click.echo(f"  {example['change']:<8}  {' | '.join(example['key'])}")
    if not found:
        click.echo("no row differs")


@main.command()
def status() -> None:
    """The dependency reads of /v1/status; exit code 1 when degraded."""

    async def look() -> dict[str, tuple[str | None, float]]:
        service = Service(settings.load())
        try:
            return await probe(service)
        finally:
            await service.stop()

    found = asyncio.run(look())
    for name, (failure, took) in found.items():
        click.echo(f"{name:<10}  {'ok' if failure is None else 'FAILED: ' + failure}  {took:.1f} ms")
    if any(failure is not None for failure, _ in found.values()):
        sys.exit(1)


@main.command("settings")
def show_settings() -> None:
    """Each setting with its value, where that came from and what it means; secrets masked."""
    for variable, value, origin, explanation in settings.explain():
        click.echo(f"{variable}={value}  ({origin})\n    {explanation}")


@main.command("openapi")
def print_description() -> None:
    """Print the OpenAPI description, as served at /openapi.json."""
    click.echo(json.dumps(describe(settings.load(), datetime.now(UTC).date()), indent=2, ensure_ascii=False))
