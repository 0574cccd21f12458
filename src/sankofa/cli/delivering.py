"""Delivers webhooks as standardwebhooks.com specifies them: at least once, in order, from where it stopped.

One process of a HOME delivers. Each hook has a thread, so one that does not answer holds up no other, and a
cursor on disk, which moves when a message was accepted. What is new follows from the log and from two
editions, so there is no queue to lose.
"""

import asyncio
import hmac
import logging
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace as replaced
from datetime import UTC, date, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import msgspec
from msgspec.structs import replace

from sankofa import __version__
from sankofa.access.records import Cursors
from sankofa.access.tiers import grant
from sankofa.cli.hooks import (
    ASKED,
    EDITION,
    Hook,
    HookCursor,
    hooks_folder,
    read_cursor,
    read_hooks,
    write_cursor,
)
from sankofa.collect.network import ReplyRefused, guarded_transport
from sankofa.edition.read.changes import ADDED, ChangePosition, changed_keys
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.read.row_proofs import feed_of
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import LoggedEdition
from sankofa.engines.private_files import locked, make_private_folder
from sankofa.model.errors import EditionError, NotFound, OperatorError, StoreUnavailable
from sankofa.operations.contract import Call, no_such_edition
from sankofa.operations.locked import ask
from sankofa.replication.stores import open_fresh_store
from sankofa.settings import Settings

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
    """The fields of a row that say which one it is, and when it became public."""

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
    """Deliver until there is no hook. Raises OperatorError if another process does."""
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
    """Sends to one hook what is new, until the hook is removed."""

    def __init__(self, settings: Settings, folder: Path, hook: Hook) -> None:
        self._settings = settings
        self._folder = folder
        self._hook = hook

    def run(self) -> None:
        transport = guarded_transport(allow_private=self._settings.hooks_private == "true")
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
                    _log.exception("hook %s: its messages could not be made", self._hook.id)
                time.sleep(_LOOK_SECONDS)

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
        sent = cursor.sent if target == cursor.target else 0
        before = cursor.edition if cursor.edition in served else ""
        messages = asyncio.run(self._rows(store, before, target, cursor.edition))
        for number, message in enumerate(messages[sent:], sent + 1):
            yield message, HookCursor(cursor.logged, cursor.edition, target, number)
        write_cursor(self._folder, self._hook.id, HookCursor(cursor.logged, target))

    def _editions(self, store: Datastore, cursor: HookCursor) -> Iterator[tuple[Message, HookCursor]]:
        entries = store.log.tree().decoded()
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
        rows: dict[tuple[str, ...], tuple[str, bytes]] = {}
        with ExitStack() as opened:
            after = opened.enter_context(closing(open_edition(store, target)))
            old = opened.enter_context(closing(open_edition(store, before))) if before else None
            cursors = Cursors(self._settings.cursor_secrets())
            call = Call(after, rights, datetime.now(UTC).date(), cursors, no_such_edition)
            async for place, changes, _ in changed_keys(feed, old, after, ChangePosition(feed.dataset)):
                added = {change.key[1:] for change in changes if change.change == ADDED}
                if not added or not self._concerns(place):
                    continue
                for row in await self._asked(call, place):
                    fields = msgspec.json.decode(row, type=_Identity)
                    seen = fields.observed_at.replace("-", "").replace(":", "")
                    if fields.key in added and seen >= captured:
                        rows[fields.key] = fields.release_date or fields.available_at, bytes(row)
        verb = "restated" if hook.on == "restatement" else "published"
        at = next((when for when, name in store.log.published() if name == target), datetime.now(UTC))
        ordered = sorted(rows.items(), key=lambda item: (item[1][0], item[0]))
        return [self._message(key, verb, at.isoformat(), row) for key, (_, row) in ordered]

    def _concerns(self, place: ChangePosition) -> bool:
        name = "country" if self._hook.on == "release" else "service_id"
        return self._hook.filters.get(name, place.key).upper() == place.key

    async def _asked(self, call: Call, place: ChangePosition) -> list[msgspec.Raw]:
        """The rows of a country's day or of an issuer that the filters let through."""
        given = {**self._hook.filters, "limit": str(_EVERY_ROW)}
        if self._hook.on == "release":
            day = str(date.fromordinal(place.part))
            given |= {"country": place.key, "from": day, "to": day, "detail": "compact"}
        else:
            given["service_id"] = place.key
        try:
            answer = await ask(call, ASKED[self._hook.on], given)
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
        """Why it was not accepted; empty if it was."""
        stamp = str(int(time.time()))
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
