"""The datastore of a node that follows: files in HOME, which a follower brings."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_folder import remove_edition
from sankofa.engines.edition_log import LogTree
from sankofa.engines.edition_reader import EditionReader
from sankofa.engines.private_files import operator_errors, replace_file
from sankofa.engines.publication import Publication
from sankofa.model.errors import EditionError
from sankofa.model.signed_notes import Verifier

FILE: Final = "FOLLOWING"
SILENT_SECONDS: Final = 30.0
"""After so long without an answer a node says that it may be behind."""


class FollowState(msgspec.Struct, frozen=True):
    """Times are UTC, as ISO 8601."""

    looked_at: str = ""
    answered_at: str = ""
    """When the pointer was last read, or more of an edition came."""
    written_at: str = ""
    """When the note that was taken was signed."""
    index: str = ""
    """The digest of the note that everything is there of."""
    remote_edition: str = ""
    failure: str = ""
    """Why the last look failed; empty if it did not."""
    failing_since: str = ""
    """When the first of the looks that failed without one between them that did not."""
    refusal: str = ""
    """Why the edition that is current there is not served here, though everything answers."""
    untrusted: str = ""
    """Why the last note was refused; empty if it was not."""
    refused: int = 0
    """How many looks found a note that was refused."""
    pulled_files: int = 0
    pulled_bytes: int = 0
    """Bytes of the last change."""
    pulled_seconds: float = 0.0

    def age_seconds(self, now: datetime) -> float | None:
        """Since the place that is followed last answered; None if it never did."""
        if not self.answered_at:
            return None
        return _seconds(self.answered_at, now)

    def complaint(self, now: datetime) -> str | None:
        """The fault of following, or None."""
        if self.untrusted:
            return self.untrusted
        age = self.age_seconds(now)
        if age is None:
            return self.failure or "not asked yet"
        if age > SILENT_SECONDS:
            return f"no answer for {age:.0f} s: {self.failure or 'no follower runs'}"
        if self.failing_since and (failing := _seconds(self.failing_since, now)) > SILENT_SECONDS:
            return f"nothing new comes for {failing:.0f} s: {self.failure}"
        return self.refusal or None


def _seconds(since: str, now: datetime) -> float:
    return max((now - datetime.fromisoformat(since)).total_seconds(), 0.0)


def read_state(editions: Path) -> FollowState:
    """An empty one if there is none that can be read."""
    try:
        return msgspec.json.decode((editions / FILE).read_bytes(), type=FollowState)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return FollowState()


def write_state(editions: Path, state: FollowState) -> None:
    """Without waiting for the disk: what is lost with the power is found out at the next look."""
    replace_file(editions / FILE, msgspec.json.encode(state), durable=False)


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


_DAMAGED: Final = ".damaged-"


class FollowingStore(Datastore):
    """One that is found damaged is marked: the follower brings it again.

    Its note is the publisher's. CURRENT is the node's own: it may be of a version that does not read the
    edition that is current there.
    """

    def open(self, edition: str, *, check_all: bool = False) -> EditionReader:
        folder = self._folder_of(edition)
        try:
            return super().open(edition, check_all=check_all)
        except EditionError:
            with suppress(OSError):
                if folder.exists():
                    (self.editions / f"{_DAMAGED}{edition}").touch()
            raise

    def seen_log(self) -> LogTree:
        """The log that the publisher's must begin with."""
        return self.log.tree()

    def following(self) -> FollowState:
        return read_state(self.editions)

    def take_list(self, content: bytes) -> None:
        """The publisher's list of everything it ever published, which was compared with the signed digest."""
        with operator_errors(self._published):
            if not self._published.exists() or self._published.read_bytes() != content:
                replace_file(self._published, content)

    def take(self, note: bytes, current: str, keep: Sequence[str]) -> None:
        """Serve an edition of a note that was verified, and remove those that are not to be kept."""
        with operator_errors(self._note):
            if not self._note.exists() or self._note.read_bytes() != note:
                replace_file(self._note, note)
            if self._unsigned_pointer() != current:
                replace_file(self._pointer, f"{current}\n".encode())
            for name in self.list_editions().editions:
                if name not in keep and name != current:
                    remove_edition(self.editions / name)
        self._unsigned.clear()

    def trusted(self) -> tuple[Verifier, ...]:
        """The keys that may sign; none where the first that is seen is trusted."""
        return self._trusted

    def _trusted_keys(self) -> tuple[Verifier, ...] | None:
        return self.trusted() or None

    def _current_of(self, publication: Publication) -> str:
        own = self._unsigned_pointer()
        usable = own in publication.editions and own not in publication.withdrawn
        return own if own is not None and usable else publication.current


def damaged_editions(editions: Path) -> list[str]:
    return [path.name.removeprefix(_DAMAGED) for path in editions.glob(f"{_DAMAGED}*")]


def forget_damage(editions: Path, edition: str) -> None:
    (editions / f"{_DAMAGED}{edition}").unlink(missing_ok=True)
