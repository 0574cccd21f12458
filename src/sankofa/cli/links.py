"""Addresses that open the service: `sankofa keys link` for clients that cannot send a key, `sankofa open` for
the owner of this installation.
"""

import asyncio
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click

from sankofa import settings
from sankofa.access.domains import Domains
from sankofa.access.keys import Keys
from sankofa.access.owner import SIGN_IN, Owner
from sankofa.cli.keys import keys, opened_keys, with_keys
from sankofa.cli.process import now
from sankofa.engines.private_files import replace_file
from sankofa.model.errors import OperatorError
from sankofa.settings import Settings

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


@keys.command("link")
@click.argument("id_or_key", metavar="ID|KEY")
@click.option("--path", help="The path and parameters that it opens, e.g. /v1/macro?series=FX.EUR.ZAR.")
@click.option("--dialect", metavar="NAME", help="The dialect that it opens, e.g. fred.")
@click.option("--per-minute", type=click.IntRange(1), default=60, show_default=True, help="Its own limit.")
@click.option("--per-month", type=click.IntRange(1), default=5_000, show_default=True, help="Its own cap.")
@with_keys
async def link(
    store: Keys,
    _: Domains,
    id_or_key: str,
    path: str | None,
    dialect: str | None,
    per_minute: int,
    per_month: int,
) -> None:
    """Print an address that opens one path or one dialect, for a client that cannot send a key."""
    if (path is None) == (dialect is None):
        raise click.UsageError("Give one of --path and --dialect.")
    opens, before, behind = _one_dialect(dialect) if dialect is not None else _one_path(path or "")
    token = await store.link(id_or_key, opens, per_minute, per_month)
    click.echo(f"{settings.load().base_url}{before}{token}{behind}")


def _one_dialect(name: str) -> tuple[str, str, str]:
    """The dialect that the link opens, and the address before and after its token."""
    from sankofa.access.owner import A_DIALECT, FOLDER
    from sankofa.dialects.contract import dialects

    roots = {one.name: one.roots[0] for one in dialects() if not one.open}
    if name not in roots:
        raise OperatorError(f"--dialect: no dialect {name!r}: expected one of {', '.join(roots)}")
    return f"{A_DIALECT}{name}", FOLDER, f"{roots[name]}/"


def _one_path(address: str) -> tuple[str, str, str]:
    from sankofa.access.owner import PATHS, address_of_path
    from sankofa.dialects.contract import dialects
    from sankofa.operations.locked import day_of_path

    address = address.removeprefix(settings.load().base_url)
    path = address.partition("?")[0]
    inside = day_of_path(path, now().date())
    plain = path if inside is None else inside[1]
    if not (plain.startswith(PATHS) or any(one.takes(plain) for one in dialects())):
        raise OperatorError(f"--path: expected one that begins with {', '.join(PATHS)} or is of a dialect")
    try:
        return *address_of_path(address), ""
    except ValueError as failure:
        raise OperatorError(f"--path: {failure}") from None
