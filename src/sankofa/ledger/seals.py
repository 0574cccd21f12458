"""Seals: whether the ledger still holds exactly the rows that were appended to it.

Every row has a digest. A capture is sealed with the sum of the digests of its rows, table by table: a sum
does not depend on the order in which rows are read, so one scan of each table checks all captures at once.
The seals form a chain that is keyed with the gate secret, so a capture that was altered, removed or put in
another place shows, and only the holder of the secret can seal it again. See docs/decisions/sealed-ledger.md.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.engines.ledger_store import LedgerSession, Row
from sankofa.model.errors import OperatorError

TABLES: Final = (
    "acceptance", "annual", "capture", "entity_record", "fact", "indicator", "link", "party",
    "recapture", "release", "series", "series_info", "spell", "unchanged_file", "withdrawal", "withheld",
    "withheld_party",
)  # fmt: skip
"""Every table of the ledger but the seals."""
_CAPTURE_COLUMN: Final = {
    "capture": 0, "recapture": 0, "withdrawal": 0, "indicator": 1, "annual": 2, "series": 4,
    "series_info": 1, "unchanged_file": 0,
}  # fmt: skip
"""Tables whose capture_id is not the last column."""
# Releases are read through two indexes, each of which can be damaged by itself.
_ORDERS: Final = {
    "release": (
        "country, rtrim(release_date, 'Z') DESC, ocid, release_id, number DESC",
        "ocid, release_id, release_date, number",
    )
}
_SEALS: Final = "SELECT position, capture_id, content, chain FROM seal ORDER BY position"
_LAST_SEAL: Final = f"{_SEALS} DESC LIMIT 1"
_NAMED_AT_MOST: Final = 5
_DIGEST: Final = 16

_encode_row = msgspec.json.Encoder().encode
_Content = dict[str, str]
"""By table, the sum of the digests of its rows in hexadecimal."""
_decode_content = msgspec.json.Decoder(_Content).decode


class LedgerDamaged(OperatorError):
    """The ledger does not hold what was appended to it."""


class _Seal(NamedTuple):
    position: int
    capture_id: int
    content: str
    chain: str


class Checked(NamedTuple):
    captures: int
    rows: int


class RowSums:
    """The digests of rows, summed by capture and table. Rows without a capture are kept separately."""

    def __init__(self) -> None:
        self.by_table: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.loose: Counter[str] = Counter()
        """The content of each row that belongs to no capture."""
        self.rows = 0

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Rows as they are appended."""
        if table == "seal":
            return
        at = _CAPTURE_COLUMN.get(table, -1)
        self.add_encoded(table, ((row[at], _encode_row(row)) for row in rows))

    def add_encoded(self, table: str, rows: Iterable[tuple[int, bytes]]) -> None:
        """Rows as `LedgerSession.encoded_rows` has them."""
        sums, number = self.by_table[table], 0
        from_bytes = int.from_bytes
        for number, (capture_id, text) in enumerate(rows, 1):  # noqa: B007 - counted after the loop
            digest = from_bytes(blake2b(text, digest_size=_DIGEST).digest(), "little")
            if capture_id:
                sums[capture_id] += digest
            else:
                self.loose[_content({table: digest})] += 1
        self.rows += number

    def captures(self) -> set[Any]:
        """The capture_id of every row, which in a damaged row may be of any type."""
        return {capture_id for sums in self.by_table.values() for capture_id in sums}

    def content(self, capture_id: int) -> str:
        return _content(
            {table: sums[capture_id] for table, sums in self.by_table.items() if capture_id in sums}
        )


def append_seals(session: LedgerSession, key: bytes, sums: RowSums) -> None:
    """Seal the appended rows in the same transaction: rows of no capture first, then each capture."""
    seals = [_Seal(*row) for row in session.query(_LAST_SEAL)]
    before = len(seals)
    for content in sorted(sums.loose.elements()):
        seals.append(_seal(key, seals, 0, content))
    for number in sorted(sums.captures()):
        seals.append(_seal(key, seals, number, sums.content(number)))
    if len(seals) > before:
        session.append("seal", [tuple(seal) for seal in seals[before:]])


def verify(session: LedgerSession, key: bytes) -> Checked:
    """Reads every row and compares it with the seals. Raises LedgerDamaged."""
    seals = _chain(session, key)
    sums = _scan(session)
    _compare(session, seals, sums)
    return Checked(sum(seal.capture_id > 0 for seal in seals), sums.rows)


def contents(session: LedgerSession) -> dict[int, str]:
    """By capture, the sums of its rows' digests: equal if the rows are equal."""
    sums = _scan(session)
    return {number: sums.content(number) for number in sums.captures()}


def _scan(session: LedgerSession) -> RowSums:
    sums = RowSums()
    for table in TABLES:
        first, *others = _ORDERS.get(table, ("",))
        try:
            sums.add_encoded(table, session.encoded_rows(table, first))
            for order in others:
                again = RowSums()
                again.add_encoded(table, session.encoded_rows(table, order))
                if again.by_table[table] != sums.by_table[table]:
                    raise LedgerDamaged(_message(f"an index of table {table} leads to other rows"))
        except LedgerDamaged:
            raise
        except OperatorError as failure:
            raise LedgerDamaged(_message(f"table {table} cannot be read: {failure}")) from failure
    return sums


def _chain(session: LedgerSession, key: bytes) -> list[_Seal]:
    """The seals, each verified to follow from the previous one."""
    seals: list[_Seal] = []
    for row in session.query(_SEALS):
        seal = _Seal(*row)
        if seal != (expected := _seal(key, seals, seal.capture_id, seal.content)):
            if seal.position != expected.position:
                raise LedgerDamaged(_message(f"seal {expected.position} is missing"))
            named = f"capture {seal.capture_id}" if seal.capture_id else f"seal {seal.position}"
            raise LedgerDamaged(_message(f"the seal of {named} does not follow from the one before it"))
        seals.append(seal)
    return seals


def _compare(session: LedgerSession, seals: list[_Seal], sums: RowSums) -> None:
    faults: list[str] = []
    sealed = {seal.capture_id: seal.content for seal in seals if seal.capture_id}
    named = _named(session)
    for capture_id in sorted(sums.captures() | sealed.keys(), key=lambda number: f"{number!s:>20}"):
        if capture_id in sealed:
            content = sums.content(capture_id)
            if content != sealed[capture_id]:
                tables = _differing(sealed[capture_id], content)
                faults.append(
                    f"{_name(capture_id, named)}: rows of {', '.join(tables)} differ from those appended"
                )
        else:
            faults.append(f"{_name(capture_id, named)}: has no seal")
    expected = Counter(seal.content for seal in seals if not seal.capture_id)
    missing, added = expected - sums.loose, sums.loose - expected
    if missing or added:
        tables = sorted({table for content in (missing + added) for table in _decode_content(content)})
        faults.append(f"rows of {', '.join(tables)} that belong to no capture differ from those appended")
    if faults:
        more = len(faults) - _NAMED_AT_MOST
        listed = "; ".join(faults[:_NAMED_AT_MOST]) + (f"; and {more} more" if more > 0 else "")
        raise LedgerDamaged(_message(listed))


def _message(fault: str) -> str:
    return (
        f"the ledger is damaged: {fault}. Nothing is published from it; the current edition stays. "
        "Restore the ledger from a backup and ingest what came after it (docs/how-to/operating.md, Damage)"
    )


def _named(session: LedgerSession) -> dict[int, str]:
    """The source and file of each capture, as far as they can be read."""
    try:
        rows = session.query("SELECT capture_id, source_id, file_name, observed_at FROM capture")
        return {number: f"{source} {file}, {observed}" for number, source, file, observed in rows}
    except OperatorError:
        return {}


def _name(capture_id: int, named: dict[int, str]) -> str:
    return f"capture {capture_id}" + (f" ({named[capture_id]})" if capture_id in named else "")


def _differing(before: str, after: str) -> list[str]:
    old, new = _decode_content(before), _decode_content(after)
    return sorted(table for table in old.keys() | new.keys() if old.get(table) != new.get(table))


def _content(sums: dict[str, int]) -> str:
    return _encode_row({table: f"{sums[table]:x}" for table in sorted(sums)}).decode()


def _seal(key: bytes, before: Sequence[_Seal], capture_id: int, content: str) -> _Seal:
    """The seal that follows the last of these."""
    position, chain = (before[-1].position + 1, before[-1].chain) if before else (1, "")
    text = _encode_row((position, capture_id, content, chain))
    return _Seal(position, capture_id, content, blake2b(text, digest_size=32, key=_key(key)).hexdigest())


def _key(secret: bytes) -> bytes:
    """A secret may be longer than a key of BLAKE2b."""
    return blake2b(secret, person=b"ledger seals").digest()


def is_keyed_with(session: LedgerSession, key: bytes) -> bool:
    """Whether the first seal was made with this secret. If so, a later break in the chain is damage."""
    try:
        for row in session.query(_SEALS + " LIMIT 1"):
            seal = _Seal(*row)
            return seal == _seal(key, [], seal.capture_id, seal.content)
    except OperatorError:
        pass
    return False
