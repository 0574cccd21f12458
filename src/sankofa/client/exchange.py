"""Requests, retries and the reading of answers, without any I/O.

An exchange is a generator. It yields a Request to be sent and receives the Reply or the error, or it yields a
number of seconds to wait. The synchronous and the asynchronous session share it: they only send and wait.
"""

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx

from sankofa.client.endpoints import Endpoint
from sankofa.client.errors import ConnectionFailed, InvalidAnswer, refusal

JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"
COLUMNS: Final = f"{ARROW};compression=zstd, {JSON};q=0.5"
_TRANSIENT: Final = (429, 503)


class Request(NamedTuple):
    """A request to the service: always a GET, so it may be repeated."""

    path: str
    query: Mapping[str, str] = {}
    accept: str = JSON
    into: Path | None = None
    """Where the body goes, if it is a file."""
    also: tuple[int, ...] = ()
    """Statuses besides 200 that are an answer here."""

    @property
    def headers(self) -> dict[str, str]:
        """Columns come packed one by one, which costs a third of packing the whole body."""
        plain = {"Accept-Encoding": "identity"} if self.accept.startswith(ARROW) else {}
        return {"Accept": self.accept, **plain}


class Reply(NamedTuple):
    """A response with its whole body, which is empty where it went into a file."""

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
        """Seconds to wait before the next attempt; None where there is to be none."""
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
    """The day that an argument names: of a `datetime`, its own day. Raises ValueError where that is doubtful.

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
    return day_of(value).isoformat() if isinstance(value, date) else str(value)


def _problem(reply: Reply) -> dict[str, Any]:
    try:
        body = json.loads(reply.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
