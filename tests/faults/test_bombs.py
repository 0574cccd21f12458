"""Small files that unpack to huge sizes are refused with their names, wherever the product unpacks."""

import hashlib
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from sankofa.engines.private_files import zstd
from tests.depth import deep_after
from tests.live import run
from tests.publisher import Publisher
from tests.spec.test_collect import TABLE, Home, table

ROW = b"South Africa,ZAF,2000,1\n"
LARGE = 300 << 20
"""More than an archive of any size may unpack to."""


def rows(size: int) -> bytes:
    return TABLE.encode() + ROW * (size // len(ROW))


def huge_ratio(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(LARGE))
    return buffer.getvalue()


def overlapping(name: str, members: int = 50) -> bytes:
    """Every entry of the central directory points to the bytes of the same member."""
    content = rows(1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(content) + packer.flush()
    numbers = (zlib.crc32(content), len(packed), len(content))
    names = [name.encode()] * members
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, *numbers, len(names[0]), 0) + names[0]
    body = local + packed
    directory = b"".join(
        struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 33, *numbers, len(one), 0, 0, 0, 0, 0, 0) + one
        for one in names
    )
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, members, members, len(directory), len(body), 0)
    return body + directory + end


def nested(name: str) -> bytes:
    """Archives inside an archive are skipped, not unpacked."""
    content = huge_ratio(name)
    for depth in range(3):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for number in range(4):
                archive.writestr(f"{depth}-{number}.zip", content)
        content = buffer.getvalue()
    return content


@pytest.mark.rule("ING-17")
@pytest.mark.parametrize(
    ("make", "message"),
    deep_after(1, [(overlapping, "overlaps another member"), (nested, "nested.zip: expected")]),
)
def test_a_bomb_is_refused_by_ingest_and_by_collect(
    tmp_path: Path, make: Callable[[str], bytes], message: str
):
    content = make("NY.GDP.MKTP.CD.csv")
    assert len(content) < 64 << 20
    with Publisher() as server:
        home = Home(tmp_path, server)
        home.source("bank", f"/{make.__name__}.zip")
        file = tmp_path / f"{make.__name__}.zip"
        file.write_bytes(content)
        ingested = run(home.path, "ingest", "bank", file)
        assert (ingested.returncode, message in ingested.stderr) == (1, True), ingested.stderr
        server.put(f"/{make.__name__}.zip", content)
        collected = home.collect("bank")
        assert (collected.returncode, message in collected.stderr) == (1, True), collected.stderr
        assert home.captures() == []
        server.put("/sound.zip", zipped("NY.GDP.MKTP.CD.csv"))
        home.source("other", "/sound.zip")
        assert home.collect("other").returncode == 0, "an archive as publishers have them"


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, table(1, 2))
    return buffer.getvalue()


def backup_of(*members: tuple[str, int], after: int = 0) -> bytes:
    """A file in the form of a backup: its members are zeros, and as many zeros follow its end."""
    packer = zstd.ZstdCompressor(level=1)
    packed = []
    for name, size in members:
        info = tarfile.TarInfo(name)
        info.size = size
        packed.append(packer.compress(info.tobuf(tarfile.PAX_FORMAT)))
        packed += [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    packed += [packer.compress(bytes(1 << 20)) for _ in range(after >> 20)]
    content = b"".join([*packed, packer.flush()])
    return content + b"\x50\x2a\x4d\x18" + struct.pack("<L", 32) + hashlib.sha256(content).digest()


@pytest.mark.rule("ING-17")
@pytest.mark.parametrize(
    "content",
    [
        backup_of(("ledger/capture/000000.jsonl", LARGE)),
        backup_of(
            *((f"ledger/capture/{number:06}.jsonl", 10 << 20) for number in range(LARGE // (10 << 20)))
        ),
        backup_of(("sources.toml", 1 << 20), after=LARGE),
    ],
    ids=["one member", "many members", "after the end"],
)
def test_a_bomb_is_refused_by_restore(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "backup").write_bytes(content)
    assert len(content) < 1 << 20
    refused = run(tmp_path / "home", "restore", tmp_path / "backup")
    assert refused.returncode == 1
    assert "not a whole backup of Sankofa" in refused.stderr, refused.stderr
    assert "nothing was restored" in refused.stderr
    assert not list((tmp_path / "home").glob("*"))
