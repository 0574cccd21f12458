"""Deltas from one file to the next."""

import random
from pathlib import Path

import pytest

from sankofa.replication import pool
from sankofa.replication.pool import NotApplicable, apply_delta, make_delta


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_STRETCH", 4096)
    monkeypatch.setattr(pool, "_AROUND", 1024)


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


NOISE = random.Random(7).randbytes(30_000)


@pytest.mark.parametrize(
    ("old", "new", "most"),
    [
        (NOISE, NOISE[:9_000] + b"another figure" + NOISE[9_100:], 2_000),
        (NOISE[8_000:], NOISE[8_000:12_000] + NOISE[:8_000] + NOISE[12_000:], 10_000),  # moved far
        (NOISE, NOISE[:20_000], 1_000),
        (NOISE[:20_000], NOISE, 12_000),
        (NOISE, b"", 8),
        (b"", NOISE, 31_000),
        (b"abc", NOISE[:5_000], 5_100),
    ],
)
def test_a_delta_rebuilds_the_new_file_and_holds_only_new_bytes(
    old: bytes, new: bytes, most: int, tmp_path: Path
) -> None:
    base, target = written(tmp_path, "old", old), written(tmp_path, "new", new)
    delta = make_delta(base, target)
    assert b"".join(apply_delta(base, delta)) == new
    assert len(delta) <= most


def test_an_altered_or_foreign_delta_gives_no_more_bytes_than_announced(tmp_path: Path) -> None:
    base = written(tmp_path, "old", NOISE)
    delta = make_delta(base, written(tmp_path, "new", NOISE[5:]))
    other = written(tmp_path, "other", NOISE[::-1][:25_000])
    for path, content in (
        (base, b"nothing"),
        (base, delta[:-9]),
        (base, delta[: len(delta) // 2]),
        (base, delta[:20] + b"\xff\xff\xff\xff" + delta[24:]),
        (other, delta),
    ):
        size = 0
        with pytest.raises(NotApplicable):  # noqa: PT012 - as far as it goes
            for stretch in apply_delta(path, content):
                size += len(stretch)
        assert size <= len(NOISE)
