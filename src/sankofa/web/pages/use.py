"""One page that says how to use an answer of the API from other programs, each as lines to paste."""

from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from sankofa.model.errors import InvalidParameter
from sankofa.operations.contract import Operation, endpoints
from sankofa.web.view import View, page
from sankofa.web.visit import Visit

_EXAMPLE: Final = "/v1/screen?metric=net_margin"
"""Answered by every edition, whatever is in it."""


@page("/use", "call", needs_key=False)
async def use(visit: Visit) -> View:
    """The lines for a call of the API, with the public sandbox key if there is one."""
    settings = visit.site.settings
    path, query = _read(visit.given("call", _EXAMPLE))
    base = settings.base_url + visit.prefix
    context = {
        "call": _address(path, query),
        "json_url": base + _address(path, query),
        "csv_url": base + _address(path, {**query, "format": "csv"}),
        "mcp": f"{settings.public_mcp_url}{visit.prefix}/mcp",
        "key": settings.sandbox_key or "YOUR_KEY",
    }
    return View("use.html", visit.language.text("Use it from"), context)


def _address(path: str, query: dict[str, str]) -> str:
    """With everything encoded that ends a text or begins a command, in any of the languages."""
    return quote(path, safe="/:%") + (f"?{urlencode(query)}" if query else "")


def _read(call: str) -> tuple[str, dict[str, str]]:
    """The path and the parameters of a call of the API. Raises InvalidParameter."""
    path, _, text = call.partition("?")
    query = {name: value for name, value in parse_qsl(text) if name != "format"}
    for operation in endpoints():
        if _is_at(operation, path):
            if unknown := query.keys() - operation.query.keys():
                raise InvalidParameter("call", f"{operation.path} takes no {min(unknown)[:64]}")
            return path, query
    raise InvalidParameter("call", f"expected a path of the API, such as {_EXAMPLE}")


def _is_at(operation: Operation, path: str) -> bool:
    parts, own = path.split("/"), operation.path.split("/")
    same = zip(parts, own, strict=False)
    return len(parts) == len(own) and all(a and (b.startswith("{") or a == b) for a, b in list(same)[1:])
