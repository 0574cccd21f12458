"""Every row is read back as what it claims to be before it may be written."""

from typing import Generic, TypeVar

import msgspec

from sankofa.edition.format.row_blocks import Entry
from sankofa.model.errors import CheckFailed
from sankofa.model.provenance import LICENSE_CLASSES
from sankofa.model.rows import Row

R = TypeVar("R", bound=Row)


class RowCheck(Generic[R]):
    """Reads the rows of a kind back."""

    def __init__(self, kind: str, row: type[R]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(row).decode

    def __call__(self, key: str, entry: Entry) -> R:
        try:
            row = self._decode(entry.row)
        except msgspec.ValidationError as failure:
            raise check_failed(self._kind, key, f"a row is not of its shape: {failure}") from failure
        if row.license_class not in LICENSE_CLASSES:
            raise check_failed(self._kind, key, f"unknown licence class {row.license_class!r}")
        check_days(self._kind, key, entry)
        return row


def check_days(kind: str, key: str, entry: Entry) -> None:
    if not entry.first < entry.until:
        raise check_failed(kind, key, "a row that is never seen")


def check_failed(kind: str, key: str, reason: str) -> CheckFailed:
    return CheckFailed(f"{kind} {key}: {reason}")
