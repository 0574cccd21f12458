"""`sankofa open`: the pages in the browser, signed in as the owner of this installation."""

import asyncio
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click

from sankofa import settings
from sankofa.access.owner import SIGN_IN, Owner
from sankofa.cli.keys import opened_keys
from sankofa.cli.process import now
from sankofa.engines.private_files import replace_file
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
