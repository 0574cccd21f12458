"""Commands that run the service, open its pages and check an installation."""

import asyncio
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click

from sankofa import settings
from sankofa.access.owner import SIGN_IN, Owner
from sankofa.cli.doctor import examine, explain_settings_error
from sankofa.cli.keys import opened_keys
from sankofa.cli.output import Finding, as_json, print_json
from sankofa.cli.process import now
from sankofa.edition.format.keys import LAYOUT
from sankofa.engines.factory import open_keyvalue
from sankofa.engines.keyvalue import KeyValue
from sankofa.engines.private_files import replace_file
from sankofa.ledger.store import table_names
from sankofa.model.errors import EditionError, SettingsError
from sankofa.replication.stores import open_store
from sankofa.settings import Settings


def check_layouts(settings: Settings) -> list[Finding]:
    """Compare the ledger and every edition with the layouts of this version.

    Raises OperatorError or StoreUnavailable.
    """
    return [*_ledger(settings), *_editions(settings)]


def _ledger(settings: Settings) -> Iterator[Finding]:
    store = open_store(settings)
    tables = store.ledgers.tables()
    if not tables:
        yield Finding("ledger", "ok", "there is none yet")
        return
    later = sorted(tables - {*table_names()})
    if later:
        message = f"a later version made {', '.join(later)}"
        yield Finding("ledger", "error", message, "install that version again, or a newer one")
        return
    missing = sorted({*table_names()} - tables)
    if missing:
        message = f"an older version made it, without {', '.join(missing)}"
        yield Finding("ledger", "warning", message, "the next ingest or publish adds them; back up first")
        return
    yield Finding("ledger", "ok", "of this version's layout")


def _editions(settings: Settings) -> Iterator[Finding]:
    store = open_store(settings)
    try:
        listed = store.list_editions()
        for edition in listed.editions:
            current = edition == listed.current
            try:
                reader = store.open(edition)
            except EditionError as failure:
                yield Finding("editions", "error" if current else "warning", str(failure), "sankofa publish")
                continue
            layout = reader.manifest.get("format")
            reader.close()
            if layout == LAYOUT:
                yield Finding("editions", "ok", f"{edition} is of this version's layout")
            else:
                message = f"{edition} is of layout {layout}, this version reads {LAYOUT}"
                remedy = "run: sankofa publish" if current else "it is a 410 until it is removed"
                yield Finding("editions", "error" if current else "warning", message, remedy)
    finally:
        store.close()


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Worker processes.")
@click.option("--sign-in", is_flag=True, help="Print an address that signs the owner's browser in, once.")
def serve(host: str, port: int, workers: int, sign_in: bool) -> None:
    """Serve the current edition, and each newer one from the moment it is published."""
    from sankofa.cli import serving  # `status` needs nothing of it

    serving.serve(settings.load(), host, port, workers, sign_in=sign_in)


@click.command()
def status() -> None:
    """The dependency reads of /v1/status; exit code 1 when degraded. Creates nothing."""
    from sankofa.operations.service import following, probe

    current = settings.load()

    def opened(url: str, name: str, component: str) -> KeyValue:
        reserve = current.usage_reserve << 20 if name == "usage" else 0
        return open_keyvalue(current.keyvalue_url(url, name), component, reserve=reserve, create=False)

    async def look() -> dict[str, tuple[str | None, float]]:
        store = open_store(current)
        keystore = opened(current.keystore, "keys", "key store")
        usagestore = opened(current.usagestore, "usage", "usage store")
        try:
            checks = await probe(store, keystore, usagestore)
            if (followed := following(store, now())) is not None:
                checks["editions"] = (followed[1], 0.0)
            return checks
        finally:
            await keystore.close()
            await usagestore.close()
            store.close()

    checks = asyncio.run(look())
    for name, (failure, took) in checks.items():
        click.echo(f"{name:<10}  {'ok' if failure is None else 'FAILED: ' + failure}  {took:.1f} ms")
    if any(failure is not None for failure, _ in checks.values()):
        sys.exit(1)


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """Check this installation, and say how to mend each fault. Exits with 1 when something must be mended."""
    try:
        findings = examine(settings.load())
    except SettingsError as failure:
        findings = [explain_settings_error(failure)]
    _report(findings, as_json)


@click.command("upgrade-check")
@as_json
def upgrade_check(as_json: bool) -> None:
    """Whether this version can use what is in HOME as it is, and the command to run where it cannot."""
    _report(check_layouts(settings.load()), as_json)


def _report(findings: list[Finding], as_json: bool) -> None:
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            click.echo(finding.line())
    if any(finding.status == "error" for finding in findings):
        sys.exit(1)


_ADDRESS: Final = "address"
"""The file in HOME with the address of the server that was started last."""


@click.command("open")
@click.argument("path", default="/")
@click.option("--print", "only_print", is_flag=True, help="Print the address; start no browser.")
def open_pages(path: str, only_print: bool) -> None:
    """Open the pages of the running service at PATH in the browser, signed in as the owner.

    Prints the address, which works once and for ten minutes.
    """
    current = settings.load()
    address = sign_in_address(current, _served_at(current), path)
    click.echo(address)
    if not only_print and not webbrowser.open(address):
        click.echo("No browser could be opened; open the address above yourself.", err=True)


def sign_in_address(current: Settings, base_url: str, path: str = "/") -> str:
    """An address that signs a browser in once. Raises OperatorError, OSError or StoreUnavailable."""

    async def code() -> str:
        async with opened_keys(current) as (keys, _, records):
            return await Owner(current.home, keys, records, now).new_code()

    query = {"code": asyncio.run(code())} | ({"next": f"/{path.lstrip('/')}"} if path != "/" else {})
    return f"{base_url}{SIGN_IN}?{urlencode(query)}"


def note_address(home: Path, address: str) -> None:
    """Tell `sankofa open` where the server listens. A HOME that cannot be written stops no server."""
    with suppress(OSError):
        replace_file(home / _ADDRESS, f"{address}\n".encode(), durable=False)


def _served_at(current: Settings) -> str:
    """BASE_URL where it is set, else where the server that was started last listens."""
    if current.base_url == Settings.base_url:
        with suppress(OSError):
            return (current.home / _ADDRESS).read_text(encoding="latin-1").strip() or current.base_url
    return current.base_url
