"""The organisation gate: a party is served only on positive evidence that it is an organisation.

Pure logic: a name and identifiers in, the evidence or None out. Conservative on purpose: a person served is a
failure, a firm withheld is only a cost, so whatever points at a person outweighs every legal form
(docs/decisions/organisation-gate.md).

See contract: GATE-1, GATE-2, GATE-3.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from stdnum import lei

from sankofa.model.folding import fold
from sankofa.model.organisations.names import body_by_name, marked_as_person, worth_reading
from sankofa.model.organisations.reading import parts
from sankofa.model.organisations.tables import registers
from sankofa.model.registers import register_code

KINDS: Final = ("lei", "registry", "legal_form", "public_body")
LEI_SCHEMES: Final = frozenset({"LEI", "XI-LEI", "GLEIF", "ISO17442", "ISO-17442"})


class Evidence(NamedTuple):
    """Why a party is taken for an organisation; stored and served as `kind: detail`."""

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def names_a_person(name: str) -> bool:
    """Whether a name marks itself as a person's: a title, initials, a trading name."""
    folded = fold(name)
    return marked_as_person(folded, parts(folded))


def in_companies_register(scheme: str, number: str) -> bool:
    """Whether it is a well-formed number of a register that holds no natural person under such a number."""
    return (
        scheme.strip().upper() not in LEI_SCHEMES
        and _by_identifier(scheme, number, _no_lei_records) is not None
    )


def _no_lei_records(_lei: str) -> bool:
    return False


def org_evidence(
    name: str,
    identifiers: Iterable[tuple[str, str]] = (),
    lei_is_organisation: Callable[[str], bool] = _no_lei_records,
    country: str = "",
) -> Evidence | None:
    """The strongest evidence that the party is an organisation; None where there is none.

    `identifiers` are pairs of scheme and id as the source gives them. `lei_is_organisation` answers whether
    the record of an LEI is held and is not a sole proprietor's: an LEI alone proves nothing, people have one.
    `country` (alpha-2) is where the party is: `Kriel S.A.` is a person with initials in South Africa, and a
    company in Paraguay. Where it is not given, dots count.
    """
    folded = fold(name)
    words = parts(folded)
    evidence = _by_identifiers(identifiers, lei_is_organisation)
    if not evidence and not worth_reading(name, words):
        return None
    if marked_as_person(folded, words):
        return None
    proof = None if evidence else body_by_name(name, country, folded, words)
    return Evidence(proof.kind, proof.detail) if proof else evidence


def _by_identifiers(
    identifiers: Iterable[tuple[str, str]], lei_is_organisation: Callable[[str], bool]
) -> Evidence | None:
    best = None
    for scheme, value in identifiers:
        evidence = _by_identifier(scheme, value, lei_is_organisation)
        if evidence and (best is None or evidence.kind == "lei"):
            best = evidence
    return best


def _by_identifier(scheme: str, value: str, lei_is_organisation: Callable[[str], bool]) -> Evidence | None:
    code, number = scheme.strip().upper(), " ".join(value.split()).upper()
    if code in LEI_SCHEMES:
        number = lei.compact(number)
        return Evidence("lei", number) if lei.is_valid(number) and lei_is_organisation(number) else None
    register = register_code(code)
    shape = registers().get(register)
    return Evidence("registry", register) if shape and shape.fullmatch(number) else None
