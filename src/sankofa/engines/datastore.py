"""The datastore: the append-only ledger, and the published editions.

The ledger is in SQLite or in PostgreSQL: its statements are written once, with `?` for parameters, in the SQL
both understand. An edition is always files under HOME.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from sankofa.engines.edition_log import EditionLog
from sankofa.engines.publication import Manifest, Publication
from sankofa.model.signed_notes import Signer

Row = tuple[Any, ...]
Block = tuple[bytes | memoryview, bytes | memoryview]
"""The index of a block and its rows, as the edition has them (`edition.format.row_blocks`)."""
NeedsRows = Callable[[bytes | memoryview], bool]
"""Whether the rows of a block are needed, by its index."""
ByteRange = tuple[int, int, int]
"""Some of the bytes of a block's rows: the address of the block, where they begin and where they end."""
BLOCK_BITS: Final = 18
"""The lower bits of an address are the number of a block in its part, the others that of the part among those
of its kind: what is in one part moves no address in another."""
ALIASES: Final = "alias"
"""The kind whose keys are an organisation's other ids; each leads to the key of its rows."""
LockName = Literal["publish", "switch"]
"""Locks: one command at a time builds an edition; one at a time moves the pointer or removes editions."""


class LedgerRows(Protocol):
    """The rows of a ledger, to be read by one thread."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Queries inside see the ledger as of the first query; writers do not wait."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        """The rows of a SELECT, streamed."""

    def columns(self, table: str, names: Sequence[str], key: str) -> list[list[Any]]:
        """Columns of a clustered table, for the rows under one value of the first key column, in key
        order. Faster than rows for many of them."""

    def close(self) -> None: ...


class LedgerSession(LedgerRows, Protocol):
    """One connection to the ledger, for one thread."""

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; writers of the ledger take turns."""

    def encoded_rows(self, table: str, order: str = "") -> Iterator[tuple[int, bytes]]:
        """Every row of a table: its capture_id (0 if the table has none), and its columns as a JSON
        array as msgspec writes it; `order` is an ORDER BY, to read through an index."""

    def watch(self, saw: Callable[[str, Sequence[Row]], None] | None) -> None:
        """Calls a function with the table and the rows of every later append; None stops that."""

    def append(self, table: str, rows: Sequence[Row]) -> int:
        """Append the rows that are not there yet; how many were new."""

    def stage(self, table: str, rows: Sequence[Row]) -> None:
        """Bulk-load rows into the empty staging copy of a table, private to this session."""

    def absorb(self, statement: str) -> int:
        """Append from the staging copies what the statement selects; how many rows were new."""


class LedgerStore(Protocol):
    """The ledger's store, SQLite or PostgreSQL. No call needs an edition."""

    def open(self) -> LedgerSession: ...

    def opener(self) -> Callable[[], LedgerRows]:
        """A function that opens the ledger in another process, to read it; it can be pickled."""

    def tables(self) -> frozenset[str]:
        """The tables of the ledger, whichever version created them; nothing is created."""

    def captured(self) -> list[tuple[str, str]]:
        """(source id, counts as JSON) of every capture; empty if there is none.

        Raises OperatorError or StoreUnavailable, and never waits for long.
        """

    def written_state(self) -> str:
        """A text that changes with every write to the ledger, and not when a ledger is opened."""

    def exclusive(self, lock_name: LockName, waiting: Callable[[], None]) -> AbstractContextManager[None]:
        """Runs one command at a time on all machines that share this ledger; `waiting` is called if this
        one must wait. The lock ends with the process that holds it."""

    async def ping(self) -> None:
        """A real read. Raises StoreUnavailable."""

    def close(self) -> None:
        """Close the connections of the serving side."""


class EditionWriter(Protocol):
    """An edition being built: invisible to every reader until it is finished.

    It consists of parts; everything written up to `end_part` is one part.
    """

    files: Path
    """A folder for files; those that the manifest lists become part of the edition."""

    def write(self, blocks: Iterable[tuple[int, bytes, bytes]], dataset: str = "") -> None:
        """Append blocks: (id, index, rows), ids ascending, from 1 in each part. The part belongs to the
        dataset that is named first."""

    def register(self, directory: Iterable[tuple[str, str, int, int]]) -> None:
        """Append directory rows: (kind, key, first block id, number of blocks)."""

    def end_part(self, content: str) -> None:
        """Ends a part; `content`, the digest of what was written, identifies it."""

    def reuse(self, content: str) -> bool:
        """Adds a part with this content from a stored edition; False if none has it."""

    def reuse_file(self, name: str, sha256: str) -> bool:
        """The same for a file of `files`."""

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Make it durable and complete under its name. Not yet current.

        `manifest["files"]` has the `name`, `size_bytes` and `sha256` of each file. `manifest["parts"]` has of
        each part its `content`, the `kinds` of keys in it, and the `first` of these keys: the parts of a kind
        follow each other in the order of their keys. Without it, all that was written is one part.
        """

    def abandon(self) -> None:
        """Leave nothing behind."""


class EditionReader(Protocol):
    """A published edition, immutable. Every read raises StoreUnavailable if the store does not answer or
    its content is damaged; then `damage` is set."""

    manifest: Manifest
    damage: str | None
    """The fault that was found since it was opened. A damaged edition should no longer be served."""

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> Sequence[Block] | None:
        """Up to `most` blocks (index, rows) under a key, after the first `skip`; None if there is no such
        key. If `needs_rows` refuses the index of a block, its rows may be left out."""

    async def byte_ranges(self, kind: str, ranges: Sequence[ByteRange]) -> Sequence[bytes | memoryview]:
        """Bytes out of the rows of blocks of a kind, whatever their keys: one value for each range."""

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        """The bytes [start, end) of one of its files, within its size: as many as fit in memory."""

    def row_trees(self) -> bytes:
        """The hashes of its rows. Raises OSError if this machine has none."""

    async def digests(self, kind: str, after: str, most: int) -> Sequence[tuple[str, bytes]]:
        """Up to `most` keys of a kind that follow a key, in the order of their bytes, each with a digest
        of its blocks, to be compared with that of another edition of the same store.

        Empty if that would take long.
        """

    def scrub(self, most: int) -> None:
        """Compares the next bytes with their digests, about `most` of them, and starts over at the end.
        With 0 it only checks whether another process is about to change the file. Call it in a thread."""

    def close(self) -> None: ...


class EditionList(NamedTuple):
    """The published edition ids, newest first, and the one that is served."""

    editions: tuple[str, ...]
    current: str | None


class Datastore(Protocol):
    """Everything an engine must do."""

    @property
    def ledgers(self) -> LedgerStore: ...

    log: EditionLog

    def build(self) -> EditionWriter: ...

    def open(self, edition: str, *, check_all: bool = False) -> EditionReader:
        """Raises EditionError when it is corrupt, incomplete or gone.

        Its manifest must be the one that was sealed. With `check_all` every byte is compared with what was
        published; else as many as take a moment, the others when they are read, and none that this
        process has compared before.
        """

    def manifest(self, edition: str) -> Manifest:
        """The sealed manifest; reads nothing else of the edition. Raises EditionError."""

    def list_editions(self) -> EditionList: ...

    def written_state(self, edition: str) -> str:
        """A text that changes with any write to the ledger or to this edition. While it is the same,
        neither needs to be verified again. Opening a ledger does not change it."""

    def edition_folder(self, edition: str) -> Path:
        """The files of an edition, as `engines.edition_folder` writes them."""

    def exclusive(
        self, lock_name: LockName, waiting: Callable[[], None] = lambda: None
    ) -> AbstractContextManager[None]:
        """Runs one command at a time on this store, on any machine; the others wait. `waiting` is called
        once if another holds the lock. The lock ends with the process that holds it."""

    def set_current_and_prune(self, editions: Sequence[str], current: str) -> None:
        """Point at `current` in one atomic step, then remove every edition that is not listed.

        First it is added to the list of everything ever published.
        """

    def list_as_published(self, editions: Collection[str]) -> None:
        """Adds the editions of the store that this one was restored from to the list of `published`."""

    def published(self) -> frozenset[str]:
        """The id of every edition that was ever current, kept or not: an append-only list."""

    def withdraw(self, editions: Collection[str]) -> None:
        """Marks stored editions as withdrawn: they may not be served in place of a newer one."""

    def withdrawn(self) -> frozenset[str]:
        """Every withdrawn edition. The list is append-only, like `published`."""

    def publication(self) -> Publication | None:
        """The signed note of this store; None if nothing is signed yet. Raises StoreUnavailable if no
        trusted key signed it."""

    def share_log(self) -> None:
        """Sends the log to the other machines of a shared store. Raises OperatorError."""

    def is_shared(self) -> bool:
        """Whether the other machines of a shared store, if any, can read the current edition."""

    def signers(self) -> tuple[Signer, ...]:
        """The keys of this HOME, created if there are none. Raises OperatorError."""

    async def ping(self) -> None:
        """A real read. Raises StoreUnavailable."""

    def close(self) -> None:
        """Close the connections of the serving side."""
