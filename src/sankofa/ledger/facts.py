"""Facts as the ledger has them: one row holds what a file has of a subject, column by column.

Concepts, days and documents repeat. A column is stored as its distinct texts, and for each fact the number of
its text. A row for each fact would have five times the bytes, all of them verified before each publication.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

import msgspec

Texts = tuple[str, ...]
"""A fact: the text of each column of `FactColumns`, without its capture."""


class FactColumns(NamedTuple):
    """Facts by column: one fact has the same position in each."""

    concept: list[str]
    unit: list[str]
    period_end: list[str]
    period_start: list[str]
    available_at: list[str]
    document: list[str]
    value: list[str]
    confidence: list[str]
    location: list[str]
    declared_period: list[str]
    capture_id: list[int]


DOCUMENT: Final = FactColumns._fields.index("document")
_SOURCE: Final = FactColumns._fields.index("location")
"""Facts are ordered by their texts, and by source before location."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[list[str], list[int]]]).decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_coded = msgspec.json.Decoder(tuple[set[str], msgspec.Raw]).decode


def encode_facts(facts: Sequence[Texts]) -> str:
    """Facts, in order, as the ledger stores them."""
    return _encode(list(map(_column, zip(*facts, strict=True)))).decode()


def _column(texts: Texts) -> tuple[list[str], list[int]]:
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), list(map(numbers.__getitem__, texts))


def _columns(stored: str) -> list[list[Any]]:
    return [list(map(texts.__getitem__, numbers)) for texts, numbers in _decode(stored)]


def facts_in(stored: str, documents: Collection[str]) -> Iterable[Texts]:
    """The stored facts, if any is of one of these documents."""
    held, _ = _coded(_split(stored)[DOCUMENT])
    return () if held.isdisjoint(documents) else zip(*_columns(stored), strict=True)


def join_facts(rows: Sequence[tuple[int, str, str]]) -> FactColumns:
    """The facts of a subject in order, from (capture_id, source_id, stored facts)."""
    if len(rows) == 1:
        ((capture_id, _, stored),) = rows
        columns = _columns(stored)
        columns.append([capture_id] * len(columns[0]))
        return FactColumns(*columns)
    by_capture = [(capture_id, source_id, _columns(stored)) for capture_id, source_id, stored in rows]
    ordered = sorted(
        chain.from_iterable(
            zip(*texts[:_SOURCE], repeat(source_id), *texts[_SOURCE:], repeat(capture_id))
            for capture_id, source_id, texts in by_capture
        )
    )
    columns = [list(column) for column in zip(*ordered, strict=True)] or [[] for _ in range(12)]
    del columns[_SOURCE]
    return FactColumns(*columns)
