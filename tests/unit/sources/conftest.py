"""Adapters are tested on minimal files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sankofa.model.records import Record
from sankofa.sources.base import InputFile, adapters

Read = Callable[[str, Path], list[Record]]
Written = Callable[[str, str | bytes], Path]


@pytest.fixture
def read() -> Read:
    """Everything that an adapter reads from a file."""
    return lambda adapter, path: list(adapters()[adapter].read(InputFile(path)))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A file with this name and content."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
