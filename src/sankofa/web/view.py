"""What a page is made of: a registry of pages by address, and the view that each builds."""

import importlib
import pkgutil
import re
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
    refused: bool


_PAGES: dict[str, Page] = {}


def page(
    path: str, *takes: str, needs_key: bool = True, cached: bool = True, refused: bool = True
) -> Callable[[Build], Build]:
    """Declare the function below as the page at this address. `{name}` in it is one part of the path.

    A page that needs a key is counted, and `refused` beyond the quota. One that is `cached` depends on
    nothing but its address, the edition, the language and the tier of the key.
    """

    def declare(build: Build) -> Build:
        _PAGES[path] = Page(path, build, EVERYWHERE.union(takes), needs_key, cached, refused)
        return build

    return declare


@cache
def pages() -> Mapping[str, Page]:
    """Every page by its address: each module of the package `pages` declares some."""
    for module in pkgutil.iter_modules(sankofa.web.pages.__path__):
        importlib.import_module(f"sankofa.web.pages.{module.name}")
    return _PAGES


_NAMED: Final = re.compile(r"\{(\w+)(\*?)\}")


class Routes:
    """Finds the page of a path."""

    def __init__(self) -> None:
        self._exact = {path: page for path, page in pages().items() if "{" not in path}
        self._patterns = [(_pattern(path), page) for path, page in pages().items() if "{" in path]

    def find(self, path: str) -> tuple[Page, dict[str, str]] | None:
        """The page, and the parts of the path that it names; None where there is none."""
        if (page := self._exact.get(path)) is not None:
            return page, {}
        for pattern, page in self._patterns:
            if match := pattern.fullmatch(path):
                return page, match.groupdict()
        return None


def _pattern(path: str) -> re.Pattern[str]:
    """`{name}` is one part, `{name*}` at the end is all that follow."""
    return re.compile(
        _NAMED.sub(lambda named: f"(?P<{named[1]}>{'.+' if named[2] else '[^/]+'})", path), re.DOTALL
    )
