"""The HTTP refusals that only this surface has; the rest are in `sankofa.model.errors`."""

from typing import Final

from sankofa.model.errors import BadRequest, InternalError, Problem


class OriginNotAllowed(Problem):
    """403: a page of an origin the operator did not allow is calling."""

    status, slug, title = 403, "origin-not-allowed", "Origin not allowed"


class NotAcceptable(Problem):
    """406: MCP is answered in JSON, which the client does not accept."""

    status, slug, title = 406, "not-acceptable", "Not acceptable"


class RequestTimeout(Problem):
    """408: the body did not arrive in time."""

    status, slug, title = 408, "request-timeout", "Request timeout"


class ContentTooLarge(Problem):
    """413: no message to this server is that long."""

    status, slug, title = 413, "content-too-large", "Content too large"


class MisdirectedRequest(Problem):
    """421: the request names a host this server does not answer to."""

    status, slug, title = 421, "misdirected-request", "Misdirected request"


_BY_STATUS: Final[dict[int, type[Problem]]] = {kind.status: kind for kind in (BadRequest, NotAcceptable)}
_DETAIL: Final = {406: "Accept application/json."}


def refusal_of_the_sdk(status: int, text: str) -> Problem:
    """A problem for what the SDK refuses with an HTTP status and at most a line of text."""
    kind = _BY_STATUS.get(status)
    return InternalError() if kind is None else kind(text or _DETAIL.get(status, kind.title))
