"""What is known of a request once it is answered, for those who count, log or trace requests."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sankofa.access.tiers import Grant


class ObservedRequest(NamedTuple):
    """An answered request, without anything that a client wrote but its header fields."""

    operation: str
    """The name of the operation, `mcp:` and the name of a tool, `page`, `file`, `mcp` or `unknown`."""
    method: str
    status: int
    size: int
    """Bytes of the body."""
    began: float
    """By `time.perf_counter`."""
    seconds: float
    grant: Grant | None
    """None where no key was accepted."""
    problem: str
    """The slug of the problem it was answered with; empty where it was answered well."""
    request_id: str
    headers: list[tuple[bytes, bytes]]


Observer = Callable[[ObservedRequest], Any]
