"""Requests, retries and the reading of answers, without any I/O; both sessions build on it.

An exchange is a generator. It yields a Request to be sent and receives the Reply or the error, or it yields a
number of seconds to wait. The synchronous and the asynchronous session only send and wait.
"""

import copy
import hashlib
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import httpx

from sankofa.client import frames
from sankofa.client.endpoints import ENDPOINTS, Endpoint
from sankofa.client.errors import ConnectionFailed, InvalidAnswer, Unauthorized, refusal

JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"
COLUMNS: Final = f"{ARROW};compression=zstd, {JSON};q=0.5"
_TRANSIENT: Final = (429, 503)


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
    def headers(self) -> dict[str, str]:
        """Columns come packed one by one, which costs a third of packing the whole body."""
        plain = {"Accept-Encoding": "identity"} if self.accept.startswith(ARROW) else {}
        return {"Accept": self.accept, **plain}


class Reply(NamedTuple):
    """A response with its whole body, which is empty if it went into a file."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Outcome = Reply | httpx.RequestError
Exchange = Generator[Request | float, Any, Reply]


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


def exchange(request: Request, base_url: str, retries: Retries, clock: Callable[[], datetime]) -> Exchange:
    """Asks until there is an answer or the retries are used up. Raises the error of the last answer."""
    attempt, waited = 1, 0.0
    while True:
        outcome: Outcome = yield request
        accepted = isinstance(outcome, Reply) and outcome.status in request.also
        pause = None if accepted else retries.pause(outcome, attempt, waited, clock())
        if pause is None:
            break
        yield pause
        attempt, waited = attempt + 1, waited + pause
    if isinstance(outcome, httpx.RequestError):
        # not its cause: an error of httpx holds the request, and the request the key
        raise ConnectionFailed(f"{base_url}{request.path}: {type(outcome).__name__}: {outcome}") from None
    if outcome.status != 200 and outcome.status not in request.also:
        wait = retry_after(outcome.headers, clock())
        raise refusal(outcome.status, _problem(outcome), outcome.headers, wait)
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
    return {**headers, _KEY_FIELD: key}
