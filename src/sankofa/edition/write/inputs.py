"""What a dataset is made of, summed up before anything of it is made: the same digest, the same rows.

The ledger only ever grows, and every capture is sealed with a digest of its rows in each table. So the rows
of a table follow from the seals, and nothing but those is read here. The rest is the code, the entries of
the sources, and what is left out of the ledger. No clock enters: a dataset that shows one declares no inputs.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from sankofa.edition.format.keys import LAYOUT
from sankofa.edition.write.dataset import Input
from sankofa.edition.write.issuer_parts import code_digest

if TYPE_CHECKING:
    from sankofa.edition.write.context import BuildContext


_TABLES: Final = {
    Input.MACRO: ("annual", "indicator", "recapture", "series", "series_info"),
    Input.TENDERS: ("party", "recapture", "release", "withheld", "withheld_party"),
}
OTHERWISE: Final = frozenset(
    {"capture", "entity_record", "fact", "fact_subject", "link", "unchanged_file", "withdrawal"}
)
"""Tables of the ledger that are told by what they amount to: organisations, issuers, what is left out."""
_DIGEST: Final = 32
_EVERY_BIT: Final = (1 << 8 * _DIGEST) - 1
_write = msgspec.msgpack.Encoder().encode
_read_seal = msgspec.json.Decoder(dict[str, str]).decode


def sum_of_digests(digests: Iterable[bytes]) -> bytes:
    """Of things of which no two are alike: it does not depend on their order, or on which are summed up
    together."""
    total = sum(int.from_bytes(digest, "little") for digest in digests)
    return (total & _EVERY_BIT).to_bytes(_DIGEST, "little")


class BuildInputs:
    """The inputs of one build."""

    def __init__(self, context: "BuildContext") -> None:
        self._context = context
        self._digests: dict[str, bytes] = {}

    def digest(self, name: str, reads: Iterable[Input]) -> str:
        """Of something that is made of these inputs and nothing else."""
        digest = sha256(_write((name, self._base)))
        for one in sorted(reads):
            digest.update(_write((one, self._input(one))))
        return digest.hexdigest()

    @cached_property
    def _base(self) -> bytes:
        context = self._context
        omitted = [context.left_out, context.manifest_extras]
        return sha256(_write((code_digest(), LAYOUT, context.sources, omitted))).digest()

    def _input(self, name: Input) -> bytes:
        if name not in self._digests:
            digest: Callable[[], Any] | None = {
                Input.NAMES: self._names,
                Input.CLAIMS: self._claims,
                Input.ISSUERS: lambda: [subject for subject, _ in self._context.ledger.fact_subjects()],
            }.get(name)
            content = self._rows(_TABLES[name]) if digest is None else digest()
            self._digests[name] = sha256(_write(content)).digest()
        return self._digests[name]

    @staticmethod
    def tables() -> frozenset[str]:
        """Every table of the ledger that enters some digest."""
        return OTHERWISE.union(*_TABLES.values())

    def _rows(self, tables: tuple[str, ...]) -> list[tuple[object, ...]]:
        """The captures that brought rows of these tables: what they are, and what they brought."""
        rows: list[tuple[object, ...]] = []
        for capture_id, content in self._context.seals:
            sums = _read_seal(content)
            if brought := [(table, sums[table]) for table in tables if table in sums]:
                rows.append((capture_id, self._context.captures.get(capture_id), brought))
        return rows

    def _names(self) -> bytes:
        return sum_of_digests(some.names for some in self._context.counts)

    def _claims(self) -> tuple[bytes, bytes]:
        return self._input(Input.NAMES), sum_of_digests(some.claims for some in self._context.counts)
