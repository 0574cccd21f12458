"""What the session that waits and the one that is awaited share; `exchange` has what is said."""

import copy
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Self

import httpx

from sankofa.client import frames
from sankofa.client.endpoints import ENDPOINTS
from sankofa.client.errors import Unauthorized
from sankofa.client.exchange import COLUMNS, JSON, Exchange, Request, Retries, exchange, question

_KEY_FIELD: Final = "X-API-Key"
VERSION: Final = "0.1.0"
PAGE: Final = 10_000
"""Rows of a page where everything is asked for: the most that a paid tier is given at once."""
RETRIES: Final = Retries()
TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)


class SessionBase:
    """A client before it can send."""

    def __init__(self, base_url: str, headers: Mapping[str, str], retries: Retries) -> None:
        address = httpx.URL(base_url)
        self._shown_url = str(address.copy_with(userinfo=b"") if address.userinfo else base_url).rstrip("/")
        self._has_key = _KEY_FIELD in headers
        self._retries = retries
        self._by_columns = False
        self._service_ids: dict[str, str] = {}
        self._clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def columns(self) -> Self:
        """The same client, answered in columns: an Arrow stream, which turns into frames many times faster.

        Where neither pyarrow nor Polars is installed the answers are as before.
        """
        other = copy.copy(self)
        other._by_columns = frames.reads_columns()
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._shown_url}>"

    def _exchange(self, request: Request) -> Exchange:
        try:
            return (yield from exchange(request, self._shown_url, self._retries, self._clock))
        except Unauthorized as refused:
            if not self._has_key:
                refused.args = (f"{refused.detail} SANKOFA_API_KEY is not set, and no key was given.",)
            raise

    def _question(self, name: str, arguments: Mapping[str, object]) -> Request:
        return question(ENDPOINTS[name], arguments, COLUMNS if self._by_columns else JSON)


def given_only(arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments without those that say nothing."""
    return {name: value for name, value in arguments.items() if value is not None}


def default_url() -> str:
    """Where the service is, as the environment says."""
    return os.environ.get("SANKOFA_URL") or "http://127.0.0.1:8000"


def default_headers(key: str | None) -> dict[str, str]:
    """What every request carries. Raises ValueError for a key that no header can."""
    headers = {"User-Agent": f"sankofa-client/{VERSION}"}
    key = os.environ.get("SANKOFA_API_KEY") if key is None else key
    if key is None:
        return headers
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        raise ValueError("key: expected printable ASCII without spaces")  # what sends it would repeat it
    return {**headers, _KEY_FIELD: key}
