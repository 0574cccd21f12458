"""Every error the client raises.

SankofaError
 ├─ Refused                 the service answered with a problem; each class has its HTTP status
 │   ├─ BadRequest              400  a parameter is malformed, missing or unknown: `parameter`
 │   ├─ Unauthorized            401  missing or invalid key
 │   ├─ UpgradeRequired         402  more than the sample tier serves: `link` leads to an upgrade
 │   ├─ NotFound                404  no record with that identifier
 │   ├─ Gone                    410  the edition asked for is not kept, or withdrawn
 │   ├─ QuotaExceeded           429  burst limit or monthly cap reached: `retry_after` seconds
 │   ├─ Unavailable             503  a dependency of the service did not answer: `retry_after`
 │   └─ UnexpectedAnswer             any other status
 ├─ ConnectionFailed        no answer: refused, broken off or timed out
 ├─ InvalidAnswer           an answer that is not what the service promises: cut short, or another file
 ├─ UnknownIdentifier       no organisation, or more than one, has that ticker, LEI or ISIN
 ├─ UnknownSeries           no series has that key: `nearest`
 ├─ LookAhead               a frame has rows not known on the day: `late` and `unknown`
 ├─ NotOpen                 a panel that is not published openly
 └─ MissingLibrary          pandas, polars, pyarrow or duckdb is needed and not installed

None of them holds the key.
"""

from collections.abc import Mapping
from typing import Any, Final


class SankofaError(Exception):
    """The root: catch this to catch everything the client raises on purpose."""


class Refused(SankofaError):
    """An answer of the service that is not the data (RFC 9457)."""

    status: int = 0

    def __init__(
        self, detail: str, *, status: int, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.body = dict(body)
        """The service's problem document."""
        self.headers = headers
        self.request_id: str | None = body.get("request_id") or headers.get("x-request-id")
        """The id to quote in an error report."""


class BadRequest(Refused):
    """400: a parameter is malformed, missing or unknown, or a cursor was altered."""

    @property
    def parameter(self) -> str | None:
        """The one at fault."""
        name = self.body.get("parameter")
        return name if isinstance(name, str) else None


class Unauthorized(Refused):
    """401: missing or invalid key."""


class UpgradeRequired(Refused):
    """402: the sample tier does not serve this."""

    @property
    def link(self) -> str:
        """Where to upgrade."""
        upgrade = self.body.get("upgrade")
        url = upgrade.get("checkout_url") if isinstance(upgrade, dict) else None
        return str(url or self.headers.get("x-upgrade-url") or "")

    def __str__(self) -> str:
        return f"{self.detail} Upgrade: {self.link}" if self.link else self.detail


class NotFound(Refused):
    """404: no record with that identifier."""


class Gone(Refused):
    """410: the edition asked for is not kept, or withdrawn; ask without `edition` for today's."""


class _RetryLater(Refused):
    retry_after: float | None = None
    """Seconds to wait before the next try, if the service says."""


class QuotaExceeded(_RetryLater):
    """429: the burst limit of the minute, or the cap of the month, is used up."""


class Unavailable(_RetryLater):
    """503: a dependency of the service did not answer in time."""


class UnexpectedAnswer(Refused):
    """A status the client has no class for."""


class ConnectionFailed(SankofaError):
    """No answer came: the connection was refused, broken off or timed out."""


class InvalidAnswer(SankofaError):
    """An answer that breaks the service's promises."""


class UnknownIdentifier(SankofaError, LookupError):
    """No organisation has that ticker, LEI, ISIN or name, or several do (`matches`)."""

    def __init__(self, message: str, matches: list[str]) -> None:
        super().__init__(message)
        self.matches = matches
        """The `service_id` of each."""


class UnknownSeries(SankofaError, LookupError):
    """No series has that key."""

    def __init__(self, message: str, nearest: list[str]) -> None:
        super().__init__(message)
        self.nearest = nearest
        """The keys that come closest."""


class TruncatedWarning(UserWarning):
    """The frame has only the first matching rows."""


class LookAhead(SankofaError):
    """A frame has rows that were not known on the day, or rows without the day they became known."""

    def __init__(self, message: str, late: Any, unknown: Any, missing: Any = ()) -> None:
        super().__init__(message)
        self.late = late
        """The rows that became known after the day, in the given form."""
        self.unknown = unknown
        """The rows without the day they became known."""
        self.missing = missing
        """Rows of issuers missing from the frame because of later events."""


class NotOpen(SankofaError):
    """A panel of that name is not published openly."""


class MissingLibrary(SankofaError, ImportError):
    """A requested library is not installed."""


_BY_STATUS: Final[dict[int, type[Refused]]] = {
    400: BadRequest,
    401: Unauthorized,
    402: UpgradeRequired,
    404: NotFound,
    410: Gone,
    429: QuotaExceeded,
    503: Unavailable,
}


def refusal(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str], retry_after: float | None
) -> Refused:
    """The error to raise for an answer with this status."""
    detail = str(body.get("detail") or body.get("error") or f"The service answered {status}.")
    kind = _BY_STATUS.get(status, UnexpectedAnswer)
    error = kind(detail, status=status, body=body, headers=headers)
    if isinstance(error, _RetryLater):
        error.retry_after = retry_after
    return error
