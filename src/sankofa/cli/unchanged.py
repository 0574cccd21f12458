"""Whether anything that an edition is made of changed since the last one was published from this HOME.

An edition follows from the ledger, the entries of the sources and the code, and from nothing else. What they
were is written down when one is published; where they are the same, and that edition is whole and current,
building it again would give it again. A ledger that was written to since is read in full, as ever: it might
be damaged.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa.edition.format.layout import LAYOUT
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
    written: str
    """`Datastore.written_state`, once ledger and edition were compared with their seals."""


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
    """The manifest of the current edition, where it is what would be published now.

    Ledger and edition are compared with their seals where anything was written to them since they last were.
    Raises OperatorError.
    """
    try:
        last = msgspec.json.decode((settings.home / _FILE).read_bytes(), type=_Publication)
    except (OSError, msgspec.DecodeError):
        return None
    if last.inputs != inputs or store.list_editions().current != last.edition:
        return None
    if settings.datastore_folder() and store.publication() is None:
        return None  # an older version built it: it is to be signed
    written = store.written_state(last.edition)
    try:
        if last.written != written:
            ledger.verify()
            store.open(last.edition, check_all=True).close()
            _write(settings, msgspec.structs.replace(last, written=written))
        manifest = dict(store.manifest(last.edition))
    except EditionError:
        return None
    return manifest if manifest.get("format") == LAYOUT else None


def record_publication(settings: Settings, store: Datastore, edition: str, inputs: PublicationInputs) -> None:
    """Write down what was published of what, once the ledger is closed."""
    with suppress(OperatorError):
        _write(settings, _Publication(edition, inputs, store.written_state(edition)))


def _write(settings: Settings, last: _Publication) -> None:
    with suppress(OSError, OperatorError):  # without it the next publish only takes longer
        replace_file(settings.home / _FILE, msgspec.json.encode(last))
