"""The sources that ship with the package, the operator's own in HOME/sources.toml, and how each is fetched.

See contract: SRC-1, SRC-2, PROV-5.
"""

import re
import tomllib
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from sankofa.model.countries import country
from sankofa.model.errors import SourceError
from sankofa.model.limits import limit
from sankofa.model.provenance import LICENSE_CLASSES, SKUS
from sankofa.sources.base import adapters

_REFUSED: Final = "the reply is refused"
_HOURS: Final = limit("time for a document (deadline)", 6, "hours", "the source has failed")
_PERIOD: Final = re.compile(r"([1-9][0-9]{0,4})(s|m|h|d|w)\Z")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_VARIABLE: Final = re.compile(r"\{([a-z_]+)\}")
VARIABLES: Final = ("country", "year", "quarter", "id", "page", "from", "to", "fred_key", "openfigi_key")
"""Names allowed in braces in an address, a header or a file name."""
SECRETS: Final = ("fred_key", "openfigi_key")
"""Settings among them: never written down."""


class Collect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[sources.<id>.collect]` table."""

    urls: list[str]
    every: str = "1d"
    """Maximum age before it is fetched again: `6h`, `1d`, `1w`."""
    scheduled: bool = True
    """Whether it is fetched without being named."""
    method: Literal["GET", "POST"] = "GET"
    headers: dict[str, str] = {}
    max_bytes: int = limit("reply of a publisher (max_bytes), unpacked", 2 << 30, "bytes", _REFUSED)
    rate: float = 2.0
    """Requests a second to one host, at most."""
    deadline: str = f"{_HOURS}h"
    """How long one document may take, attempts and pauses included."""
    min_rate: int = limit("least rate of a transfer (min_rate)", 100, "bytes a second", "tried again")
    """Bytes a second of a transfer, at least, over a minute."""
    allow_private: bool = False
    """Allows plain http and private addresses; never link-local ones."""
    needs_contact: bool = False
    """Whether the publisher requires a contact: SANKOFA_COLLECT_CONTACT."""
    countries: list[str] = []
    years: list[int] = []
    from_year: int = 0
    """Every year from this one until today, besides `years`."""
    ids: list[str] = []
    ids_file: str = ""
    """A file in HOME with one id a line, besides `ids`."""
    start: str = ""
    """The first day that `{from}` can be."""
    overlap_days: int = 3
    """How far before the last fetch `{from}` goes back."""
    file: str = ""
    """The name under which a reply is ingested, if the address does not end with a file name."""
    next: str = ""
    """JSON pointer to the address of the next page."""
    pages: str = ""
    """JSON pointer to the number of pages, for `{page}`."""
    same: list[str] = []
    """JSON pointers whose values must be equal on all pages of one list."""
    most_pages: int = limit("pages of one list (most_pages)", 10_000, "pages", "the source has failed")
    batch: int = 10
    """Ids in one POST."""
    job: dict[str, str] = {}
    """The body that a POST sends for each id."""
    may_be_missing: bool = False
    """Whether a 404 means: not published yet."""
    may_shrink: bool = False
    """Whether a reply of less than half its former size is accepted."""

    @property
    def interval(self) -> timedelta:
        return period(self.every) or timedelta(days=1)

    @property
    def longest(self) -> timedelta:
        return period(self.deadline) or timedelta(hours=6)

    def fault(self) -> str | None:
        """The fault of the table; None without one."""
        if not self.urls:
            return "urls is empty"
        for name in ("every", "deadline"):
            if period(text := getattr(self, name)) is None:
                return f"{name} {text!r}: expected a number and one of s, m, h, d, w, such as 6h or 1d"
        if not (self.max_bytes > 0 and self.rate > 0 and self.batch > 0 and self.most_pages > 0):
            return "max_bytes, rate, batch and most_pages must be above 0"
        if self.min_rate < 0:
            return "min_rate must not be below 0"
        texts = [*self.urls, *self.headers.values(), *self.job.values(), self.file]
        unknown = {name for text in texts for name in _VARIABLE.findall(text)} - set(VARIABLES)
        if unknown:
            return f"unknown {{{sorted(unknown)[0]}}}: expected one of {', '.join(VARIABLES)}"
        if self.start and _day(self.start) is None:
            return f"start {self.start!r}: expected YYYY-MM-DD"
        return None

    def address_fault(self) -> str | None:
        """Why it may not be fetched from its addresses; other sources are unaffected."""
        return next(filter(None, (self._fault_of(url) for url in self.urls)), None)

    def _fault_of(self, url: str) -> str | None:
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError as failure:
            return f"url {url!r}: {failure}"
        if parts.scheme not in ("https", "http") or not host:
            return f"url {url!r}: expected an https address"
        if parts.scheme == "http" and not self.allow_private:
            return f"url {url!r}: plain http needs allow_private = true"
        if parts.username or parts.password:
            return "a url with a password"
        if "{" in parts.netloc:
            return f"url {url!r}: the host must not contain a template"
        return None


def period(text: str) -> timedelta | None:
    """A length of time such as `6h`; None if malformed."""
    match = _PERIOD.match(text)
    return None if match is None else timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def variables_in(text: str) -> set[str]:
    return set(_VARIABLE.findall(text))


def filled(text: str, values: dict[str, Any]) -> str:
    """A template with its variables filled in; variables without a value stay."""
    return _VARIABLE.sub(lambda named: str(values.get(named[1], named[0])), text)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_IDENTIFIERS_ONLY: Final = (
    "gleif-lei", "gleif-isin", "gleif-rr", "openfigi", "identifiers-csv", "sec-submissions", "match-reviews",
)  # fmt: skip
"""Adapters whose sources belong to no dataset: they only identify organisations."""

_LICENCE_LINKS: Final = {
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "PDDL-1.0": "https://opendatacommons.org/licenses/pddl/1-0/",
    "ODC-By-1.0": "https://opendatacommons.org/licenses/by/1-0/",
    "OGL-UK-3.0": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
    "MIT": "https://opensource.org/license/mit",
    "US Government work": "https://www.usa.gov/government-copyright",
}


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[sources.<id>]` table."""

    id: str
    adapter: str
    license_class: str
    commercial_redistribution: bool = False
    sku: str | None = None
    title: str = ""
    country: str | None = None
    publisher: str = ""
    url: str = ""
    licence: str = ""
    licence_url: str = ""
    attribution: str = ""
    floors: dict[str, float] = {}
    """By measure (`derive.quality`): compared and reported."""
    hard_floors: dict[str, float] = {}
    """Like `floors`, but an edition that misses one is not published."""
    collect: Collect | None = None
    """How it is fetched; None if files are only ingested by hand."""

    @property
    def licence_link(self) -> str:
        """Address of the licence: from the entry, else of a licence known by its name."""
        return self.licence_url or _LICENCE_LINKS.get(self.licence, "")

    @property
    def named(self) -> str:
        """The attribution that users of its data must give, verbatim from the entry."""
        return self.attribution or self.publisher or self.title or self.id

    @property
    def owed(self) -> str:
        return f"{self.named} ({self.licence or self.license_class})"

    def refuse_unless_redistributable(self) -> None:
        """The licence gate: refuses data that may not be redistributed commercially."""
        if self.commercial_redistribution is not True:
            raise SourceError(
                f"source {self.id}: refused: its licence does not permit commercial redistribution "
                "(commercial_redistribution = true is not set)"
            )


def load_sources(home: Path) -> dict[str, Source]:
    """Every registered source by id; the operator's entry wins over a built-in one.

    An operator's entry with only a `collect` table makes a built-in source fetched, and sets how.
    """
    tables = dict(_built_in())
    own = home / "sources.toml"
    if own.exists():
        try:
            text = own.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as failure:
            raise SourceError(f"sources.toml: cannot be read as UTF-8 text: {failure}") from failure
        for source_id, table in _tables(text).items():
            collected = isinstance(table, dict) and table.keys() == {"collect"} and source_id in tables
            tables[source_id] = _collected(tables[source_id], table["collect"]) if collected else table
    return {source_id: _source(source_id, table) for source_id, table in sorted(tables.items())}


@cache
def _built_in() -> dict[str, Any]:
    """The tables of the package, read once; do not change them."""
    names = (files("sankofa").joinpath(folder, "sources.toml") for folder in ("sources", "starter", "sample"))
    return {source_id: table for name in names for source_id, table in _tables(name.read_text()).items()}


def find_source(home: Path, source_id: str) -> Source:
    sources = load_sources(home)
    if source_id not in sources:
        raise SourceError(f"no source {source_id!r}: registered are {', '.join(sources)}")
    return sources[source_id]


def _collected(entry: dict[str, Any], collect: Any) -> dict[str, Any]:
    """A built-in entry, fetched as the operator says."""
    if not isinstance(collect, dict):
        return {**entry, "collect": collect}
    return {**entry, "collect": {**entry.get("collect", {}), "scheduled": True, **collect}}


def _tables(text: str) -> dict[str, Any]:
    try:
        tables = tomllib.loads(text).get("sources", {})
    except tomllib.TOMLDecodeError as failure:
        raise SourceError(f"sources.toml: not TOML: {failure}") from failure
    if not isinstance(tables, dict):
        raise SourceError("sources.toml: expected tables [sources.<id>]")
    return tables


def _source(source_id: str, table: object) -> Source:
    try:
        fields = {**table, "id": source_id} if isinstance(table, dict) else table
        source = msgspec.convert(fields, Source)
    except msgspec.ValidationError as failure:
        raise SourceError(f"sources.toml: source {source_id}: {failure}") from failure
    for problem, value in (
        ("expected an id of letters, digits, dot, dash and underscore", _ID.match(source_id)),
        (f"unknown adapter {source.adapter!r}", source.adapter in adapters()),
        (f"license_class {source.license_class!r} is not one of {', '.join(LICENSE_CLASSES)}",
         source.license_class in LICENSE_CLASSES),
        (f"sku {source.sku!r} is not one of {', '.join(SKUS)}", source.sku is None or source.sku in SKUS),
        (f"sku is missing: one of {', '.join(SKUS)}", source.sku or source.adapter in _IDENTIFIERS_ONLY),
        (f"country {source.country!r} is not an ISO 3166-1 code",
         source.country is None or country(source.country) is not None),
        ("a floor is not a finite number",
         all(map(isfinite, (*source.floors.values(), *source.hard_floors.values())))),
        (f"collect: {source.collect and source.collect.fault()}",
         source.collect is None or source.collect.fault() is None),
    ):  # fmt: skip
        if not value:
            raise SourceError(f"sources.toml: source {source_id}: {problem}")
    return msgspec.structs.replace(source, country=source.country and country(source.country))
