"""What `sankofa doctor` asks of the stores: whether they answer, and whether what they hold is whole."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sankofa.cli.clock import now
from sankofa.cli.findings import Finding, to_have_an_edition
from sankofa.cli.key_store import opened_keys
from sankofa.edition.read.edition import open_edition
from sankofa.engines.datastore import Datastore, LedgerRows
from sankofa.engines.factory import open_keyvalue
from sankofa.engines.publication import Publication
from sankofa.ledger import seals
from sankofa.model.errors import EditionError, OperatorError, SettingsError, StoreUnavailable
from sankofa.replication.state import read_state
from sankofa.replication.stores import open_store
from sankofa.settings import Settings

_DAY = timedelta(days=1)


def store_findings(settings: Settings) -> Iterator[Finding]:
    yield from _key_store(settings)
    yield from _usage_store(settings)
    if settings.editions:
        yield _following(settings)
    elif (folder := settings.datastore_folder()) and not (folder / "ledger.sqlite").exists():
        yield Finding("ledger", "warning", "there is none yet", to_have_an_edition(settings))
    else:
        yield from _ledger(settings)
    yield from _editions(settings)


def _key_store(settings: Settings) -> Iterator[Finding]:
    if _not_there(settings, settings.keystore, "keys"):
        yield Finding("key store", "ok", "no key is issued yet")
        return
    if settings.lacks_keys_secret():
        return  # told of among the secrets

    async def opened() -> None:
        async with opened_keys(settings):
            pass

    yield _asked("key store", "KEYSTORE", opened())


def _usage_store(settings: Settings) -> Iterator[Finding]:
    if _not_there(settings, settings.usagestore, "usage-counters"):
        yield Finding("usage store", "ok", "nothing is counted yet")
        return

    async def counted() -> None:
        store = open_keyvalue(settings.keyvalue_url(settings.usagestore, "usage"), "usage store")
        try:
            await store.probe_counting()
        finally:
            await store.close()

    yield _asked("usage store", "USAGESTORE", counted())


def _not_there(settings: Settings, url: str, name: str) -> bool:
    return url == "embedded:" and not (settings.home / name).exists()


def _asked(component: str, setting: str, question: Coroutine[Any, Any, None]) -> Finding:
    try:
        asyncio.run(question)
    except StoreUnavailable as failure:
        return Finding(component, "error", failure.cause, f"see that it answers, and SANKOFA_{setting}")
    except SettingsError as failure:
        return Finding(component, "error", str(failure))
    return Finding(component, "ok", "answers")


def _ledger(settings: Settings) -> Iterator[Finding]:
    if settings.lacks_gate_secret():
        return  # told of among the secrets
    try:
        with closing(open_store(settings).ledger()) as session:
            ((captures, newest),) = session.query("SELECT count(*), max(observed_at) FROM capture")
            if captures and not settings.gate_secret and not (settings.home / "gate-secret").exists():
                remedy = "put it back from a backup, or set SANKOFA_GATE_SECRET"
                yield Finding("ledger", "error", "there is a ledger, and no gate secret", remedy)
                return
            keyed = not captures or seals.is_keyed_with(session, settings.gate_key())
            if settings.datastore_folder() is None and _pages_unchecked(session):
                message = "PostgreSQL keeps no checksums of its pages: damage is found when a block is read"
                yield Finding("datastore", "warning", message, "stop it and run: pg_checksums --enable")
    except OperatorError as failure:
        if settings.datastore_folder() is None and "permission denied" in str(failure):
            yield Finding("ledger", "ok", "is not for this role to read, which is enough to serve editions")
        else:
            yield Finding("ledger", "error", str(failure), _remedy(settings, failure))
        return
    if not keyed:
        message = "the gate secret is not the one this ledger was begun with"
        yield Finding("ledger", "error", message, "put the right one back from a backup")
    elif newest is not None and now() < datetime.fromisoformat(newest) - _DAY:
        yield Finding("clock", "error", f"behind the newest capture ({newest})", "set the clock")
    else:
        yield Finding("ledger", "ok", f"{captures} captures; `sankofa ledger verify` reads every row")


def _remedy(settings: Settings, failure: OperatorError) -> str:
    """A backup is for a ledger that is damaged: restored over a sound one, it loses what came after it."""
    if isinstance(failure, SettingsError):
        return "see `sankofa settings`"
    if settings.datastore_folder() is None and not isinstance(failure, seals.LedgerDamaged):
        return "see that the server answers, and SANKOFA_DATASTORE"
    if isinstance(failure.__cause__, OSError) or "unable to open" in str(failure):
        return "see that HOME can be read and written by whoever runs this"
    return "restore it from a backup: docs/operating.md, Damage"


def _pages_unchecked(session: LedgerRows) -> bool:
    return list(session.query("SELECT current_setting('data_checksums')")) != [("on",)]


def _following(settings: Settings) -> Finding:
    state = read_state(settings.home / "editions")
    if complaint := state.complaint(now()):
        remedy = "see that SANKOFA_EDITIONS answers, and that `sankofa serve` or `sankofa follow` runs"
        if state.untrusted:
            remedy = "see SANKOFA_TRUSTED_KEYS and who can write there: docs/operating.md, Signed editions"
        return Finding("following", "error", complaint, remedy)
    return Finding("following", "ok", f"edition {state.remote_edition} is current there")


def _editions(settings: Settings) -> Iterator[Finding]:
    message = "none is pulled yet" if settings.editions else "none is published"
    none_yet = Finding("editions", "warning", message, to_have_an_edition(settings))
    if (folder := settings.datastore_folder()) and not (folder / "editions").exists():
        yield none_yet
        return
    store: Datastore = open_store(settings)
    try:
        listed = store.list_editions()
        if listed.current is None:
            yield none_yet
        elif folder is not None:
            yield _signature(settings, store.publication())
        for edition in dict.fromkeys([*filter(None, [listed.current]), *listed.editions]):
            yield _checked(store, edition, current=edition == listed.current)
    except StoreUnavailable as failure:
        remedy = "see that the store answers, and SANKOFA_DATASTORE"
        yield Finding("editions", "error", failure.cause, remedy)
    finally:
        store.close()
    unfinished = [p.name for p in Path(settings.home / "editions").glob(".building-*")]
    if unfinished:
        message = f"{len(unfinished)} unfinished builds"
        yield Finding("editions", "ok", f"{message}; the next publish removes those that nobody builds")


def _signature(settings: Settings, publication: Publication | None) -> Finding:
    """Whether anybody else could have made what is served. A note that no trusted key signed is an error of
    the store before this is asked."""
    if publication is None:
        remedy = "publish there, then `sankofa follow`" if settings.editions else "run: sankofa publish"
        return Finding("signature", "warning", "an older version published: nothing is signed", remedy)
    names = ", ".join(publication.keys)
    if settings.editions and not settings.trusted_keys:
        message = f"the first key that was seen is trusted: {names}"
        return Finding("signature", "warning", message, "set SANKOFA_TRUSTED_KEYS to what the publisher says")
    return Finding("signature", "ok", f"signed at {publication.written_at} by {names}")


def _checked(store: Datastore, edition: str, *, current: bool) -> Finding:
    """The current one in full; of the others a first look."""
    try:
        open_edition(store, edition, check_all=current).close()
    except EditionError as failure:
        remedy = "run: sankofa publish" if current else "it cannot be rolled back to"
        return Finding("editions", "error" if current else "warning", str(failure), remedy)
    return Finding("editions", "ok", f"{edition} is whole" + (", and current" if current else ""))
