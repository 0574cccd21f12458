"""The metrics of every issuer: derived, or as they were derived last time where nothing they hang on changed.

What deriving an issuer's metrics reads is the facts of its subjects, the captures that brought them, and its
name and country. The ledger only ever grows, so the facts of a subject are told by the captures that brought
any (`Ledger.fact_captures`), without reading one of them. A capture is told by its number, its source, its
instant, its licence class and the digest of its file. The rest of the key is the code: every source file of
this package, and the releases of what it computes with. No clock, setting or registry enters.
"""

import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from sankofa.derive.metrics.derive import Derived, derive
from sankofa.derive.metrics.full_years import full_years
from sankofa.derive.metrics.year_ends import YearEnds
from sankofa.edition.kept import Kept
from sankofa.edition.metric_rows import MetricRows, metric_rows
from sankofa.edition.world import World
from sankofa.ledger.entities import Entity
from sankofa.ledger.reports import Published

_COMPUTED_WITH = ("msgspec", "pycountry")
_read = msgspec.msgpack.Decoder(MetricRows | None).decode
_write = msgspec.msgpack.Encoder().encode


def derived_issuers(world: World, kept: Kept) -> Iterator[tuple[Entity, MetricRows]]:
    """Every issuer with a full year, by service_id."""
    told = world.ledger.fact_captures()
    captures = {
        number: _write((number, info.source_id, info.observed_at, info.license_class, info.content_sha256))
        for number, info in world.captures.items()
    }
    try:
        for entity in world.entities:
            known = [(subject, told[subject]) for subject in entity.subjects if subject in told]
            if not known:
                continue
            key = blake2b(_code(), digest_size=16)
            key.update(_write((entity.service_id, entity.legal_name, entity.country, known)))
            for number in sorted({number for _, numbers in known for number in numbers}):
                key.update(captures[number])
            rows = _rows(world, entity, kept, key.digest())
            if rows is not None:
                yield entity, rows
        kept.finish()
    finally:
        kept.close()


def _rows(world: World, entity: Entity, kept: Kept, key: bytes) -> MetricRows | None:
    record = kept.take(entity.service_id, key)
    rows: MetricRows | None
    if record is not None:
        rows = _read(record)
        return rows
    derived = derived_of(world, entity)
    rows = metric_rows(entity, derived) if any(derived.histories) else None
    kept.put(entity.service_id, key, _write(rows))
    return rows


def derived_of(world: World, entity: Entity) -> Derived:
    """Everything derived of one issuer, from its facts."""
    published = Published(world.ledger, world.captures, entity.subjects)
    ends = YearEnds(published.evidence())
    return derive(full_years(published.reports(ends.full), ends))


@cache
def _code() -> bytes:
    """Tells one derivation from another: whatever is changed in the package, everything is derived anew."""
    digest = blake2b(digest_size=16)
    for path, content in sorted(_sources(files("sankofa"), "")):
        digest.update(_write((path, content)))
    digest.update(_write((sys.version, [version(name) for name in _COMPUTED_WITH])))
    return digest.digest()


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for child in folder.iterdir():
        name = f"{path}/{child.name}"
        if child.is_dir():
            yield from _sources(child, name)
        elif child.name.endswith(".py"):
            yield name, child.read_bytes()
