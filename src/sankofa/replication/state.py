"""The state of a follower, in a small file beside the editions. Workers and `sankofa doctor` read it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from sankofa.engines.private_files import replace_file

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
    """Why the last look failed; empty where it did not."""
    failing_since: str = ""
    """When the first of the looks that failed without one between them that did not."""
    refusal: str = ""
    """Why the edition that is current there is not served here, though everything answers."""
    untrusted: str = ""
    """Why the last note was refused; empty where it was not."""
    refused: int = 0
    """How many looks found a note that was refused."""
    pulled_files: int = 0
    pulled_bytes: int = 0
    """Bytes of the last change."""
    pulled_seconds: float = 0.0

    def age_seconds(self, now: datetime) -> float | None:
        """Since the place that is followed last answered; None where it never did."""
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
            return f"no answer for {age:.0f} s: {self.failure or 'nobody follows'}"
        if self.failing_since and (failing := _seconds(self.failing_since, now)) > SILENT_SECONDS:
            return f"nothing new comes for {failing:.0f} s: {self.failure}"
        return self.refusal or None


def _seconds(since: str, now: datetime) -> float:
    return max((now - datetime.fromisoformat(since)).total_seconds(), 0.0)


def read_state(editions: Path) -> FollowState:
    """An empty one where there is none that can be read."""
    try:
        return msgspec.json.decode((editions / FILE).read_bytes(), type=FollowState)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return FollowState()


def write_state(editions: Path, state: FollowState) -> None:
    """Without waiting for the disk: what is lost with the power is found out at the next look."""
    replace_file(editions / FILE, msgspec.json.encode(state), durable=False)


def utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
