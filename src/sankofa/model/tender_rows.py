"""Rows about contracting processes: releases, their parties, compiled releases and red flags."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sankofa.model.ocds.compiled import SetBy
from sankofa.model.ocds.flag_facts import SUBJECT_TYPES
from sankofa.model.ocds.red_flags import INDICATORS
from sankofa.model.rows import Figure, Row, doc, instant, one_of

FOLLOWED_FIELDS = ("amount", "deadline", "status", "supplier")


class ContractChange(msgspec.Struct, frozen=True):
    """A value that a release replaced."""

    field: Annotated[str, one_of(FOLLOWED_FIELDS, "What changed.")]
    path: Annotated[str, doc("JSON pointer into `release`.")]
    old: Annotated[Any, doc("Value before: an amount, a text, or the names of suppliers; null if none.")]
    new: Annotated[Any, doc("Value set by the release; null if it removed the value.")]
    release_id: Annotated[str, doc("Release that changed it.")]
    release_date: Annotated[str, instant("Its date, an instant in UTC.")]


class ContractRow(Row, frozen=True, kw_only=True):
    """One contracting process as its releases up to a day add up."""

    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.", min_length=1)]
    release_count: Annotated[int, doc("Number of releases up to the day.", ge=1)]
    first_release_date: Annotated[str, instant("Date of the first release, an instant in UTC.")]
    last_release_date: Annotated[str, instant("Date of the last release up to the day, an instant in UTC.")]
    release: Annotated[
        dict[str, Any], doc("Compiled release by the merge rules of OCDS 1.1.5, without extensions.")
    ]
    set_by: Annotated[
        dict[str, SetBy], doc("For every value of `release`, by JSON pointer, the release that set it.")
    ]
    changes: Annotated[
        list[ContractChange],
        doc("Amounts, deadlines, statuses and suppliers that a release replaced, oldest first."),
    ]


class FlagRow(Row, frozen=True, kw_only=True):
    """What one indicator says of one process or party. A flag is a reason to look, and proves nothing."""

    country: Annotated[str, doc("Country of the population, ISO 3166-1 alpha-2.")]
    indicator: Annotated[str, one_of(INDICATORS, "Code of the indicator.")]
    title: Annotated[str, doc("Name of the indicator.")]
    subject_type: Annotated[str, one_of(SUBJECT_TYPES, "What the row is about.")]
    subject: Annotated[str, doc("The ocid, or the id of the party in its releases.")]
    name: Annotated[str | None, doc("Title of the tender, or name of the party; null if not published.")]
    service_id: Annotated[str | None, doc("Organisation identifier of the party, where resolved.")]
    flagged: Annotated[bool | None, doc("Null if it cannot be computed: `reason` says why.")]
    value: Annotated[Decimal | None, doc("Value of the indicator; 1 and 0 stand for yes and no.")]
    threshold: Annotated[
        Decimal | None, doc("Value that `value` was compared with, from the population of the day.")
    ]
    formula: Annotated[str, doc("When the indicator is flagged.")]
    inputs: Annotated[dict[str, Any], doc("Values that it was computed from.")]
    population: Annotated[int, doc("Number of processes in the country's population of the day.", ge=1)]
    reason: Annotated[str | None, doc("Why it cannot be computed; null if it can.")]
    methodology_ref: Annotated[str, doc("Name of the method; `/methodology/` explains it.")]


class CompactTenderRow(Row, frozen=True, kw_only=True):
    """One OCDS release, without the release itself."""

    buyer_service_id: Annotated[str | None, doc("Organisation identifier of the buyer, where resolved.")]
    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.", min_length=1)]
    release_id: Annotated[str, doc("Identifier of the release within its process.", min_length=1)]
    release_date: Annotated[str, instant("An instant in UTC.")]
    tag: Annotated[list[str], doc("Release tags as published.")]
    title: Annotated[str | None, doc("Title of the tender.")]
    description: Annotated[str | None, doc("First 300 characters of the description of the tender.")]
    category: Annotated[str | None, doc("Category as published by the source portal.")]
    procurement_method: Annotated[str | None, doc("Procurement method as published.")]
    status: Annotated[str | None, doc("Status of the tender as published.")]
    closing_date: Annotated[
        str | None, instant("End of the tender period, an instant in UTC; null if not published.")
    ]
    value_amount: Annotated[
        Figure | None, doc("The tender's own value, with every digit; null if not published.")
    ]
    value_currency: Annotated[str | None, doc("Currency code, ISO 4217.")]
    buyer_name: Annotated[
        str | None, doc("Name of the buyer; null if it is not known to be an organisation.")
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
        str | None,
        one_of(
            ("lei", "identifier", "review", "name", "similar_name", None),
            "How it was resolved; null when unresolved.",
        ),
    ]
    match_score: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        doc("How sure the match is, from 0 to 1; null when unresolved."),
    ]
    release_count: Annotated[int, doc("Number of releases that name it in this role.", ge=1)]
    first_seen: Annotated[date, doc("Day of the earliest of these releases.")]
    last_seen: Annotated[date, doc("Day of the latest of these releases.")]
