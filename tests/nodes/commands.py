"""The commands of a node, and its files after them."""

import json
from pathlib import Path
from typing import Any

from tests.live import run, succeed


def follow(home: Path, url: str, **settings: str) -> str:
    done = succeed(home, "follow", "--once", editions=url, **settings)
    return done.stdout


def refused(home: Path, url: str) -> str:
    done = run(home, "follow", "--once", editions=url)
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def current(home: Path) -> str | None:
    pointer = home / "editions" / "CURRENT"
    return pointer.read_text().strip() if pointer.exists() else None


def state(home: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((home / "editions" / "FOLLOWING").read_text())
    return document


def largest(destination: Path) -> Path:
    return max((p for p in (destination / "pool").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def pool_object(destination: Path, digest: str) -> Path:
    return destination / "pool" / digest[:2] / digest
