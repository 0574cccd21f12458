"""Derives each macro column once for all datasets and tables, and reuses those that did not change.

A column is one indicator in one country, or the series of one key. Its parts are made of its rows in the
ledger, their captures and the metadata of its code. A digest of these and of the code is the key under which
its parts are kept, as those of an issuer are (`write.issuer_parts`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from sankofa.derive.series import MacroColumn, MacroMetadata
from sankofa.edition.write.issuer_cache import IssuerCache, pack_record
from sankofa.edition.write.issuer_parts import code_digest
from sankofa.engines.datastore import Row
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.observations import tabled_series

Make = Callable[[MacroColumn], Iterable[tuple[str, bytes]]]
"""Makes parts of a column, each with its kind."""
_PARTS: Final[list[Make]] = []
_write = msgspec.msgpack.Encoder().encode


def macro_part(make: Make) -> Make:
    """Declare the function below as a maker of parts of a macro column."""
    _PARTS.append(make)
    return make


class MacroParts:
    """The parts of every macro column by its name."""

    def __init__(
        self, ledger: LedgerReader, captures: Mapping[int, CaptureInfo], path: Path | None = None
    ) -> None:
        self._captures = captures
        self._metadata = MacroMetadata(ledger)
        self._cache = IssuerCache(path)
        self.indicators: list[str] = []
        """The names of all indicators, by country and code."""
        self.series: list[str] = []
        """The names of all keys of published series, in order."""
        self.by_series: list[str] = []
        """All names in the order of their series."""
        try:
            named = [(code, self._take(self.series, code, "", rows)) for code, rows in ledger.stored_series()]
            named += [
                (tabled_series(code, country), self._take(self.indicators, code, country, rows))
                for (country, code), rows in ledger.stored_annual()
            ]
            self.by_series = [name for _, name in sorted(named)]
            self._cache.finish()
        except OSError:  # disk full: leave no unfinished file
            self._cache.close()
            raise
        except BaseException:
            self._cache.interrupt()
            raise

    def parts(self, kind: str, names: Iterable[str]) -> Iterator[bytes]:
        """The parts of these columns for a dataset or table, without those that have none."""
        return filter(None, (self._cache.read(name, kind) for name in names))

    def _take(self, names: list[str], code: str, country: str, rows: list[Row]) -> str:
        name = f"{country}|{code}"
        names.append(name)
        key = self._key(name, code, rows)
        if not self._cache.carry(name, key):
            column = MacroColumn(code, country, rows, self._metadata, self._captures)
            parts = (part for make in _PARTS for part in make(column))
            self._cache.put(name, key, pack_record({kind: part for kind, part in parts if part}))
        return name

    def _key(self, name: str, code: str, rows: list[Row]) -> bytes:
        captures = {capture_id: self._captures[capture_id] for *_, capture_id, _, _ in rows}
        identity = (name, rows, sorted(captures.items()), self._metadata.of_code(code))
        return blake2b(code_digest() + _write(identity), digest_size=16).digest()
