"""Pages by address, the view that each builds, and its HTML.

Templates escape everything; the only code on a page is our own script.
"""

import base64
import hashlib
import importlib
import pkgutil
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import sankofa.web.pages
from sankofa.model.errors import InvalidParameter, Problem
from sankofa.model.figures import split_in_words
from sankofa.settings import Settings
from sankofa.web.charts import Chart
from sankofa.web.documents import inline
from sankofa.web.languages import LANGUAGES, Language, label, metric_value
from sankofa.web.visit import PageRequest, Visit, original

EVERYWHERE: Final = frozenset({"lang", "edition", "part", "chart", "format"})
"""Parameters that every page takes."""


class View(msgspec.Struct, frozen=True):
    """A page before rendering: a template and its data."""

    template: str
    title: str
    context: dict[str, Any]
    charts: tuple[Chart, ...] = ()
    """The charts; each can be fetched alone, as SVG or CSV."""
    parts: tuple[str, ...] = ()
    """The parts that can be fetched alone: templates named after the page and the part."""
    status: int = 200
    redirect: str | None = None

    def chart(self, name: str, *, drawn: bool = False) -> Chart:
        """The chart of this name; `drawn` if it has a picture. Raises InvalidParameter."""
        for chart in self.charts:
            if chart.name == name and (chart.drawing or not drawn):
                return chart
        raise InvalidParameter("chart", "this page has no such chart")


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
    """Declare the function below as the page at this address. `{name}` in it matches one part of the path.

    A page that needs a key is counted, and `refused` beyond the quota. A `cached` page depends only on its
    address, the edition, the language and the tier of the key.
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
    def __init__(self) -> None:
        self._exact = {path: page for path, page in pages().items() if "{" not in path}
        self._patterns = [(_pattern(path), page) for path, page in pages().items() if "{" in path]

    def find(self, path: str) -> tuple[Page, dict[str, str]] | None:
        """The page, and the named parts of the path; None if there is no such page."""
        if (page := self._exact.get(path)) is not None:
            return page, {}
        for pattern, page in self._patterns:
            if match := pattern.fullmatch(path):
                return page, match.groupdict()
        return None


def _pattern(path: str) -> re.Pattern[str]:
    """`{name}` matches one part, `{name*}` at the end all that follow."""
    return re.compile(
        _NAMED.sub(lambda named: f"(?P<{named[1]}>{'.+' if named[2] else '[^/]+'})", path), re.DOTALL
    )


_PACKAGE: Final = files("sankofa.web")
_STATIC: Final = _PACKAGE.joinpath("static")
MEDIA_TYPES: Final = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
ASSETS: Final = "/assets/"
_EPOCH: Final = date(1970, 1, 1).toordinal()
_INNER_ADDRESS: Final = re.compile(r'\b(href|src|action|data-svg)="/(?!/|assets/|pictures/|at/)')


@cache
def asset(name: str) -> str:
    """The path of one of our files by its name; it changes with the content."""
    stem, _, kind = name.rpartition(".")
    digest = hashlib.sha256(_STATIC.joinpath(name).read_bytes()).hexdigest()[:10]
    return f"{ASSETS}{stem}.{digest}.{kind}"


@cache
def assets() -> dict[str, tuple[bytes, bytes]]:
    """Our stylesheet, script and icon by path: media type and content."""
    return {
        asset(file.name): (MEDIA_TYPES[file.name.rpartition(".")[2]], file.read_bytes())
        for file in _STATIC.iterdir()
    }


@cache
def stylesheet() -> Markup:
    """Our stylesheet, for inclusion in a page, so that a first visit needs no second request."""
    return Markup(_STATIC.joinpath("style.css").read_text("utf-8"))  # nosec B704  # noqa: S704 - ours


def stylesheet_digest() -> str:
    """The digest with which the content policy allows only our stylesheet."""
    digest = hashlib.sha256(stylesheet().encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(str(_PACKAGE.joinpath("templates"))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update(
        asset=asset,
        stylesheet=stylesheet,
        LANGUAGES=LANGUAGES,
        split_in_words=split_in_words,
        day_number=lambda day: day.toordinal() - _EPOCH,  # as the slider counts days
    )
    environment.filters["raw_html"] = Markup
    environment.filters["data_block"] = _data_block
    environment.filters["markdown"] = lambda text: Markup(inline(text))  # nosec B704  # noqa: S704 - ours
    return environment


def _data_block(value: Any) -> Markup:
    """JSON that is safe inside HTML: no character of it ends an element."""
    text = msgspec.json.encode(value).decode()
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # nosec B704  # noqa: S704 - escaped above


def write_page(view: View, visit: Visit, part: str | None = None) -> str:
    """The page as HTML, or only one `part` of it."""
    name = f"{view.template.removesuffix('.html')}.{part}.html" if part else view.template
    language, settings = visit.language, visit.site.settings
    html = (
        _environment()
        .get_template(name)
        .render(
            **view.context,
            _=language.text,
            fmt=language,
            label=partial(label, language),
            metric_value=partial(metric_value, language),
            visit=visit,
            title=view.title,
            origin=partial(original, visit.sites, visit.filers),
            charts={chart.name: chart for chart in view.charts},
            base_url=visit.base_url,
            upgrade_url=_configured(settings.upgrade_url),
            shown_key=settings.sandbox_key if visit.sandbox and settings.sandbox_key else "YOUR_KEY",
            path=visit.request.path,
        )
    )
    return inside(html, visit.prefix)


def inside(html: str, prefix: str) -> str:
    """A page whose links stay in a locked view, except those to our own files."""
    return _INNER_ADDRESS.sub(rf'\1="{prefix}/', html) if prefix else html


def _configured(upgrade_url: str) -> str:
    """Where to upgrade; empty if the operator set no address."""
    return "" if upgrade_url == Settings.upgrade_url else upgrade_url


def _address_in(code: str, request: PageRequest | None) -> str:
    """The failed address in another language."""
    if request is None:
        return f"/?lang={code}"
    prefix = "" if request.at is None else f"/at/{request.at}"
    return f"{prefix}{quote(request.path, safe='/:@')}?{urlencode({**request.query, 'lang': code})}"


def write_problem(
    language: Language, request: PageRequest | None, problem: Problem, request_id: str, upgrade_url: str
) -> str:
    """An error page; needs no store and no edition."""
    return (
        _environment()
        .get_template("problem.html")
        .render(
            problem=problem,
            title=language.text(problem.title),
            own_key=bool(request and request.api_key),
            request_id=request_id,
            _=language.text,
            fmt=language,
            visit=None,
            upgrade_url=_configured(upgrade_url),
            path=request.path if request else "/",
            address_in={code: _address_in(code, request) for code in LANGUAGES},
        )
    )
