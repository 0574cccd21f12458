"""Writes the datasets of an edition, each row checked, and sums up everything written in one digest."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from sankofa.edition.build.checks import RowCheck, check_days
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import Built, Dataset, KeyRows, Outcome, PreparedKeyRows
from sankofa.edition.build.prepared_rows import PreparedRows
from sankofa.edition.build.row_ranges import RowRanges
from sankofa.edition.format.arrow_columns import columns_kind
from sankofa.edition.format.row_blocks import Entry, row_ends
from sankofa.engines.datastore import EditionWriter

if TYPE_CHECKING:
    from sankofa.edition.build.parquet import ParquetFiles

_BATCH = 256


class DatasetWriter:
    """Writes one dataset after another as blocks."""

    def __init__(self, writer: EditionWriter, digest: Callable[[bytes], None], files: "ParquetFiles") -> None:
        self.rows: dict[str, int] = {}
        """By kind, how many rows there are."""
        self.indexes: dict[str, int] = {}
        """By kind of index, how many entries there are."""
        self.manifest_extras: dict[str, object] = {}
        """What datasets have to tell their readers."""
        self._writer = writer
        self._digest = digest
        self._files = files
        self._built: dict[str, Built[Any]] = {}
        self._next = 1
        self._directory: list[tuple[str, str, int, int]] = []
        self._ranges: RowRanges | None = None
        self._blocks: list[tuple[int, bytes, bytes]] = []

    def write(self, dataset: Dataset, context: BuildContext) -> None:
        """Build a dataset, after those that it needs, and write it."""
        check = _Check(dataset, self._files)
        ranges = RowRanges()
        self._directory = []
        self._ranges = ranges if dataset.ranged else None
        key_rows = _Returning(dataset.build(context, *(self._built[kind] for kind in dataset.needs)))
        rows: Iterable[Entry] | PreparedRows
        for key, rows, aliases in key_rows:
            keys = (key, *aliases)
            if isinstance(rows, PreparedRows):
                check.rows += rows.count
                if rows.columns:
                    self._files.offer_columns(dataset.kind, rows.columns, rows.count)
                self._write_key(dataset.kind, keys, rows.blocks)
                if rows.kept_columns:
                    self._write_columns(dataset.kind, keys, rows.kept_columns)
            else:
                self._write_key(dataset.kind, keys, dataset.pack(check.passed(rows, key)))
        self._flush()
        self._writer.register(self._directory)
        counts = self.indexes if dataset.row is None else self.rows
        counts[dataset.kind] = check.rows
        self._note(dataset.kind, key_rows.returned or Outcome(), ranges)

    def _note(self, kind: str, outcome: Outcome, ranges: RowRanges) -> None:
        self._built[kind] = Built(outcome.result, ranges)
        self.manifest_extras |= outcome.manifest_extras
        if outcome.sources is not None:
            self._files.name_sources(kind, outcome.sources)

    def _write_key(self, kind: str, keys: tuple[str, ...], blocks: Iterable[tuple[bytes, bytes]]) -> None:
        first = self._next
        for block in blocks:
            if self._ranges is not None:
                self._ranges.add(self._next, row_ends(block))
            self._write(block)
        self._register(kind, keys, first)

    def _write_columns(self, kind: str, keys: tuple[str, ...], columns: list[bytes]) -> None:
        first = self._next
        for part in columns:
            self._write((b"", part))
        self._register(columns_kind(kind), keys, first)

    def _register(self, kind: str, keys: tuple[str, ...], first: int) -> None:
        """Let keys lead to the blocks written since."""
        for key in keys:
            self._digest(f"{kind}\x1f{key}\x1f{first}\x1f{self._next - first}\n".encode())
            self._directory.append((kind, key, first, self._next - first))

    def _write(self, block: tuple[bytes, bytes]) -> None:
        self._digest(block[0])
        self._digest(block[1])
        self._blocks.append((self._next, *block))
        self._next += 1
        if len(self._blocks) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(self._blocks)
        self._blocks = []


class _Returning:
    """A builder at work, and what it returned at its end."""

    def __init__(self, key_rows: Iterator[KeyRows] | Iterator[PreparedKeyRows]) -> None:
        self._key_rows = cast("Generator[KeyRows | PreparedKeyRows, None, Outcome | None]", key_rows)
        self.returned: Outcome | None = None

    def __iter__(self) -> Iterator[KeyRows | PreparedKeyRows]:
        self.returned = yield from self._key_rows


class _Check:
    """Rows on their way: each read back, counted, and given to the Parquet files."""

    def __init__(self, dataset: Dataset, files: "ParquetFiles") -> None:
        self.rows = 0
        self._kind = dataset.kind
        self._offer = files.offer if files.takes(dataset.kind) else None
        self._row = None if dataset.row is None else RowCheck(dataset.kind, dataset.row)

    def passed(self, entries: Iterable[Entry], key: str) -> Iterator[Entry]:
        for entry in entries:
            self.rows += 1
            if self._row is None:
                check_days(self._kind, key, entry)
            else:
                row = self._row(key, entry)
                if self._offer is not None:
                    self._offer(self._kind, key, row)
            yield entry
