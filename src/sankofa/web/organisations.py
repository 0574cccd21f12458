"""The parties of a contracting process as organisations: which of them have a page of their own."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from sankofa.model.errors import InvalidParameter
from sankofa.web.visit import Row, Visit

_MOST_RESOLVED: Final = 24
"""Of more parties than this the rest are names without a link: a page is one request of a visitor's quota."""
_MOST_CANDIDATES: Final = 3
_MOST_SEEN: Final = 200
_MOST_LISTS: Final = 32
"""Lists of parties that one page reads; where names resemble many organisations the last have no link."""


class NamedParty(msgspec.Struct, frozen=True):
    """An organisation that a release names, with what it does in the process."""

    name: str
    roles: Sequence[str]
    identifier: str
    service_id: str | None
    evidence: str
    """Why it is held to be an organisation; empty where that was not looked up."""


async def named_parties(visit: Visit, releases: Sequence[Row]) -> list[NamedParty]:
    """The parties of a process that may be named, those of the first release first.

    What is withheld is in no release.
    """
    roles: dict[tuple[str, str, str], dict[str, None]] = {}
    for release in releases:
        for party in release.get("parties") or []:
            if name := party.get("name"):
                own = party.get("identifier") or {}
                key = name, str(own.get("scheme") or ""), str(own.get("id") or "")
                roles.setdefault(key, {}).update(dict.fromkeys(party.get("roles") or []))
    parties = []
    lists = iter(range(_MOST_LISTS))
    for number, ((name, scheme, own_id), kinds) in enumerate(roles.items()):
        row = await _resolved(visit, name, own_id, lists) if number < _MOST_RESOLVED else None
        identifier = " ".join(filter(None, (scheme, own_id)))
        evidence = row["org_evidence"] if row else ""
        parties.append(
            NamedParty(name, list(kinds), identifier, row["service_id"] if row else None, evidence)
        )
    return parties


async def _resolved(visit: Visit, name: str, own_id: str, lists: Iterator[int]) -> Row | None:
    """The row of `/v1/tender-parties` that resolves this very party, by name and identifier.

    That list is not searched by name, so the search says who it may be, and the list whether it is: a name
    that merely resembles one leads nowhere. Each list that is read takes one of `lists`.
    """
    for words in filter(None, (own_id, name)):
        for service_id, _ in zip(await _candidates(visit, words), lists, strict=False):
            seen = await visit.ask(
                "get_resolved_parties", shown=False, service_id=service_id, limit=visit.most_rows(_MOST_SEEN)
            )
            for row in seen.rows:
                if row["name"] == name and (row["identifier"] or {}).get("id", "") == own_id:
                    return row
    return None


async def _candidates(visit: Visit, words: str) -> list[str]:
    try:
        result = await visit.ask("search", shown=False, q=words, type="organisation")
    except InvalidParameter:  # longer than a search may be, or with characters that none may have
        return []
    return [row["id"] for row in result.rows[:_MOST_CANDIDATES]]
