"""The page of the installation's owner: sources, rejected rows, keys, editions, disk and status."""

import asyncio
import shutil
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa.access.keys import KeyRecord
from sankofa.access.tiers import LastUsed
from sankofa.collect.fetch import StateFile
from sankofa.engines.datastore import Datastore
from sankofa.model.errors import NotFound, StoreUnavailable
from sankofa.operations.service import Service
from sankofa.settings import Settings
from sankofa.sources.registry import Source, load_sources
from sankofa.web.jobs import COMMANDS, OPERATOR, Jobs
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_MOST_REJECTS: Final = 20
_MOST_KEYS: Final = 200
_PARTS: Final = ("editions", "ledger.sqlite", "vault", "derived", "collect", "rejects", "shared")
"""Folders that take space in HOME."""


@page(OPERATOR, cached=False)
async def operator(visit: Visit) -> View:
    """The owner's page; hidden from everybody else."""
    if not visit.call.grant.owner:
        raise NotFound("This page is the owner's: `sankofa open` signs you in.")
    visit.refuse_lock()
    service, settings = visit.service, visit.service.settings
    sources = (await visit.ask("get_sources", shown=False)).rows
    jobs = Jobs(settings.home)
    context: dict[str, Any] = {
        "sources": await asyncio.to_thread(_sources, settings, sources),
        "rejects": await asyncio.to_thread(_rejects, settings.home / "rejects"),
        "keys": await _keys(service),
        "editions": await asyncio.to_thread(_editions, service.datastore),
        "disk": await asyncio.to_thread(_disk, settings.home),
        "checks": await service.probe(),
        "home": str(settings.home.absolute()),
        "log": await asyncio.to_thread(jobs.lines),
        "running": await asyncio.to_thread(jobs.is_running),
        "commands": {name: " ".join(("sankofa", *words)) for name, words in COMMANDS.items()},
    }
    return View("operator.html", visit.language.text("Operator"), context)


def _sources(settings: Settings, rows: list[Row]) -> list[tuple[Source, Row, str]]:
    """Every registered source with its row of `/v1/sources` and its last collection."""
    served = {row["source_id"]: row for row in rows}
    sources = []
    for source in load_sources(settings.home).values():
        row = served.get(source.id, {})
        state = StateFile(settings.home, source.id).state
        if not row and not state.succeeded_at and source.collect is None:
            continue
        sources.append((source, row, state.succeeded_at))
    return sorted(sources, key=lambda one: (not one[1].get("row_count"), one[0].id))


class _Reject(msgspec.Struct):
    file: str
    reason: str
    position: str = ""
    count: int = 1


def _rejects(folder: Path) -> list[tuple[str, str, int, str]]:
    """The newest files of rejected rows: the number of rows for each reason, and the first such row."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime, reverse=True)
    listed = []
    for file in files[:_MOST_REJECTS]:
        reasons: Counter[str] = Counter()
        first: dict[str, str] = {}
        with file.open("rb") as lines:
            for line in lines:
                with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    reject = msgspec.json.decode(line, type=_Reject)
                    reasons[reject.reason] += reject.count
                    first.setdefault(reject.reason, f"{reject.file} {reject.position}".strip())
        listed += [(file.name, reason, count, first[reason]) for reason, count in reasons.most_common(3)]
    return listed


async def _keys(service: Service) -> list[tuple[KeyRecord, int | None, int | None, date | None]]:
    """Usable keys with their monthly limit, usage and day of last use."""
    used = LastUsed(service.usagestore)
    keys = []
    for record in (await service.keys.list())[-_MOST_KEYS:]:
        if record.revoked_at is not None or service.keys.is_expired(record):
            continue
        grant = service.keys.grant_of(record)
        month = last = None
        with suppress(StoreUnavailable):
            _, month = await service.quotas.read(grant)
            last = await used.day_of(record.id)
        keys.append((record, grant.per_month, month, last))
    return keys


def _editions(store: Datastore) -> list[tuple[str, int, bool, str | None]]:
    """The kept editions, each with its size, its predecessor and whether it is current."""
    listed = store.list_editions()
    before = zip(listed.editions, [*listed.editions[1:], None], strict=True)
    return [(name, _size(store.edition_folder(name)), name == listed.current, one) for name, one in before]


def _disk(home: Path) -> dict[str, Any]:
    usage = shutil.disk_usage(home)
    parts = {name: _size(home / name) for name in _PARTS if (home / name).exists()}
    return {"free": usage.free, "total": usage.total, "parts": parts}


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder. Files removed meanwhile are not counted."""
    if path.is_file():
        return path.stat().st_size
    total = 0
    for file in path.rglob("*"):
        with suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total
