"""The memo of a build: `part = memo(dataset, partition, digest of inputs)`.

A publication records its results with a digest of their inputs. The next publication reuses every part and
file with the same digest, and builds the rest. The memo is not a source of truth: a part is only reused if a
stored edition still has it undamaged, under the digest of its content.

The ledger only grows, and every capture is sealed with a digest of its rows in each table. So the seals
identify the rows of a table without reading them. The rest of a digest is the code, the registered sources,
and the left-out rows of the ledger. No clock is part of it: a dataset that depends on the clock declares no
inputs and is built each time.

Only the key and its size decide whether a part begins at it, not the keys before. So a change moves only its
own boundary, and other parts stay the same. A partition of organisations also ends after a number of bytes;
such a boundary may move, but not past the next boundary decided by a key.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

from sankofa.edition.format.columns import columns_kind
from sankofa.edition.format.keys import LAYOUT
from sankofa.edition.write.checks import check_failed
from sankofa.edition.write.dataset import Dataset, Input, TallyRow
from sankofa.edition.write.derived_parts import Issuers, begins_part, code_digest
from sankofa.engines.block_file import StoredBlock, stored_block
from sankofa.engines.edition_folder import EditionWriter
from sankofa.engines.edition_reader import BLOCK_BITS
from sankofa.engines.record_file import RecordFile, pack_record
from sankofa.ledger import seals
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.errors import CheckFailed

T = TypeVar("T")
_DIGEST: Final = 32
_MADE: Final = "made"
_EVERY_BIT: Final = (1 << 8 * _DIGEST) - 1
TABLES: Final = {
    Input.MACRO: ("annual", "indicator", "recapture", "series", "series_info"),
    Input.ANNUAL: ("annual", "indicator", "recapture", "series_info"),
    Input.SERIES: ("recapture", "series", "series_info"),
    Input.TENDERS: ("party", "recapture", "release", "withheld", "withheld_party"),
    Input.RECORDS: tuple(
        name
        for name in seals.TABLES
        if name not in ("annual", "capture", "indicator", "series", "series_info")
    ),
}
"""The tables of the ledger that enter the digest of an input by the seals of their rows."""
_write = msgspec.msgpack.Encoder().encode
_read_seal = msgspec.json.Decoder(dict[str, str]).decode


class PartEntry(msgspec.Struct, frozen=True):
    kinds: list[str]
    first: str
    """Its first key; empty for the first part of a dataset."""
    content: str
    """Digest of its keys and blocks."""


class BuildRecord(msgspec.Struct, frozen=True):
    """The result of a build for some inputs: a dataset, a partition of organisations, or a table."""

    parts: list[PartEntry] = []
    files: list[dict[str, Any]] = []
    """Entries of the manifest."""
    rows: dict[str, int] = {}
    """Number of rows by kind."""
    sources: dict[str, list[str]] = {}
    """Sources by kind, if each row names only one of several."""
    manifest_extras: dict[str, Any] = {}
    tally: list[TallyRow] | None = None
    first_blocks: dict[str, int] = {}
    """By service_id, the number of the first block of its metrics."""
    returned: bool = False
    """Whether it returned something that other datasets need."""


class Memo(RecordFile):
    """Results of builds by the digest of their inputs, and intermediate results."""

    def known(self, inputs: str) -> BuildRecord | None:
        """What the last build made of these inputs."""
        record = self.carry(inputs, b"")
        return record and msgspec.msgpack.decode(record.part(_MADE), type=BuildRecord)

    def remember(self, inputs: str, record: BuildRecord) -> None:
        self.put(inputs, b"", pack_record({_MADE: _write(record)}))

    def recall(self, name: str, inputs: str, shape: type[T], compute: Callable[[], T]) -> T:
        """The result for these inputs, computed if unknown."""
        if known := self.carry(name, inputs.encode()):
            return msgspec.msgpack.decode(known.part(_MADE), type=shape)
        result = compute()
        self.put(name, inputs.encode(), pack_record({_MADE: _write(result)}))
        return result

    def finish(self) -> None:
        """Store the memo for the next build, with the results that this build did not use."""
        for before in self._before:
            for name, known in before.records.items():
                if known.key and name not in self._records.records:
                    self.carry(name, known.key)
        self.fill(())


def sum_of_digests(digests: Iterable[bytes]) -> bytes:
    """One digest of distinct items, independent of their order and grouping."""
    total = sum(int.from_bytes(digest, "little") for digest in digests)
    return (total & _EVERY_BIT).to_bytes(_DIGEST, "little")


class BuildInputs:
    def __init__(
        self,
        base: object,
        captures: Mapping[int, CaptureInfo],
        seals: Sequence[tuple[int, str]],
        computed: Mapping[Input, Callable[[], object]],
    ) -> None:
        """`base` is part of every digest. `computed` has inputs that are not rows of the ledger, or additions
        to an input's tables."""
        self._base = sha256(_write((code_digest(), LAYOUT, base))).digest()
        self._captures = captures
        self._seals = seals
        self._computed = computed
        self._digests: dict[Input, bytes] = {}

    def digest(self, name: str, reads: Iterable[Input]) -> str:
        """The digest of a result that depends only on these inputs."""
        digest = sha256(_write((name, self._base)))
        for one in sorted(reads):
            digest.update(_write((one, self._input(one))))
        return digest.hexdigest()

    def _input(self, name: Input) -> bytes:
        if name not in self._digests:
            self._digests[name] = sha256(_write(self._content(name))).digest()
        return self._digests[name]

    def _content(self, name: Input) -> object:
        match name:
            case Input.NAMES | Input.DESCRIPTIONS | Input.ORGANISATIONS | Input.ISSUERS:
                return self._computed[name]()
            case Input.CLAIMS:
                return self._input(Input.NAMES), self._computed[name]()
        own = self._computed.get(name)
        return own and own(), self._sealed(TABLES[name])

    def _sealed(self, tables: tuple[str, ...]) -> list[tuple[object, ...]]:
        """The captures that brought rows of these tables, and the digests of those rows."""
        rows: list[tuple[object, ...]] = []
        for capture_id, content in self._seals:
            sums = _read_seal(content)
            if brought := [(table, sums[table]) for table in tables if table in sums]:
                rows.append((capture_id, self._captures.get(capture_id), brought))
        return rows


_BYTES_IN_A_PARTITION: Final = 4 << 20
"""Average before compression: about 0.6 MB of a file."""
_PARTITIONS: Final = 512
"""Approximate maximum: each partition costs a serving process two file descriptors."""
_LARGEST: Final = 2
"""Times the average: a partition ends after this many bytes in any case."""
_BYTES_OF_AN_ENTITY: Final = 2048
"""Approximate size of its record and identifiers."""
_BATCH: Final = 256
_BYTES_IN_A_PART = 4 << 20
"""Average of a partitioned dataset."""
_INDEX_SHARE: Final = 4, 8
"""Parts of an index of organisations: a quarter of the average; in large editions an eighth times the
scale."""
_BYTES_OF_A_KEY: Final = 128
"""Approximate size of a key in the directory."""


class Partition(msgspec.Struct, frozen=True):
    """Consecutive organisations by service_id. All their rows are one part."""

    first: str
    """The service_id of the first."""
    begin: int
    """Its place among all organisations."""
    end: int
    """The position after the last organisation."""
    described: str
    """Digest of everything known about them but their figures."""
    inputs: str
    """Digest of everything known about them."""

    def among(self, entities: Sequence[Entity]) -> Sequence[Entity]:
        """Its own of all organisations."""
        return entities[self.begin : self.end]


def partitions(
    entities: Sequence[Entity], issuers: Issuers, captures: Mapping[int, CaptureInfo], base: str
) -> Iterator[Partition]:
    """Partition all organisations. `base` is a digest of the other inputs of their rows."""
    sizes = [issuers.size(entity.service_id) + _BYTES_OF_AN_ENTITY for entity in entities]
    average = _average(sum(sizes))
    first = size = 0
    for number, entity in enumerate((*entities, None)):
        begins = entity is None or begins_part(entity.service_id, sizes[number], average)
        if number and (begins or size >= _LARGEST * average):
            own = entities[first:number]
            described = _described(own, captures, base)
            keys = [issuers.key(entity.service_id) for entity in own]
            inputs = sha256(_write((described, keys))).hexdigest()
            yield Partition(own[0].service_id, first, number, described, inputs)
            first, size = number, 0
        size += sizes[number] if entity else 0


def part_scale(entities: Sequence[Entity], issuers: Issuers) -> int:
    """Factor by which parts are larger than in an edition of few organisations; a power of two."""
    total = sum(issuers.size(entity.service_id) for entity in entities) + _BYTES_OF_AN_ENTITY * len(entities)
    return _average(total) // _BYTES_IN_A_PARTITION


def _average(total: int) -> int:
    """Average size of partitions; a power of two, so it only changes when the total doubles."""
    return max(_BYTES_IN_A_PARTITION, 1 << (total // _PARTITIONS).bit_length())


def _described(entities: Sequence[Entity], captures: Mapping[int, CaptureInfo], base: str) -> str:
    named = {entity.first_capture for entity in entities}
    for entity in entities:
        named.update(statement.capture_id for statement in entity.statements)
        named.update(claim.capture_id for claim in (*entity.claims, *entity.past))
        named.update(relation.evidence.capture_id for relation in entity.relations)
    return sha256(
        _write((base, entities, [(number, captures.get(number)) for number in sorted(named)]))
    ).hexdigest()


def average_size(dataset: Dataset, scale: int) -> int:
    """Average size in bytes of the parts of a partitioned dataset."""
    if not dataset.of_organisations:
        return _BYTES_IN_A_PART
    least, scaled = _INDEX_SHARE
    return max(_BYTES_IN_A_PART // least, _BYTES_IN_A_PART // scaled * scale)


class PartWriter:
    """Writes keys and their blocks, and computes the digest of each part."""

    def __init__(self, writer: EditionWriter) -> None:
        self._writer = writer
        self._begin()

    def _begin(self) -> None:
        self._content = hashlib.sha256()
        self._next = 1
        self._directory: list[tuple[str, str, int, int]] = []
        self._blocks: list[StoredBlock] = []

    def write_key(self, kind: str, keys: tuple[str, ...], blocks: Iterable[StoredBlock]) -> None:
        first = self._next
        for block in blocks:
            self._write(block)
        self._register(kind, keys, first)

    def write_columns(self, kind: str, keys: tuple[str, ...], columns: list[bytes]) -> None:
        first = self._next
        for part in columns:
            self._write(stored_block(b"", part))
        self._register(columns_kind(kind), keys, first)

    def begins(self, kind: str, key: str, blocks: Sequence[StoredBlock], average: int) -> bool:
        """Whether the part so far ends before this key."""
        if not self._directory:
            return False
        last = self._directory[-1][1]
        if key <= last:
            raise check_failed(kind, key, f"comes after {last}, out of order")
        size = _BYTES_OF_A_KEY + sum(len(block.index) + block.size for block in blocks)
        return begins_part(key, size, average)

    @property
    def has_keys(self) -> bool:
        return bool(self._directory)

    @property
    def first(self) -> str:
        return self._directory[0][1]

    @property
    def next_block(self) -> int:
        return self._next

    def end(self, first: str) -> PartEntry:
        """End the part; `first` is its first key as the manifest lists it."""
        if first and self._next > 1 << BLOCK_BITS:
            raise CheckFailed(f"{self._directory[0][0]}: more blocks than a part can have")
        self._flush()
        self._writer.register(self._directory)
        kinds = sorted({kind for kind, *_ in self._directory})
        content = self._content.hexdigest()
        self._writer.end_part(content)
        entry = PartEntry(kinds, first, content)
        self._begin()
        return entry

    def _register(self, kind: str, keys: tuple[str, ...], first: int) -> None:
        """Let keys lead to the blocks written since `first`."""
        for key in keys:
            self._content.update(f"{kind}\x1f{key}\x1f{first}\x1f{self._next - first}\n".encode())
            self._directory.append((kind, key, first, self._next - first))

    def _write(self, block: StoredBlock) -> None:
        self._content.update(block.digest)
        self._blocks.append(block)
        self._next += 1
        if len(self._blocks) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(self._blocks)
        self._blocks = []
