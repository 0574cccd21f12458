"""What every surface asks of a request before it is read: one host, and a bounded address and head."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sankofa.model.errors import BadRequest, Problem
from sankofa.model.limits import limit

LONGEST_QUERY: Final = limit("query of an address", 4096, "bytes", "414")
LONGEST_PATH: Final = limit("path of an address", 1024, "bytes", "414")
LARGEST_HEADERS: Final = limit("header fields of a request", 16 * 1024, "bytes", "431")


class UriTooLong(Problem):
    """414: no question of ours is that long."""

    status, slug, title = 414, "uri-too-long", "URI too long"


class HeadersTooLarge(Problem):
    """431: no client of ours needs that many."""

    status, slug, title = 431, "headers-too-large", "Request header fields too large"


def check_request(scope: Mapping[str, Any]) -> None:
    """Raises HeadersTooLarge, BadRequest or UriTooLong."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    size = hosts = 0
    for name, value in headers:
        size += len(name) + len(value) + 4
        if name == b"host":
            hosts += bool(value)  # the HTTP server writes an empty one where there was none
    check_head(hosts, size)
    check_target(scope)


def check_head(hosts: int, size: int) -> None:
    """Raises HeadersTooLarge, or BadRequest without exactly one Host."""
    if size > LARGEST_HEADERS:
        raise HeadersTooLarge(f"Header fields of at most {LARGEST_HEADERS} bytes are accepted.")
    if hosts != 1:
        raise BadRequest("A request names the host it is for in exactly one Host header.")


def check_target(scope: Mapping[str, Any]) -> None:
    """Raises UriTooLong for a path or query beyond the limits."""
    if len(scope["query_string"]) > LONGEST_QUERY or len(scope["path"]) > LONGEST_PATH:
        raise UriTooLong(
            f"A path of at most {LONGEST_PATH} and a query of at most {LONGEST_QUERY} bytes is accepted."
        )
