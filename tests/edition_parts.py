"""Where the blocks of an edition are, for tests that damage or read its files."""

import json
from pathlib import Path
from typing import Any


def part_of(edition: Path, kind: str = "fundamentals") -> Path:
    """The first part of a kind in the folder of an edition."""
    return edition / "parts" / str(next(part["sha256"] for part in _parts(edition) if kind in part["kinds"]))


def parts_of(edition: Path) -> list[Path]:
    """Every part, in the order of the manifest."""
    return [edition / "parts" / part["sha256"] for part in _parts(edition)]


def _parts(edition: Path) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = json.loads((edition / "manifest.json").read_bytes())["parts"]
    return parts
