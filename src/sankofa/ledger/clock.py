"""Whether the clock can be believed: what is captured under it is dated by it for ever.

A clock behind the newest capture by more than a day is wrong, or that capture was. A clock that is ahead cannot be told
from a long pause by the ledger alone, so other witnesses of the time are asked: the files of HOME and the files to be
read. More than a day after all of them, or more than a year after the newest capture, it is not believed.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sankofa.model.errors import OperatorError

_DAY: Final = timedelta(days=1)
_LONGEST_PAUSE: Final = timedelta(days=366)


def refuse_doubtful_clock(now: datetime, newest_capture: datetime | None, witnesses: Iterable[Path]) -> None:
    """Raises OperatorError. Without a capture there is nothing to compare with."""
    if newest_capture is None:
        return
    if now < newest_capture - _DAY:
        raise _refusal(now, f"the newest capture is of {newest_capture:%Y-%m-%dT%H:%MZ}")
    if now > newest_capture + _LONGEST_PAUSE:
        raise _refusal(now, f"the newest capture is of {newest_capture:%Y-%m-%d}, more than a year before")
    seen = max([newest_capture, *_modified(witnesses)])
    if now > seen + _DAY:
        raise _refusal(now, f"nothing in HOME, nor any file to be read, is newer than {seen:%Y-%m-%dT%H:%MZ}")


def _modified(paths: Iterable[Path]) -> Iterable[datetime]:
    for path in paths:
        with suppress(OSError, OverflowError, ValueError):
            yield datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _refusal(now: datetime, because: str) -> OperatorError:
    return OperatorError(
        f"the clock says {now:%Y-%m-%dT%H:%MZ}, but {because}: captures would be dated by it for ever. "
        "Set the clock, or repeat the command with --clock-is-right"
    )
