"""Who was proven to be a natural person, known by keyed hash alone."""

import hmac
from collections.abc import Iterable


class Persons:
    """Identifiers proven to be natural persons', known only by keyed hash."""

    def __init__(self, key: bytes, hashes: Iterable[str]) -> None:
        self._key = key
        self._hashes = set(hashes)
        self._asked: dict[str, bool] = {}

    @property
    def mark(self) -> str:
        """What the key makes of a text everyone knows: tells whether a ledger was begun with another key."""
        return self.hashed("sankofa")

    def keyed_alike(self, marks: Iterable[str]) -> bool:
        return all(mark == self.mark for mark in marks)

    def __contains__(self, subject: str) -> bool:
        known = self._asked.get(subject)
        if known is None:
            known = self._asked[subject] = bool(self._hashes) and self.hashed(subject) in self._hashes
        return known

    def add(self, subject: str) -> str:
        hashed = self.hashed(subject)
        self._hashes.add(hashed)
        self._asked.clear()
        return hashed

    def hashed(self, subject: str) -> str:
        """What is kept of whoever is withheld."""
        return hmac.digest(self._key, subject.encode(), "sha256").hex()

    def token(self, text: str) -> str:
        """Tells a text that must not be shown from others like it."""
        return self.hashed(f"token:{text}")[:12]
