"""Tenders as an edition serves them: every release checked by the gate again, every party resolved."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from sankofa.derive.awards import Award
from sankofa.ledger.entities import Entity
from sankofa.ledger.party_entities import Party
from sankofa.ledger.party_matching import Match, PartyMatcher
from sankofa.ledger.persons import Persons
from sankofa.ledger.reader import LedgerReader, ReleaseRow
from sankofa.model.errors import CheckFailed
from sankofa.model.ocds.parties import Gate, Identifiers, Organisation
from sankofa.model.ocds.release import ReleaseSummary, clean_again
from sankofa.model.organisations import LEI_SCHEMES, org_evidence

Evidence = dict[str, str | None]
"""By party_id."""
Recall = Callable[[Callable[[], Evidence]], Evidence]
_summary = msgspec.json.Decoder(ReleaseSummary).decode
_roles = msgspec.json.Decoder(list[list[str]]).decode


class Tender(NamedTuple):
    """One release: its row in the ledger (the body only where asked for), and who is in it."""

    row: ReleaseRow
    summary: ReleaseSummary
    parties: list[tuple["Resolved", list[str]]]
    """Each with its roles."""
    awards: "list[Award] | None" = None
    """Where they were read before; else they are in the body (`derive.awards`)."""


class Resolved(NamedTuple):
    """A party that may be named, and the organisation it was matched with."""

    name: str
    country: str
    identifiers: Identifiers
    org_evidence: str
    match: Match


class Tenders:
    """The tenders of a ledger, put together once per build."""

    def __init__(self, parties: "EvidencedParties", entities: list[Entity]) -> None:
        self._ledger = parties.ledger
        self._evidenced = parties
        self._entities = entities

    @cached_property
    def countries(self) -> list[str]:
        """The countries that have releases."""
        return [country for country in self._ledger.release_countries() if country]

    def of(self, country: str, *, bodies: bool = False) -> Iterator[Tender]:
        """The releases of a country: newest first, then by ocid and release id."""
        parties = self._parties
        for row in self._ledger.releases(country, bodies=bodies):
            summary = _summary(row.summary)
            listed = _roles(row.parties)
            if any(party_id not in parties for party_id, *_ in listed):
                raise CheckFailed(f"release {row.ocid}: a party without evidence")
            resolved = [(party, roles) for p, *roles in listed if (party := parties[p]) is not None]
            if len(resolved) < len(listed):  # some parties have lost their evidence
                row, summary, resolved = self._cleaned_again(row, summary)
            yield Tender(row, summary, resolved)

    def resolution_counts(self) -> tuple[int, int]:
        """How many of the parties that may be named are resolved, and how many there are."""
        parties = [party for party in self._parties.values() if party is not None]
        return sum(party.match.service_id is not None for party in parties), len(parties)

    @cached_property
    def _matcher(self) -> PartyMatcher:
        return PartyMatcher(self._entities)

    @cached_property
    def _parties(self) -> dict[str, Resolved | None]:
        """By party_id; None where the evidence is gone: a record was withdrawn or a table corrected."""
        by_id: dict[str, Resolved | None] = {}
        for party_id, name, country, identifiers, evidence, _ in self._evidenced:
            by_id[party_id] = None
            if evidence is not None:
                match = self._matcher.match(name, country, identifiers)
                by_id[party_id] = Resolved(name, country, identifiers, evidence, match)
        return by_id

    def _cleaned_again(
        self, row: ReleaseRow, summary: ReleaseSummary
    ) -> tuple[ReleaseRow, ReleaseSummary, list[tuple[Resolved, list[str]]]]:
        """The release as it would be ingested today."""
        body = row.body or self._ledger.release_body(row.ocid, row.release_id, row.release_date)
        parties = self._evidenced
        cleaned = clean_again(body.encode(), summary, row.country, parties.gate, parties.persons.token)
        resolved = [(self._resolved(organisation), list(roles)) for organisation, roles in cleaned.parties]
        row = row._replace(
            ocid=cleaned.ocid, release_id=cleaned.release_id, body=cleaned.body.decode() if row.body else ""
        )
        return row, cleaned.summary, resolved

    def _resolved(self, organisation: Organisation) -> Resolved:
        match = self._matcher.match(organisation.name, organisation.country, organisation.identifiers)
        return Resolved(*organisation[1:], match)


class EvidencedParties:
    """The parties of a ledger, checked by the gate again: a record may be withdrawn, a table corrected."""

    def __init__(self, ledger: LedgerReader, recall: Recall = lambda make: make()) -> None:
        """`recall` gives what was made of the same parties by the same code before, or has it made."""
        self.ledger = ledger
        self.gate = Gate(self._evidence)
        self._recall = recall

    def __iter__(self) -> Iterator[Party]:
        return iter(self._parties)

    @cached_property
    def _parties(self) -> list[Party]:
        parties = [
            Party(party_id, name, country, tuple(identifiers), stored or None, capture_id)
            for party_id, name, country, identifiers, stored, capture_id in self.ledger.parties()
        ]
        known = self._recall(lambda: {party.party_id: self._now(party) for party in parties if _alone(party)})
        return [
            party._replace(
                org_evidence=known[party.party_id] if party.party_id in known else self._now(party)
            )
            for party in parties
        ]

    def _now(self, party: Party) -> str | None:
        """The evidence that there is today."""
        return self.gate(party.name, party.identifiers, party.country) if party.org_evidence else None

    def _evidence(self, name: str, identifiers: Identifiers, country: str) -> str | None:
        evidence = org_evidence(name, identifiers, self._is_organisation, country)
        return None if evidence is None else str(evidence)

    def _is_organisation(self, lei: str) -> bool:
        return self.ledger.holds_record(f"lei:{lei}") and f"lei:{lei}" not in self.persons

    @cached_property
    def persons(self) -> Persons:
        return self.ledger.persons()


def _alone(party: Party) -> bool:
    """Whether the evidence follows from what the party is called and known by: of a LEI the record counts."""
    return not any(scheme.strip().upper() in LEI_SCHEMES for scheme, _ in party.identifiers)
