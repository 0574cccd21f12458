"""Blocks of rows are compressed in the file of an edition, and nobody who reads them can tell."""

import os
import random
import tracemalloc
from pathlib import Path

import pytest

from sankofa.engines.block_file import BlockFileReader, BlockFileWriter, ByteCache
from sankofa.engines.checked_file import CheckedFile, FileStates
from sankofa.engines.datastore import BLOCK_BITS, Block
from sankofa.engines.edition_reader import ByteRangeReader, PartsByKind, describe_file

DRAW = random.Random(int(os.environ.get("TEST_SEED", "1")))
ROW = b'{"service_id":"DC46AF1B1AAA424B58D1368176","line_item":"revenue","value_reported":%d}'


def rows(number: int) -> bytes:
    return b",".join(ROW % (number * 1000 + row) for row in range(DRAW.randrange(1, 400)))


@pytest.fixture
def content() -> dict[str, list[Block]]:
    """Rows that compress and rows too few to; numbers, which do not; bytes that would grow."""
    return {
        "rows": [(b"index%d" % number, rows(number)) for number in range(40)],
        "small": [(b"", ROW % 7)],
        "numbers": [(b"", bytes(8192))],
        "noise": [(b"", b"{" + DRAW.randbytes(9000))],
    }


def write(path: Path, content: dict[str, list[Block]]) -> None:
    writer = BlockFileWriter(path)
    directory, number = [], 1
    for key, blocks in content.items():
        writer.write((number + at, bytes(index), bytes(part)) for at, (index, part) in enumerate(blocks))
        directory.append(("kind", key, number, len(blocks)))
        number += len(blocks)
    writer.register(directory)
    writer.finish()


def reader(path: Path, cache: ByteCache[int] | None = None) -> BlockFileReader:
    _, size, digests = describe_file(path)
    return BlockFileReader(CheckedFile(path, size, digests, FileStates()), cache)


@pytest.mark.parametrize("cache_bytes", [0, 50_000, 128 << 20])
def test_whatever_is_read_is_what_was_written(
    tmp_path: Path, content: dict[str, list[Block]], cache_bytes: int
) -> None:
    path = tmp_path / "edition.blocks"
    write(path, content)
    assert path.stat().st_size < sum(len(part) for _, part in content["rows"]) / 3
    opened = reader(path, ByteCache(cache_bytes))
    for key, blocks in content.items():
        for skip, most in ((0, 1000), (1, 3), (len(blocks), 5), (len(blocks) - 1, 1)):
            answer = opened.blocks("kind", key, skip, most)
            assert answer is not None
            assert [(bytes(i), bytes(r)) for i, r in answer] == blocks[skip : skip + most]


@pytest.mark.parametrize("cache_bytes", [0, 50_000, 128 << 20])
def test_byte_ranges_of_any_part_are_those_that_were_written(
    tmp_path: Path, content: dict[str, list[Block]], cache_bytes: int
) -> None:
    """Again and again: most were read before."""
    cache = ByteCache[int](cache_bytes)
    entries, parts, every = [], [], []
    for part in range(3):
        path = tmp_path / f"{part}.blocks"
        write(path, content)
        entries.append({"kinds": ["kind"], "first": f"{part}"})
        parts.append(reader(path, cache))
        every.append([rows for blocks in content.values() for _, rows in blocks])
    ranges_read = ByteRangeReader(PartsByKind({"parts": entries}, parts))
    for _ in range(20):
        ranges, expected = [], []
        for part, number in ((DRAW.randrange(3), DRAW.randrange(len(every[0]))) for _ in range(50)):
            rows = every[part][number]
            start = DRAW.randrange(len(rows))
            end = DRAW.randrange(start, len(rows) + 1)
            ranges.append(((part << BLOCK_BITS) + number + 1, start, end))
            expected.append(rows[start:end])
        assert [bytes(content) for content in ranges_read.read("kind", ranges)] == expected
    assert cache.size <= cache_bytes


def test_byte_ranges_take_no_more_than_their_room(tmp_path: Path, content: dict[str, list[Block]]) -> None:
    path = tmp_path / "edition.blocks"
    write(path, content)
    parts = PartsByKind({"parts": [{"kinds": ["kind"], "first": ""}]}, [reader(path)])
    ranges_read = ByteRangeReader(parts, most_bytes=40_000)
    ranges = [(n, start, start + 50) for n in range(1, 41) for start in range(0, 4000, 100)]
    ranges_read.read("kind", [(number, 0, 1) for number in range(1, 41)])  # every block is in the cache
    tracemalloc.start()
    for first in range(0, len(ranges), 20):
        ranges_read.read("kind", ranges[first : first + 20])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 60_000 < 100 * len(ranges)


def test_many_blocks_are_made_ready_one_by_one(tmp_path: Path, content: dict[str, list[Block]]) -> None:
    path = tmp_path / "edition.blocks"
    write(path, content)
    cache = ByteCache[int]()
    blocks = reader(path, cache).blocks("kind", "rows", 0, 1000)
    assert blocks is not None
    assert len(blocks) == 40
    assert cache.size == 0  # nothing yet
    assert bytes(blocks[-1][1]) == content["rows"][-1][1]
    assert [bytes(part) for _, part in blocks[3:5]] == [part for _, part in content["rows"][3:5]]
    assert 0 < cache.size < sum(len(part) for _, part in content["rows"])


def test_rows_that_are_not_needed_are_not_decompressed(
    tmp_path: Path, content: dict[str, list[Block]]
) -> None:
    path = tmp_path / "edition.blocks"
    write(path, content)
    for most in (3, 1000):  # made ready at once, and one by one
        cache = ByteCache[int]()
        blocks = reader(path, cache).blocks("kind", "rows", 0, most, lambda index: index == b"index1")
        assert blocks is not None
        sizes = [(bytes(index), len(part)) for index, part in blocks]
        assert [index for index, _ in sizes] == [index for index, _ in content["rows"][:most]]
        for (_, size), (index, part) in zip(sizes, content["rows"], strict=False):
            assert size == (len(part) if index == b"index1" or len(part) < 4096 else 0)
        assert cache.size in (0, len(content["rows"][1][1]))


def test_opening_takes_no_memory_of_the_file(tmp_path: Path, content: dict[str, list[Block]]) -> None:
    path = tmp_path / "edition.blocks"
    write(path, content)
    opened = reader(path)
    assert mapped_bytes(path) == 0
    opened.blocks("kind", "noise", 0, 1)
    assert mapped_bytes(path) > 0


def mapped_bytes(path: Path) -> int:
    """How much of a file the system counts as memory of this process."""
    _, entry = Path("/proc/self/smaps").read_text().split(f" {path}\n", 1)
    size, kilobytes = next(line for line in entry.splitlines() if line.startswith("Rss:")).split()[1:]
    assert kilobytes == "kB"
    return int(size) * 1024


def test_a_cache_stays_within_its_bytes_and_keeps_what_is_read_again() -> None:
    cache = ByteCache[int](10_000)
    for key in range(1000):
        cache.put(key, bytes(100))
        assert cache.get(0) == bytes(100)
        assert cache.size <= 10_000
    assert cache.get(500) is None
    cache.put(1, bytes(20_000))  # larger than all of it
    assert cache.get(1) is None
