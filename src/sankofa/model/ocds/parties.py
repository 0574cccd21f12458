"""The parties of a release: who may be named, and the stub that is left of everyone else.

A party is named only on evidence that it is an organisation (`model.organisations`). A reference is named
where it leads to such a party, or by evidence of its own. Of whoever is withheld only the role stays.
"""

import hashlib
from collections.abc import Callable, Iterable, Set
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.model.countries import country as country_code
from sankofa.model.countries import country_named
from sankofa.model.ocds.fields import Json, Walk
from sankofa.model.ocds.redaction import Secrets, fold
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


class Known(NamedTuple):
    """Somebody established to be an organisation."""

    party_id: str
    """Tells one from another: of all that follows."""
    name: str
    country: str
    identifiers: Identifiers
    """Scheme and id, the party's own first."""
    org_evidence: str


class Gate:
    """Who may be named; what was once looked at is remembered."""

    def __init__(self, evidence: Callable[[str, Identifiers, str], str | None]) -> None:
        self._evidence = lru_cache(_REMEMBERED)(evidence)
        self._known: dict[tuple[Json, ...], Known | None] = {}

    def __call__(self, name: str, identifiers: Identifiers, country: str) -> str | None:
        """The evidence that a name with identifiers in a country (alpha-2, or empty) is an organisation."""
        return self._evidence(name, identifiers, country)

    def known(self, body: dict[str, Json], country: str) -> Known | None:
        """Who an object of a release names, where there is evidence."""
        name = body.get("name")
        if not name or "additionalIdentifiers" in body or "scheme" in body:
            return self._look(body, country)
        scheme = own = code = place = None
        identifier, address = body.get("identifier"), body.get("address")
        if identifier:
            scheme, own = identifier.get("scheme"), identifier.get("id")
        if address:
            code, place = address.get("country"), address.get("countryName")
        told = (name, scheme, own, code, place, country)
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
        if evidence is None:
            return None
        told = msgspec.json.encode((name, place, identifiers, evidence))
        return Known(hashlib.blake2b(told, digest_size=12).hexdigest(), name, place, identifiers, evidence)


class Party(NamedTuple):
    """A party established to be an organisation, and what it is in a release."""

    known: Known
    roles: tuple[str, ...]


class Parties(NamedTuple):
    """What became of the parties of a release."""

    served: list[Party]
    withheld: list[str]
    """What the withheld are known by, for a keyed hash: never to be written anywhere."""
    named: Set[int]
    """The objects (by id) that keep their name."""


class _Sifted:
    """The parties a release lists, sorted into those with evidence and those without."""

    __slots__ = ("by_id", "named", "served", "withheld", "withheld_ids")

    def __init__(self) -> None:
        self.served: dict[str, tuple[Known, dict[str, None]]] = {}
        """Who, by party_id, and in which roles."""
        self.by_id: dict[str, tuple[Known, dict[str, None]]] = {}
        """The same, by the ids they have in the release."""
        self.withheld: dict[str, None] = {}
        self.withheld_ids: set[str] = set()
        self.named: set[int] = set()


def sift(walk: Walk, listed: Json, country: str, gate: Gate, secrets: Secrets) -> Parties:
    """Stub every party without evidence, in place; and tell the others, with the roles they have."""
    found = _Sifted()
    own = {id(body) for body in listed} if type(listed) is list else set[int]()
    references = []
    for named in walk.organisations:
        if id(named[0]) in own:
            _listed_party(named[0], country, gate, found, secrets)
        else:
            references.append(named)
    for body, field in references:
        _reference(body, role(field), country, gate, found, secrets)
    if found.withheld:
        _without_twins(walk.lists)
    served = [Party(known, tuple(roles)) for known, roles in found.served.values()]
    return Parties(served, list(found.withheld), found.named)


def _listed_party(body: dict[str, Json], country: str, gate: Gate, found: _Sifted, secrets: Secrets) -> None:
    roles = [role(told) for told in body.get("roles") or ()]
    if "" in roles:
        roles = [told for told in roles if told]
    key = _own_id(body)
    known = gate.known(body, country)
    if known is None:
        if _withhold(body, roles, found, secrets) and key:
            found.withheld_ids.add(key)
        return
    served = _serve(known, roles, found)
    if key:
        found.by_id[key] = served
    _keep_own_names(body, known.name, gate, country, secrets)
    found.named.add(id(body))


def _reference(
    body: dict[str, Json], role: str, country: str, gate: Gate, found: _Sifted, secrets: Secrets
) -> None:
    key = _own_id(body)
    if key in found.withheld_ids:
        _withhold(body, [role], found, secrets)
    elif (served := found.by_id.get(key)) is not None:
        served[1][role] = None
        _refer(body, key, served[0].name, country, gate, found, secrets)
    elif (known := gate.known(body, country)) is None:
        _withhold(body, [role], found, secrets)
    else:
        _serve(known, (role,), found)
        _keep_own_names(body, known.name, gate, country, secrets)
        found.named.add(id(body))


def _refer(
    body: dict[str, Json],
    key: str,
    party: str,
    country: str,
    gate: Gate,
    found: _Sifted,
    secrets: Secrets,
) -> None:
    """A reference to a party that is served: its id, and its name where that is the party's."""
    written = body.get("name")
    if written != party:
        name = _name(body)
        if name and name != party and fold(name) != fold(party):
            if gate(name, (), country) is None:
                secrets.add(name)
            name = ""
        if not name:
            body.clear()
            body["id"] = key
            return
    body.clear()
    body["id"] = key
    body["name"] = written
    found.named.add(id(body))


def _serve(party: Known, roles: Iterable[str], found: _Sifted) -> tuple[Known, dict[str, None]]:
    served = found.served.get(party.party_id)
    if served is None:
        served = found.served[party.party_id] = party, dict.fromkeys(roles)
    else:
        served[1].update(dict.fromkeys(roles))
    return served


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
    if "additionalIdentifiers" not in body:
        only = body.get("identifier")
        if not only or "legalName" not in only:
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
        seen: set[tuple[str, ...]] = set()
        kept = []
        for member in members:
            if not member.keys() - {"roles"}:
                roles = tuple(member.get("roles") or ())
                if not member or roles in seen:
                    continue
                seen.add(roles)
            kept.append(member)
        members[:] = kept


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
    pairs = []
    own = body.get("identifier") or (body if "scheme" in body else None)  # OCDS 1.0 has bare identifiers
    for identifier in (own, *(body.get("additionalIdentifiers") or ())):
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
