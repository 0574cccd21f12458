"""Cleaning of one OCDS release: fields checked, people withheld, and the rest summarised.

A party is named only on evidence that it is an organisation (`model.organisations`). A reference is named if
it leads to such a party or has such evidence itself. Only the role of a withheld party remains.

See contract: TEND-3, TEND-4, TEND-6.
"""

import hashlib
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.model.countries import country as country_code
from sankofa.model.countries import country_named
from sankofa.model.days import range_fault
from sankofa.model.limits import limit
from sankofa.model.ocds.fields import Cleaning, Json, moment, release_cleaner
from sankofa.model.ocds.redaction import WORD, Secrets, names_somebody, unspaced
from sankofa.model.ocds.telephones import may_name_a_person
from sankofa.model.organisations import in_companies_register
from sankofa.model.text import fit, fold_in_place, one_line, toml_table

ROLES: Final[dict[str, str]] = toml_table("sankofa.model.ocds", "roles")
"""The OCDS party roles of fields and foreign role codes."""

_IDENTIFYING_DIGITS: Final = 5
_IDENTIFYING_LETTERS: Final = 4
_REMEMBERED: Final = 100_000

Identifiers = tuple[tuple[str, str], ...]


class Organisation(NamedTuple):
    party_id: str
    """A hash of all other fields."""
    name: str
    country: str
    identifiers: Identifiers
    """Scheme and id, the party's own first."""
    org_evidence: str


class Gate:
    """Decides which parties may be named, and caches the answers."""

    def __init__(self, evidence: Callable[[str, Identifiers, str], str | None]) -> None:
        self._evidence = lru_cache(_REMEMBERED)(evidence)
        self._organisation = lru_cache(_REMEMBERED)(self._look)

    def __call__(self, name: str, identifiers: Identifiers, country: str) -> str | None:
        """The evidence that a name with identifiers in a country (alpha-2, or empty) is an organisation."""
        return self._evidence(name, identifiers, country)

    def organisation(self, body: dict[str, Json], country: str) -> Organisation | None:
        """The organisation that an object of a release names; None without evidence."""
        name = _name(body)
        if not name:
            return None
        identifiers = _identifiers(body)
        return self._organisation(name, identifiers, _country(body, identifiers) or country)

    def _look(self, name: str, identifiers: Identifiers, country: str) -> Organisation | None:
        evidence = self(name, identifiers, country)
        if evidence is None:
            return None
        identity = msgspec.json.encode((name, country, identifiers, evidence))
        party_id = hashlib.blake2b(identity, digest_size=12).hexdigest()
        return Organisation(party_id, name, country, identifiers, evidence)


class ReleaseParty(NamedTuple):
    """An organisation and its roles in a release."""

    organisation: Organisation
    roles: tuple[str, ...]


class Parties:
    """The parties of a release, sorted by whether there is evidence."""

    def __init__(self, country: str, gate: Gate, secrets: Secrets) -> None:
        self._country, self._gate, self._secrets = country, gate, secrets
        self._served: dict[str, tuple[Organisation, dict[str, None]]] = {}
        """By party_id, each with its roles."""
        self._by_id: dict[str, tuple[Organisation, dict[str, None]]] = {}
        """The same, by the ids they have in the release."""
        self._withheld_ids: set[str] = set()
        self.withheld: dict[str, None] = {}
        """The names or ids of withheld parties, only for a keyed hash: never write them anywhere."""
        self.named: set[int] = set()
        """The objects (by id) that keep their name."""

    @property
    def served(self) -> list[ReleaseParty]:
        return [ReleaseParty(party, tuple(roles)) for party, roles in self._served.values()]

    def sift(self, cleaning: Cleaning, listed: Json) -> None:
        """Reduce every party without evidence to a stub, in place."""
        listed_ids = {id(body) for body in listed} if type(listed) is list else set[int]()
        references = []
        for reference in cleaning.organisations:
            if id(reference[0]) in listed_ids:
                self._take_listed(reference[0])
            else:
                references.append(reference)
        for body, field in references:
            self._take_reference(body, role(field))
        if self.withheld:
            _remove_duplicates(cleaning.lists)

    def _take_listed(self, body: dict[str, Json]) -> None:
        roles = [name for text in body.get("roles") or () if (name := role(text))]
        key = _local_id(body)
        organisation = _own_organisation(body, self._gate, self._country, self._secrets)
        if organisation is None:
            if self._withhold(body, roles) and key:
                self._withheld_ids.add(key)
            return
        served = self._serve(organisation, roles)
        if key:
            self._by_id[key] = served
        self.named.add(id(body))

    def _take_reference(self, body: dict[str, Json], role: str) -> None:
        key = _local_id(body)
        if key in self._withheld_ids:
            self._withhold(body, [role], counted=True)
        elif (served := self._by_id.get(key)) is not None:
            served[1][role] = None
            self._refer(body, key, served[0].name)
        elif (organisation := _own_organisation(body, self._gate, self._country, self._secrets)) is None:
            self._withhold(body, [role])
        else:
            self._serve(organisation, (role,))
            self.named.add(id(body))

    def _refer(self, body: dict[str, Json], key: str, party: str) -> None:
        """A reference to a served party: its id, and its name if it matches the party's."""
        written, name = body.get("name"), _name(body)
        body.clear()
        body["id"] = key
        if written == party or (name and fold_in_place(name) == fold_in_place(party)):
            body["name"] = written
            self.named.add(id(body))
        elif name and self._gate(name, (), self._country) is None:
            self._secrets.add(name)

    def _serve(self, party: Organisation, roles: Iterable[str]) -> tuple[Organisation, dict[str, None]]:
        served = self._served.setdefault(party.party_id, (party, {}))
        served[1].update(dict.fromkeys(roles))
        return served

    def _withhold(self, body: dict[str, Json], roles: list[str], *, counted: bool = False) -> bool:
        """Remove everything but the roles. False if the object named nobody."""
        name, party_id = _name(body), _local_id(body)
        identifiers = _identifiers(body)
        legal = (body.get("identifier") or {}).get("legalName")
        body.clear()
        if roles:
            body["roles"] = roles
        for text in (name, party_id, legal, *(value for _, value in identifiers)):
            if text and _identifies_somebody(text):
                self._secrets.add(text)
        subject = name or party_id or (identifiers[0][1] if identifiers else "")
        if subject and not counted:
            self.withheld[fold_in_place(subject)] = None
        return bool(subject)


def _identifies_somebody(text: str) -> bool:
    """Whether a text is specific to one party. An id such as `1` or `supplier-2` is not."""
    if sum(c.isdigit() for c in text) >= _IDENTIFYING_DIGITS:
        return True
    return any(c.isalpha() for c in text) and (
        " " in text or (text.isalpha() and (len(text) >= _IDENTIFYING_LETTERS or unspaced(text)))
    )


def _own_organisation(
    body: dict[str, Json], gate: Gate, country: str, secrets: Secrets
) -> Organisation | None:
    """The organisation that an object names, without identifiers of somebody else.

    A second legal name is kept only if it has evidence itself. If it shares no word with the checked name,
    the number is dropped too, unless only companies can have such a number.
    """
    organisation = gate.organisation(body, country)
    if organisation is None or ("additionalIdentifiers" not in body and "identifier" not in body):
        return organisation
    name = organisation.name
    more = body.get("additionalIdentifiers") or []
    strangers = []
    for identifier in (body.get("identifier"), *more):
        legal = identifier.get("legalName") if type(identifier) is dict else None
        if not legal or legal == name or fold_in_place(one_line(legal)) == fold_in_place(name):
            continue
        if gate(one_line(legal), (), country) is None:
            del identifier["legalName"]
            secrets.add(legal)
            is_stranger = set(WORD.findall(fold_in_place(legal))).isdisjoint(
                WORD.findall(fold_in_place(name))
            )
            if is_stranger and not in_companies_register(
                str(identifier.get("scheme") or ""), one_line(str(identifier.get("id") or ""))
            ):
                strangers.append(identifier)
    for identifier in strangers:
        number = str(identifier.get("id") or "")
        if _identifies_somebody(number):
            secrets.add(number)
        identifier.clear()
    if not strangers:
        return organisation
    if not body.get("identifier"):
        body.pop("identifier", None)
    more[:] = [identifier for identifier in more if identifier]
    return gate.organisation(body, country)


def _remove_duplicates(lists: list[list[Any]]) -> None:
    """Remove repeated stubs: OCDS lists every party once."""
    for members in lists:
        stub_roles: set[tuple[str, ...]] = set()
        distinct = []
        for member in members:
            if not member.keys() - {"roles"}:
                roles = tuple(member.get("roles") or ())
                if not member or roles in stub_roles:
                    continue
                stub_roles.add(roles)
            distinct.append(member)
        members[:] = distinct


@lru_cache(maxsize=4096)
def role(text: Json) -> str:
    """A role in the words of OCDS, or as published if it is not one of them."""
    return ROLES.get(text.strip().lower(), text.strip()) if type(text) is str else ""


def _local_id(body: dict[str, Json]) -> str:
    value = body.get("id")
    return value.strip() if type(value) is str else "" if value is None else str(value)


def _name(body: dict[str, Json]) -> str:
    name = body.get("name")
    if not name:
        identifier = body.get("identifier")
        name = (identifier.get("legalName") if type(identifier) is dict else None) or body.get("legalName")
    return one_line(name) if type(name) is str else ""


def _identifiers(body: dict[str, Json]) -> Identifiers:
    pairs = []
    first = body.get("identifier") or (body if "scheme" in body else None)  # OCDS 1.0 has bare identifiers
    more = body.get("additionalIdentifiers")
    for identifier in (first, *(more if type(more) is list else ())):
        if type(identifier) is dict:
            scheme, value = identifier.get("scheme"), identifier.get("id")
            if type(scheme) is str and scheme.strip() and value is not None and str(value).strip():
                pairs.append((scheme.strip(), one_line(str(value))))
    return tuple(pairs)


def buyer_country(release: Json) -> str:
    """The country (alpha-2) of the buyer in a release; empty if there is none, or several."""
    if type(release) is not dict:
        return ""
    buyer, listed, tender = release.get("buyer"), release.get("parties"), release.get("tender")
    bodies = [buyer, tender.get("procuringEntity") if type(tender) is dict else None]
    if type(listed) is list:
        bodies += [party for party in listed if type(party) is dict and _buys(party)]
    countries = {_country(body, _identifiers(body)) for body in bodies if type(body) is dict} - {""}
    return countries.pop() if len(countries) == 1 else ""


def _buys(party: dict[str, Json]) -> bool:
    roles = party.get("roles")
    return type(roles) is list and any(
        role(r) in ("buyer", "procuringEntity") for r in roles if type(r) is str
    )


def _country(body: dict[str, Json], identifiers: Identifiers) -> str:
    address = body.get("address")
    if type(address) is dict:
        country = address.get("country") or address.get("countryName")
        if type(country) is str and country.strip():
            return country_code(country) or country_named(country) or ""
    for scheme, _ in identifiers:
        prefix, dash, _rest = scheme.partition("-")
        if dash and len(prefix) == 2 and (code := country_code(prefix)):
            return code
    return ""


_ANY_DAY = "9999-12-31"  # the dates of a stored release were checked at ingestion
_LONGEST_ID = limit(  # the most that every engine can index
    "ocid or id of a release", 400, "characters", "the release is rejected"
)
decode = msgspec.json.Decoder(float_hook=Decimal).decode
"""JSON with every digit of its numbers."""
encode = msgspec.json.Encoder(decimal_format="number").encode


class Unusable(ValueError):
    """A release without a usable ocid, id or date; the reason never repeats what it holds."""


class ReleaseSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a tender row that follow from its release alone."""

    tag: list[str] = []
    title: str | None = None
    description: str | None = None
    """Searched, not served: it is in the release itself."""
    category: str | None = None
    procurement_method: str | None = None
    status: str | None = None
    value_amount: Decimal | None = None
    value_currency: str | None = None
    buyer_name: str | None = None
    award_count: int = 0
    withheld_parties: int = 0


class CleanRelease(NamedTuple):
    ocid: str
    release_id: str
    release_date: str
    """An instant in UTC."""
    body: bytes
    """The cleaned OCDS release."""
    summary: ReleaseSummary
    parties: list[ReleaseParty]
    withheld: list[str]
    """See `Parties`."""
    faults: list[tuple[str, str]]
    """The fields that do not match the schema, with the reason."""
    secrets: Secrets
    """Withheld names and literals, to be removed from anything else written about this release."""


def clean(
    raw: Json,
    country: str,
    gate: Gate,
    token: Callable[[str], str],
    latest: str = _ANY_DAY,
    known: Secrets | None = None,
) -> CleanRelease:
    """Clean one release. Raises Unusable.

    `latest` is the last day that it may name (`model.days.latest_day`). `known` are the secrets of other
    releases of its process, which it must not repeat either.
    An ocid or id that repeats a secret is cut, and made unique again by an unguessable `token` of it.
    """
    if type(raw) is not dict:
        raise Unusable("not an object")
    ocid, release_id = _key(raw.get("ocid"), "ocid"), _key(raw.get("id"), "id")
    date = raw.get("date")
    released = moment(date) if type(date) is str else None
    if released is None:
        raise Unusable("no usable date")
    if fault := range_fault(released[:10], latest):
        raise Unusable(f"no usable date: {fault}")
    cleaning = Cleaning(latest)
    # The portal's own category is not in OCDS, but signals are grouped by it.
    tender = raw.get("tender")
    portal_category = tender.get("category") if type(tender) is dict else None
    release = release_cleaner()(raw, cleaning, "")
    release["id"] = release_id
    secrets = Secrets()
    if known is not None:
        secrets.include(known)
    parties = Parties(country, gate, secrets)
    parties.sift(cleaning, release.get("parties"))
    served = parties.served
    for text in cleaning.personal:
        secrets.add_contact(text)
    for text in cleaning.unplaced:
        if gate(one_line(text), (), country) is None:
            secrets.add_contact(text)
    body = encode(release)
    category = portal_category if type(portal_category) is str else None
    cleaning.texts.append(category or "")
    if (
        b"@" in body
        or (may_name_a_person("\n".join(cleaning.texts)) and any(map(names_somebody, cleaning.texts)))
        or (secrets and secrets.may_repeat(f"{body.decode()} {category or ''}"))
    ):
        for party in served:
            secrets.spare(party.organisation.name)
        for organisation, _ in cleaning.organisations:  # only served organisations still have an address
            for part in map((organisation.get("address") or {}).get, ("locality", "region", "countryName")):
                secrets.spare(part or "")
        ocid, release_id = (
            f"{secrets.cut(name)}-{token(name)}" if secrets.repeats(name) else name
            for name in (ocid, release_id)
        )
        date = release["date"]  # a date names nobody
        release = secrets.cut_all(release, parties.named) | {"ocid": ocid, "id": release_id, "date": date}
        category = None if category is None else secrets.cut(category)
        body = encode(release)
    summary = _summary(release, category, len(parties.withheld))
    return CleanRelease(
        ocid, release_id, released, body, summary, served, list(parties.withheld), cleaning.faults, secrets
    )


def clean_again(
    body: bytes,
    earlier: ReleaseSummary,
    country: str,
    gate: Gate,
    token: Callable[[str], str],
    known: Secrets | None = None,
) -> CleanRelease:
    """Clean a cleaned release again with newer knowledge; `earlier` is its previous summary."""
    cleaned = clean(decode(body), country, gate, token, known=known)
    category = cleaned.secrets.cut(earlier.category) if earlier.category else None
    withheld = earlier.withheld_parties + len(cleaned.withheld)
    summary = msgspec.structs.replace(cleaned.summary, category=category, withheld_parties=withheld)
    return cleaned._replace(summary=summary)


def _key(value: Json, field: str) -> str:
    text = str(value).strip() if type(value) in (str, int) else ""
    if not text or len(text) > _LONGEST_ID or not (text.isprintable() or fit(text)):
        raise Unusable(f"no usable {field}")
    return text


def _line(text: str | None) -> str | None:
    return one_line(text) or None if text else None


_code = lru_cache(maxsize=4096)(_line)  # cached for texts that recur in many releases


def _summary(release: dict[str, Json], category: str | None, withheld: int) -> ReleaseSummary:
    tender = release.get("tender") or {}
    value = tender.get("value") or {}
    amount = value.get("amount")
    awards = release.get("awards") or []
    buyer = release.get("buyer") or {}
    return ReleaseSummary(
        tag=[tag for tag in release.get("tag") or () if tag],
        title=_line(tender.get("title")),
        description=tender.get("description") or None,
        category=_code(category) or _code(tender.get("mainProcurementCategory")),
        procurement_method=_code(tender.get("procurementMethod")),
        status=_code(tender.get("status")),
        value_amount=None if amount is None else Decimal(amount),
        value_currency=value.get("currency"),
        buyer_name=_code(buyer.get("name")) or _listed_buyer(release),
        award_count=len(awards),
        withheld_parties=withheld,
    )


def _listed_buyer(release: dict[str, Json]) -> str | None:
    """A buyer that only the list of parties names."""
    for party in release.get("parties") or ():
        if "buyer" in (party.get("roles") or ()):
            return _line(party.get("name"))
    return None
