"""Cleaning of one OCDS release: fields checked, people withheld, and the rest summarised.

See contract: TEND-3, TEND-4, TEND-6.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import msgspec

from sankofa.model.days import in_range, range_fault
from sankofa.model.limits import limit
from sankofa.model.ocds.fields import Cleaning, Json, moment, release_cleaner
from sankofa.model.ocds.parties import Gate, ReleaseParty, sift
from sankofa.model.ocds.redaction import Secrets, names_somebody
from sankofa.model.ocds.telephones import may_name_a_person
from sankofa.model.text import fit, one_line

_ANY_DAY = "9999-12-31"  # the dates of a stored release were checked when it came
_LONGEST_ID = limit(  # what every engine can hold in an index
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
    """Searched, not served: the release itself has it."""
    category: str | None = None
    procurement_method: str | None = None
    status: str | None = None
    value_amount: Decimal | None = None
    value_currency: str | None = None
    buyer_name: str | None = None
    award_count: int = 0
    withheld_parties: int = 0


class CleanRelease(NamedTuple):
    """A release after cleaning."""

    ocid: str
    release_id: str
    release_date: str
    """An instant in UTC."""
    body: bytes
    """The cleaned OCDS release."""
    summary: ReleaseSummary
    parties: list[ReleaseParty]
    withheld: list[str]
    """See `parties.Parties`."""
    faults: list[tuple[str, str]]
    """Which field was not what the schema has there, and why."""
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
    if not in_range(released[:10], latest):
        raise Unusable(f"no usable date: {range_fault(latest)}")
    cleaning = Cleaning(latest)
    # The portal's own category is no field of OCDS, but the signals are grouped by it.
    portal_category = _inner(raw, "tender", "category")
    release = release_cleaner()(raw, cleaning, "")
    release["id"] = release_id
    secrets = Secrets()
    if known is not None:
        secrets.include(known)
    parties = sift(cleaning, release.get("parties"), country, gate, secrets)
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
        for party in parties.served:
            secrets.spare(party.organisation.name)
        for organisation, _ in cleaning.organisations:  # only those that are served have an address left
            for place in map((organisation.get("address") or {}).get, ("locality", "region", "countryName")):
                secrets.spare(place or "")
        ocid, release_id = (
            f"{secrets.cut(name)}-{token(name)}" if secrets.repeats(name) else name
            for name in (ocid, release_id)
        )
        date = release["date"]  # names nobody, whatever it repeats
        release = secrets.cut_all(release, parties.named) | {"ocid": ocid, "id": release_id, "date": date}
        category = None if category is None else secrets.cut(category)
        body = encode(release)
    summary = _summary(release, category, len(parties.withheld))
    return CleanRelease(
        ocid, release_id, released, body, summary, parties.served, parties.withheld, cleaning.faults, secrets
    )


def clean_again(
    body: bytes,
    earlier: ReleaseSummary,
    country: str,
    gate: Gate,
    token: Callable[[str], str],
    known: Secrets | None = None,
) -> CleanRelease:
    """Clean a cleaned release again where more is known now; `earlier` is its summary then."""
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


def _inner(value: Json, *path: str) -> Json:
    for key in path:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value


def _line(text: str | None) -> str | None:
    return one_line(text) or None if text else None


_code = lru_cache(maxsize=4096)(_line)  # cached for texts that recur in release after release


def _summary(release: dict[str, Json], category: str | None, withheld: int) -> ReleaseSummary:
    tender = release.get("tender") or {}
    value = tender.get("value") or {}
    awards = release.get("awards") or []
    buyer = release.get("buyer") or {}
    return ReleaseSummary(
        tag=[tag for tag in release.get("tag") or () if tag],
        title=_line(tender.get("title")),
        description=tender.get("description") or None,
        category=_code(category) or _code(tender.get("mainProcurementCategory")),
        procurement_method=_code(tender.get("procurementMethod")),
        status=_code(tender.get("status")),
        value_amount=_decimal(value.get("amount")),
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


def _decimal(amount: Json) -> Decimal | None:
    return None if amount is None else Decimal(amount)
