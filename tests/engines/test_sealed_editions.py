"""Every kind of file of an edition, flipped and cut at random, is refused or read as published."""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sankofa.engines import edition_reader
from sankofa.engines.edition_reader import EditionReader
from sankofa.engines.publication import open_manifest, seal_manifest
from sankofa.model.errors import EditionError, StoreUnavailable
from tests.engines.datastores import Engine, keys_of, publish_sample, run
from tests.tampering import parts_of
from tests.torture import Trial, rounds


class PublishedSample:
    """A published sample in files; each round damages a copy."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.edition = publish_sample(Engine("sqlite", "sqlite:", home / "kept"))["edition"]
        self._folder = home / "kept" / "editions"
        self.parts = parts_of(self._folder / self.edition)
        self.keys = [key for part in self.parts for key in keys_of(part)]
        self.rounds = 0

    def names(self) -> list[str]:
        files = sorted((self._folder / self.edition / "files").iterdir())
        parts = (f"parts/{path.name}" for path in self.parts)
        inside = ("manifest.json", "checksums", *parts, *(f"files/{path.name}" for path in files))
        return [f"{self.edition}/{name}" for name in inside]

    def copy(self) -> Engine:
        self.rounds += 1
        home = self.home / str(self.rounds)
        shutil.copytree(self._folder, home / "editions")
        shutil.copy(self._folder.parent / "edition-key", home)
        return Engine("sqlite", "sqlite:", home)

    def opened(self, engine: Engine, *, check_all: bool) -> EditionReader | None:
        try:
            return engine.store.open(self.edition, check_all=check_all)
        except EditionError:
            return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> PublishedSample:
    return PublishedSample(tmp_path_factory.mktemp("sealed"))


def flip(path: Path, chance: random.Random) -> None:
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut(path: Path, chance: random.Random) -> None:
    path.chmod(0o600)
    os.truncate(path, chance.randrange(path.stat().st_size))


def test_one_flipped_bit_in_any_file_of_an_edition_is_refused(
    published: PublishedSample, trial: Trial
) -> None:
    accepted = []
    for number in range(trial.count(rounds(8, 60, here=3), 1000)):
        engine = published.copy()
        name = published.names()[number % 4] if number % 2 else trial.chance.choice(published.names())
        flip(engine.home / "editions" / name, trial.chance)
        if (reader := published.opened(engine, check_all=True)) is not None:
            reader.close()
            accepted.append(name)
        else:
            trial.saw("refused")
        shutil.rmtree(engine.home)
    assert accepted == []


def test_a_truncated_file_of_an_edition_is_refused(published: PublishedSample, trial: Trial) -> None:
    for number in range(trial.count(20, 200)):
        engine = published.copy()
        name = published.names()[number % 4] if number % 2 else trial.chance.choice(published.names())
        cut(engine.home / "editions" / name, trial.chance)
        assert published.opened(engine, check_all=False) is None, name
        trial.saw("refused")
        shutil.rmtree(engine.home)


def test_a_block_is_read_as_published_or_refused(
    published: PublishedSample, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edition_reader, "_CHECKED_AT_OPENING", 0)  # as with a large edition
    monkeypatch.setattr("sankofa.engines.block_file._AT_ONCE", 100_000)
    whole = published.copy().store.open(published.edition)
    chance, unavailable = trial.chance, 0
    for _ in range(trial.count(20, 300)):
        engine = published.copy()
        flip(
            engine.home / "editions" / published.edition / "parts" / chance.choice(published.parts).name,
            chance,
        )
        keys = chance.sample(published.keys, min(len(published.keys), 200))

        async def read(engine: Engine = engine, keys: list[tuple[str, str]] = keys) -> int:
            refused = 0
            if (reader := published.opened(engine, check_all=False)) is None:
                return 1  # the first or the last page
            for kind, key in keys:
                try:
                    blocks = await reader.blocks(kind, key, 0, 2**31 - 1)
                except StoreUnavailable:
                    assert reader.damage is not None
                    refused += 1
                    continue
                assert [*(blocks or ())] == [*(await whole.blocks(kind, key, 0, 2**31 - 1) or ())]
            reader.scrub(0)
            while reader.damage is None:
                reader.scrub(1 << 20)  # the check finds it in the end, read or not
            reader.close()
            return refused

        refused = run(read)
        unavailable += refused
        trial.saw("refused in part, the rest as published" if refused else "every block as published")
        shutil.rmtree(engine.home)
    assert unavailable


@pytest.mark.parametrize(
    "members",
    [
        {"files": [{"name": "../x.parquet", "size_bytes": 0, "sha256": "0" * 64}]},
        {"files": [{"name": "x.parquet", "size_bytes": -1, "sha256": "0" * 64}]},
        {"parts": [{"kinds": [], "first": "", "content": "", "sha256": "../x", "size_bytes": 0}]},
    ],
)
def test_a_sealed_manifest_with_paths_outside_the_edition_is_refused(members: dict[str, Any]):
    manifest = {"edition": "one", "content_sha256": "x"}
    content, seal = seal_manifest(manifest)
    assert open_manifest(content, seal, "one") == manifest
    with pytest.raises(ValueError, match=r"at `\$"):
        seal_manifest({**manifest, **members})
    content = json.dumps({**manifest, **members}).encode()
    with pytest.raises(ValueError, match=r"at `\$"):
        open_manifest(content, hashlib.sha256(content).hexdigest(), "one")


def test_an_edition_from_another_store_or_with_another_name_is_refused(published: PublishedSample) -> None:
    engine = published.copy()
    editions = engine.home / "editions"
    other = "29990101T000000Z-00001-0000000000"
    (editions / published.edition).rename(editions / other)
    with pytest.raises(EditionError, match="no trusted key signed it"):
        engine.store.open(other)
    (editions / "editions.note").unlink()
    with pytest.raises(EditionError, match="of another edition"):
        engine.store.open(other)
