"""`sankofa hooks`: webhooks that announce what is new in an edition, and the progress of each."""

import asyncio
import hmac
import ipaddress
import logging
import secrets
import socket
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace as replaced
from datetime import UTC, date, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import click
import httpcore
import httpx
import msgspec
from msgspec.structs import replace

from sankofa import __version__
from sankofa.access.records import Cursors
from sankofa.access.tiers import grant
from sankofa.cli.output import as_json, print_json, print_table
from sankofa.collect.network import ReplyRefused, guarded_transport, refuse_unsafe
from sankofa.edition.read.changes import ADDED, ChangePosition, changed_keys
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.read.row_proofs import feed_of
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import LoggedEdition
from sankofa.engines.private_files import locked, make_private_folder, operator_errors, replace_file
from sankofa.model.errors import EditionError, InvalidParameter, NotFound, OperatorError, StoreUnavailable
from sankofa.operations.contract import Call, no_such_edition
from sankofa.operations.locked import ask
from sankofa.replication.stores import open_fresh_store
from sankofa.settings import Settings, load

EDITION: Final = "edition"
TOOLS: Final = {"restatement": "get_restatements", "release": "search_tenders"}
"""Events other than new editions, with the operation that gives their rows."""
_OWN: Final = frozenset({"from", "to", "since", "until", "limit", "cursor", "detail", "as_of"})
"""Parameters of these operations that hooks cannot filter by."""
_SECRET_BYTES: Final = 32


class Hook(msgspec.Struct, frozen=True):
    """A webhook: its address and the events that it gets."""

    id: str
    url: str
    on: str
    filters: dict[str, str]
    secret: str


class HookCursor(msgspec.Struct, frozen=True):
    """The progress of a hook. It advances when the address accepts a message."""

    logged: int = 0
    """Number of log entries delivered."""
    edition: str = ""
    """The edition whose rows were delivered."""
    target: str = ""
    """The edition whose rows are being delivered; empty if none."""
    sent: int = 0
    """How many of its new rows were accepted."""
    failure: str = ""
    """Why the last attempt was refused; empty if it was accepted."""


def hooks_folder(settings: Settings) -> Path:
    return settings.home / "hooks"


def read_hooks(folder: Path) -> dict[str, Hook]:
    """Every hook by its id. Other files are skipped."""
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
@click.option("--on", type=click.Choice((EDITION, *TOOLS)), required=True, help="What to send.")
@click.option(
    "--filter",
    "filters",
    metavar="NAME=VALUE",
    multiple=True,
    help="Only rows of this filter of /v1/restatements or /v1/tenders; may be repeated.",
)
def add_hook(url: str, on: str, filters: Sequence[str]) -> None:
    """Send news from now on to URL. Prints only the secret that signs the messages."""
    settings = load()
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
    folder = hooks_folder(load())
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
    """Remove a hook: nothing more is sent to it."""
    folder = hooks_folder(load())
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
            raise click.BadParameter(f"{name} is not a filter of {on}", param_hint="--filter")
        try:
            operation_named(TOOLS[on]).read({name: value}, today)
        except InvalidParameter as failure:
            raise click.BadParameter(failure.detail, param_hint="--filter") from None
        checked[name] = value
    return checked


def _check_address(url: str, *, allow_private: bool) -> None:
    """Raises OperatorError. A host name is resolved again at each delivery, so it need not resolve now."""
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


_log = logging.getLogger("sankofa.hooks")
_LOOK_SECONDS: Final = 1.0
_FIRST_RETRY: Final = 2.0
_LONGEST_WAIT: Final = 300.0
_TIMEOUT: Final = 15.0
_EVERY_ROW: Final = 10**9
_DATASETS: Final = {"restatement": "fundamentals", "release": "tenders"}


class Message(NamedTuple):
    """A message to an address. Its id is the same in each attempt."""

    id: str
    payload: bytes


class _Identity(msgspec.Struct):
    """The fields of a row that identify it, and the day it became public."""

    ocid: str = ""
    release_id: str = ""
    release_date: str = ""
    record_ref: str = ""
    available_at: str = ""
    observed_at: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.record_ref,) if self.record_ref else (self.ocid, self.release_id, self.release_date)


def deliver(settings: Settings) -> None:
    """Deliver until no hook is left. Raises OperatorError if another process is delivering."""
    folder = hooks_folder(settings)
    make_private_folder(folder)
    with locked(folder / ".lock", refusal="the hooks of this HOME are delivered by another process"):
        threads: dict[str, threading.Thread] = {}
        while hooks := read_hooks(folder):
            for hook in hooks.values():
                if hook.id not in threads or not threads[hook.id].is_alive():
                    work = Delivery(settings, folder, hook).run
                    threads[hook.id] = threading.Thread(target=work, name=f"hook {hook.id}", daemon=True)
                    threads[hook.id].start()
            time.sleep(_LOOK_SECONDS)


class Delivery:
    """Sends news to one hook until the hook is removed."""

    def __init__(self, settings: Settings, folder: Path, hook: Hook) -> None:
        self._settings = settings
        self._folder = folder
        self._hook = hook
        self._until = 0.0
        """Deadline for the answer to this attempt."""

    def run(self) -> None:
        transport = guarded_transport(self._look, allow_private=self._settings.hooks_private == "true")
        with (
            closing(open_fresh_store(self._settings)) as store,
            httpx.Client(transport=transport, timeout=_TIMEOUT, follow_redirects=False) as client,
        ):
            while self._is_there():
                try:
                    for message, cursor in self._new(store):
                        if not self._accepted(client, message):
                            return
                        write_cursor(self._folder, self._hook.id, cursor)
                except (OperatorError, EditionError, StoreUnavailable, OSError) as failure:
                    _log.warning("hook %s: %s", self._hook.id, failure)
                except Exception:
                    _log.exception("hook %s: cannot build its messages", self._hook.id)
                time.sleep(_LOOK_SECONDS)

    def _look(self, _: int) -> None:
        if time.monotonic() > self._until:
            raise httpcore.ReadTimeout(f"no answer in {_TIMEOUT:.0f} s")

    def _is_there(self) -> bool:
        return (self._folder / f"{self._hook.id}.json").exists()

    def _new(self, store: Datastore) -> Iterator[tuple[Message, HookCursor]]:
        """The messages still to be sent, each with the cursor after it."""
        cursor = read_cursor(self._folder, self._hook.id)
        if self._hook.on == EDITION:
            yield from self._editions(store, cursor)
            return
        listed = store.list_editions()
        served = set(listed.editions) - (store.withdrawn() - {listed.current})
        target = cursor.target if cursor.target in served else listed.current
        if target is None or target == cursor.edition:
            return
        if target != cursor.target:  # noted first, so that a message is the same in each attempt
            cursor = HookCursor(cursor.logged, cursor.edition, target)
            write_cursor(self._folder, self._hook.id, cursor)
        before = cursor.edition if cursor.edition in served else ""
        messages = asyncio.run(self._rows(store, before, target, cursor.edition))
        for number, message in enumerate(messages[cursor.sent :], cursor.sent + 1):
            yield message, HookCursor(cursor.logged, cursor.edition, target, number)
        write_cursor(self._folder, self._hook.id, HookCursor(cursor.logged, target))

    def _editions(self, store: Datastore, cursor: HookCursor) -> Iterator[tuple[Message, HookCursor]]:
        entries = store.log.tree().decoded
        for number, entry in enumerate(entries[cursor.logged :], cursor.logged + 1):
            after = HookCursor(number, cursor.edition)
            if isinstance(entry, LoggedEdition):
                data = msgspec.json.encode({name: getattr(entry, name) for name in entry.__struct_fields__})
                yield self._message((entry.edition,), "published", entry.published_at, data), after

    async def _rows(self, store: Datastore, before: str, target: str, last: str) -> list[Message]:
        """A message for each new row, the oldest first.

        If that edition was removed, rows captured since then are new.
        """
        hook, feed = self._hook, feed_of(_DATASETS[self._hook.on])
        rights = replaced(grant(self._settings, "hooks", "professional", None, None), row_cap=_EVERY_ROW)
        captured = "" if before else last[:16]
        filtered_key = hook.filters.get("country" if hook.on == "release" else "service_id")
        rows: dict[tuple[str, ...], tuple[str, bytes]] = {}
        with ExitStack() as opened:
            after = opened.enter_context(closing(open_edition(store, target)))
            old = opened.enter_context(closing(open_edition(store, before))) if before else None
            cursors = Cursors(self._settings.cursor_secrets())
            call = Call(after, rights, datetime.now(UTC).date(), cursors, no_such_edition)
            async for position, changes, _ in changed_keys(feed, old, after, ChangePosition(feed.dataset)):
                added = {change.key[1:] for change in changes if change.change == ADDED}
                if not added or (filtered_key is not None and filtered_key.upper() != position.key):
                    continue
                for row in await self._matching_rows(call, position):
                    fields = msgspec.json.decode(row, type=_Identity)
                    observed = fields.observed_at.replace("-", "").replace(":", "")
                    if fields.key in added and observed >= captured:
                        rows[fields.key] = fields.release_date or fields.available_at, bytes(row)
        verb = "restated" if hook.on == "restatement" else "published"
        at = next((when for when, name in store.log.published() if name == target), datetime.now(UTC))
        ordered = sorted(rows.items(), key=lambda item: (item[1][0], item[0]))
        return [self._message(key, verb, at.isoformat(), row) for key, (_, row) in ordered]

    async def _matching_rows(self, call: Call, position: ChangePosition) -> list[msgspec.Raw]:
        """The rows of an issuer, or of a day in a country, that match the filters."""
        arguments = {**self._hook.filters, "limit": str(_EVERY_ROW)}
        if self._hook.on == "release":
            day = str(date.fromordinal(position.part))
            arguments |= {"country": position.key, "from": day, "to": day, "detail": "compact"}
        else:
            arguments["service_id"] = position.key
        try:
            answer = await ask(call, TOOLS[self._hook.on], arguments)
        except NotFound:
            return []
        return msgspec.json.decode(
            b"[%b]" % bytes(answer.selection.rows).removeprefix(b","), type=list[msgspec.Raw]
        )

    def _message(self, key: tuple[str, ...], verb: str, at: str, data: bytes) -> Message:
        kind = f"{self._hook.on}.{verb}"
        name = blake2b("\x1f".join((self._hook.id, kind, *key)).encode(), digest_size=16).hexdigest()
        head = msgspec.json.encode({"type": kind, "timestamp": at.replace("+00:00", "Z")})
        return Message(f"msg_{name}", b'%b,"data":%b}' % (head[:-1], data))

    def _accepted(self, client: httpx.Client, message: Message) -> bool:
        """Send until the address accepts it. False if the hook is removed meanwhile."""
        wait = _FIRST_RETRY
        while self._is_there():
            failure = self._attempt(client, message)
            if not failure:
                return True
            _log.warning("hook %s: %s", self._hook.id, failure)
            cursor = read_cursor(self._folder, self._hook.id)
            write_cursor(self._folder, self._hook.id, replace(cursor, failure=failure))
            until = time.monotonic() + wait
            while time.monotonic() < until and self._is_there():
                time.sleep(min(_LOOK_SECONDS, max(0.0, until - time.monotonic())))
            wait = min(2 * wait, _LONGEST_WAIT)
        return False

    def _attempt(self, client: httpx.Client, message: Message) -> str:
        """Why the message was refused; empty if it was accepted."""
        stamp, self._until = str(int(time.time())), time.monotonic() + _TIMEOUT
        headers = {
            "content-type": "application/json",
            "user-agent": f"Sankofa/{__version__}",
            "webhook-id": message.id,
            "webhook-timestamp": stamp,
            "webhook-signature": signature(self._hook.secret, message, stamp),
        }
        try:
            with client.stream("POST", self._hook.url, content=message.payload, headers=headers) as reply:
                return "" if reply.is_success else f"answered {reply.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL, ReplyRefused, OSError) as failure:
            return str(failure) or type(failure).__name__


def signature(secret: str, message: Message, timestamp: str) -> str:
    """The header field of Standard Webhooks: HMAC-SHA256 over id, time and payload."""
    content = b"%b.%b.%b" % (message.id.encode(), timestamp.encode(), message.payload)
    key = b64decode(secret.removeprefix("whsec_"))
    return f"v1,{b64encode(hmac.new(key, content, sha256).digest()).decode()}"
