"""The rows of tenders and of the parties that they name."""

from datetime import date
from typing import Annotated

import msgspec

from sankofa.model.field_docs import doc, instant, one_of
from sankofa.model.rows import Figure, Row


class CompactTenderRow(Row, frozen=True, kw_only=True):
    """One OCDS release, without the release itself."""

    buyer_service_id: Annotated[str | None, doc("Organisation identifier of the buyer, where resolved.")]
    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.", min_length=1)]
    release_id: Annotated[str, doc("Identifier of the release within its process.", min_length=1)]
    release_date: Annotated[str, instant("An instant in UTC.")]
    tag: Annotated[list[str], doc("Release tags as published.")]
    title: Annotated[str | None, doc("Title of the tender.")]
    category: Annotated[str | None, doc("Category as published by the source portal.")]
    procurement_method: Annotated[str | None, doc("Procurement method as published.")]
    status: Annotated[str | None, doc("Status of the tender as published.")]
    value_amount: Annotated[
        Figure | None, doc("The tender's own value, with every digit; null where not published.")
    ]
    value_currency: Annotated[str | None, doc("Currency code, ISO 4217.")]
    buyer_name: Annotated[
        str | None, doc("Name of the buyer; null where it is not known to be an organisation.")
    ]
    award_count: Annotated[int, doc("Number of awards in this release.", ge=0)]
    withheld_parties: Annotated[
        int, doc("Number of parties that are not known to be organisations; they are never served.", ge=0)
    ]


class TenderRow(CompactTenderRow, frozen=True, kw_only=True):
    """One OCDS release."""

    release: Annotated[
        msgspec.Raw,
        doc(
            "Cleaned OCDS release with the fields of the standard and its extensions; zero amounts are null.",
            extra_json_schema={"type": "object"},
        ),
    ]


class PartyIdentifier(msgspec.Struct, frozen=True):
    """How a register names a party."""

    scheme: Annotated[str, doc("Register, as an org-id.guide code where published so.")]
    id: Annotated[str, doc("Number in the register.")]


class TenderPartyRow(Row, frozen=True, kw_only=True):
    """A buyer or supplier named in releases, in one role."""

    service_id: Annotated[str | None, doc("Organisation identifier; null when unresolved.")]
    name: Annotated[str, doc("Name as published.", min_length=1)]
    role: Annotated[str, doc("Role in OCDS terms: buyer, supplier, tenderer.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    identifier: Annotated[PartyIdentifier | None, doc("First identifier as published.")]
    org_evidence: Annotated[str, doc("Evidence that it is an organisation, as `kind: detail`.", min_length=1)]
    match_method: Annotated[
        str | None, one_of(("lei", "identifier", "name", None), "How it was resolved; null when unresolved.")
    ]
    release_count: Annotated[int, doc("Number of releases that name it in this role.", ge=1)]
    first_seen: Annotated[date, doc("Day of the earliest of these releases.")]
    last_seen: Annotated[date, doc("Day of the latest of these releases.")]
