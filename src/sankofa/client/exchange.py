"""Requests, retries and the decoding of answers, without I/O; both sessions use it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx

from sankofa.client.errors import ConnectionFailed, InvalidAnswer, refusal

JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"
COLUMNS: Final = f"{ARROW};compression=zstd, {JSON};q=0.5"
_TRANSIENT: Final = (429, 503)


class Endpoint(NamedTuple):
    """An endpoint's path and path parameters, the shapes of its rows, and the members of its envelope besides
    the common ones."""

    path: str
    in_path: tuple[str, ...]
    rows_under: str
    shapes: tuple[str, ...]
    members: tuple[str, ...]


class Request(NamedTuple):
    """A request to the service: a GET, or a form that is safe to send again."""

    path: str
    query: Mapping[str, str] = {}
    accept: str = JSON
    into: Path | None = None
    """The path to write the body to instead of returning it."""
    also: tuple[int, ...] = ()
    """Statuses besides 200 that count as an answer."""
    form: Mapping[str, str] | None = None
    """The fields to send with a form; None for a GET."""

    @property
    def sent(self) -> dict[str, Any]:
        """The request for httpx. Compressing columns one by one costs a third of compressing the body."""
        plain = {"Accept-Encoding": "identity"} if self.accept.startswith(ARROW) else {}
        return {
            "method": "GET" if self.form is None else "POST",
            "url": self.path,
            "params": self.query,
            "headers": {"Accept": self.accept, **plain},
            "data": self.form,
        }


class Reply(NamedTuple):
    """A response with its body; the body is empty if it was written to a file."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Outcome = Reply | httpx.RequestError


@dataclass(frozen=True)
class Retries:
    """When to repeat a request: after 429, 503 and broken connections, following `Retry-After`."""

    attempts: int = 5
    """Most attempts."""
    longest_wait: float = 90.0
    """Most seconds of waiting in total; if the service asks for more, its refusal is raised."""
    first_pause: float = 0.5
    """Seconds before the second attempt if the service names none; doubled each time."""

    def pause(self, outcome: Outcome, attempt: int, waited: float, now: datetime) -> float | None:
        """Seconds to wait before the next attempt; None for no further attempt."""
        requested = None
        if isinstance(outcome, Reply):
            if outcome.status not in _TRANSIENT:
                return None
            requested = retry_after(outcome.headers, now)
        elif isinstance(outcome, httpx.UnsupportedProtocol):  # not a URL of the service
            return None
        pause = self.first_pause * 2 ** (attempt - 1) if requested is None else requested
        return None if attempt >= self.attempts or waited + pause > self.longest_wait else pause


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or as a date (RFC 9110, section 10.2.3)."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())


def accepted(request: Request, base_url: str, outcome: Outcome, now: datetime) -> Reply:
    """The reply if it is an answer, else raises the matching error."""
    if isinstance(outcome, httpx.RequestError):
        # without its cause: an httpx error holds the request, and the request the key
        raise ConnectionFailed(f"{base_url}{request.path}: {type(outcome).__name__}: {outcome}") from None
    if outcome.status != 200 and outcome.status not in request.also:
        raise refusal(outcome.status, _problem(outcome), outcome.headers, retry_after(outcome.headers, now))
    return outcome


def question(endpoint: Endpoint, arguments: Mapping[str, object], accept: str) -> Request:
    """The request for a method's arguments; None values are left out."""
    texts = {name.rstrip("_"): _text(value) for name, value in arguments.items() if value is not None}
    for name in endpoint.in_path:
        if not texts.get(name):
            raise ValueError(f"{name}: expected text, not {arguments.get(name)!r}")
    path = endpoint.path.format(**{name: quote(texts.pop(name), safe="") for name in endpoint.in_path})
    return Request(path, texts, accept)


def read_json(reply: Reply) -> Any:
    """A decoded JSON body, figures with every digit. Raises InvalidAnswer."""
    try:
        return json.loads(reply.body, parse_float=Decimal)
    except ValueError as failure:
        raise InvalidAnswer(f"not JSON: {failure}") from None


def day_of(value: date) -> date:
    """The day of an argument; for a `datetime`, its date. Raises ValueError if the day is ambiguous.

    pandas has days as naive midnights. The service counts days in UTC, so an instant with a zone is accepted
    only if it is on the same day in UTC: midnight in Lagos is the day before.
    """
    if not isinstance(value, datetime):
        return value
    if value != value:  # pandas' NaT, which is a datetime
        raise ValueError("expected a day, not NaT")
    if value.tzinfo is None:
        if value.time() != time.min:
            raise ValueError(f"{value.isoformat()} has no time zone: give a date, or a datetime with a zone")
        return value.date()
    in_utc = value.astimezone(UTC).date()
    if in_utc != value.date():
        raise ValueError(
            f"{value.isoformat()} is on {value.date()} there and on {in_utc} in UTC: give the date you mean"
        )
    return in_utc


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    if isinstance(value, (float, Decimal)):
        return f"{Decimal(str(value)):f}"
    return day_of(value).isoformat() if isinstance(value, date) else str(value)


def _problem(reply: Reply) -> dict[str, Any]:
    try:
        body = json.loads(reply.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def target_of(file: str, into: Path | str) -> Path:
    """Where to write a file: at a path, or in a folder under its own name."""
    if Path(file).name != file:
        raise ValueError("file: expected a name as the manifest lists it")
    return Path(into) / file if Path(into).is_dir() else Path(into)


KEY_FIELD: Final = "X-API-Key"
VERSION: Final = "0.1.0"
PAGE: Final = 10_000
"""Rows per page when all are requested: the most that a paid tier gets at once."""
RETRIES: Final = Retries()
TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)


def default_headers(key: str | None) -> dict[str, str]:
    """The header fields of every request. Raises ValueError for a key that no header field can hold."""
    headers = {"User-Agent": f"sankofa-client/{VERSION}"}
    key = os.environ.get("SANKOFA_API_KEY") if key is None else key
    if key is None:
        return headers
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        raise ValueError("key: expected printable ASCII without spaces")  # httpx would repeat it in an error
    return {**headers, KEY_FIELD: key}
