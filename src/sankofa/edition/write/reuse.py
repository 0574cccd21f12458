"""The memo of a build: `part = memo(dataset, partition, digest of inputs)`.

A publication remembers what it made of which inputs. The next one reuses every part and file whose inputs
have the same digest, and makes the rest. Nothing here is a source of truth: a part is only reused if a stored
edition still holds it whole, under the digest of its content.

The ledger only grows, and every capture is sealed with a digest of its rows in each table. So the seals
identify the rows of a table without reading them. The rest of a digest is the code, the registered sources,
and what is left out of the ledger. No clock enters: a dataset that shows one declares no inputs and is built
each time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from sankofa.edition.format.keys import LAYOUT
from sankofa.edition.write.dataset import Input, TallyRow
from sankofa.edition.write.derived_parts import code_digest
from sankofa.engines.private_files import make_private_folder, replace_file
from sankofa.ledger.reader import CaptureInfo, LedgerReader

T = TypeVar("T")
_DIGEST: Final = 32
_EVERY_BIT: Final = (1 << 8 * _DIGEST) - 1
_TABLES: Final = {
    Input.MACRO: ("annual", "indicator", "recapture", "series", "series_info"),
    Input.ANNUAL: ("annual", "indicator", "recapture", "series_info"),
    Input.SERIES: ("recapture", "series", "series_info"),
    Input.TENDERS: ("party", "recapture", "release", "withheld", "withheld_party"),
}
OTHER_TABLES: Final = frozenset(
    (
        *("acceptance", "capture", "entity_record", "fact", "link", "spell"),
        *("unchanged_file", "withdrawal"),
    )
)
"""Tables that enter a digest through organisations, issuers, or what is left out."""
_write = msgspec.msgpack.Encoder().encode
_read_seal = msgspec.json.Decoder(dict[str, str]).decode


class PartEntry(msgspec.Struct, frozen=True):
    """A part as the manifest lists it."""

    kinds: list[str]
    first: str
    """Its first key; empty for the first part of a dataset."""
    content: str
    """Digest of its keys and blocks."""


class BuildRecord(msgspec.Struct, frozen=True):
    """What a build made of some inputs: a dataset, a partition of organisations, or a table."""

    parts: list[PartEntry] = []
    files: list[dict[str, Any]] = []
    """As the manifest lists them."""
    rows: dict[str, int] = {}
    """Number of rows by kind."""
    sources: dict[str, list[str]] = {}
    """Sources by kind, where each row names only one of several."""
    manifest_extras: dict[str, Any] = {}
    tally: list[TallyRow] | None = None
    first_blocks: dict[str, int] = {}
    """By service_id, the number of the first block of its metrics."""
    returned: bool = False
    """Whether it returned something that other datasets need."""


class Memo(msgspec.Struct):
    """What the last build made, by the digest of its inputs, and results it computed on the way."""

    records: dict[str, BuildRecord] = {}
    results: dict[str, tuple[str, bytes]] = {}
    """By name, the inputs and the result."""

    def recall(self, name: str, inputs: str, shape: type[T], compute: Callable[[], T]) -> T:
        """The result for these inputs, computed if it is not known."""
        known = self.results.get(name)
        if known is not None and known[0] == inputs:
            return msgspec.msgpack.decode(known[1], type=shape)
        result = compute()
        self.results[name] = inputs, msgspec.msgpack.encode(result)
        return result


_read_memo = msgspec.msgpack.Decoder(Memo).decode


def load_memo(path: Path | None) -> Memo:
    """An empty memo if there is none, or it is damaged."""
    if path is not None:
        with suppress(OSError, msgspec.MsgspecError):
            content = path.read_bytes()
            if sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                return _read_memo(content[_DIGEST:])
    return Memo()


def save_memo(path: Path | None, memo: Memo) -> None:
    """Replace the memo in one step. Without it the next build only takes longer."""
    if path is None:
        return
    content = msgspec.msgpack.encode(memo)
    with suppress(OSError):
        make_private_folder(path.parent)
        replace_file(path, sha256(content).digest() + content, durable=False)


def sum_of_digests(digests: Iterable[bytes]) -> bytes:
    """One digest of distinct things, whatever their order and however they are grouped."""
    total = sum(int.from_bytes(digest, "little") for digest in digests)
    return (total & _EVERY_BIT).to_bytes(_DIGEST, "little")


class BuildInputs:
    """Digests of the inputs of one build."""

    def __init__(
        self,
        base: object,
        ledger: LedgerReader,
        captures: Mapping[int, CaptureInfo],
        seals: Sequence[tuple[int, str]],
        computed: Mapping[Input, Callable[[], object]],
    ) -> None:
        """`base` enters every digest. `computed` has inputs, or what belongs to one besides its tables, that
        are no rows of the ledger."""
        self._base = sha256(_write((code_digest(), LAYOUT, base))).digest()
        self._ledger = ledger
        self._captures = captures
        self._seals = seals
        self._computed = computed
        self._digests: dict[Input, bytes] = {}

    def digest(self, name: str, reads: Iterable[Input]) -> str:
        """The digest of something that is made of these inputs and nothing else."""
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
            case Input.NAMES | Input.ORGANISATIONS:
                return self._computed[name]()
            case Input.CLAIMS:
                return self._input(Input.NAMES), self._computed[name]()
            case Input.ISSUERS:
                return [subject for subject, _ in self._ledger.fact_subjects()]
        own = self._computed.get(name)
        return own and own(), self._sealed(_TABLES[name])

    def _sealed(self, tables: tuple[str, ...]) -> list[tuple[object, ...]]:
        """The captures that brought rows of these tables, and the digests of those rows."""
        rows: list[tuple[object, ...]] = []
        for capture_id, content in self._seals:
            sums = _read_seal(content)
            if brought := [(table, sums[table]) for table in tables if table in sums]:
                rows.append((capture_id, self._captures.get(capture_id), brought))
        return rows

    @staticmethod
    def tables() -> frozenset[str]:
        """Every table of the ledger that enters some digest."""
        return OTHER_TABLES.union(*_TABLES.values())
