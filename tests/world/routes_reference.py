"""Line items by routes, worked out by brute force from the data files and what they say of themselves.

Nothing of the product is used here but its two data files. Everything is tried: every route of every item,
every filing, every set of members; no result is kept for later. Only a route that takes what was not filed
is not begun.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import combinations, product
from typing import Any, NamedTuple

from tests.world.reference import Seen

F = Fraction


@cache
def said() -> dict[str, Any]:
    folder = files("sankofa.model")
    texts = [folder.joinpath(name).read_text() for name in ("routes.toml", "breakdowns.toml")]
    return tomllib.loads("\n".join(texts))


class Option(NamedTuple):
    """One way to have an item: which, its value, and the figures that it rests on."""

    route: int
    value: Fraction
    inputs: tuple[Seen, ...]


class Filed(NamedTuple):
    """The figures of a year in one currency by concept, and the filings that have each as it stands."""

    rows: Mapping[str, Seen]
    filings: Mapping[str, Mapping[str, Any]]
    """By concept and document, when that was public."""

    def value(self, concept: str) -> Fraction | None:
        row = self.rows.get(concept)
        return None if row is None or row.value is None else F(row.value)

    def sum(self, text: str) -> Fraction | None:
        total = []
        for sign, concept in terms(text):
            row = self.rows.get(concept)
            if row is None or row.value is None:
                return None
            total.append((sign, row.value))
        return sum((sign * F(value) for sign, value in total), F(0))

    def one_filing(self, concepts: Iterable[str]) -> bool:
        return bool(set.intersection(*(set(self.filings[concept]) for concept in concepts)))


@cache
def terms(text: str) -> tuple[tuple[int, str], ...]:
    found = re.findall(r"([+-]?)\s*([a-zA-Z$][\w:-]*|\$)", text)
    return tuple((-1 if sign == "-" else 1, name) for sign, name in found)


def options(item: str, filed: Filed) -> list[Option]:
    """Every way to an item that is open, in order."""
    found: list[Option] = []
    filed_concepts = filed.rows.keys()
    for number, route, taken in _routes(item):
        if not filed_concepts >= taken or ("members" in route and found):
            continue
        option = _option(number, route, filed)
        if option is not None:
            found.append(option)
    return found


@cache
def _routes(item: str) -> list[tuple[int, dict[str, Any], frozenset[str]]]:
    """Of each route to an item its number, what is said of it, and the concepts that it takes."""
    routes = [{"take": item}, *said()["items"][item]]
    return [(n, r, frozenset(name for _, name in terms(r.get("take", "")))) for n, r in enumerate(routes)]


def _option(number: int, route: dict[str, Any], filed: Filed) -> Option | None:
    value = filed.sum(route.get("take", ""))  # of nothing: 0
    if value is None:
        return None
    concepts = [name for _, name in terms(route.get("take", ""))]
    if any(filed.value(concept) for concept in _unless(route.get("unless", "")) if concept not in concepts):
        return None
    for text in route.get("at_least", []):
        least = filed.sum(text)
        if least is not None and value < least:
            return None
    if "members" in route:
        added = _members(route, filed)
        if added is None:
            return None
        value += added[0]
        concepts += added[1]
    if "confirm" in route:
        holding = _holding(route, value, concepts, filed)
        if holding is None:
            return None
        concepts += holding
    concepts = list(dict.fromkeys(concepts))
    if not filed.one_filing(concepts):
        return None
    return Option(number, value, tuple(filed.rows[concept] for concept in concepts))


@cache
def _unless(text: str) -> tuple[str, ...]:
    groups = said()["groups"]
    return tuple(c for name in text.split() for c in (groups[name[1:]].split() if name[0] == "@" else [name]))


def _holding(route: dict[str, Any], value: Fraction, own: list[str], filed: Filed) -> list[str] | None:
    for equation in said()["confirmations"][route["confirm"]]:
        parts = terms(equation)
        others = [name for _, name in parts if name != "$"]
        if set(others) & set(own) or not all(filed.value(name) for name in others):
            continue
        left = sum(sign * (value if name == "$" else filed.value(name) or F(0)) for sign, name in parts)
        if left == 0 and filed.one_filing([*own, *others]):
            return others
    return None


def _members(route: dict[str, Any], filed: Filed) -> tuple[Fraction, list[str]] | None:
    value, concepts = F(0), list[str]()
    for name in route["of"].split():
        closing = closed(name, filed)
        if closing is None:
            return None
        kinds = _kinds(name)
        total, members = closing
        if any(kinds[concept][1] == "unclear" for concept in members):
            return None
        value += sum((filed.value(c) or F(0) for c in members if kinds[c][1] == route["members"]), F(0))
        concepts += [*total, *members]
    return value, concepts


def _kinds(name: str) -> dict[str, tuple[int, str]]:
    return {
        concept.lstrip("-"): (-1 if concept[0] == "-" else 1, kind)
        for kind, concepts in said()["breakdowns"][name]["members"].items()
        for concept in concepts.split()
    }


def closed(name: str, filed: Filed) -> tuple[list[str], list[str]] | None:
    """The concepts of the total and the members that add up to it, in the first filing where they do."""
    kinds = _kinds(name)
    inside = {whole: parts.split() for whole, parts in said()["breakdowns"][name].get("within", {}).items()}
    for text in said()["breakdowns"][name]["totals"]:
        total = filed.sum(text)
        if total is None:
            continue
        of_total = [concept for _, concept in terms(text)]
        shared = set.intersection(*(set(filed.filings[concept]) for concept in of_total))
        for document in sorted(
            shared, key=lambda d: (max(filed.filings[concept][d] for concept in of_total), d)
        ):
            there = [c for c in kinds if filed.value(c) and document in filed.filings.get(c, ())]
            covered = {part for whole in there for part in inside.get(whole, [])}
            split = [c for c in there if not set(inside.get(c, [])) & set(there)]
            top = [c for c in there if c not in covered]
            positive = said()["breakdowns"][name].get("positive", False)
            if positive and total == 0:
                return of_total, []
            for lines, others in ((top, [c for c in there if c in covered]), (split, [])):
                members = _adding_up(lines, others, kinds, filed, total)
                if members is not None:
                    return of_total, members
    return None


def _adding_up(
    lines: list[str], others: list[str], kinds: dict[str, tuple[int, str]], filed: Filed, total: Fraction
) -> list[str] | None:
    """The lines, or the lines with one or two left out that may be, or added."""
    amounts = {c: kinds[c][0] * (filed.value(c) or F(0)) for c in [*lines, *others]}
    if sum((amounts[c] for c in lines), F(0)) == total:
        return lines
    loose = [
        c
        for number, c in enumerate(lines)
        if kinds[c][1] == "other"
        or any(kinds[b][1] == kinds[c][1] and amounts[b] == amounts[c] for b in lines[:number])
    ]
    if len(loose) + len(others) > 32:
        return None
    for count in (1, 2):
        for moved in combinations([*loose, *others], count):
            rest = [c for c in lines if c not in moved] + [c for c in others if c in moved]
            if rest and sum((amounts[c] for c in rest), F(0)) == total:
                return rest
    return None


def line_items(items: Iterable[str], filed: Filed) -> dict[str, list[Option]]:
    """Every way to each item, without those that contradict an identity."""
    found = {item: options(item, filed) for item in items}
    for identity in said()["identities"].values():
        _check(identity, found, filed)
    return found


def _check(identity: dict[str, Any], found: dict[str, list[Option]], filed: Filed) -> None:
    members = terms(identity["items"])
    doubted = identity["doubted"].split()
    choices = []
    for _, name in members:
        if ":" in name:
            value = filed.value(name)
            choices.append([Option(0, value, (filed.rows[name],))] if value is not None else [])
        else:
            ways = found.get(name, [])
            choices.append(ways if name in doubted else ways[:1])
    optional = [(s, c) for s, c in terms(identity.get("optional", "")) if filed.value(c) is not None]
    verdicts = {
        picked: _holds([s for s, _ in members], picked, optional, filed) for picked in product(*choices)
    }
    if not verdicts:
        return
    first = next(iter(verdicts))
    if verdicts[first] is not False:
        return
    holding = next((picked for picked, verdict in verdicts.items() if verdict), None)
    if holding is not None:
        for (_, name), option in zip(members, holding, strict=True):
            if name in doubted:
                found[name] = found[name][found[name].index(option) :]
    elif len(optional) == len(terms(identity.get("optional", ""))):
        for name in identity["refused"].split():
            found[name] = []


def _holds(
    signs: list[int], picked: tuple[Option, ...], optional: list[tuple[int, str]], filed: Filed
) -> bool | None:
    concepts = [row.concept for option in picked for row in option.inputs]
    if len(set(concepts)) < len(concepts) or not filed.one_filing(concepts):
        return None
    left = sum((s * option.value for s, option in zip(signs, picked, strict=True)), F(0))
    free = [(s * (filed.value(c) or F(0)), c) for s, c in optional if c not in concepts and filed.value(c)]
    for count in range(len(free) + 1):
        for taken in combinations(free, count):
            values = [option.value for option in picked] + [value for value, _ in taken]
            rest = left + sum((value for value, _ in taken), F(0))
            if rest == 0 or abs(rest) <= _unit(values) * len(values) / 2:
                return True if filed.one_filing([*concepts, *(c for _, c in taken)]) else None
    return False


def _unit(values: Iterable[Fraction]) -> Fraction:
    """The largest power of ten of which every value is a multiple."""
    unit = F(10) ** 30
    while any(value % unit for value in values):
        unit /= 10
    return unit


def as_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
