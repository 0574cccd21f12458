"""What must hold between the figures of one filing; a route that contradicts it is not used there.

An identity is tested where its members come from one filing and none is had from another of them. Rounding
in a filing may leave half a unit of its last place for each member. Where the first route of each item does
not satisfy it and another does, that one is taken; where all that could take part is reported and nothing
satisfies it, the items that it refuses have no figure.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache
from itertools import chain, combinations, product

from sankofa.derive.metrics.figures import Fact, Figure, common_filing
from sankofa.derive.metrics.lines import Lines
from sankofa.model.routes import AccountingIdentity, table

_ZERO = Decimal(0)
_Candidate = tuple[tuple[str, ...], Decimal]
"""The concepts that a member comes from, and its value."""


def pass_over_contradictions(lines: Lines) -> int:
    """Pass over the routes that contradict an identity, and tell since when; how many they are."""
    count = check_identities(lines)
    _settle(lines)
    return count


def check_identities(lines: Lines, item: str = "") -> int:
    """Pass over the routes that contradict an identity; how many they are.

    With an item only those are checked that can decide about it.
    """
    count = 0
    there = lines.facts.keys()
    for identity, reported, deciding in _identities():
        if (not item or item in deciding) and there >= reported and all(map(lines.fact, reported)):
            count += _checked(lines, identity)
    return count


@cache
def _identities() -> tuple[tuple[AccountingIdentity, frozenset[str], frozenset[str]], ...]:
    """Every identity, the concepts that it cannot do without, and the items that it can decide about.

    Those are its own and, where another identity has one of them too, the items of that one.
    """
    every = table().identities
    groups = [{term.concept for term in identity.items if ":" not in term.concept} for identity in every]
    for _ in every:  # as many times as the longest chain can be
        groups = [set().union(*(other for other in groups if other & group)) for group in groups]
    return tuple(
        (identity, frozenset(t.concept for t in identity.items if ":" in t.concept), frozenset(group))
        for identity, group in zip(every, groups, strict=True)
    )


@cache
def items_in_doubt() -> frozenset[str]:
    """The line items whose route an identity may decide."""
    return frozenset(item for item, _ in _deciding())


def _settle(lines: Lines) -> None:
    """Let a figure stand only from the day on which the identities let it stand as they do today.

    What takes part may have been restated, withdrawn or completed since: then the routes are tried again with
    what was known before.
    """
    changes = lines.changes(_concepts())
    if not changes:
        return
    replayed: dict[int, tuple[Lines, set[str]]] = {}
    for item, concepts in _deciding():
        figure = lines.figure(item)
        if figure is None:
            continue
        stands = figure.stands_from
        later = sorted({day for concept, day in changes if day > stands and concept in concepts})
        for day, until in reversed(list(zip([stands, *later], later, strict=False))):
            if day not in replayed:
                replayed[day] = lines.known_by(day, _concepts()), set()
            then, checked = replayed[day]
            if item not in checked:
                check_identities(then, item)
                checked |= _decided_with(item)
            if not _same(figure, then.figure(item)):
                lines.pass_over(item, 0, until)
                break


@cache
def _decided_with(item: str) -> frozenset[str]:
    """The items that the identities decide about which decide about one."""
    return next(deciding for _, _, deciding in _identities() if item in deciding)


def _same(figure: Figure, then: Figure | None) -> bool:
    return then is not None and (then.route, _vintages(then)) == (figure.route, _vintages(figure))


def _vintages(figure: Figure) -> list[tuple[str, int]]:
    return [(part.concept, part.vintage) for part in figure.parts]


@cache
def _deciding() -> tuple[tuple[str, frozenset[str]], ...]:
    """Every item in doubt, and the concepts that can decide whether it stands."""
    deciding: dict[str, set[str]] = {}
    for identity in table().identities:
        for item in chain(identity.doubted, identity.refused):
            deciding.setdefault(item, set()).update(_concepts_of(identity))
    return tuple((item, frozenset(concepts)) for item, concepts in deciding.items())


@cache
def _concepts() -> frozenset[str]:
    return frozenset(concept for _, concepts in _deciding() for concept in concepts)


def _concepts_of(identity: AccountingIdentity) -> set[str]:
    """Every concept that can decide whether an identity holds."""
    names = [term.concept for term in chain(identity.items, identity.optional)]
    concepts = {name for name in names if ":" in name}
    for item in names:
        for route in table().routes.get(item, ()):
            concepts.update(route.unless)
            sums = [route.terms, *route.at_least, *table().confirmations.get(route.confirm, ())]
            concepts.update(term.concept for terms in sums for term in terms)
    return concepts


def _checked(lines: Lines, identity: AccountingIdentity) -> int:
    chosen: list[_Candidate] = []
    for term in identity.items:
        first = _first(lines, term.concept)
        if first is None:
            return 0
        chosen.append(first)
    signs = [term.sign for term in identity.items]
    if not sum([v if sign > 0 else -v for sign, (_, v) in zip(signs, chosen, strict=True)], _ZERO):
        return 0
    optional = [
        (t.sign * lines.value(t.concept), t.concept) for t in identity.optional if lines.fact(t.concept)
    ]
    if _holds(lines, signs, chosen, optional) is not False:
        return 0
    members = [_candidates(lines, term.concept, identity) for term in identity.items]
    for places in product(*(range(len(candidates)) for candidates in members)):
        chosen = [candidates[place] for candidates, place in zip(members, places, strict=True)]
        if _holds(lines, signs, chosen, optional):
            return _take(lines, identity, places)
    if len(optional) == len(identity.optional):
        return _refuse(lines, identity, members)
    return 0


def _first(lines: Lines, name: str) -> _Candidate | None:
    if ":" in name:
        return ((name,), lines.value(name)) if lines.fact(name) else None
    figure = lines.figure(name)
    return (tuple([part.concept for part in figure.parts]), figure.value) if figure else None


def _candidates(lines: Lines, name: str, identity: AccountingIdentity) -> list[_Candidate]:
    """By every route, where the item is in doubt."""
    if name not in identity.doubted:
        return [first] if (first := _first(lines, name)) else []
    return [(tuple(p.concept for p in figure.parts), figure.value) for figure in lines.figures(name)]


def _holds(
    lines: Lines, signs: Sequence[int], chosen: Sequence[_Candidate], optional: list[tuple[Decimal, str]]
) -> bool | None:
    """Whether the figures add up to nothing; None where that cannot be told of them."""
    concepts = [concept for own, _ in chosen for concept in own]
    if len(set(concepts)) < len(concepts):
        return None
    rest = sum([v if sign > 0 else -v for sign, (_, v) in zip(signs, chosen, strict=True)], _ZERO)
    facts = _facts(lines, concepts)
    if not rest:
        return True if common_filing(facts) else None
    free = [(v, _last_place(v), concept) for v, concept in optional if concept not in concepts and v]
    place = min([_last_place(value) for _, value in chosen if value], default=0)
    for count in range(len(free) + 1):
        for taken in combinations(free, count):
            left = rest + sum([value for value, _, _ in taken], _ZERO)
            unit = _power_of_ten(min([place, *[own for _, own, _ in taken]]))
            if abs(left) * 2 <= unit * (len(chosen) + count):
                return True if common_filing([*facts, *_facts(lines, [c for _, _, c in taken])]) else None
    return False if common_filing(facts) else None


def _facts(lines: Lines, concepts: Iterable[str]) -> list[Fact]:
    return [fact for concept in concepts if (fact := lines.fact(concept)) is not None]


@cache
def _power_of_ten(place: int) -> Decimal:
    return Decimal(1).scaleb(place)


def _last_place(value: Decimal) -> int:
    """To which power of ten a figure other than zero is given: the largest that divides it."""
    _, digits, exponent = value.as_tuple()
    place = int(exponent)
    for digit in reversed(digits):
        if digit:
            break
        place += 1
    return place


def _take(lines: Lines, identity: AccountingIdentity, places: Sequence[int]) -> int:
    """Pass over the routes before the ones that hold."""
    changed = _last_known(lines, identity)
    count = 0
    for term, place in zip(identity.items, places, strict=True):
        if place:
            lines.pass_over(term.concept, place, changed)
            count += place
    return count


def _refuse(lines: Lines, identity: AccountingIdentity, members: Sequence[list[_Candidate]]) -> int:
    changed = _last_known(lines, identity)
    count = 0
    for term, candidates in zip(identity.items, members, strict=True):
        if term.concept in identity.refused:
            everything = len(list(lines.figures(term.concept)))
            lines.pass_over(term.concept, everything, changed)
            count += len(candidates)
    return count


def _last_known(lines: Lines, identity: AccountingIdentity) -> int:
    """The day from which all that takes part stands as it does today, and contradicts."""
    items = [term.concept for term in identity.items if ":" not in term.concept]
    concepts = {part.concept for item in items for figure in lines.figures(item) for part in figure.parts}
    concepts |= {term.concept for term in chain(identity.items, identity.optional) if ":" in term.concept}
    return max(fact.known_from for fact in _facts(lines, concepts))
