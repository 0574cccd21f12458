"""Reads an edition from PostgreSQL. A block is compared with its digest when this process first reads it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from sankofa.engines.datastore import ALIASES, ByteRange, Manifest, NeedsRows
from sankofa.engines.parts_by_kind import PartsByKind
from sankofa.engines.postgres_check import PartsCheck
from sankofa.engines.postgres_link import Links, Statement
from sankofa.engines.postgres_parts import (
    FILE_PIECE,
    PRESENT,
    PartState,
    PartStates,
    StoredPart,
    block_digest,
    key_digest,
    statement,
    stored_parts,
)
from sankofa.engines.postgres_server import Refused, pq
from sankofa.model.errors import EditionError, StoreUnavailable
from sankofa.model.limits import limit

_READ_SECONDS: Final = limit("read from PostgreSQL", 1.8, "seconds", "503")
_DIGESTS_AT_ONCE: Final = 256
_COMPARED_AT_ONCE: Final = 256
"""Blocks that the server hashes for one question."""
_HASHED_IN_LOOP: Final = 512 * 1024
"""Bytes that are hashed where they are asked for; more than that in a thread."""
_BLOCK: Final = 64 * 1024


class _Part(NamedTuple):
    stored: StoredPart
    state: PartState


class PostgresEditionReader:
    """See `engines.datastore.EditionReader`."""

    is_local = False

    def __init__(
        self,
        edition: str,
        manifest: Manifest,
        links: Links,
        states: PartStates,
        check: PartsCheck,
        report: Callable[[str], None],
    ) -> None:
        self.manifest = manifest
        self.damage: str | None = None
        self._edition = edition
        self._links = links
        self._states = states
        self._check = check
        self._report = report
        stored = [_Part(part, states.state(part)) for part in stored_parts(manifest)]
        self._parts = PartsByKind(manifest, stored)
        files = [file["name"] for file in manifest.get("files", ())]
        self._files = dict(zip(files, stored[len(manifest["parts"]) :], strict=True))

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> list[tuple[bytes, bytes]] | None:
        if (
            "\0" in key or (part := self._parts.of_key(kind, key)) is None
        ):  # no text: it would end there on its way
            return None
        blocks = await self._blocks(part, kind, key, skip, most)
        if blocks is None and (target := await self._target(kind, key)) is not None:
            part = target
            blocks = await self._blocks(part, kind, key, skip, most)
        if blocks is None:
            await self._see_that_it_is_there(part)
        return blocks

    async def _target(self, kind: str, key: str) -> _Part | None:
        """The part that has the rows under a key that leads to another."""
        parts = self._parts
        if len(parts.of_kind(kind)) == 1 or (aliases := parts.of_key(ALIASES, key)) is None:
            return None
        rows = await self._blocks(aliases, ALIASES, key, 0, 1)
        return parts.of_key(kind, rows[0][1].decode()) if rows else None

    async def _blocks(
        self, part: _Part, kind: str, key: str, skip: int, most: int
    ) -> list[tuple[bytes, bytes]] | None:
        """None where the part has no such key."""
        stored = part.stored
        if (known := self._states.extent(stored, kind, key)) is not None:
            wanted = min(skip + most, known[1]) - skip
            return await self._numbered(part, known[0] + skip, wanted) if wanted > 0 else []
        values = (b"%d" % stored.id, kind.encode(), key.encode(), b"%d" % skip, b"%d" % (skip + most))
        result = await self._ask(statement("blocks", stored.dataset), values)
        if not result.ntuples:
            return None
        get = result.get_value
        first, count = (int.from_bytes(get(0, column) or b"") for column in (0, 1))
        if get(0, 2) != key_digest(kind, key, first, count):
            raise self._damaged(part, "corrupt: directory")
        self._states.remember(stored, kind, key, (first, count))
        wanted = max(min(skip + most, count) - skip, 0)
        return await self._compared(part, first + skip, wanted, result, 3) if wanted else []

    async def _numbered(self, part: _Part, first: int, wanted: int) -> list[tuple[bytes, bytes]]:
        values = (b"%d" % part.stored.id, b"%d" % first, b"%d" % (first + wanted))
        result = await self._ask(statement("numbered", part.stored.dataset), values)
        get = result.get_value
        if result.ntuples == wanted and part.state.compared.find(0, first, first + wanted) < 0:  # most often
            return [(get(row, 0) or b"", get(row, 1) or b"") for row in range(wanted)]
        return await self._compared(part, first, wanted, result, 0)

    async def _compared(
        self, part: _Part, first: int, wanted: int, result: pq.abc.PGresult, column: int
    ) -> list[tuple[bytes, bytes]]:
        """The blocks of an answer, whose index, rows and digest begin with this column: all that are wanted,
        each compared with its digest if it was not before."""
        get = result.get_value
        rows = range(result.ntuples)
        blocks = [
            (index, content)
            for row in rows
            if (index := get(row, column)) is not None and (content := get(row, column + 1)) is not None
        ]
        if len(blocks) != wanted:
            await self._see_that_it_is_there(part)
            raise self._damaged(part, "incomplete: block")
        if part.state.compared.find(0, first, first + wanted) >= 0:
            await self._compare(part, first, blocks, [get(row, column + 2) or b"" for row in rows])
        return blocks

    async def _compare(
        self, part: _Part, first: int, blocks: Sequence[tuple[bytes, bytes]], digests: Sequence[bytes]
    ) -> None:
        """Blocks that follow each other, those that were not compared before."""
        compared = part.state.compared
        new = [n for n in range(len(blocks)) if not compared[first + n]]

        def are_whole() -> bool:
            return all(block_digest(*blocks[n]) == digests[n] for n in new)

        if sum(len(blocks[n][1]) for n in new) > _HASHED_IN_LOOP:
            whole = await asyncio.to_thread(are_whole)
        else:
            whole = are_whole()
        if not whole:
            raise self._damaged(part, "corrupt: block")
        for n in new:
            compared[first + n] = 1

    async def pieces(self, kind: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        if not ranges:
            return []
        placed = [(*self._parts.of_block(kind, at), start, end) for at, start, end in ranges]
        new = {(part, number) for part, number, *_ in placed if not part.state.compared[number]}
        await self._compare_there(new)
        datasets = {part.stored.dataset for part, *_ in placed}
        if len(datasets) == 1:
            return await self._pieces(datasets.pop(), placed)
        pieces = [await self._pieces(one[0].stored.dataset, [one]) for one in placed]
        return [piece for (piece,) in pieces]

    async def _pieces(self, dataset: int, placed: Sequence[tuple[_Part, int, int, int]]) -> list[bytes]:
        columns = zip(*((p.stored.id, number, a, b - a) for p, number, a, b in placed), strict=True)
        result = await self._ask(statement("pieces", dataset), list(map(_array, columns)))
        pieces = [result.get_value(row, 0) or b"" for row in range(result.ntuples)]
        if list(map(len, pieces)) != [end - start for *_, start, end in placed]:
            for part in dict.fromkeys(part for part, *_ in placed):
                await self._see_that_it_is_there(part)
            raise self._damaged(placed[0][0], "incomplete: block")
        return pieces

    async def _compare_there(self, blocks: Iterable[tuple[_Part, int]]) -> None:
        """Have the server hash blocks of which only a piece is asked for."""
        by_dataset: dict[int, list[tuple[_Part, int]]] = {}
        for part, number in blocks:
            by_dataset.setdefault(part.stored.dataset, []).append((part, number))
        for dataset, new in by_dataset.items():
            for start in range(0, len(new), _COMPARED_AT_ONCE):
                some = new[start : start + _COMPARED_AT_ONCE]
                columns = zip(*((part.stored.id, number) for part, number in some), strict=True)
                result = await self._ask(statement("compare", dataset), list(map(_array, columns)))
                if int.from_bytes(result.get_value(0, 0) or b"") != len(some):
                    for part in dict.fromkeys(part for part, _ in some):
                        await self._see_that_it_is_there(part)
                    raise self._damaged(some[0][0], "corrupt: block")
                for part, number in some:
                    part.state.compared[number] = 1

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        part = self._files[name]
        first, last = start // FILE_PIECE, -(-end // FILE_PIECE)
        pieces = await self._numbered(part, first, last - first)
        whole = b"".join([rows for _, rows in pieces])
        content = whole[start - first * FILE_PIECE : end - first * FILE_PIECE]
        if len(content) != end - start:
            raise self._damaged(part, "incomplete: file")
        return content

    async def digests(self, kind: str, after: str, most: int) -> list[tuple[str, bytes]]:
        digests: list[tuple[str, bytes]] = []
        for span in self._parts.spans(kind, after):
            start = max(after, span.first)
            while len(digests) < most:
                asked = min(most - len(digests) + 1, _DIGESTS_AT_ONCE)
                some = await self._digests(span.part, kind, start, asked)
                digests += [one for one in some if one[0] > after and span.has(one[0])]
                if len(some) < asked or not span.has(some[-1][0]):
                    break
                after = start = some[-1][0]
        return digests[:most]

    async def _digests(self, part: _Part, kind: str, start: str, most: int) -> list[tuple[str, bytes]]:
        values = (b"%d" % part.stored.id, kind.encode(), start.encode(), b"%d" % most)
        result = await self._ask(statement("digests", part.stored.dataset), values)
        if not result.ntuples:
            await self._see_that_it_is_there(part)
        rows = range(result.ntuples)
        return [((result.get_value(n, 0) or b"").decode(), result.get_value(n, 1) or b"") for n in rows]

    def scrub(self, most: int) -> None:
        if most and self.damage is None:
            try:
                self._check.step(max(most // _BLOCK, 1))
            except EditionError as damage:
                self.damage = str(damage).removeprefix(f"edition {self._edition}: ")
                self._report(self.damage)

    async def _see_that_it_is_there(self, part: _Part) -> None:
        """What is found nowhere may have been removed with its edition: that is no answer."""
        result = await self._ask(PRESENT, (b"%d" % part.stored.id,))
        if not result.ntuples:
            raise StoreUnavailable("datastore", f"edition {self._edition} is no longer kept")

    def _damaged(self, part: _Part, what: str) -> StoreUnavailable:
        self.damage = f"{what} is not what was published in part {part.stored.id}"
        self._states.report(part.stored, self.damage)
        self._report(self.damage)
        return StoreUnavailable("datastore", f"edition {self._edition}: {self.damage}")

    async def _ask(self, asked: Statement, values: Sequence[bytes]) -> pq.abc.PGresult:
        try:
            return await self._links.ask(asked, values, _READ_SECONDS)
        except Refused as refused:
            raise StoreUnavailable("datastore", str(refused)) from None

    def close(self) -> None:
        """The connections belong to the store."""


def _array(values: Iterable[int]) -> bytes:
    return b"{%b}" % ",".join(map(str, values)).encode()
