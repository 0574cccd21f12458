"""Line items by routes, computed by brute force from the data files.

Uses no product code except its two data files. It tries everything: every route of every item, every filing,
every set of members, without caching. It skips only routes with a concept that was not filed.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.world.reference import ExpectedRow

F = Fraction


@cache
def rules() -> dict[str, Any]:
    folder = files("sankofa.model")
    texts = [folder.joinpath(name).read_text() for name in ("routes.toml", "breakdowns.toml")]
    return tomllib.loads("\n".join(texts))


class Option(NamedTuple):
    """One way to compute an item: the route, its value, and the figures it uses."""

    route: int
    value: Fraction
    inputs: tuple[ExpectedRow, ...]


class Filed(NamedTuple):
    """The figures of a period in one standard and currency, and those in each filing."""

    rows: Mapping[str, ExpectedRow]
    """The row of each concept; none was withdrawn."""
    filings: Sequence[frozenset[str]]
    """The earliest first, without those that have only what an earlier one has."""
    earlier: Mapping[str, Sequence[Decimal]] = MappingProxyType({})
    """The replaced figures of each concept."""

    def value(self, concept: str) -> Fraction:
        return F(self.rows[concept].value or 0)

    def sum(self, text: str) -> Fraction | None:
        parts = terms(text)
        if not self.rows.keys() >= {name for _, name in parts}:
            return None
        return sum((sign * self.value(name) for sign, name in parts), F(0))

    def one_filing(self, concepts: Iterable[str]) -> bool:
        return any(filing >= set(concepts) for filing in self.filings)


@cache
def terms(text: str) -> tuple[tuple[int, str], ...]:
    matches = re.findall(r"([+-]?)\s*([a-zA-Z$][\w:-]*|\$)", text)
    return tuple((-1 if sign == "-" else 1, name) for sign, name in matches)


def options(item: str, filed: Filed) -> list[Option]:
    """Every open way to compute an item, in order."""
    opened: list[Option] = []
    for number, route, needed in _routes(item):
        if not filed.rows.keys() >= needed or ("members" in route and opened):
            continue
        option = _option(number, route, filed)
        if option is not None:
            option = _plausible(item, route, option, filed)
        if option is not None:
            opened.append(option)
    return opened


@cache
def _routes(item: str) -> list[tuple[int, dict[str, Any], frozenset[str]]]:
    """The routes to an item: number, conditions and concepts of each."""
    routes = [{"take": item}, *rules()["items"][item]]
    return [(n, r, frozenset(name for _, name in terms(r.get("take", "")))) for n, r in enumerate(routes)]


def _option(number: int, route: dict[str, Any], filed: Filed) -> Option | None:
    """Use the first filing that has the terms, and the proof if one is required; its guards decide."""
    own = [name for _, name in terms(route.get("take", ""))]
    for filing in filed.filings:
        if not filing >= set(own):
            continue
        value = filed.sum(route.get("take", "")) or F(0)  # of nothing: 0
        proof: list[str] = []
        if "members" in route:
            added = _members(route, filed, filing)
            if added is None:
                continue
            proof = added[1]
            value_with = value + added[0]
        else:
            value_with = value
        if "confirm" in route:
            holding = _holding(route, value_with, {*own, *proof}, filed, filing)
            if holding is None:
                continue
            proof = [*proof, *holding]
        if any(c in filing and filed.value(c) for c in _unless(route.get("unless", "")) if c not in own):
            return None
        for text in route.get("at_least", []):
            if filing >= {name for _, name in terms(text)} and value < (filed.sum(text) or F(0)):
                return None
        if "within" in route and abs(value) > abs(filed.value(route["within"]) or F(0)):
            return None
        concepts = dict.fromkeys([*own, *proof])
        return Option(number, value_with, tuple(filed.rows[concept] for concept in concepts))
    return None


def _plausible(item: str, route: dict[str, Any], option: Option, filed: Filed) -> Option | None:
    """Drop totals that are less than a part; correct the sign of an outflow if that is proven."""
    if option.value < 0 and item in rules()["magnitudes"].split():
        return _turned(item, route, option, filed)
    if option.value < 0 and item in rules()["never_negative"].split():
        return None
    same = {r["take"] for r in rules()["items"][item] if r.get("served") and "confirm" not in r}
    kinds = {r["take"] for r in rules()["items"][item] if r.get("confirm") == item}
    if (
        not option.value
        and route.get("take") in same
        and any(one in filed.rows and filed.value(one) for one in same | kinds)
    ):
        return None
    least = [filed.sum(text) for text in rules()["parts"].get(item, [])]
    if any(part is not None and option.value < part for part in least):
        return None
    wholes = (
        [one.value for one in options(rules()["wholes"][item], filed)] if item in rules()["wholes"] else []
    )
    if wholes and option.value > max(*wholes, F(0)):
        return None
    return _with_its_sign(item, route, option, filed) if item in rules()["signed"].split() else option


def _with_its_sign(item: str, route: dict[str, Any], option: Option, filed: Filed) -> Option:
    """Flip the sign if an equation of a filing holds with the other sign, and none with its own."""
    concept = route.get("take", "")
    if not re.fullmatch(r"[\w:-]+", concept) or not option.value:
        return option
    lefts = [
        tuple(
            not _is_rounding(sum(values, F(0)), values)
            for own in (option.value, -option.value)
            for values in [[s * (own if n == "$" else filed.value(n)) for s, n in terms(equation)]]
        )
        for equation in rules()["confirmations"][item]
        for others in [{concept, *(name for _, name in terms(equation) if name != "$")}]
        if any(filing >= others for filing in filed.filings)
    ]
    if all(own for own, _ in lefts) and not all(other for _, other in lefts):
        row = filed.rows[concept]
        turned = row._replace(value=-(row.value or Decimal(0)))
        return Option(option.route, -option.value, (turned,))
    return option


def _turned(item: str, route: dict[str, Any], option: Option, filed: Filed) -> Option | None:
    if "members" in route or not re.fullmatch(r"[\w:-]+", route["take"]):
        return None
    concept = route["take"]
    row = filed.rows[concept]
    turned = row._replace(value=-(row.value or Decimal(0)))
    other = Filed({**filed.rows, concept: turned}, filed.filings)
    for filing in filed.filings:
        if concept not in filing:
            continue
        proven = any(
            filing >= (others := {name for _, name in terms(equation) if name != "$"})
            and concept not in others
            and sum(s * (-option.value if n == "$" else filed.value(n)) for s, n in terms(equation)) == 0
            and any(n == "$" for _, n in terms(equation))
            for equation in rules()["confirmations"].get(item, [])
        )
        for name in rules()["breakdowns"]:
            if concept in _kinds(name):
                closing = closed(name, other, filing)
                proven = proven or (closing is not None and concept in closing[1])
        if proven:
            return Option(option.route, -option.value, (turned,))
    return None


@cache
def _unless(text: str) -> tuple[str, ...]:
    groups = rules()["groups"]
    return tuple(c for name in text.split() for c in (groups[name[1:]].split() if name[0] == "@" else [name]))


def _holding(
    route: dict[str, Any], value: Fraction, own: set[str], filed: Filed, filing: frozenset[str]
) -> list[str] | None:
    for equation in rules()["confirmations"][route["confirm"]]:
        parts = terms(equation)
        others = [name for _, name in parts if name != "$"]
        if set(others) & own or not filing >= set(others) or not all(filed.value(name) for name in others):
            continue
        if sum(sign * (value if name == "$" else filed.value(name)) for sign, name in parts) == 0:
            return others
    return None


def _members(
    route: dict[str, Any], filed: Filed, filing: frozenset[str]
) -> tuple[Fraction, list[str]] | None:
    value, concepts = F(0), list[str]()
    for name in route["of"].split():
        closing = closed(name, filed, filing)
        if closing is None:
            return None
        kinds = _kinds(name)
        total, members = closing
        if any(kinds[concept][1] == "unclear" for concept in members):
            return None
        value += sum((filed.value(c) for c in members if kinds[c][1] == route["members"]), F(0))
        concepts += [*total, *members]
    return value, concepts


def _kinds(name: str) -> dict[str, tuple[int, str]]:
    return {
        concept.lstrip("-"): (-1 if concept[0] == "-" else 1, kind)
        for kind, concepts in rules()["breakdowns"][name]["members"].items()
        for concept in concepts.split()
    }


def closed(name: str, filed: Filed, filing: frozenset[str]) -> tuple[list[str], list[str]] | None:
    """The concepts of the total and the members of the first filing that add up to it."""
    kinds = _kinds(name)
    inside = {whole: parts.split() for whole, parts in rules()["breakdowns"][name].get("within", {}).items()}
    there = [c for c in kinds if c in filing and filed.value(c)]
    covered = {part for whole in there for part in inside.get(whole, [])}
    lines, others = [c for c in there if c not in covered], [c for c in there if c in covered]
    for text in rules()["breakdowns"][name]["totals"]:
        of_total = [concept for _, concept in terms(text)]
        if not filing >= set(of_total):
            continue
        total = filed.sum(text) or F(0)
        if rules()["breakdowns"][name].get("positive", False) and total == 0:
            return of_total, []
        members = _adding_up(lines, others, kinds, filed, total)
        if members is not None:
            return of_total, members
    return None


def _adding_up(
    lines: list[str], others: list[str], kinds: dict[str, tuple[int, str]], filed: Filed, total: Fraction
) -> list[str] | None:
    """The lines, or the lines with one or two unmarked ones left out or added."""
    amounts = {c: kinds[c][0] * filed.value(c) for c in [*lines, *others]}
    if sum((amounts[c] for c in lines), F(0)) == total:
        return lines
    loose = [c for c in [*lines, *others] if kinds[c][1] == "other"]
    if len(loose) > 32:
        return None
    for count in (1, 2):
        for moved in combinations(loose, count):
            rest = [c for c in lines if c not in moved] + [c for c in others if c in moved]
            if rest and sum((amounts[c] for c in rest), F(0)) == total:
                return rest
    return None


def line_items(items: Iterable[str], filed: Filed) -> dict[str, list[Option]]:
    """Every way to each item, without those that contradict an identity."""
    stray = _stray(filed)
    if stray:
        rows = {concept: row for concept, row in filed.rows.items() if concept not in stray}
        filed = Filed(rows, [filing - stray for filing in filed.filings])
    by_item = {item: options(item, filed) for item in items}
    for identity in rules()["identities"].values():
        _check(identity, by_item, filed)
    return by_item


def _stray(filed: Filed) -> frozenset[str]:
    """Figures that replaced one with which an equation held, reported without any other member of it."""
    stray = set[str]()
    for identity in rules()["identities"].values():
        members = terms(identity["items"])
        ways = [
            options(name, filed)
            if ":" not in name
            else [Option(0, filed.value(name), (row,)) for row in [filed.rows.get(name)] if row is not None]
            for _, name in members
        ]
        if identity.get("column", False) or not all(ways):
            continue
        picked = tuple(way[0] for way in ways)
        optional = [(s, c) for s, c in terms(identity.get("optional", "")) if c in filed.rows]

        def holds(some: tuple[Option, ...], members: Any = members, optional: Any = optional) -> bool | None:
            signs, off = [s for s, _ in members], _subtracted(members, some)
            return _holds(signs, some, optional, filed, column=True, off=off)

        for number, option in enumerate(picked):
            concept = option.inputs[0].concept
            others = {row.concept for other in picked if other is not option for row in other.inputs}
            routes = {
                c
                for n, (_, name) in enumerate(members)
                if n != number and ":" not in name
                for _, route, _ in _routes(name)
                for _, c in terms(route.get("take", ""))
            }
            alone = not any(concept in one and one & ((others | routes) - {concept}) for one in filed.filings)
            if (
                not holds(picked)
                and len(option.inputs) == 1
                and option.value == filed.value(concept)
                and alone
                and filed.one_filing(others)
                and any(
                    holds((*picked[:number], option._replace(value=F(value)), *picked[number + 1 :]))
                    for value in filed.earlier.get(concept, ())
                )
            ):
                stray.add(concept)
    return frozenset(stray)


def _check(identity: dict[str, Any], by_item: dict[str, list[Option]], filed: Filed) -> None:
    members = terms(identity["items"])
    doubted, column = identity["doubted"].split(), identity.get("column", False)
    choices = []
    for _, name in members:
        if ":" in name:
            there = name in filed.rows
            choices.append([Option(0, filed.value(name), (filed.rows[name],))] if there else [])
        else:
            ways = by_item.get(name, [])
            choices.append(ways if name in doubted else ways[:1])
    optional = [(s, c) for s, c in terms(identity.get("optional", "")) if c in filed.rows]
    signs = [s for s, _ in members]
    every = list(product(*choices))
    if (
        not every
        or _holds(signs, every[0], optional, filed, column=column, off=_subtracted(members, every[0]))
        is not False
    ):
        return
    for picked in every:
        if _apart(picked) and _holds(
            signs, picked, optional, filed, column=column, off=_subtracted(members, picked)
        ):
            for (_, name), option in zip(members, picked, strict=True):
                if name in doubted:
                    by_item[name] = by_item[name][by_item[name].index(option) :]
            return
    if column or len(optional) == len(terms(identity.get("optional", ""))):
        for name in identity["refused"].split():
            by_item[name] = []


def _subtracted(
    members: Iterable[tuple[int, str]], picked: tuple[Option, ...]
) -> list[tuple[Option, set[str]]]:
    """For each member, the concepts that its route subtracts."""
    return [
        (option, {c for sign, c in terms(_routes(name)[option.route][1].get("take", "")) if sign < 0})
        if ":" not in name
        else (option, set())
        for (_, name), option in zip(members, picked, strict=True)
    ]


def _apart(picked: tuple[Option, ...]) -> bool:
    concepts = [row.concept for option in picked for row in option.inputs]
    return len(set(concepts)) == len(concepts)


def _holds(
    signs: list[int],
    picked: tuple[Option, ...],
    optional: list[tuple[int, str]],
    filed: Filed,
    *,
    column: bool,
    off: list[tuple[Option, set[str]]],
) -> bool | None:
    concepts = [row.concept for option in picked for row in option.inputs]
    if not column and not (_apart(picked) and filed.one_filing(concepts)):
        return None
    remainder = sum((s * option.value for s, option in zip(signs, picked, strict=True)), F(0))
    added = {
        row.concept for option, subtracted in off for row in option.inputs if row.concept not in subtracted
    }
    free = [(s * filed.value(c), c) for s, c in optional if c not in added and filed.value(c)]
    for count in range(min(3, len(free)) + 1):
        for picked_free in combinations(free, count):
            values = [option.value for option in picked if option.value] + [value for value, _ in picked_free]
            rest = remainder + sum((value for value, _ in picked_free), F(0))
            if rest == 0 or _is_rounding(rest, values):
                whole = [*concepts, *(c for _, c in picked_free)]
                return True if column or filed.one_filing(whole) else None
    return False


def _is_rounding(rest: Fraction, values: list[Fraction]) -> bool:
    largest = max((abs(value) for value in values), default=F(0))
    return abs(rest) * 2 <= sum(map(_unit, values), F(0)) and abs(rest) * 1000 <= largest


def _unit(value: Fraction) -> Fraction:
    """The largest power of ten that a value is a multiple of."""
    unit = F(10) ** 30 if value else F(10)
    while value % unit:
        unit /= 10
    return unit
