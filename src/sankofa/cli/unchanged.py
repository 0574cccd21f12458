"""Whether anything that an edition is made of changed since the last one was published from this HOME.

An edition follows from the ledger, the entries of the sources and the code, and from nothing else. What they
were is written down when one is published; where they are the same, and that edition is whole and current,
building it again would give it again. A ledger in a file that was written to since is read in full, as ever:
it might be damaged.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa.engines.datastore import Datastore
from sankofa.engines.private_files import replace_file
from sankofa.ledger.store import Ledger
from sankofa.model.errors import EditionError, OperatorError
from sankofa.settings import Settings
from sankofa.sources.registry import Source

_FILE: Final = ".last-publication.json"


class PublicationInputs(msgspec.Struct, frozen=True):
    """What an edition is made of."""

    ledger: tuple[int, str]
    """The position and the chain of the last seal."""
    others: str
    """A digest of the sources and the code."""


class _Publication(msgspec.Struct, frozen=True):
    edition: str
    inputs: PublicationInputs
    file: tuple[int, int, int, int] | None
    """The file of the ledger: its inode, size and time of change; and the size of its `-wal` file."""
    edition_files: str = ""
    """A digest of which files the edition has: their inodes, sizes and times of writing. Where they are the
    same, nothing wrote to them since they were compared; what a disk forgets, those notice who serve it."""


def publication_inputs(
    ledger: Ledger, sources: Mapping[str, Source], *, despite_floors: bool
) -> PublicationInputs:
    head = list(ledger.rows("SELECT position, chain FROM seal ORDER BY position DESC LIMIT 1"))
    position, chain = head[0] if head else (0, "")
    digest = hashlib.sha256(msgspec.json.encode([sources, despite_floors]) + _code_state())
    return PublicationInputs((int(position), str(chain)), digest.hexdigest())


@cache
def _code_state() -> bytes:
    """Name, size and time of change of every file that has a part in an edition, as this process met it."""
    package = Path(str(files("sankofa")))
    lines = []
    for folder, inside, names in os.walk(package):
        inside[:] = sorted({*inside} - {"__pycache__", "client"})
        place = Path(folder)
        for name in sorted(names):
            if name.endswith((".py", ".sql", ".toml", ".json", ".csv")):
                known = (path := place / name).stat()
                lines.append(f"{path.relative_to(package)} {known.st_size} {known.st_mtime_ns}\n")
    return "".join(lines).encode()


def unchanged_edition(
    settings: Settings, store: Datastore, ledger: Ledger, inputs: PublicationInputs
) -> dict[str, Any] | None:
    """The manifest of the current edition, where it is what would be published now. Raises OperatorError."""
    try:
        last = msgspec.json.decode((settings.home / _FILE).read_bytes(), type=_Publication)
    except (OSError, msgspec.DecodeError):
        return None
    if last.inputs != inputs or store.list_editions().current != last.edition:
        return None
    if last.file is None:
        ledger.verify()
    elif last.file != ledger_file(settings):
        return None
    untouched = last.edition_files and last.edition_files == _edition_files(settings, last.edition)
    try:
        with closing(store.open(last.edition, check_all=not untouched)) as edition:
            return dict(edition.manifest)
    except EditionError:
        return None


def record_publication(settings: Settings, edition: str, inputs: PublicationInputs) -> None:
    """Write down what was published of what, once the ledger is closed."""
    last = _Publication(edition, inputs, ledger_file(settings), _edition_files(settings, edition))
    with suppress(OSError, OperatorError):  # without it the next publish only takes longer
        replace_file(settings.home / _FILE, msgspec.json.encode(last))


def _edition_files(settings: Settings, edition: str) -> str:
    """Empty where it is not in files."""
    if settings.datastore != "sqlite:":
        return ""
    digest = hashlib.sha256()
    folder = settings.home / "editions" / edition
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            known = path.stat()
            written = f"{known.st_ino} {known.st_size} {known.st_mtime_ns}"
            digest.update(f"{path.relative_to(folder)} {written}\n".encode())
    return digest.hexdigest()


def ledger_file(settings: Settings) -> tuple[int, int, int, int] | None:
    """Which state of which file the ledger is; None where it is in a server."""
    if settings.datastore != "sqlite:":
        return None
    known = (settings.home / "ledger.sqlite").stat()
    try:
        waiting = (settings.home / "ledger.sqlite-wal").stat().st_size
    except FileNotFoundError:
        waiting = 0
    return known.st_ino, known.st_size, known.st_mtime_ns, waiting
