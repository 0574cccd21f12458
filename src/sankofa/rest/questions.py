"""What a path and a query ask for, whoever asks: read once where the same is asked again."""

from datetime import date
from typing import Any, Final, NamedTuple

from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.operations.contract import Operation
from sankofa.rest.request import read_arguments

_MOST: Final = 4096
_LONGEST: Final = 256
"""Characters of a path and a query worth keeping: a cursor is longer, and comes once."""


class EndpointRoute(NamedTuple):
    """An operation, the parameters in its path, and the path as requested."""

    operation: Operation
    path: dict[str, str]
    requested_path: str


class Question(NamedTuple):
    """The arguments of an operation, and the edition and the format that the query names."""

    day: date
    """The day on which it was read: some values are good until then only."""
    arguments: dict[str, Any]
    edition: str | None
    format: str | None
    failure: InvalidParameter | NotFound | None
    """Why there are no arguments. It comes after what is wrong with edition and format (contract: KEY-7)."""


class Questions:
    """Reads them. Only those that can be answered are kept."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, bytes], Question] = {}

    def read(self, route: EndpointRoute, query: bytes, today: date) -> Question:
        """Raises InvalidParameter for what the query says; of the path, see `Question.failure`."""
        key = route.requested_path, query
        known = self._read.get(key)
        if known is not None and known.day == today:
            return known
        given = read_arguments(route.operation, query, today)
        edition, fmt = given.pop("edition", None), given.pop("format", None)
        try:
            arguments = route.operation.complete(given, today, route.path)
        except (InvalidParameter, NotFound) as failure:
            return Question(today, {}, edition, fmt, failure)
        question = Question(today, arguments, edition, fmt, None)
        if len(route.requested_path) + len(query) <= _LONGEST:
            if len(self._read) >= _MOST:
                self._read.clear()
            self._read[key] = question
        return question
