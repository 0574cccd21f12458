"""Key records out of one store and into another, sealed anew with the secret of the store they go to."""

from collections.abc import Iterable
from typing import NamedTuple

from sankofa.access.sealing import DamagedRecord, SealedRecords


class StoredRecord(NamedTuple):
    """A record of the key store, without its seal."""

    name: str
    body: bytes


async def read_records(records: SealedRecords) -> tuple[list[StoredRecord], list[str]]:
    """Every whole record of the store, and the reason for each that is left out because it is damaged."""
    whole: list[StoredRecord] = []
    damaged: list[str] = []
    for name in await records.names(""):
        if ":" not in name:  # the store's own mark
            continue
        stored = await records.get(name)
        if stored is None:
            continue
        try:
            whole.append(StoredRecord(name, records.read(name, stored)))
        except DamagedRecord as failure:
            damaged.append(str(failure))
    return whole, damaged


async def write_records(records: SealedRecords, copied: Iterable[StoredRecord]) -> int:
    """Put the records in the store, over those of the same name; how many were not there as they are."""
    await records.prepare()
    changed = 0
    for name, body in copied:
        stored = await records.get(name)
        try:
            same = stored is not None and records.read(name, stored) == body
        except DamagedRecord:
            same = False
        if not same:
            await records.put(name, body)
            changed += 1
    return changed
