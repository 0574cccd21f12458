"""Editions in PostgreSQL written as files, for those who carry them to other machines.

What comes out are the files that the same edition has on a machine that keeps its editions in files, byte for
byte. What two editions share is written once.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sankofa.engines.checked_file import FileStates
from sankofa.engines.datastore import Manifest
from sankofa.engines.edition_files import OpenParts
from sankofa.engines.edition_folder import EditionFolderWriter, is_whole, remove_edition
from sankofa.engines.postgres_edition import file_pieces
from sankofa.engines.postgres_parts import (
    NOTHING,
    SCHEMA,
    StoredPart,
    block_digest,
    key_digest,
    stored_parts,
)
from sankofa.engines.postgres_server import Server, operator_errors, psycopg
from sankofa.engines.private_files import make_private_folder
from sankofa.model.errors import EditionError

_BLOCKS_AT_ONCE: Final = 64
_SNAPSHOT: Final = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class EditionExport:
    """A folder of editions that were exported."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._opened = OpenParts(FileStates())

    def edition_folder(self, edition: str, manifest: Manifest) -> Path:
        """Written now, unless it is there already, whole. Raises EditionError where it is damaged."""
        destination = self._folder / edition
        if not is_whole(destination, manifest, self._opened):
            make_private_folder(self._folder)
            writer = EditionFolderWriter(self._folder, self._opened)
            try:
                with operator_errors(), self._server.connect() as connection, connection.transaction():
                    connection.execute(_SNAPSHOT)
                    _Export(connection, edition, writer).write(manifest)
            except BaseException:
                writer.abandon()
                raise
        return destination

    def forget_all_but(self, editions: tuple[str, ...]) -> None:
        for path in self._folder.glob("*/manifest.json"):
            if path.parent.name not in editions:
                remove_edition(path.parent)


class _Export:
    """One edition on its way, in one snapshot: nobody who removes it meanwhile is waited for."""

    def __init__(
        self, connection: psycopg.Connection[Any], edition: str, writer: EditionFolderWriter
    ) -> None:
        self._connection = connection
        self._edition = edition
        self._writer = writer

    def write(self, manifest: Manifest) -> None:
        stored = stored_parts(manifest)
        for entry, part in zip(manifest["parts"], stored, strict=False):
            if not self._writer.take_over(entry["content"]):
                self._write_part(part, entry["content"])
        files = manifest.get("files", ())
        for file, part in zip(files, stored[len(manifest["parts"]) :], strict=True):
            if not self._writer.take_over_file(file["name"], file["sha256"]):
                with (self._writer.files / file["name"]).open("xb") as stream:
                    for piece in file_pieces(self._connection, part):
                        stream.write(piece)
        self._writer.finish(self._edition, {name: manifest[name] for name in manifest if name != "stored"})

    def _write_part(self, part: StoredPart, content: str) -> None:
        total = NOTHING
        for number, index, rows in self._blocks(part):
            total = total.with_block(number, block_digest(index, rows))
            self._writer.write([(number, index, rows)])
        if total != part.blocks:
            raise self._damaged(part, "block")
        directory = f"SELECT kind, key, first, blocks FROM {SCHEMA}.directory_{part.dataset} WHERE part = %s"
        keys = self._connection.execute(directory.encode(), (part.id,)).fetchall()
        total = NOTHING
        for row in keys:
            total = total.with_key(key_digest(*row))
        if total != part.keys:
            raise self._damaged(part, "directory")
        self._writer.register(keys)
        self._writer.end_part(content)

    def _blocks(self, part: StoredPart) -> Iterator[tuple[int, bytes, bytes]]:
        statement = (
            f"SELECT number, idx, rows FROM {SCHEMA}.block_{part.dataset} WHERE part = %s ORDER BY number"
        )
        with self._connection.cursor(name="blocks", binary=True) as cursor:
            cursor.itersize = _BLOCKS_AT_ONCE
            cursor.execute(statement.encode(), (part.id,))
            yield from cursor

    def _damaged(self, part: StoredPart, table: str) -> EditionError:
        damage = f"corrupt: {table} is not what was published in part {part.id}"
        return EditionError(f"edition {self._edition}: {damage}")
