"""Our line items, the concepts served under each, and the routes to each (`routes.toml`, `breakdowns.toml`).

A concept is served under the one item that it matches exactly (`served`). Other concepts reach an item by a
route only, and are served under their own names. A concept that is merely similar gets neither: cash with
restricted cash is not cash. An inexact figure is worse than none.

A route is one concept, or a sum or difference of concepts of one filing and context. It may have conditions:
`unless` (concepts whose presence shows that something is missing), `at_least` (parts that it cannot be
smaller than), `confirm` (an equation of the same filing that must hold) and `members ... of ...` (a total
whose reported members add up to it, so unreported members are zero). A test checks that routes and breakdowns
are consistent.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple

from sankofa.model.text import snake_case

LONGEST_LINE_ITEM: Final = 900
"""Characters of a line item. A concept has at most 600 (`ledger.ingest`), and snake_case adds
an underscore before every second one at most."""

_NAME: Final = re.compile(r"(?:us-gaap|ifrs-full|dei|srt):[A-Z][A-Za-z0-9]*|[a-z][a-z0-9_]*")
_TERM: Final = re.compile(r"\s*+([+-]?)\s*+([\w:-]+)")


class Term(NamedTuple):
    """A concept, added or subtracted."""

    sign: int
    concept: str


Sum = tuple[Term, ...]


class Breakdown(NamedTuple):
    """A total of a statement, and the concepts that are its members by the taxonomy."""

    name: str
    totals: tuple[Sum, ...]
    """The ways to compute the total, in order."""
    members: Mapping[str, tuple[int, str]]
    """By concept: its sign in the total, and the mark of what kind of member it is (often none)."""
    within: Mapping[str, frozenset[str]]
    """For a member that is a sum of others, those others."""
    positive: bool
    """Whether nothing in it can be negative, so that a total of zero has no members."""
    concepts: frozenset[str]
    """The members, and the concepts that the totals come from."""
    order: Mapping[str, int]
    """The position of each member."""


class Route(NamedTuple):
    item: str
    number: int
    """Position among the item's routes."""
    terms: Sum
    members: str
    """The mark of the members to add; empty if there are none."""
    of: tuple[str, ...]
    """The breakdowns that must close."""
    unless: tuple[str, ...]
    named: tuple[str, ...]
    """`unless` as written in the file: concepts, and groups as `@` and a name."""
    at_least: tuple[Sum, ...]
    within: str
    """The concept that limits the absolute value; empty if there is none."""
    confirm: str
    served: bool
    since: str
    why: str
    guards: frozenset[str]
    """The concepts of `unless`, `at_least` and `within`. A filing without any of them cannot close the
    route."""
    is_nothing: bool
    """Whether the value can only be zero."""

    @property
    def single(self) -> str:
        """The concept, if the route is a single reported concept; else empty."""
        plain = len(self.terms) == 1 and self.terms[0].sign > 0 and not self.members
        return self.terms[0].concept if plain else ""

    @property
    def guarded(self) -> bool:
        """Whether exactness depends on more than its own terms."""
        return bool(self.members or self.guards or self.confirm)

    @property
    def text(self) -> str:
        """The route in words, for the documentation."""
        parts = [written(self.terms)] if self.terms else []
        if self.members:
            parts.append(f"the members for {self.members} of " + " and of ".join(self.of))
        return " + ".join(parts)

    @property
    def provisos(self) -> str:
        """Further conditions, in words."""
        provisos = []
        if self.named:
            provisos.append("not where the filing has " + ", ".join(f"`{name}`" for name in self.named))
        if self.at_least:
            provisos.append(
                "not where it is less than " + " or ".join(f"`{written(s)}`" for s in self.at_least)
            )
        if self.within:
            provisos.append(f"not where it is larger than `{self.within}`, whatever their signs")
        if self.confirm:
            provisos.append(f"only where an equation of `{self.confirm}` holds")
        if self.of:
            provisos.append("only where " + " and ".join(f"`{name}`" for name in self.of) + " closes")
        return "; ".join(provisos)


class AccountingIdentity(NamedTuple):
    """An equation between line items that a filing must satisfy."""

    name: str
    items: tuple[Term, ...]
    """Line items and concepts with their signs; they add up to zero."""
    optional: tuple[Term, ...]
    """Further concepts that take part if reported."""
    doubted: tuple[str, ...]
    """Items that take another route if it satisfies the equation."""
    refused: tuple[str, ...]
    """Items without a value if every member is reported but no route satisfies the equation."""
    column: bool
    """Whether it must hold between the latest figures of any filings."""


@dataclass(frozen=True)
class RouteTable:
    """Everything that the file says."""

    routes: Mapping[str, tuple[Route, ...]]
    groups: Mapping[str, tuple[str, ...]]
    """By name, the concepts of a group."""
    breakdowns: Mapping[str, Breakdown]
    confirmations: Mapping[str, tuple[Sum, ...]]
    """By name, the equations of which one must hold; `$` is the value of the route."""
    identities: tuple[AccountingIdentity, ...]
    parts: Mapping[str, tuple[Sum, ...]]
    """By item, sums that its figure cannot be less than."""
    magnitudes: frozenset[str]
    """Items that are always outflows: a negative figure gets its sign turned."""
    never_negative: frozenset[str]
    """Items that cannot be negative: a negative figure is not used."""
    wholes: Mapping[str, str]
    """By item, the item that its figure cannot exceed."""
    signed: frozenset[str]
    """Items of either sign, turned if only the other sign satisfies an equation."""

    @cached_property
    def concepts(self) -> frozenset[str]:
        """Every concept in use."""
        concepts = {term.concept for routes in self.routes.values() for r in routes for term in r.terms}
        concepts.update(c for routes in self.routes.values() for r in routes for c in r.unless)
        sums = [s for routes in self.routes.values() for r in routes for s in r.at_least]
        sums += [s for equations in self.confirmations.values() for s in equations]
        sums += [s for entry in self.breakdowns.values() for s in entry.totals]
        sums += [s for parts in self.parts.values() for s in parts]
        sums += [entry.optional for entry in self.identities]
        sums += [tuple(term for term in entry.items if ":" in term.concept) for entry in self.identities]
        concepts.update(term.concept for s in sums for term in s)
        concepts.update(c for entry in self.breakdowns.values() for c in entry.members)
        concepts.update(self.groups.get("shares_of_earnings", ()))
        return frozenset(concepts - {SELF})


SELF: Final = "$"
"""The value of a route, in an equation that confirms it."""
NOTHING: Final = "nothing"
"""The confirmation that a value is zero."""


def written(terms: Iterable[Term]) -> str:
    """`a + b - c`."""
    text = " ".join(f"{'+' if term.sign > 0 else '-'} {term.concept}" for term in terms)
    return text.removeprefix("+ ")


@cache
def table() -> RouteTable:
    """The content of `routes.toml` in this package."""
    folder = files("sankofa.model")
    return parse("\n".join(folder.joinpath(f"{name}.toml").read_text() for name in ("routes", "breakdowns")))


def parse(text: str) -> RouteTable:
    """Reads a sum of concepts. Raises ValueError."""
    tables = tomllib.loads(text)
    breakdowns = {name: _breakdown(name, one) for name, one in tables.get("breakdowns", {}).items()}
    confirmations = {
        name: tuple(_sum(equation, f"confirmations.{name}", SELF) for equation in equations)
        for name, equations in tables.get("confirmations", {}).items()
    }
    items: dict[str, list[dict[str, Any]]] = tables["items"]
    routes = {
        item: (_own(item), *(_route(item, n, one, tables["groups"]) for n, one in enumerate(entries, 1)))
        for item, entries in items.items()
    }
    identities = tuple(_identity(name, one) for name, one in tables.get("identities", {}).items())
    parts = {
        item: tuple(_sum(one, f"parts.{item}") for one in entries)
        for item, entries in tables.get("parts", {}).items()
    }
    magnitudes, never_negative, signed = (
        frozenset(tables.get(name, "").split()) for name in ("magnitudes", "never_negative", "signed")
    )
    wholes = tables.get("wholes", {})
    groups = {name: tuple(concepts.split()) for name, concepts in tables["groups"].items()}
    return RouteTable(
        routes, groups, breakdowns, confirmations, identities, parts,
        magnitudes, never_negative, wholes, signed,
    )  # fmt: skip


def _own(item: str) -> Route:
    """A figure under the item's own name, as in documents, comes before every concept."""
    why = "The item itself, as taken from a document."
    return Route(item, 0, (Term(1, item),), "", (), (), (), (), "", "", True, "", why, frozenset(), False)


def _route(item: str, number: int, entry: dict[str, Any], groups: Mapping[str, str]) -> Route:
    where = f"{item}, route {number}"
    terms = _sum(entry["take"], where) if "take" in entry else ()
    unless = _unless(entry.get("unless", ""), {term.concept for term in terms}, groups, where)
    at_least = tuple(_sum(one, where) for one in entry.get("at_least", []))
    within = entry.get("within", "")
    return Route(
        item,
        number,
        terms,
        entry.get("members", ""),
        tuple(entry.get("of", "").split()),
        unless,
        tuple(entry.get("unless", "").split()),
        at_least,
        within,
        entry.get("confirm", ""),
        bool(entry.get("served", False)),
        entry["since"],
        entry["why"],
        frozenset([*unless, *filter(None, [within]), *(term.concept for one in at_least for term in one)]),
        entry.get("confirm") == NOTHING and not entry.get("members"),
    )


def _unless(text: str, own: set[str], groups: Mapping[str, str], where: str) -> tuple[str, ...]:
    """The named concepts and groups (`@`), without the route's own terms."""
    excluded: dict[str, None] = {}
    for name in text.split():
        if name.startswith("@") and name[1:] not in groups:
            raise ValueError(f"{where}: no group {name[1:]}")
        for concept in groups[name[1:]].split() if name.startswith("@") else (name,):
            if not _NAME.fullmatch(concept):
                raise ValueError(f"{where}: {concept!r} is not a concept")
            if concept not in own:
                excluded[concept] = None
    return tuple(excluded)


def _sum(text: str, where: str, also: str = "") -> Sum:
    terms: list[Term] = []
    rest = text.strip()
    while rest:
        if also and (match := re.match(r"\s*+([+-]?)\s*+(\$)", rest)):
            pass
        elif not (match := _TERM.match(rest)):
            raise ValueError(f"{where}: cannot read {rest!r}")
        sign, name = match.groups()
        if name != also and not _NAME.fullmatch(name):
            raise ValueError(f"{where}: {name!r} is neither a concept nor a line item")
        if terms and not sign:
            raise ValueError(f"{where}: expected + or - before {name}")
        terms.append(Term(-1 if sign == "-" else 1, name))
        rest = rest[match.end() :].strip()
    if not terms or len({term.concept for term in terms}) < len(terms):
        raise ValueError(f"{where}: expected concepts, each once, in {text!r}")
    return tuple(terms)


def _breakdown(name: str, entry: dict[str, Any]) -> Breakdown:
    members: dict[str, tuple[int, str]] = {}
    for mark, text in entry["members"].items():
        for concept in text.split():
            sign = -1 if concept.startswith("-") else 1
            concept = concept.lstrip("-")
            if concept in members or not _NAME.fullmatch(concept):
                raise ValueError(f"breakdowns.{name}: {concept} is twice a member, or no concept")
            members[concept] = (sign, "" if mark == "other" else mark)
    within = {whole: frozenset(parts.split()) for whole, parts in entry.get("within", {}).items()}
    for whole, parts in within.items():
        strange = ({whole} | parts) - members.keys()
        if strange:
            raise ValueError(f"breakdowns.{name}: {', '.join(sorted(strange))} is not a member")
    totals = tuple(_sum(total, f"breakdowns.{name}") for total in entry["totals"])
    concepts = members.keys() | {term.concept for total in totals for term in total}
    positive = bool(entry.get("positive", False))
    order = {concept: number for number, concept in enumerate(members)}
    return Breakdown(name, totals, members, within, positive, frozenset(concepts), order)


def _identity(name: str, entry: dict[str, Any]) -> AccountingIdentity:
    where = f"identities.{name}"
    optional = _sum(entry["optional"], where) if entry.get("optional") else ()
    doubted, refused = (tuple(entry.get(key, "").split()) for key in ("doubted", "refused"))
    items, column = _sum(entry["items"], where), bool(entry.get("column", False))
    return AccountingIdentity(name, items, optional, doubted, refused, column)


LINE_ITEMS: Final = tuple(table().routes)

STATEMENT_KINDS: Final = ("income", "balance", "cash")
_CASH_FLOW: Final = ("operating_cash_flow", "capex", "dividends_paid")

_SERVED_AS: Final = {
    route.single: item for item, routes in table().routes.items() for route in routes[1:] if route.served
}
_ITEMS: Final = frozenset(LINE_ITEMS)


@cache
def statement_kind(line_item: str) -> str:
    """The statement that one of our line items belongs to."""
    if line_item in _CASH_FLOW:
        return "cash"
    return "income" if LINE_ITEMS.index(line_item) < LINE_ITEMS.index("assets") else "balance"


@cache
def line_item(concept: str) -> str:
    """The one name a concept is served under; a plain line item is served as itself.

    An unmapped concept keeps its own name in snake_case. If that would read as one of our items
    (`us-gaap:Cash`, an issuer's own `Revenue`), the taxonomy is put before it.
    """
    _, colon, local_name = concept.partition(":")
    if not colon:
        return concept
    own_name = snake_case(local_name)
    return _SERVED_AS.get(concept) or (snake_case(concept) if own_name in _ITEMS else own_name)


def routes(line_item: str) -> tuple[Route, ...]:
    """The routes to a line item, in order of preference. The first is always the item itself."""
    return table().routes.get(line_item, ())
