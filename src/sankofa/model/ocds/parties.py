"""The parties of a release: who may be named, and the stub that is left of everyone else.

A party is named only on evidence that it is an organisation (`model.organisations`). A reference is named
where it leads to such a party, or by evidence of its own. Of whoever is withheld only the role stays.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sankofa.model.ocds.fields import Json, Walk
from sankofa.model.ocds.redaction import Secrets, fold
from sankofa.model.places import country as country_code
from sankofa.model.places import country_named
from sankofa.model.text import one_line

ROLES: Final = {
    "suppliers": "supplier",
    "tenderers": "tenderer",
    "candidates": "candidate",
    "proveedor": "supplier",
    "comprador": "buyer",
    "entidadcompradora": "buyer",
    "licitante": "tenderer",
    "oferente": "tenderer",
    "postor": "tenderer",
    "entidadconvocante": "procuringEntity",
    "entidadcontratante": "procuringEntity",
    "convocante": "procuringEntity",
    "pagador": "payer",
    "beneficiario": "payee",
    "procuringentity": "procuringEntity",
    "procurementauthority": "procuringEntity",
    "fournisseur": "supplier",
    "acheteur": "buyer",
    "fornecedor": "supplier",
    "providerorganization": "payer",
    "receiverorganization": "payee",
    "author": "enquirer",
}
"""What a field or a foreign code says of a party, in the words of the OCDS party role codelist."""

_TELLING_DIGITS: Final = 5
_TELLING_WORD: Final = 4
_REMEMBERED: Final = 100_000

Identifiers = tuple[tuple[str, str], ...]
Who = tuple[str, str, Identifiers]
"""A party by its name, country and identifiers."""
Known = tuple[str, str, Identifiers, str]
"""A party by its name, country and identifiers, and the evidence that it is an organisation."""


class Gate:
    """Who may be named; what was once looked at is remembered."""

    def __init__(self, evidence: Callable[[str, Identifiers, str], str | None]) -> None:
        self._evidence = lru_cache(_REMEMBERED)(evidence)
        self._known: dict[tuple[Json, ...], Known | None] = {}

    def __call__(self, name: str, identifiers: Identifiers, country: str) -> str | None:
        """The evidence that a name with identifiers in a country (alpha-2, or empty) is an organisation."""
        return self._evidence(name, identifiers, country)

    def established(self, body: dict[str, Json], country: str) -> Known | None:
        """The party that an object of a release names, where there is evidence."""
        told = (body.get("name"), *_told(body, "identifier"), *_told(body, "address"), country)
        if "additionalIdentifiers" in body or "scheme" in body or not told[0]:
            return self._look(body, country)
        try:
            return self._known[told]
        except KeyError:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[told] = self._look(body, country)
            return found

    def _look(self, body: dict[str, Json], country: str) -> Known | None:
        name = _name(body)
        if not name:
            return None
        identifiers = _identifiers(body)
        place = _country(body, identifiers) or country
        evidence = self(name, identifiers, place)
        return None if evidence is None else (name, place, identifiers, evidence)


def _told(body: dict[str, Json], field: str) -> tuple[Json, ...]:
    """The parts of an identifier or an address that decide who a party is."""
    part = body.get(field)
    if type(part) is not dict:
        return ()
    return part.get("scheme"), part.get("id"), part.get("countryName"), part.get("country")


class Party(NamedTuple):
    """A party established to be an organisation."""

    name: str
    country: str
    identifiers: Identifiers
    """Scheme and id, the party's own first."""
    org_evidence: str
    roles: tuple[str, ...]


class Parties(NamedTuple):
    """What became of the parties of a release."""

    served: list[Party]
    withheld: list[str]
    """What the withheld are known by, for a keyed hash: never to be written anywhere."""
    named: frozenset[int]
    """The objects (by id) that keep their name."""


class _Sifted:
    """The parties a release lists, sorted into those with evidence and those without."""

    def __init__(self) -> None:
        self.served: dict[Who, Known] = {}
        self.roles: dict[Who, dict[str, None]] = {}
        self.by_id: dict[str, Who] = {}
        self.withheld: dict[str, None] = {}
        self.withheld_ids: set[str] = set()
        self.named: set[int] = set()


def sift(walk: Walk, listed: Json, country: str, gate: Gate, secrets: Secrets) -> Parties:
    """Stub every party without evidence, in place; and tell the others, with the roles they have."""
    found = _Sifted()
    own = {id(body) for body in listed} if type(listed) is list else set[int]()
    references = []
    for body, field in walk.organisations:
        if id(body) in own:
            _listed_party(body, country, gate, found, secrets)
        else:
            references.append((body, role(field)))
    for body, named in references:
        _reference(body, named, country, gate, found, secrets)
    if found.withheld:
        _without_twins(walk.lists)
    served = [Party(*party, tuple(found.roles[key])) for key, party in found.served.items()]
    return Parties(served, list(found.withheld), frozenset(found.named))


def _listed_party(body: dict[str, Json], country: str, gate: Gate, found: _Sifted, secrets: Secrets) -> None:
    roles = [found_role for told in body.get("roles") or () if (found_role := role(told))]
    key = _own_id(body)
    party = gate.established(body, country)
    if party is None:
        if _withhold(body, roles, found, secrets) and key:
            found.withheld_ids.add(key)
        return
    known = _serve(party, roles, found)
    if key:
        found.by_id[key] = known
    _keep_own_names(body, party[0], gate, country, secrets)
    found.named.add(id(body))


def _reference(
    body: dict[str, Json], role: str, country: str, gate: Gate, found: _Sifted, secrets: Secrets
) -> None:
    key = _own_id(body)
    name = _name(body)
    if key and key in found.withheld_ids:
        _withhold(body, [role], found, secrets)
        return
    known = found.by_id.get(key) if key else None
    if known is not None:
        found.roles[known][role] = None
        same = name and (name == known[0] or fold(name) == fold(known[0]))
        if name and not same and gate(name, (), country) is None:
            secrets.add(name)
        body_name = body.get("name")
        body.clear()
        body["id"] = key
        if same:
            body["name"] = body_name
            found.named.add(id(body))
        return
    party = gate.established(body, country)
    if party is None:
        _withhold(body, [role], found, secrets)
        return
    _serve(party, [role], found)
    _keep_own_names(body, party[0], gate, country, secrets)
    found.named.add(id(body))


def _serve(party: Known, roles: Iterable[str], found: _Sifted) -> Who:
    key = party[:3]
    held = found.roles.get(key)
    if held is None:
        found.served[key] = party
        held = found.roles[key] = {}
    for role in roles:
        held[role] = None
    return key


def _withhold(body: dict[str, Json], roles: list[str], found: _Sifted, secrets: Secrets) -> bool:
    """Leave its roles alone. False where there was nobody: an empty object names no one."""
    name, own = _name(body), _own_id(body)
    identifiers = _identifiers(body)
    legal = (body.get("identifier") or {}).get("legalName")
    body.clear()
    if roles:
        body["roles"] = roles
    for text in (name, own, legal, *(value for _, value in identifiers)):
        if text and _telling(text):
            secrets.add(text)
    subject = name or own or (identifiers[0][1] if identifiers else "")
    if not subject:
        return False
    found.withheld[fold(subject)] = None
    return True


def _telling(text: str) -> bool:
    """An id such as `1` or `supplier-2` tells of nobody, and stands for other things elsewhere."""
    if sum(c.isdigit() for c in text) >= _TELLING_DIGITS:
        return True
    return any(c.isalpha() for c in text) and (" " in text or (text.isalpha() and len(text) >= _TELLING_WORD))


def _keep_own_names(body: dict[str, Json], name: str, gate: Gate, country: str, secrets: Secrets) -> None:
    """Another legal name beside the one that was looked at is kept only on evidence of its own."""
    if "identifier" not in body and "additionalIdentifiers" not in body:
        return
    for identifier in (body.get("identifier"), *(body.get("additionalIdentifiers") or ())):
        legal = identifier.get("legalName") if type(identifier) is dict else None
        if not legal or legal == name:
            continue
        if fold(one_line(legal)) != fold(name) and gate(one_line(legal), (), country) is None:
            del identifier["legalName"]
            secrets.add(legal)


def _without_twins(lists: list[list[Any]]) -> None:
    """OCDS has every party of a list once, and stubs look alike."""
    for members in lists:
        stubs: list[Any] = []
        for member in [m for m in members if not m.keys() - {"roles"}]:
            if not member or member in stubs:
                members[:] = [m for m in members if m is not member]
            else:
                stubs.append(member)


@lru_cache(maxsize=4096)
def role(text: Json) -> str:
    """A role in the words of OCDS; as published where it is none of them."""
    return ROLES.get(text.strip().lower(), text.strip()) if type(text) is str else ""


def _own_id(body: dict[str, Json]) -> str:
    own = body.get("id")
    return own.strip() if type(own) is str else "" if own is None else str(own)


def _name(body: dict[str, Json]) -> str:
    name = body.get("name")
    if not name:
        identifier = body.get("identifier")
        name = (identifier.get("legalName") if type(identifier) is dict else None) or body.get("legalName")
    return one_line(name) if type(name) is str else ""


def _identifiers(body: dict[str, Json]) -> Identifiers:
    own = body.get("identifier") or (body if "scheme" in body else None)  # OCDS 1.0 has bare identifiers
    rest = body.get("additionalIdentifiers") or ()
    pairs = []
    for identifier in (own, *rest):
        if type(identifier) is dict:
            scheme, value = identifier.get("scheme"), identifier.get("id")
            if type(scheme) is str and scheme.strip() and value is not None and str(value).strip():
                pairs.append((scheme.strip(), one_line(str(value))))
    return tuple(pairs)


def _country(body: dict[str, Json], identifiers: Identifiers) -> str:
    address = body.get("address")
    if type(address) is dict:
        told = address.get("country") or address.get("countryName")
        if type(told) is str and told.strip():
            return country_code(told) or country_named(told) or ""
    for scheme, _ in identifiers:
        prefix, dash, _rest = scheme.partition("-")
        if dash and len(prefix) == 2 and (code := country_code(prefix)):
            return code
    return ""
