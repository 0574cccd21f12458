"""`sankofa hooks`: addresses that are told what is new in an edition, and how far each of them is."""

import ipaddress
import secrets
import socket
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
import msgspec

from sankofa import settings as environment
from sankofa.cli.output import as_json, print_json, print_table
from sankofa.collect.network import ReplyRefused, refuse_unsafe
from sankofa.engines.private_files import make_private_folder, operator_errors, replace_file
from sankofa.model.errors import InvalidParameter, OperatorError
from sankofa.replication.stores import open_fresh_store
from sankofa.settings import Settings

EDITION: Final = "edition"
ASKED: Final = {"restatement": "get_restatements", "release": "search_tenders"}
"""The events of hooks other than editions, with the operation that gives the rows."""
_OWN: Final = frozenset({"from", "to", "since", "until", "limit", "cursor", "detail", "as_of"})
"""Parameters of these operations that are no filters of a hook."""
_SECRET_BYTES: Final = 32


class Hook(msgspec.Struct, frozen=True):
    """A webhook: its address and the events that it gets."""

    id: str
    url: str
    on: str
    filters: dict[str, str]
    secret: str


class HookCursor(msgspec.Struct, frozen=True):
    """How far a hook is. It moves once the address has accepted a message."""

    logged: int = 0
    """Number of log entries delivered."""
    edition: str = ""
    """The edition whose rows were delivered."""
    target: str = ""
    """The edition whose rows are being delivered; empty if none."""
    sent: int = 0
    """How many of its new rows were accepted."""
    failure: str = ""
    """Why the last attempt was not accepted; empty if it was."""


def hooks_folder(settings: Settings) -> Path:
    return settings.home / "hooks"


def read_hooks(folder: Path) -> dict[str, Hook]:
    """Every hook by its id. A file that is no hook is passed over."""
    hooks = {}
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, msgspec.DecodeError):
            hooks[path.stem] = msgspec.json.decode(path.read_bytes(), type=Hook)
    return hooks


def read_cursor(folder: Path, hook: str) -> HookCursor:
    """Raises OperatorError: a damaged cursor must not send everything again."""
    path = folder / f"{hook}.cursor"
    with operator_errors(path):
        try:
            return msgspec.json.decode(path.read_bytes(), type=HookCursor)
        except msgspec.DecodeError as failure:
            raise OperatorError(f"{path.name}: {failure}") from failure


def write_cursor(folder: Path, hook: str, cursor: HookCursor) -> None:
    with operator_errors(folder):
        replace_file(folder / f"{hook}.cursor", msgspec.json.encode(cursor))


@click.group()
def hooks() -> None:
    """Send webhooks about new editions, restatements and releases (Standard Webhooks).

    `sankofa serve` delivers them.
    """


@hooks.command("add")
@click.argument("url")
@click.option("--on", type=click.Choice((EDITION, *ASKED)), required=True, help="What to send.")
@click.option(
    "--filter",
    "filters",
    metavar="NAME=VALUE",
    multiple=True,
    help="Only rows of this filter of /v1/restatements or /v1/tenders; may be repeated.",
)
def add_hook(url: str, on: str, filters: Sequence[str]) -> None:
    """Send to URL what is new from now on. Prints the secret that the messages are signed with, alone."""
    settings = environment.load()
    _check_address(url, allow_private=settings.hooks_private == "true")
    checked = _checked_filters(on, filters)
    store = open_fresh_store(settings)
    cursor = HookCursor(len(store.log.tree().entries), store.list_editions().current or "")
    secret = f"whsec_{b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"
    hook = Hook(secrets.token_hex(4), url, on, checked, secret)
    folder = hooks_folder(settings)
    make_private_folder(folder)
    write_cursor(folder, hook.id, cursor)
    with operator_errors(folder):
        replace_file(folder / f"{hook.id}.json", msgspec.json.encode(hook))
    click.echo(secret)


@hooks.command("list")
@as_json
def list_hooks(as_json: bool) -> None:
    """List the hooks, and what is wrong with each."""
    folder = hooks_folder(environment.load())
    lines = []
    for hook in read_hooks(folder).values():
        filters = " ".join(f"{name}={value}" for name, value in hook.filters.items())
        lines.append((hook.id, hook.on, filters, hook.url, read_cursor(folder, hook.id).failure))
    names = ("id", "on", "filter", "url", "failure")
    if as_json:
        print_json([dict(zip(names, line, strict=True)) for line in lines])
    else:
        print_table(names, lines)


@hooks.command("remove")
@click.argument("hook", metavar="ID|URL")
def remove_hook(hook: str) -> None:
    """Send nothing more to a hook."""
    folder = hooks_folder(environment.load())
    removed = [one.id for one in read_hooks(folder).values() if hook in (one.id, one.url)]
    if not removed:
        raise OperatorError(f"no hook {hook!r}: see `sankofa hooks list`")
    for one in removed:
        for ending in ("json", "cursor"):
            (folder / f"{one}.{ending}").unlink(missing_ok=True)
        click.echo(f"removed {one}")


def _checked_filters(on: str, filters: Sequence[str]) -> dict[str, str]:
    from sankofa.operations.locked import operation_named

    checked: dict[str, str] = {}
    today = datetime.now(UTC).date()
    for text in filters:
        name, equals, value = text.partition("=")
        if not equals or name in checked:
            raise click.BadParameter(f"expected NAME=VALUE, each name once: {text}", param_hint="--filter")
        if on == EDITION or name in _OWN:
            raise click.BadParameter(f"{name} is no filter of {on}", param_hint="--filter")
        try:
            operation_named(ASKED[on]).argument(name, value, today)
        except InvalidParameter as failure:
            raise click.BadParameter(failure.detail, param_hint="--filter") from None
        checked[name] = value
    return checked


def _check_address(url: str, *, allow_private: bool) -> None:
    """Raises OperatorError. A name that cannot be resolved now is looked up again at each delivery."""
    parts = urlsplit(url)
    host = parts.hostname
    if parts.scheme not in ("https", "http") or not host or parts.username is not None:
        raise OperatorError(f"{url}: expected http:// or https://, without a user name")
    addresses = [host]
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        addresses = [str(entry[4][0]) for entry in resolved]
    try:
        for address in addresses:
            refuse_unsafe(host, address, allow_private=allow_private)
    except ReplyRefused as refused:
        raise OperatorError(f"{refused}; SANKOFA_HOOKS_PRIVATE=true permits private addresses") from None
