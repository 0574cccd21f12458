"""What a page is made of: a registry of pages by address, and the view that each builds."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

import sankofa.web.pages
from sankofa.web.charts.chart import Chart
from sankofa.web.visit import Visit

EVERYWHERE: Final = frozenset({"lang", "edition", "part", "chart", "format"})
"""Parameters that every page takes."""


class View(msgspec.Struct, frozen=True):
    """A page before it is written: a template, and what it shows."""

    template: str
    title: str
    context: dict[str, Any]
    charts: tuple[Chart, ...] = ()
    """Each can be fetched alone, as SVG or as CSV."""
    parts: tuple[str, ...] = ()
    """The parts that can be fetched alone: templates named after the page and the part."""
    status: int = 200
    redirect: str | None = None


Build = Callable[[Visit], Awaitable[View]]


class Page(NamedTuple):
    """A page: its address, the parameters it takes, and the function that builds its view."""

    path: str
    build: Build
    takes: frozenset[str]
    needs_key: bool
    cached: bool


_PAGES: dict[str, Page] = {}


def page(path: str, *takes: str, needs_key: bool = True, cached: bool = True) -> Callable[[Build], Build]:
    """Declare the function below as the page at this address. `{name}` in it is one part of the path.

    A page that needs a key is counted against it. One that is `cached` depends on nothing but its address,
    the edition, the language and the tier of the key.
    """

    def declare(build: Build) -> Build:
        _PAGES[path] = Page(path, build, EVERYWHERE.union(takes), needs_key, cached)
        return build

    return declare


@cache
def pages() -> Mapping[str, Page]:
    """Every page by its address: each module of the package `pages` declares some."""
    for module in pkgutil.iter_modules(sankofa.web.pages.__path__):
        importlib.import_module(f"sankofa.web.pages.{module.name}")
    return _PAGES


class Routes:
    """Finds the page of a path."""

    def __init__(self) -> None:
        self._exact = {path: page for path, page in pages().items() if "{" not in path}
        self._patterns = [(path.split("/"), page) for path, page in pages().items() if "{" in path]

    def find(self, path: str) -> tuple[Page, dict[str, str]] | None:
        """The page, and the parts of the path that it names; None where there is none."""
        if (found := self._exact.get(path)) is not None:
            return found, {}
        parts = path.split("/")
        for pattern, page in self._patterns:
            rest = pattern[-1].endswith("*}")
            if len(parts) != len(pattern) and not (rest and len(parts) > len(pattern)):
                continue
            values = dict(_named(pattern, parts)) if _matches(pattern, parts) else None
            if values is not None and all(values.values()):
                return page, values
        return None


def _matches(pattern: list[str], parts: list[str]) -> bool:
    return all(p == q or p.startswith("{") for p, q in zip(pattern, parts, strict=False))


def _named(pattern: list[str], parts: list[str]) -> list[tuple[str, str]]:
    """`{name}` is one part, `{name*}` at the end is all that follow."""
    named = []
    for position, part in enumerate(pattern):
        if part.startswith("{"):
            name = part.strip("{}")
            rest = name.endswith("*")
            text = "/".join(parts[position:]) if rest else parts[position]
            named.append((name.removesuffix("*"), text))
    return named
