"""What must hold between the figures of one filing; a route that contradicts it is not used there.

An identity is tested where one filing reports all of its members and none is had from another of them. Each
member may be off by half a unit of its own last place, all together by a thousandth of the largest. Up to
three optional members take part. Where the first route of each item does not satisfy the identity and another
does, that one is taken. Where all members are reported and nothing satisfies it, the items that it refuses
have no figure. The balance sheet is tested for every column, whichever filings its figures come from.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from itertools import combinations, product

from sankofa.derive.metrics.lines import Lines
from sankofa.model.line_items import AccountingIdentity, table

_ZERO, _ONE = Decimal(0), Decimal(1)
_MOST_OPTIONAL = 3
_Candidate = tuple[tuple[str, ...], Decimal]
"""The concepts that a member comes from, and its value."""


def check_identities(lines: Lines) -> None:
    """Pass over the routes that contradict an identity."""
    there = lines.facts.keys()
    for identity, reported in _identities():
        if there >= reported:
            _check(lines, identity)


@cache
def _identities() -> tuple[tuple[AccountingIdentity, frozenset[str]], ...]:
    """Every identity, and the concepts that it cannot do without."""
    return tuple(
        (identity, frozenset(term.concept for term in identity.items if ":" in term.concept))
        for identity in table().identities
    )


def _check(lines: Lines, identity: AccountingIdentity) -> None:
    chosen: list[_Candidate] = []
    for term in identity.items:
        first = _first(lines, term.concept)
        if first is None:
            return
        chosen.append(first)
    signs = [term.sign for term in identity.items]
    if not _left(signs, chosen):
        return
    optional = [
        (term.sign * lines.facts[term.concept].value, term.concept)
        for term in identity.optional
        if term.concept in lines.facts
    ]
    if _holds(lines, signs, chosen, optional, column=identity.column) is not False:
        return
    members = [_candidates(lines, term.concept, identity) for term in identity.items]
    for numbers in product(*(range(len(candidates)) for candidates in members)):
        chosen = [candidates[number] for candidates, number in zip(members, numbers, strict=True)]
        if _apart(chosen) and _holds(lines, signs, chosen, optional, column=identity.column):
            for term, number in zip(identity.items, numbers, strict=True):
                if number:
                    lines.pass_over(term.concept, number)
            return
    if identity.column or len(optional) == len(identity.optional):
        for item in identity.refused:
            lines.pass_over(item, len(list(lines.figures(item))))


def _first(lines: Lines, name: str) -> _Candidate | None:
    if ":" in name:
        fact = lines.facts.get(name)
        return ((name,), fact.value) if fact else None
    figure = lines.figure(name)
    return (tuple([part.concept for part in figure.parts]), figure.value) if figure else None


def _candidates(lines: Lines, name: str, identity: AccountingIdentity) -> list[_Candidate]:
    """The item by every route, where it is in doubt."""
    if name not in identity.doubted:
        return [first] if (first := _first(lines, name)) else []
    return [(tuple(p.concept for p in figure.parts), figure.value) for figure in lines.figures(name)]


def _apart(chosen: Sequence[_Candidate]) -> bool:
    """Whether no member is computed from another."""
    concepts = [concept for own, _ in chosen for concept in own]
    return len(set(concepts)) == len(concepts)


def _left(signs: Sequence[int], chosen: Sequence[_Candidate]) -> Decimal:
    return sum([v if sign > 0 else -v for sign, (_, v) in zip(signs, chosen, strict=True)], _ZERO)


def _holds(
    lines: Lines,
    signs: Sequence[int],
    chosen: Sequence[_Candidate],
    optional: list[tuple[Decimal, str]],
    *,
    column: bool,
) -> bool | None:
    """Whether the figures add up to nothing; None where no filing tells."""
    together = frozenset(concept for own, _ in chosen for concept in own)
    if not column and not (_apart(chosen) and lines.in_one_filing(together)):
        return None
    rest = _left(signs, chosen)
    if not rest:
        return True
    values = [value for _, value in chosen if value]
    free = [(value, concept) for value, concept in optional if concept not in together and value]
    for count in range(min(len(free), _MOST_OPTIONAL) + 1):
        for taken in combinations(free, count):
            added = [value for value, _ in taken]
            if _is_rounding(rest + sum(added, _ZERO), [*values, *added]):
                whole = together.union(concept for _, concept in taken)
                return True if column or lines.in_one_filing(whole) else None
    return False


def _is_rounding(left: Decimal, values: Sequence[Decimal]) -> bool:
    """Whether what is left can come from rounding each figure to its last place, and is next to nothing."""
    units = sum([_ONE.scaleb(_last_place(value)) for value in values], _ZERO)
    return abs(left) * 2 <= units and abs(left) * 1000 <= max(map(abs, values), default=_ZERO)


def _last_place(value: Decimal) -> int:
    """The power of ten that a figure other than zero is given to: the largest that divides it."""
    _, digits, exponent = value.as_tuple()
    last = int(exponent)
    for digit in reversed(digits):
        if digit:
            break
        last += 1
    return last


@cache
def deciding_concepts(item: str) -> frozenset[str]:
    """Every concept that can decide which figure stands for an item."""
    items, concepts = {item}, set[str]()
    for identity in table().identities:
        names = {term.concept for term in identity.items}
        if not items.isdisjoint(names):
            concepts.update(term.concept for term in identity.optional)
            items |= names
    for name in items:
        if ":" in name:
            concepts.add(name)
        for route in table().routes.get(name, ()):
            concepts.update(term.concept for term in route.terms)
            concepts.update(route.guards)
            concepts.update(
                t.concept for terms in table().confirmations.get(route.confirm, ()) for t in terms
            )
            concepts.update(c for breakdown in route.of for c in table().breakdowns[breakdown].concepts)
    return frozenset(concepts)
