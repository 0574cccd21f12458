"""A panel is a function from the build's data to rows. Its docstring is its methodology."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from functools import cache
from typing import Final, Literal, NamedTuple, Protocol, TypedDict, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

import sankofa.derive.signals.panels
from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.full_years import FullYear
from sankofa.derive.metrics.lines import Figure
from sankofa.derive.tenders import Tenders
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.ledger.reports import Report
from sankofa.model.days import FOREVER
from sankofa.model.figures import SIGNIFICANT_DIGITS
from sankofa.model.ocds.red_flags import FlagCounts
from sankofa.model.provenance import SKUS, strictest
from sankofa.model.rows import Row, doc, panel_key
from sankofa.model.text import page_text

SET: Final = "signals-v1"
LONGEST_FILTER: Final = 200
"""The longest value, in characters, that a filter can match."""

Access = Literal["open", "licensed"]


class FlagBasis(Protocol):
    """The indicators of red flags by country."""

    def quarters(self, country: str) -> Mapping[int, FlagCounts]:
        """Counts on the last day of each quarter with a release."""


class Basis(Protocol):
    """The inputs of panels; the build context of an edition provides them."""

    @property
    def ledger(self) -> LedgerReader: ...
    @property
    def captures(self) -> Mapping[int, CaptureInfo]: ...
    @property
    def entities(self) -> Sequence[Entity]: ...
    @property
    def tenders(self) -> Tenders: ...
    @property
    def flags(self) -> FlagBasis: ...
    @property
    def first_figures(self) -> Mapping[str, int]:
        """By service_id, the first day on which a figure of each issuer was known."""


METHOD: Final = doc("Name of the method; /methodology/ explains it.")


class PanelRow(Row, frozen=True, kw_only=True):
    """A row of a panel: it ends with `methodology_ref`, a literal that names the panel's method."""


class Observation(NamedTuple):
    """A row, the day it describes, and the first as_of day that shows it."""

    row: PanelRow
    day: int
    seen_from: int
    sources: frozenset[str] = frozenset()
    """The ids of the sources that it is derived from."""
    until: int = FOREVER
    """The first day that no longer shows it; only `basis=as_known` shows rows with such a day."""


Captures = Mapping[int, CaptureInfo]
Observe = TypeVar("Observe", bound=Callable[..., Iterator[Observation]])

_PANELS: dict[str, "Panel"] = {}


@dataclass(eq=False, slots=True)
class Panel:
    """A panel: its rows, their dataset, and the terms of its file.

    Used as a decorator of the function that yields its rows.
    """

    key: str
    _: KW_ONLY
    access: Access
    sku: str
    row: type[PanelRow]
    order: tuple[str, ...]
    """The fields that rows are sorted by, each behind `-` where descending."""
    filters: tuple[str, ...] = ()
    """Fields that rows can be filtered by: the first alone, or the first and second together, and so on.
    Among rows with the same values the newest come first."""
    appendix: str = ""
    """Text in Markdown that ends its explanation."""
    of: Literal["", "issuer", "series"] = ""
    """`issuer` if `observe` takes one issuer, `series` if it takes a published series and the captures; else
    empty. A build computes the rows of an issuer or a series with its other rows."""
    observe: Callable[..., Iterator[Observation]] = field(init=False)
    """Its rows in served order, from a `Basis` unless it is a panel of issuers or series."""
    summary: str = field(init=False)
    explanation: str = field(init=False)

    def __call__(self, observe: Observe) -> Observe:
        """Declare the function below as this panel."""
        self.observe = observe
        self.summary, _, rest = inspect.cleandoc(observe.__doc__ or "").partition("\n")
        self.explanation = "\n\n".join(filter(None, (rest.strip("\n"), self.appendix)))
        defaults = {one.name: one.default for one in msgspec.structs.fields(self.row)}
        if defaults.get("methodology_ref") != self.methodology_ref or self.sku not in SKUS:
            raise TypeError(f"{self.key}: expected methodology_ref = {self.methodology_ref!r} and a dataset")
        _PANELS[self.key] = self
        return observe

    @property
    def methodology_ref(self) -> str:
        return f"{SET}/{self.key}"

    @property
    def has_basis(self) -> bool:
        """Whether its rows are derived from figures of issuers, which are restated."""
        return self.of == "issuer"

    def keys_of(self, row: PanelRow) -> Iterator[str]:
        """The keys a row is stored under, if there are filters: one for each filter combination."""
        values = [str(getattr(row, name)) for name in self.filters]
        for count in range(1, len(values) + 1):
            if all(len(value) <= LONGEST_FILTER for value in values[:count]):
                yield panel_key(*values[:count])


class Origin(TypedDict):
    """The provenance of a row that is derived from many."""

    source_ref: str
    license_class: str
    observed_at: str


def origin(first: str, inputs: Iterable[CaptureInfo]) -> tuple[Origin, frozenset[str]]:
    """The provenance of a derived row, and the sources of its inputs.

    `first` is the `source_ref` of the first input. The licence class is the strictest of all inputs, the time
    that of the latest capture.
    """
    captures = list(inputs)
    derived = Origin(
        source_ref=first,
        license_class=strictest({capture.license_class for capture in captures}),
        observed_at=max(capture.observed_at for capture in captures),
    )
    return derived, frozenset([capture.source_id for capture in captures])


panel = Panel


class IssuerFields(TypedDict):
    service_id: str
    legal_name: str | None
    country: str | None


class YearFields(IssuerFields, Origin):
    """The fields shared by rows about a full year of an issuer."""

    period_end: date
    available_at: date


def issuer_fields(entity: Entity) -> IssuerFields:
    return IssuerFields(service_id=entity.service_id, legal_name=entity.legal_name, country=entity.country)


def filed(reports: Iterable[Report]) -> tuple[Origin, frozenset[str]]:
    """The provenance of rows derived from reports of an issuer, and the sources of these reports."""
    inputs = list(reports)
    return origin(inputs[0].source_ref, (report.capture for report in inputs))


def year_fields(
    issuer: Issuer, year: FullYear, figures: Sequence[Figure]
) -> tuple[YearFields, frozenset[str]]:
    """The fields of a row that is derived from figures of a full year, and its sources."""
    reports = [report for figure in figures for report in figure.reports]
    provenance, sources = filed(reports)
    fields = YearFields(
        **issuer_fields(issuer.entity),
        period_end=date.fromordinal(year.end),
        available_at=date.fromordinal(max(report.available for report in reports)),
        **provenance,
    )
    return fields, sources


@cache
def panels() -> dict[str, Panel]:
    """Every panel by its key: each module of the panels package declares its own."""
    for module in pkgutil.iter_modules(sankofa.derive.signals.panels.__path__):
        importlib.import_module(f"sankofa.derive.signals.panels.{module.name}")
    return {key: _PANELS[key] for key in sorted(_PANELS)}


_TERMS = {
    "open": "Open: its file is published under CC-BY-4.0 and needs no key.",
    "licensed": "Licensed: its file needs a key of a paid tier.",
}


def methodology(panel: Panel) -> str:
    columns = "".join(f"| {name} | {meaning} |\n" for name, meaning in columns_of(panel))
    page, terms = page_text(__package__, "methodology"), _TERMS[panel.access]
    return page.format(panel=panel, terms=terms, set=SET, columns=columns, rules=common_rules())


def common_rules() -> str:
    """The text that is the same for every panel."""
    return page_text(__package__, "rules").format(digits=SIGNIFICANT_DIGITS).rstrip()


def columns_of(panel: Panel) -> list[tuple[str, str]]:
    """The fields of a panel's rows, and what each means."""
    hints = get_type_hints(panel.row, include_extras=True)
    return [
        (name, next(m.description for m in get_args(hints[name]) if isinstance(m, Meta) and m.description))
        for name in panel.row.__struct_fields__
    ]
