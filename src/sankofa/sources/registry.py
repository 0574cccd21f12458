"""Which sources there are: those that ship with the package, and the operator's own in HOME/sources.toml.

See contract: SRC-1, SRC-2, PROV-5.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa.model.countries import country
from sankofa.model.errors import SourceError
from sankofa.model.provenance import LICENSE_CLASSES, SKUS
from sankofa.sources.base import adapters
from sankofa.sources.collecting import Collect

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_IDENTIFIERS_ONLY: Final = ("gleif-lei", "gleif-isin", "openfigi", "identifiers-csv")
"""Adapters whose sources belong to no dataset: they only say who is who."""

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
    """By measure (`derive.quality`): held against, and told."""
    hard_floors: dict[str, float] = {}
    """As `floors`; an edition in which the source falls short of one is not published."""
    collect: Collect | None = None
    """How it is fetched; None where files are carried to it."""

    @property
    def licence_link(self) -> str:
        """Where the licence can be read: as the entry says, else of a licence that is known by its name."""
        return self.licence_url or _LICENCE_LINKS.get(self.licence, "")

    @property
    def named(self) -> str:
        """Who is to be named where its data is used: the entry's attribution, word for word."""
        return self.attribution or self.publisher or self.title or self.id

    @property
    def owed(self) -> str:
        """Who is to be named, and the licence."""
        return f"{self.named} ({self.licence or self.license_class})"

    def refuse_unless_redistributable(self) -> None:
        """The licence gate: what may not be redistributed commercially does not come in."""
        if self.commercial_redistribution is not True:
            raise SourceError(
                f"source {self.id}: refused: its licence does not permit commercial redistribution "
                "(commercial_redistribution = true is not set)"
            )


def load_sources(home: Path) -> dict[str, Source]:
    """Every registered source by id; the operator's entry wins over a built-in one.

    An operator's entry with a table `collect` alone says how a built-in source is fetched, and that it is.
    """
    built_in, built_in_sources = _built_in()
    sources = dict(built_in_sources)
    own = home / "sources.toml"
    if own.exists():
        try:
            text = own.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as failure:
            raise SourceError(f"sources.toml: cannot be read as UTF-8 text: {failure}") from failure
        tables = _tables(text, "sources.toml")
        for source_id, table in tables.items():
            if isinstance(table, dict) and table.keys() == {"collect"} and source_id in built_in:
                tables[source_id] = _collected(built_in[source_id], table["collect"])
        sources |= _parse(tables, "sources.toml")
    return dict(sorted(sources.items()))


@cache
def _built_in() -> tuple[dict[str, Any], dict[str, Source]]:
    """The tables of the package, and what they say. Not to be changed: they are read once."""
    built_in: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for folder in ("sources", "starter", "sample"):
        text = files("sankofa").joinpath(folder, "sources.toml").read_text()
        tables = _tables(text, f"{folder}/sources.toml")
        built_in |= tables
        sources |= _parse(tables, f"{folder}/sources.toml")
    return built_in, sources


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


def _tables(text: str, where: str) -> dict[str, Any]:
    try:
        tables = tomllib.loads(text).get("sources", {})
    except tomllib.TOMLDecodeError as failure:
        raise SourceError(f"{where}: not TOML: {failure}") from failure
    if not isinstance(tables, dict):
        raise SourceError(f"{where}: expected tables [sources.<id>]")
    return tables


def _parse(tables: dict[str, Any], where: str) -> dict[str, Source]:
    return {source_id: _source(source_id, table, where) for source_id, table in tables.items()}


def _source(source_id: str, table: object, where: str) -> Source:
    try:
        fields = {**table, "id": source_id} if isinstance(table, dict) else table
        source = msgspec.convert(fields, Source)
    except msgspec.ValidationError as failure:
        raise SourceError(f"{where}: source {source_id}: {failure}") from failure
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
            raise SourceError(f"{where}: source {source_id}: {problem}")
    return msgspec.structs.replace(source, country=source.country and country(source.country))
