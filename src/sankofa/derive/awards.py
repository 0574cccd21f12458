"""The awards of a release, and who won them."""

from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.tenders import Resolved, Tender
from sankofa.model.text import fold_in_place, one_line

_NOT_AWARDED: Final = ("cancelled", "unsuccessful")


class Award(NamedTuple):
    """One award as one release has it."""

    award_id: str
    day: str | None
    """The day of the award, where published."""
    status: str | None
    amount: Decimal | None
    currency: str | None
    suppliers: list[Resolved]
    withheld: int
    """Winners that are not named."""

    @property
    def is_valid(self) -> bool:
        """False where its status (OCDS awardStatus) says that nothing was awarded."""
        return (self.status or "").lower() not in _NOT_AWARDED


class _Organisation(msgspec.Struct):
    id: str | int | None = None
    name: str | None = None


class _Value(msgspec.Struct):
    amount: Decimal | None = None
    currency: str | None = None


class _Award(msgspec.Struct):
    id: str | int | None = None
    date: str | None = None
    status: str | None = None
    value: _Value | None = None
    suppliers: list[_Organisation] | None = None


class _Body(msgspec.Struct):
    parties: list[_Organisation] | None = None
    awards: list[_Award] | None = None


_read = msgspec.json.Decoder(_Body).decode


def awards(tender: Tender) -> list[Award]:
    """The awards of a release that was read with its body or its awards, in document order."""
    if tender.awards is not None:
        return tender.awards
    if not tender.summary.award_count:
        return []
    body = _read(tender.row.body)
    resolved_by_name = {_key(party.name): party for party, _ in tender.parties}
    by_id = {str(party.id): party.name for party in body.parties or () if party.id is not None and party.name}
    return [_award(number, award, resolved_by_name, by_id) for number, award in enumerate(body.awards or ())]


def _award(number: int, award: _Award, resolved_by_name: dict[str, Resolved], by_id: dict[str, str]) -> Award:
    suppliers: list[Resolved] = []
    withheld = 0
    for supplier in award.suppliers or ():
        name = supplier.name or by_id.get(str(supplier.id), "")
        party = resolved_by_name.get(_key(name)) if name else None
        if party is None:
            withheld += 1
        elif party not in suppliers:
            suppliers.append(party)
    value = award.value or _Value()
    return Award(
        str(award.id) if award.id is not None else f"#{number}",
        award.date[:10] if award.date else None,
        award.status,
        value.amount,
        value.currency,
        suppliers,
        withheld,
    )


def _key(name: str) -> str:
    return fold_in_place(one_line(name))
