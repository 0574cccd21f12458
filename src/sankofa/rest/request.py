"""Strict reading of a request: header fields, path, query, and the edition it names."""

from collections.abc import Iterable
from datetime import date
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec

from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.operations.contract import EDITION, FORMAT, KNOWN_BY, Operation
from sankofa.operations.proofs import PROOF, PROVEN
from sankofa.operations.service import LARGEST_HEADERS, check_head
from sankofa.rest.formats import ResponseFormat

_EVERYWHERE = (EDITION.name, KNOWN_BY.name, FORMAT.name)


class Head(msgspec.Struct, frozen=True, gc=False):
    """The header fields we act on."""

    keys: tuple[str, ...]
    accept_encoding: bytes
    if_none_match: bytes
    accept: bytes = b""
    edition: str | None = None
    authorizations: tuple[str, ...] = ()
    host: bytes = b""
    opens: str = ""
    """What the link in the address opens; empty where it has none."""


def read_head(headers: Iterable[tuple[bytes, bytes]]) -> Head:
    """One pass over the header fields. Raises HeadersTooLarge, or BadRequest without exactly one Host."""
    keys: tuple[str, ...] = ()
    authorizations: tuple[str, ...] = ()
    hosts = size = 0
    host = b""
    accept_encoding = if_none_match = accept = b""
    edition: str | None = None
    for name, value in headers:
        size += len(name) + len(value) + 4
        if name == b"x-api-key":
            keys = (*keys, value.decode("latin-1"))
        elif name == b"host":
            hosts += bool(value)  # the HTTP server writes an empty one where there was none
            host = value
        elif name == b"authorization":
            authorizations = (*authorizations, value.decode("latin-1"))
        elif name == b"accept-encoding":
            accept_encoding = accept_encoding + b"," + value if accept_encoding else value
        elif name == b"if-none-match":
            if_none_match = if_none_match + b"," + value if if_none_match else value
        elif name == b"accept":
            accept = accept + b"," + value if accept else value
        elif name == b"x-edition":
            text = value.decode("latin-1")
            edition = text if edition is None else f"{edition}, {text}"
    if hosts != 1 or size > LARGEST_HEADERS:
        check_head(hosts, size)
    return Head(keys, accept_encoding, if_none_match, accept, edition, authorizations, host)


def read_arguments(operation: Operation, query: bytes, today: date) -> dict[str, Any]:
    """The arguments that a query gives an operation, and the edition, the instant and the format it names.

    Raises InvalidParameter.
    """
    given: dict[str, Any] = {}
    for part in query.split(b"&"):
        if part:
            label, argument, value = _argument(operation, part, today)
            if argument in given:
                raise _given_twice(label)
            given[argument] = value
    return given


def _argument(operation: Operation, part: bytes, today: date) -> tuple[str, str, Any]:
    ((label, text),) = read_query(part).items()
    if label in _EVERYWHERE or (label == PROOF.name and operation.name in PROVEN):
        return label, label, text
    return label, *operation.argument(label, text, today)


def read_query(query: bytes) -> dict[str, str]:
    """The query parameters. Raises InvalidParameter for one given twice or not in UTF-8."""
    parameters: dict[str, str] = {}
    plain = query.isascii() and b"%" not in query and b"+" not in query
    for part in query.decode("latin-1").split("&"):
        if not part:
            continue
        name, _, value = part.partition("=")
        label = name if plain else _decode(name, "(a parameter name)")
        if label in parameters:
            raise _given_twice(label)
        parameters[label] = value if plain else _decode(value, label[:64])
    return parameters


def _given_twice(label: str) -> InvalidParameter:
    return InvalidParameter(label[:64], "given more than once")


def _decode(text: str, name: str) -> str:
    try:
        return unquote_to_bytes(text.replace("+", " ").encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise InvalidParameter(name, "not valid UTF-8") from None


_MOST: Final = 4096
_LONGEST: Final = 256
"""Characters of a path and a query worth keeping: a cursor is longer, and comes once."""


class EndpointRoute(NamedTuple):
    """An operation, the parameters in its path, the path as requested, and the format of a feed."""

    operation: Operation
    path: dict[str, str]
    requested_path: str
    feed: ResponseFormat | None = None


class Question(NamedTuple):
    """The arguments of an operation, and the edition, the instant and the format that the query names."""

    day: date
    """The day on which it was read: some values are good until then only."""
    arguments: dict[str, Any]
    edition: str | None
    known_by: str | None
    format: str | None
    failure: InvalidParameter | NotFound | None = None
    """Why there are no arguments. It comes after what is wrong with edition and format (contract: KEY-7)."""
    proof: str | None = None


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
        edition, known_by = given.pop("edition", None), given.pop("known_by", None)
        fmt, proof = given.pop("format", None), given.pop("proof", None)
        try:
            arguments = route.operation.complete(given, today, route.path)
        except (InvalidParameter, NotFound) as failure:
            return Question(today, {}, edition, known_by, fmt, failure, proof)
        question = Question(today, arguments, edition, known_by, fmt, None, proof)
        if len(route.requested_path) + len(query) <= _LONGEST:
            if len(self._read) >= _MOST:
                self._read.clear()
            self._read[key] = question
        return question
