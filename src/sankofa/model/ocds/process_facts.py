"""The members of a compiled release that red flag indicators read."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

PROCESS, BUYER, PROCURING_ENTITY, TENDERER = SUBJECT_TYPES = (
    "process", "buyer", "procuring_entity", "tenderer",
)  # fmt: skip
MOST_LISTED: Final = 20
"""Most processes, tenderers or codes listed in the inputs of a flag."""
COMPETITIVE: Final = ("open", "selective")
DIGITS: Final = 2


class _Part(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """A part of a release. A null member differs from a missing one: it removes a value."""


class _Named(_Part):
    id: str | int | UnsetType | None = UNSET


Text = str | UnsetType | None
Number = int | Decimal | UnsetType | None


class Reference(_Named):
    name: Text = UNSET
    roles: list[str] | UnsetType | None = UNSET


class Price(_Part):
    amount: Decimal | UnsetType | None = UNSET
    currency: Text = UNSET


class Bid(_Named):
    date: Text = UNSET
    status: Text = UNSET
    tenderers: list[Reference] | UnsetType | None = UNSET
    value: Price | UnsetType | None = UNSET


class Bids(_Part):
    details: list[Bid] | UnsetType | None = UNSET


class DocumentFacts(_Named):
    document_type: Text = UNSET
    date_published: Text = UNSET


class Amendment(_Named):
    date: Text = UNSET
    description: Text = UNSET
    """Its first character."""


class Complaint(_Named):
    """It is only counted."""


class Classification(_Named):
    scheme: Text = UNSET


class UnitFacts(_Named):
    name: Text = UNSET
    value: Price | UnsetType | None = UNSET


class Item(_Named):
    classification: Classification | UnsetType | None = UNSET
    quantity: Number = UNSET
    unit: UnitFacts | UnsetType | None = UNSET


class Subcontracting(_Part):
    minimum_percentage: Number = UNSET
    value: Price | UnsetType | None = UNSET


class AwardFacts(_Named):
    status: Text = UNSET
    date: Text = UNSET
    value: Price | UnsetType | None = UNSET
    suppliers: list[Reference] | UnsetType | None = UNSET
    items: list[Item] | UnsetType | None = UNSET
    has_subcontracting: bool | UnsetType | None = UNSET
    subcontracting: Subcontracting | UnsetType | None = UNSET


class Transaction(_Named):
    value: Price | UnsetType | None = UNSET
    amount: Price | UnsetType | None = UNSET
    """Its value in OCDS 1.0."""


class Milestone(_Named):
    type: Text = UNSET
    due_date: Text = UNSET
    date_met: Text = UNSET


class Implementation(_Part):
    transactions: list[Transaction] | UnsetType | None = UNSET
    milestones: list[Milestone] | UnsetType | None = UNSET
    final_value: Price | UnsetType | None = UNSET


class ContractFacts(_Named):
    award_id: str | int | UnsetType | None = msgspec.field(name="awardID", default=UNSET)
    status: Text = UNSET
    date_signed: Text = UNSET
    value: Price | UnsetType | None = UNSET
    items: list[Item] | UnsetType | None = UNSET
    documents: list[DocumentFacts] | UnsetType | None = UNSET
    amendments: list[Amendment] | UnsetType | None = UNSET
    amendment: Amendment | UnsetType | None = UNSET
    """The last amendment in OCDS 1.0."""
    implementation: Implementation | UnsetType | None = UNSET


class PeriodFacts(_Part):
    start_date: Text = UNSET
    end_date: Text = UNSET


class BidOpening(_Part):
    date: Text = UNSET


class Enquiry(_Named):
    answer: Text = UNSET
    """Its first character."""
    date_answered: Text = UNSET


class TenderFacts(_Named):
    title: Text = UNSET
    status: Text = UNSET
    procurement_method: Text = UNSET
    number_of_tenderers: Number = UNSET
    tender_period: PeriodFacts | UnsetType | None = UNSET
    award_period: PeriodFacts | UnsetType | None = UNSET
    bid_opening: BidOpening | UnsetType | None = UNSET
    procuring_entity: Reference | UnsetType | None = UNSET
    value: Price | UnsetType | None = UNSET
    items: list[Item] | UnsetType | None = UNSET
    award_criteria: Text = UNSET
    documents: list[DocumentFacts] | UnsetType | None = UNSET
    enquiries: list[Enquiry] | UnsetType | None = UNSET


class PlanningFacts(_Part):
    published: bool | UnsetType = UNSET
    """True; it says that the release has the section."""
    documents: list[DocumentFacts] | UnsetType | None = UNSET


class ProcessFacts(_Part):
    """The members of a release that indicators read."""

    ocid: str | UnsetType = UNSET
    parties: list[Reference] | UnsetType | None = UNSET
    buyer: Reference | UnsetType | None = UNSET
    planning: PlanningFacts | UnsetType | None = UNSET
    tender: TenderFacts | UnsetType | None = UNSET
    bids: Bids | UnsetType | None = UNSET
    awards: list[AwardFacts] | UnsetType | None = UNSET
    contracts: list[ContractFacts] | UnsetType | None = UNSET
    complaints: list[Complaint] | UnsetType | None = UNSET

    def shorten(self) -> None:
        """Keep the first character of texts whose presence is all that matters; mark the planning section."""
        if self.planning:
            self.planning.published = True
        for enquiry in (self.tender and self.tender.enquiries) or ():
            enquiry.answer = enquiry.answer[:1] if enquiry.answer else enquiry.answer
        for contract in self.contracts or ():
            for one in (*(contract.amendments or ()), *([contract.amendment] if contract.amendment else ())):
                one.description = one.description[:1] if one.description else one.description

    def references(self) -> Iterator[Reference]:
        """Everyone it names."""
        yield from self.parties or ()
        for one in (self.buyer, self.tender and self.tender.procuring_entity):
            if one:
                yield one
        for bid in (self.bids and self.bids.details) or ():
            yield from bid.tenderers or ()
        for award in self.awards or ():
            yield from award.suppliers or ()

    @property
    def tender_facts(self) -> TenderFacts:
        """The tender section; an empty one where there is none."""
        return self.tender or TenderFacts()

    @property
    def tender_dates(self) -> PeriodFacts:
        """The tender period; an empty one where there is none."""
        return self.tender_facts.tender_period or PeriodFacts()

    @property
    def all_bids(self) -> Sequence[Bid]:
        return (self.bids and self.bids.details) or ()

    @property
    def submitted_bids(self) -> list[Bid]:
        return [bid for bid in self.all_bids if bid.status and bid.status not in ("invited", "withdrawn")]

    @property
    def active_contracts(self) -> list[ContractFacts]:
        return [one for one in self.contracts or () if one.status == "active"]

    def final_awards(self) -> list[AwardFacts] | str:
        """The active awards; the reason if there are no bids or awards, or one is not final."""
        if self.awards is UNSET or self.awards is None:
            return "No award is published."
        if not self.bids or self.bids.details is UNSET or self.bids.details is None:
            return "No bid is published."
        for award in self.awards:
            if award.status and award.status not in ("active", "cancelled", "unsuccessful"):
                return "An award is not final."
        return [award for award in self.awards if award.status == "active"]

    def only_supplier(self) -> tuple[str, str]:
        """The only supplier of the only active award; or empty, and the reason."""
        awards = self.final_awards()
        if isinstance(awards, str):
            return "", awards
        if len(awards) != 1:
            return "", "There is not exactly one active award."
        suppliers = awards[0].suppliers or []
        if len(suppliers) != 1 or not ids_of(suppliers):
            return "", "The award does not name exactly one supplier."
        return ids_of(suppliers)[0], ""

    def award_of(self, contract: ContractFacts) -> AwardFacts | None:
        """The award of a contract; without an `awardID`, the only award."""
        awards = list(self.awards or ())
        if contract.award_id:
            return next((one for one in awards if str(one.id) == str(contract.award_id)), None)
        return awards[0] if len(awards) == 1 else None


class Reading(msgspec.Struct, frozen=True, gc=False):
    """The result of one indicator for one subject."""

    indicator: str
    subject_type: str
    subject: str
    flagged: bool | None
    """None if it cannot be computed."""
    value: float | None = None
    threshold: float | None = None
    inputs: dict[str, Any] = {}
    reason: str | None = None


class Measured(NamedTuple):
    """A value that is compared with the others of its group."""

    group: str
    value: float
    inputs: dict[str, Any]


def ids_of(references: Iterable[Reference | Classification] | UnsetType | None) -> list[str]:
    """A party that is withheld has no id."""
    return [str(one.id) for one in references or () if one.id or one.id == 0]


@lru_cache(maxsize=16_384)
def instant_of(text: str | UnsetType | None) -> datetime | None:
    """An instant in the form of RFC 3339."""
    try:
        instant = datetime.fromisoformat(text) if text and len(text) > len("YYYY-MM-DD") else None
    except ValueError:
        return None
    return instant if instant and instant.tzinfo else None


def amount_of(price: Price | UnsetType | None, currency: Text = None) -> float | None:
    """The amount of a price with a currency, or with this one."""
    if not price or not isinstance(price.amount, Decimal) or not price.currency:
        return None
    if currency and price.currency != currency:
        return None
    amount = float(price.amount)
    return amount if isfinite(amount) else None


def both_amounts(
    part: Price | UnsetType | None, whole: Price | UnsetType | None
) -> tuple[float, float, str] | None:
    """Two amounts in one currency, the second above 0, and the currency."""
    own, other = amount_of(part), amount_of(whole)
    if own is None or not other or other < 0 or not part or not whole or part.currency != whole.currency:
        return None
    return own, other, str(part.currency)


def days_between(start: Text, end: Text) -> float | None:
    first, last = (instant_of(start), instant_of(end)) if start and end else (None, None)
    return None if first is None or last is None else (last - first).total_seconds() / 86_400


def document_types(documents: Iterable[DocumentFacts] | UnsetType | None) -> list[str]:
    return sorted({one.document_type for one in documents or () if one.document_type})
