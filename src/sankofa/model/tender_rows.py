"""The rows of tenders and of the parties that they name."""

from datetime import date
from typing import Annotated

import msgspec
from msgspec import Meta

from sankofa.model.rows import Figure, Row


class CompactTenderRow(Row, frozen=True, kw_only=True):
    """One OCDS release, without the release itself."""

    buyer_service_id: Annotated[str | None, Meta(description="The buyer, where resolved.")]
    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, Meta(description="Open Contracting process identifier.", min_length=1)]
    release_id: Annotated[str, Meta(description="Of the release within its process.", min_length=1)]
    release_date: Annotated[
        str, Meta(description="An instant in UTC.", extra_json_schema={"format": "date-time"})
    ]
    tag: Annotated[list[str], Meta(description="Release tags as published.")]
    title: Annotated[str | None, Meta(description="Of the tender.")]
    category: Annotated[str | None, Meta(description="As published by the source portal.")]
    procurement_method: Annotated[str | None, Meta(description="As published.")]
    status: Annotated[str | None, Meta(description="Of the tender, as published.")]
    value_amount: Annotated[
        Figure | None, Meta(description="The tender's own value, every digit; null where not published.")
    ]
    value_currency: Annotated[str | None, Meta(description="ISO 4217.")]
    buyer_name: Annotated[str | None, Meta(description="Null where not established to be an organisation.")]
    award_count: Annotated[int, Meta(description="Awards in this release.", ge=0)]
    withheld_parties: Annotated[
        int, Meta(description="Parties not established to be organisations: never served.", ge=0)
    ]


class TenderRow(CompactTenderRow, frozen=True, kw_only=True):
    """One OCDS release."""

    release: Annotated[
        msgspec.Raw,
        Meta(
            description="The cleaned OCDS release: fields of the standard and its extensions; zero is null.",
            extra_json_schema={"type": "object"},
        ),
    ]


class PartyIdentifier(msgspec.Struct, frozen=True):
    """How a register names a party."""

    scheme: Annotated[str, Meta(description="The register, as an org-id.guide code where published so.")]
    id: Annotated[str, Meta(description="Its number there.")]


class TenderPartyRow(Row, frozen=True, kw_only=True):
    """A buyer or supplier named in releases, in one role."""

    service_id: Annotated[str | None, Meta(description="Organisation identifier; null when unresolved.")]
    name: Annotated[str, Meta(description="As published.", min_length=1)]
    role: Annotated[str, Meta(description="In the words of OCDS: buyer, supplier, tenderer.")]
    country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2.")]
    identifier: Annotated[PartyIdentifier | None, Meta(description="Its first, as published.")]
    org_evidence: Annotated[
        str, Meta(description="Why it is taken for an organisation, `kind: detail`.", min_length=1)
    ]
    match_method: Annotated[
        str | None,
        Meta(
            description="How it was resolved; null when unresolved.",
            extra_json_schema={"enum": ["lei", "identifier", "name", None]},
        ),
    ]
    release_count: Annotated[int, Meta(description="Releases that name it in this role.", ge=1)]
    first_seen: Annotated[date, Meta(description="Day of the earliest of them.")]
    last_seen: Annotated[date, Meta(description="Day of the latest of them.")]
