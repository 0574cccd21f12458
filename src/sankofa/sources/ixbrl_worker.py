"""Reads one inline XBRL report with arelle and writes its facts: a separate process without network.

`python -m sankofa.sources.ixbrl_worker` takes a `Request` as JSON on its input and writes lines of JSON: a
`FactLine` for each fact, then an `Ending`. A hostile report can only harm this process, whose time and memory
are bounded.
"""

import os
import re
import resource
import socket
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

import msgspec

_MISSING: Final = re.compile(r"file: (\S+)")
_EXACT: Final = 1_000
"""In the place of `INF`: every digit counts."""
_MOST_NAMED: Final = 20


class Request(msgspec.Struct):
    """The report to read, the taxonomy packages, and the limits."""

    report: str
    packages: list[str]
    folder: str
    """Where arelle may write."""
    memory_bytes: int
    seconds: int


class FactLine(msgspec.Struct, tag="fact"):
    prefix: str
    namespace: str
    name: str
    value: str | None
    """None if the report says nil."""
    unit: str
    """`ZAR`, `ZAR/shares`, `pure`; empty for text."""
    start: str
    """Empty for an instant."""
    end: str
    scheme: str
    """The scheme of the entity's identifier."""
    identifier: str
    is_numeric: bool
    dimensions: int
    decimals: int
    location: str


class Ending(msgspec.Struct, tag="end"):
    missing: list[str]
    """Addresses of taxonomies that no package has."""


def main() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    encode = msgspec.json.Encoder().encode
    with os.fdopen(os.dup(1), "wb") as lines:
        os.dup2(2, 1)  # libraries may print; keep that out of our lines
        _confine(request)
        for line in _lines(request):
            lines.write(encode(line) + b"\n")


def _confine(request: Request) -> None:
    """No network, and only the granted time and memory."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError("no network here")

    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, refuse)
    socket.getaddrinfo = refuse
    resource.setrlimit(resource.RLIMIT_AS, (request.memory_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (request.seconds, request.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _lines(request: Request) -> Iterator[FactLine | Ending]:
    from arelle.api.Session import Session
    from arelle.logging.handlers.StructuredMessageLogHandler import StructuredMessageLogHandler
    from arelle.RuntimeOptions import RuntimeOptions

    options = RuntimeOptions(
        entrypointFile=request.report,
        internetConnectivity="offline",
        packages=request.packages,
        cacheDirectory=request.folder,
        disablePersistentConfig=True,
        keepOpen=True,
    )
    with Session() as session:
        session.run(options, logHandler=StructuredMessageLogHandler())
        failures = [
            m for m in session.get_log_messages() if m["messageCode"] in ("IOerror", "FileNotLoadable")
        ]
        missing = dict.fromkeys(_address(str(message["msg"])) for message in failures)
        if not missing:
            for model in session.get_models():
                for number, fact in enumerate(model.facts):
                    if fact.context is not None and fact.context.endDatetime is not None:
                        yield _fact(fact, number)
        yield Ending(list(missing)[:_MOST_NAMED])


def _address(message: str) -> str:
    named = _MISSING.search(message)
    return named[1] if named else message[:200]


def _fact(fact: Any, number: int) -> FactLine:
    context = fact.context
    scheme, identifier = context.entityIdentifier
    return FactLine(
        prefix=fact.qname.prefix or "",
        namespace=fact.qname.namespaceURI or "",
        name=fact.qname.localName,
        value=None if fact.isNil else str(fact.value),
        unit="" if fact.unit is None else _unit(fact.unit.measures),
        start="" if context.isInstantPeriod else _day(context.startDatetime),
        # arelle has the end of a day as the beginning of the next
        end=_day(context.endDatetime - timedelta(days=1)),
        scheme=str(scheme),
        identifier=str(identifier),
        is_numeric=bool(fact.isNumeric),
        dimensions=len(context.qnameDims)
        + len(context.nonDimValues("segment"))
        + len(context.nonDimValues("scenario")),
        decimals=_decimals(fact.decimals),
        location=str(fact.id or f"fact {number + 1}"),
    )


def _unit(measures: tuple[list[Any], list[Any]]) -> str:
    above, below = ("*".join(measure.localName for measure in part) for part in measures)
    return f"{above}/{below}" if below else above


def _day(instant: datetime | None) -> str:
    return "" if instant is None else instant.date().isoformat()


def _decimals(text: str | None) -> int:
    try:
        return _EXACT if text in (None, "INF") else int(str(text))
    except ValueError:
        return -_EXACT


if __name__ == "__main__":
    main()
