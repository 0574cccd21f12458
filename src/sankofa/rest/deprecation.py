"""What is being removed: nothing at present (contract: ERR-3).

An entry makes its endpoint answer with Deprecation (RFC 9745), Sunset (RFC 8594) and a link to its
successor. Start-up refuses an entry with less than 180 days' notice.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from typing import NamedTuple

from sankofa.model.errors import SettingsError

NOTICE_DAYS = 180


class Deprecation(NamedTuple):
    """Since when an endpoint is deprecated, when it goes, and what replaces it."""

    since: date
    sunset: date
    successor: str


DEPRECATIONS: Mapping[str, Deprecation] = {}
"""By path of the operation, e.g. `/v1/macro`."""


def deprecation_headers(
    table: Mapping[str, Deprecation], known: Collection[str]
) -> dict[str, list[tuple[bytes, bytes]]]:
    """The header fields of each deprecated endpoint.

    Raises SettingsError on too short a notice, and on a path that no endpoint has.
    """
    headers = {}
    for path, (since, sunset, successor) in table.items():
        if path not in known:
            raise SettingsError(f"deprecation of {path}: no endpoint has that path")
        if (sunset - since).days < NOTICE_DAYS:
            raise SettingsError(f"deprecation of {path}: {NOTICE_DAYS} days' notice is promised")
        if not successor:
            raise SettingsError(f"deprecation of {path}: it names no successor")
        at = _midnight(sunset)
        headers[path] = [
            (b"deprecation", f"@{int(_midnight(since).timestamp())}".encode()),
            (b"sunset", format_datetime(at, usegmt=True).encode()),
            (b"link", f'<{successor}>; rel="successor-version"'.encode()),
        ]
    return headers


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
