"""The rows of tenders and of the parties that they name."""

from datetime import date
from typing import Annotated

import msgspec

from sankofa.model.field_docs import doc, instant, one_of
from sankofa.model.rows import Figure, Row


class CompactTenderRow(Row, frozen=True, kw_only=True):
    """One OCDS release, without the release itself."""

    buyer_service_id: Annotated[str | None, doc("The buyer, where resolved.")]
    country: Annotated[str, doc("ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.", min_length=1)]
    release_id: Annotated[str, doc("Of the release within its process.", min_length=1)]
    release_date: Annotated[str, instant("An instant in UTC.")]
    tag: Annotated[list[str], doc("Release tags as published.")]
    title: Annotated[str | None, doc("Of the tender.")]
    category: Annotated[str | None, doc("As published by the source portal.")]
    procurement_method: Annotated[str | None, doc("As published.")]
    status: Annotated[str | None, doc("Of the tender, as published.")]
    value_amount: Annotated[
        Figure | None, doc("The tender's own value, every digit; null where not published.")
    ]
    value_currency: Annotated[str | None, doc("ISO 4217.")]
    buyer_name: Annotated[str | None, doc("Null where not established to be an organisation.")]
    award_count: Annotated[int, doc("Awards in this release.", ge=0)]
    withheld_parties: Annotated[int, doc("Parties not established to be organisations: never served.", ge=0)]


class TenderRow(CompactTenderRow, frozen=True, kw_only=True):
    """One OCDS release."""

    release: Annotated[
        msgspec.Raw,
        doc(
            "The cleaned OCDS release: fields of the standard and its extensions; zero is null.",
            extra_json_schema={"type": "object"},
        ),
    ]


class PartyIdentifier(msgspec.Struct, frozen=True):
    """How a register names a party."""

    scheme: Annotated[str, doc("The register, as an org-id.guide code where published so.")]
    id: Annotated[str, doc("Its number there.")]


class TenderPartyRow(Row, frozen=True, kw_only=True):
    """A buyer or supplier named in releases, in one role."""

    service_id: Annotated[str | None, doc("Organisation identifier; null when unresolved.")]
    name: Annotated[str, doc("As published.", min_length=1)]
    role: Annotated[str, doc("In the words of OCDS: buyer, supplier, tenderer.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2.")]
    identifier: Annotated[PartyIdentifier | None, doc("Its first, as published.")]
    org_evidence: Annotated[str, doc("Why it is taken for an organisation, `kind: detail`.", min_length=1)]
    match_method: Annotated[
        str | None, one_of(("lei", "identifier", "name", None), "How it was resolved; null when unresolved.")
    ]
    release_count: Annotated[int, doc("Releases that name it in this role.", ge=1)]
    first_seen: Annotated[date, doc("Day of the earliest of them.")]
    last_seen: Annotated[date, doc("Day of the latest of them.")]
