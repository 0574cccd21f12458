"""The paths that need no key: liveness, status, the API description, what problems and methods mean."""

import time
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.metadata import version

import msgspec

from sankofa import __version__
from sankofa.derive.metrics.contract import metrics
from sankofa.derive.metrics.methodology import methodology
from sankofa.derive.signals.contract import panels
from sankofa.derive.signals.methodology import methodology as panel_methodology
from sankofa.model import errors
from sankofa.model.days import instant
from sankofa.operations.service import Service, probe
from sankofa.rest.app import OpenPage
from sankofa.rest.openapi import describe
from sankofa.rest.request import Head
from sankofa.rest.response import Response, choose_encoding, compress, held_tag

_JSON = (b"content-type", b"application/json")
_NO_STORE = (b"cache-control", b"no-store")
_STATUS_KEPT = 0.25


def open_pages(service: Service) -> dict[str, OpenPage]:
    """Every open page by its path."""
    build_id()  # read from a file once: a status is answered also when no other can be opened
    pages: dict[str, Callable[[Head], Awaitable[Response]]] = {
        "/health": _health,
        "/v1/status": _Status(service),
        "/openapi.json": _Description(service),
    }
    for problem in problems():
        pages[f"/problems/{problem.slug}"] = _explanation(
            f"# {problem.status} {problem.title}\n\n{problem.__doc__}\n"
        )
    for metric in metrics():
        pages[f"/methodology/{metric.methodology_ref}"] = _explanation(methodology(metric))
    for panel in panels().values():
        pages[f"/methodology/{panel.methodology_ref}"] = _explanation(panel_methodology(panel))
    return {path: OpenPage(answer) for path, answer in pages.items()}


def html_page(body: bytes) -> OpenPage:
    """A static page."""
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"public, max-age=300")]

    async def answer(_: Head) -> Response:
        return Response(200, headers, body)

    return OpenPage(answer)


def problems() -> list[type[errors.Problem]]:
    """Every problem a surface may answer with, those of the mounted surfaces included."""
    return sorted(errors.Problem.__subclasses__(), key=lambda p: (p.status, p.slug))


async def _health(_: Head) -> Response:
    return Response(200, [_JSON, _NO_STORE], b'{"status":"ok"}')


class _Status:
    """A real read of each dependency; callers within a quarter of a second share one."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._answer: Response | None = None
        self._until = 0.0

    async def __call__(self, head: Head) -> Response:
        if self._answer is None or time.monotonic() > self._until:
            self._answer = await self._look()
            self._until = time.monotonic() + _STATUS_KEPT
        return self._answer

    async def _look(self) -> Response:
        found = await probe(self._service)
        try:
            edition = self._service.edition.get().id
        except errors.StoreUnavailable as failure:  # nor would a data endpoint answer
            edition = None
            found["datastore"] = (failure.cause, found["datastore"][1])
        degraded = [name for name, (failure, _) in found.items() if failure is not None]
        body = {
            "status": "degraded" if degraded else "ok",
            "build": build_id(),
            "version": __version__,
            "edition": edition,
            "time": instant(self._service.clock()),
            "checks": {
                name: {"status": "ok" if failure is None else "failed", "latency_ms": round(took, 3)}
                for name, (failure, took) in found.items()
            },
            "degraded": degraded,
        }
        headers = [_JSON, _NO_STORE] + ([(b"retry-after", b"2")] if degraded else [])
        return Response(503 if degraded else 200, headers, msgspec.json.encode(body))


class _Description:
    """OpenAPI 3.1, written anew each day: its patterns know which days are past."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._day = 0
        self._body = b""

    async def __call__(self, head: Head) -> Response:
        today = self._service.today()
        if self._day != today.toordinal():
            self._body = msgspec.json.encode(describe(self._service.settings, today))
            self._day = today.toordinal()
        tag = f"{__version__}-{self._day}"
        headers = [(b"cache-control", b"public, max-age=300"), (b"vary", b"Accept-Encoding")]
        encoding = choose_encoding(head.accept_encoding, len(self._body))
        shown = f'"{tag}.{encoding}"' if encoding else f'"{tag}"'
        headers.append((b"etag", shown.encode()))
        if head.if_none_match.strip() == b"*" or held_tag(head.if_none_match, tag):
            return Response(304, headers, b"")
        if encoding:
            headers.append((b"content-encoding", encoding.encode()))
            return Response(200, [_JSON, *headers], compress(self._body, encoding))
        return Response(200, [_JSON, *headers], self._body)


def _explanation(page: str) -> Callable[[Head], Awaitable[Response]]:
    text = page.encode()

    async def explain(_: Head) -> Response:
        return Response(200, [(b"content-type", b"text/markdown; charset=utf-8")], text)

    return explain


@cache
def build_id() -> str:
    """Names what is running: the version of the package and of the server under it."""
    return f"sankofa-{__version__}+granian-{version('granian')}"
