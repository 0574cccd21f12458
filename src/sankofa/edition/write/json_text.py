"""Rows of macro values are put together as text: millions of them differ in a few members only."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from sankofa.ledger.reader import CaptureInfo


class ProvenanceText:
    """The beginning of every row: where it was captured from, and when."""

    def __init__(self, captures: Mapping[int, CaptureInfo]) -> None:
        self._captures = captures
        self._around: dict[tuple[int, str], tuple[str, str]] = {}

    def of(self, capture_id: int, document: str, location: str) -> str:
        """With a location that can stand in JSON as it is."""
        before, behind = self.around(capture_id, document)
        return f"{before}{location}{behind}"

    def around(self, capture_id: int, document: str) -> tuple[str, str]:
        """What stands before the location, and behind it."""
        around = self._around.get((capture_id, document))
        if around is None:
            capture = self._captures[capture_id]
            around = self._around[capture_id, document] = (
                f'{{"source_ref":{json_text(capture.ref("", document))[:-1]}',
                f'","license_class":"{capture.license_class}","observed_at":"{capture.observed_at}",',
            )
        return around


@lru_cache(maxsize=4096)
def json_text(text: str) -> str:
    """As JSON; what is not given is null."""
    return msgspec.json.encode(text).decode() if text else "null"


def figure(text: str) -> Any:
    """A value in the digits it is served with."""
    return msgspec.Raw(text.encode()) if text else None
