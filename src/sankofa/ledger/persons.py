"""Proven natural persons, known by keyed hash alone."""

import hmac
from collections.abc import Iterable


class Persons:
    """Identifiers proven to be natural persons', known only by keyed hash and the capture that proved it."""

    def __init__(self, key: bytes, proven: Iterable[tuple[str, int]]) -> None:
        self._key = key
        self._proven: dict[str, int] = {}
        for hashed, capture_id in proven:
            self._proven[hashed] = min(capture_id, self._proven.get(hashed, capture_id))
        self._asked: dict[str, bool] = {}

    @property
    def mark(self) -> str:
        """The keyed hash of a known text: shows whether a ledger was begun with another key."""
        return self.hashed("sankofa")

    def keyed_alike(self, marks: Iterable[str]) -> bool:
        return all(mark == self.mark for mark in marks)

    def __contains__(self, subject: str) -> bool:
        known = self._asked.get(subject)
        if known is None:
            known = self._asked[subject] = bool(self._proven) and self.hashed(subject) in self._proven
        return known

    def proven_by(self, subjects: Iterable[str]) -> int:
        """The newest capture that proved any of these a person, of each the first that did; 0 for none."""
        return max((self._proven[self.hashed(subject)] for subject in subjects if subject in self), default=0)

    def add(self, subject: str, capture_id: int) -> str:
        hashed = self.hashed(subject)
        self._proven.setdefault(hashed, capture_id)
        self._asked.clear()
        return hashed

    def hashed(self, subject: str) -> str:
        """The keyed hash: all that is stored of a withheld person."""
        return hmac.digest(self._key, subject.encode(), "sha256").hex()

    def token(self, text: str) -> str:
        """Tells a text that must not be shown from others like it."""
        return self.hashed(f"token:{text}")[:12]
