"""`sankofa upgrade-check`: whether what older versions left in HOME can be used as it is."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

from sankofa.cli.findings import Finding
from sankofa.edition.format.layout import LAYOUT
from sankofa.engines.factory import open_keyvalue
from sankofa.ledger import seals
from sankofa.ledger.transfer import table_names
from sankofa.model.errors import EditionError
from sankofa.replication.stores import open_store
from sankofa.settings import Settings


def check_layouts(settings: Settings) -> list[Finding]:
    """Of the ledger, every edition and the key records. Raises OperatorError or StoreUnavailable."""
    return [*_ledger(settings), *_editions(settings), *_keys(settings)]


def _ledger(settings: Settings) -> Iterator[Finding]:
    store = open_store(settings)
    tables = store.ledger_tables()
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
    with closing(store.ledger()) as session:
        if any(seals.unsealed_captures(session)):
            remedy = "the next ingest or publish seals them as they are; back up first"
            yield Finding("ledger", "warning", "captures of an older version have no seals", remedy)
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


def _keys(settings: Settings) -> Iterator[Finding]:
    if settings.keystore == "embedded:" and not (settings.home / "keys").exists():
        yield Finding("key store", "ok", "no key is issued yet")
        return

    async def sealed() -> bool:
        store = open_keyvalue(settings.keyvalue_url(settings.keystore, "keys"), "key store")
        try:
            return await store.get("seals") is not None
        finally:
            await store.close()

    if asyncio.run(sealed()):
        yield Finding("key store", "ok", "of this version's layout")
    else:
        message = "records of an older version have no seals"
        yield Finding("key store", "warning", message, "the next start seals them as they are; back up first")
