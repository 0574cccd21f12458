"""One suite for every datastore engine: Parquet files belong to their edition."""

import hashlib
import random
from contextlib import closing
from typing import Any

import pytest

from sankofa.edition.write.publish import publish
from tests.engines.datastores import SMALL_SOURCES, Engine, ingest_sample, run


def test_any_byte_range_of_a_file_can_be_read(engine: Engine) -> None:
    whole = random.Random(7).randbytes(1_000_000)
    files = [{"name": "a.parquet", "size_bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}]
    writer = engine.store.build()
    (writer.files / "a.parquet").write_bytes(whole)
    writer.finish("one", {"content_sha256": "one", "files": files})

    async def read() -> None:
        reader = engine.store.open("one")
        part = 256 * 1024
        positions = {0, 1, part - 1, part, part + 1, 2 * part, len(whole) - 1, len(whole)}
        for start in positions:
            for end in positions:
                if start <= end:
                    assert await reader.file_bytes("a.parquet", start, end) == whole[start:end]
        reader.close()
        engine.store.close()

    run(read)


def test_a_build_that_fails_leaves_no_file(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[dict[str, Any]]:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("sankofa.edition.write.parquet.ParquetFiles.finish", fail)
    with closing(ingest_sample(engine, SMALL_SOURCES)) as ledger, pytest.raises(RuntimeError):
        publish(engine.store, ledger, keep=3)
    assert engine.leftovers() == []
    assert not [path for path in engine.home.glob("**/*") if "parquet" in path.name or "af-" in path.name]
