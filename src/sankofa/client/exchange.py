"""Requests, retries and the reading of answers, without any I/O; both sessions build on it."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    """Where an endpoint is, what its path asks for, which shapes its rows may have, and what its envelope has
    besides the common members."""

    path: str
    in_path: tuple[str, ...]
    rows_under: str
    shapes: tuple[str, ...]
    members: tuple[str, ...]


class Request(NamedTuple):
    """A request to the service: a GET, or a form whose repetition does no harm, so it may be repeated."""

    path: str
    query: Mapping[str, str] = {}
    accept: str = JSON
    into: Path | None = None
    """Where the body goes, if it is a file."""
    also: tuple[int, ...] = ()
    """Statuses besides 200 that are an answer here."""
    form: Mapping[str, str] | None = None
    """The fields to send, where it is no GET."""

    @property
    def sent(self) -> dict[str, Any]:
        """What httpx sends. Columns come packed one by one, which costs a third of packing the whole body."""
        plain = {"Accept-Encoding": "identity"} if self.accept.startswith(ARROW) else {}
        return {
            "method": "GET" if self.form is None else "POST",
            "url": self.path,
            "params": self.query,
            "headers": {"Accept": self.accept, **plain},
            "data": self.form,
        }


class Reply(NamedTuple):
    """A response with its whole body, which is empty if it went into a file."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Outcome = Reply | httpx.RequestError


@dataclass(frozen=True)
class Retries:
    """When a request is repeated: after 429, 503 and broken connections, as `Retry-After` says."""

    attempts: int = 5
    """How often it is asked at most."""
    longest_wait: float = 90.0
    """Seconds that may be spent waiting in all; where the service asks for more, its refusal is raised."""
    first_pause: float = 0.5
    """Seconds before the second attempt where the service does not say; doubled each time."""

    def pause(self, outcome: Outcome, attempt: int, waited: float, now: datetime) -> float | None:
        """Seconds to wait before the next attempt; None if there is to be none."""
        requested = None
        if isinstance(outcome, Reply):
            if outcome.status not in _TRANSIENT:
                return None
            requested = retry_after(outcome.headers, now)
        elif isinstance(outcome, httpx.UnsupportedProtocol):  # no URL of ours
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
    """The reply, if it is an answer. Raises the error that the outcome stands for."""
    if isinstance(outcome, httpx.RequestError):
        # not its cause: an error of httpx holds the request, and the request the key
        raise ConnectionFailed(f"{base_url}{request.path}: {type(outcome).__name__}: {outcome}") from None
    if outcome.status != 200 and outcome.status not in request.also:
        raise refusal(outcome.status, _problem(outcome), outcome.headers, retry_after(outcome.headers, now))
    return outcome


def question(endpoint: Endpoint, arguments: Mapping[str, object], accept: str) -> Request:
    """The request that the arguments of a method ask for; what is None is left out."""
    given = {name.rstrip("_"): _text(value) for name, value in arguments.items() if value is not None}
    for name in endpoint.in_path:
        if not given.get(name):
            raise ValueError(f"{name}: expected text, not {arguments.get(name)!r}")
    path = endpoint.path.format(**{name: quote(given.pop(name), safe="") for name in endpoint.in_path})
    return Request(path, given, accept)


def read_json(reply: Reply) -> Any:
    """A body of JSON, figures with every digit. Raises InvalidAnswer."""
    try:
        return json.loads(reply.body, parse_float=Decimal)
    except ValueError as failure:
        raise InvalidAnswer(f"not JSON: {failure}") from None


def day_of(value: date) -> date:
    """The day that an argument names: of a `datetime`, its own day. Raises ValueError if that is doubtful.

    pandas has days as naive midnights. An instant with a zone names a day only where it is the same day in
    UTC, in which the service counts: else midnight in Lagos would be the day before.
    """
    if not isinstance(value, datetime):
        return value
    if value != value:  # NaT of pandas, which is a datetime
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


def file_request(folder: str, file: str, into: Path | str, edition: str | None) -> Request:
    """The request of a file, into a path or under its own name into a folder."""
    if Path(file).name != file:
        raise ValueError("file: expected a name as the manifest lists it")
    target = Path(into)
    query = {} if edition is None else {"edition": edition}
    return Request(f"{folder}{file}", query, "*/*", target / file if target.is_dir() else target)


def part_path(target: Path) -> Path:
    """The path of a file while it is fetched; only a complete one gets its name."""
    return target.with_name(f"{target.name}.part")


@contextmanager
def remove_part_file(request: Request) -> Iterator[None]:
    """Removes the partial file, whatever happened."""
    try:
        yield
    finally:
        part_path(request.into or Path("-")).unlink(missing_ok=True)


def verified_file(request: Request, reply: Reply) -> Path:
    """The fetched file under its final name. Raises InvalidAnswer if its digest is not the ETag."""
    target = request.into or Path()
    part = part_path(target)
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    promised = reply.headers.get("etag", "").strip('"')
    if digest != promised:
        raise InvalidAnswer(f"{target.name}: SHA-256 is {digest}, not {promised}")
    part.replace(target)
    return target


KEY_FIELD: Final = "X-API-Key"
VERSION: Final = "0.1.0"
PAGE: Final = 10_000
"""Rows of a page where everything is asked for: the most that a paid tier is given at once."""
RETRIES: Final = Retries()
TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)


def given_only(arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments without those that say nothing."""
    return {name: value for name, value in arguments.items() if value is not None}


def default_url() -> str:
    """The address of the service from the environment."""
    return os.environ.get("SANKOFA_URL") or "http://127.0.0.1:8000"


def default_headers(key: str | None) -> dict[str, str]:
    """The header fields of every request. Raises ValueError for a key that no header field can hold."""
    headers = {"User-Agent": f"sankofa-client/{VERSION}"}
    key = os.environ.get("SANKOFA_API_KEY") if key is None else key
    if key is None:
        return headers
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        raise ValueError("key: expected printable ASCII without spaces")  # what sends it would repeat it
    return {**headers, KEY_FIELD: key}
