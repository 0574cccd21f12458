"""Every error that Sankofa raises on purpose, and the reasons for answers without rows (contract: ABS-1).

SankofaError
 ├─ Problem                 an answer on a surface; each class carries its HTTP status
 │   ├─ InvalidParameter        400  a parameter is malformed, missing, unknown or given twice
 │   ├─ BadRequest              400  the request itself is malformed (no Host, bad target)
 │   ├─ Unauthorized            401  missing or invalid API key
 │   ├─ UpgradeRequired         402  more than the sample tier serves
 │   ├─ NotFound                404  no record with that identifier, no such edition or path
 │   ├─ MethodNotAllowed        405  the path exists, the method does not
 │   ├─ Gone                    410  the edition asked for is no longer kept, or withdrawn
 │   ├─ PreconditionFailed      412  the file is not the one the client holds a part of
 │   ├─ RangeNotSatisfiable     416  no byte of the range asked for is in the file
 │   ├─ RateLimited             429  burst limit or monthly cap reached
 │   ├─ InternalError           500  a defect of ours, without its details
 │   └─ StoreUnavailable        503  a dependency did not answer in time
 └─ OperatorError           a message for the person at the command line
     ├─ SettingsError           a setting has no usable value
     ├─ SourceError             a source is unknown, malformed or not licensed
     ├─ FormatError             a file is not of its source's format; nothing of it is kept
     ├─ EditionError            an edition is corrupt, incomplete or not there
     ├─ CheckFailed             an edition did not pass its checks and was not published
     └─ BuildFailed             a row of the ledger stopped the build of an edition
"""

import errno
from collections.abc import Mapping
from datetime import date
from typing import ClassVar, Final

import msgspec


class SankofaError(Exception):
    """The root: catch this to catch everything Sankofa raises on purpose."""


class Problem(SankofaError):
    """An error answer (RFC 9457)."""

    status: ClassVar[int]
    slug: ClassVar[str]
    title: ClassVar[str]

    def __init__(
        self, detail: str, *, members: Mapping[str, object] = {}, headers: Mapping[str, str] = {}
    ) -> None:
        """`members` and `headers` are those that the class adds to the problem document and the response."""
        super().__init__(detail)
        self.detail, self.members, self.headers = detail, members, headers

    @property
    def logged(self) -> str:
        """Details for the log; clients never see them."""
        return self.detail


class InvalidParameter(Problem):
    """400: one parameter is wrong, and named."""

    status, slug, title = 400, "invalid-parameter", "Invalid parameter"

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}", members={"parameter": parameter})
        self.parameter = parameter


class BadRequest(Problem):
    """400: the request is malformed, apart from its parameters."""

    status, slug, title = 400, "bad-request", "Bad request"


class Unauthorized(Problem):
    """401: missing or invalid key."""

    status, slug, title = 401, "unauthorized", "Missing or invalid API key"

    def __init__(
        self, detail: str = "Send a valid API key in the X-API-Key header, or as Authorization: Bearer."
    ) -> None:
        challenges = ('ApiKey realm="sankofa", header="X-API-Key"', 'Bearer realm="sankofa"')
        super().__init__(detail, headers={"WWW-Authenticate": ", ".join(challenges)})


class UpgradeRequired(Problem):
    """402: the sample tier does not serve this; the answer carries the upgrade link."""

    status, slug, title = 402, "upgrade-required", "Upgrade required"

    def __init__(self, detail: str, checkout_url: str) -> None:
        upgrade = {"checkout_url": checkout_url}
        super().__init__(detail, members={"upgrade": upgrade}, headers={"X-Upgrade-URL": checkout_url})


class NotFound(Problem):
    """404: no record with that identifier, no such path, or an edition that was never published."""

    status, slug, title = 404, "not-found", "Not found"


class MethodNotAllowed(Problem):
    """405: every path here is read-only."""

    status, slug, title = 405, "method-not-allowed", "Method not allowed"

    def __init__(self, allow: str) -> None:
        super().__init__(f"This path answers {allow} only.", headers={"Allow": allow})


class PreconditionFailed(Problem):
    """412: `If-Match` names an older file; a new edition was published."""

    status, slug, title = 412, "precondition-failed", "Precondition failed"

    def __init__(self) -> None:
        super().__init__("If-Match does not match the current file.")


class RangeNotSatisfiable(Problem):
    """416: no byte of the range asked for is in the file."""

    status, slug, title = 416, "range-not-satisfiable", "Range not satisfiable"

    def __init__(self, size: int) -> None:
        headers = {"Content-Range": f"bytes */{size}"}
        super().__init__(f"Range: the file has {size} bytes.", headers=headers)


class Gone(Problem):
    """410: the edition asked for is no longer kept, or withdrawn; leave `edition` out for today's."""

    status, slug, title = 410, "gone", "Gone"


class RateLimited(Problem):
    """429: the per-minute burst limit or the monthly cap is used up."""

    status, slug, title = 429, "rate-limited", "Rate limited"

    def __init__(self, detail: str, retry_after: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})
        self.retry_after = retry_after


class InternalError(Problem):
    """500: a defect; its details go to the log under the request id, never to the client."""

    status, slug, title = 500, "internal-error", "Internal error"

    def __init__(self) -> None:
        super().__init__("The service failed to answer; quote the request_id when you report it.")


class StoreUnavailable(Problem):
    """503: a dependency did not answer in time. The detail names the component, never its address."""

    status, slug, title = 503, "store-unavailable", "Temporarily unavailable"

    def __init__(self, component: str, detail: str = "did not answer", *, message: str = "") -> None:
        """`message` is the text for the caller, if it differs from the default."""
        detail_shown = message or f"The {component} is temporarily unavailable; retry."
        super().__init__(detail_shown, headers={"Retry-After": "2"})
        self.component = component
        self.cause = detail

    @property
    def logged(self) -> str:
        return f"{self.component}: {self.cause}"


class OperatorError(SankofaError):
    """A message for the person at the command line, shown without a traceback."""


class SettingsError(OperatorError):
    """A setting has no usable value."""


class SourceError(OperatorError):
    """A source is unknown, malformed, or may not be redistributed."""


class FormatError(OperatorError):
    """A file is not in its source's format; nothing of it is kept."""


class EditionError(OperatorError):
    """An edition is corrupt, incomplete or not there."""


class CheckFailed(OperatorError):
    """A freshly built edition did not pass its checks and was not published."""


class BuildFailed(OperatorError):
    """A ledger row stopped the build of an edition: a defect. The message names the row's capture."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message, trace)
        self.trace = trace
        """The traceback of the defect."""

    def __str__(self) -> str:
        return str(self.args[0])


def problem_of(failure: Exception) -> Problem:
    """The Problem for an unexpected failure.

    Running out of file descriptors or memory is temporary, not a defect.
    """
    codes = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
    if isinstance(failure, OSError) and failure.errno in codes:
        return StoreUnavailable("service", "no file descriptor is free")
    return InternalError()


class Suggestion(msgspec.Struct, frozen=True):
    """Another request that may have rows."""

    path: str
    arguments: dict[str, str]
    why: str


class Absence(msgspec.Struct, frozen=True):
    """The reason for an answer without rows."""

    reason: str
    """One of `ABSENCES`."""
    detail: str
    first: date | None = None
    last: date | None = None
    suggestions: tuple[Suggestion, ...] = msgspec.field(default=(), name="try")


ABSENCES: Final[Mapping[str, str]] = {
    "ambiguous": "Several organisations or figures fit, and they differ.",
    "annual_indicator": "It is an annual indicator; its dated series has another key.",
    "dated_series": "It is a series, not an annual indicator.",
    "end_of_list": "The pages of the list end here.",
    "figures_of_predecessor": "The figures are under the service_id of a predecessor.",
    "left_out": "No value could be computed exactly on that day; `missing` has the reasons.",
    "no_figures": "The organisation has identifiers but no figures.",
    "no_match": "Nothing passes the filters.",
    "not_covered": "The dataset has nothing for the country.",
    "not_reported": "The organisation does not report the line item.",
    "not_yet_known": "It became known only after the requested day.",
    "nothing_known": "Nothing that matches was public on the day of the locked view.",
    "other_unit": "The figure has another unit than the claim.",
    "outside_dates": "It has values for other dates only.",
    "unknown_code": "There is no such series or indicator.",
    "unknown_line_item": "There is no such line item.",
    "unknown_organisation": "There is no such organisation.",
}
"""The reasons, by code."""
