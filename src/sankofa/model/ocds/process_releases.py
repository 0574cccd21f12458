"""The releases of a process, cut down to what the indicators of red flags read."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.model.ocds.compiled import Process, SetBy
from sankofa.model.ocds.flag_facts import AwardFacts, Bid, ProcessFacts, Reference
from sankofa.model.ocds.release import decode, encode

_NOBODY: Final = SetBy("", "")
_facts: Final = msgspec.json.Decoder(ProcessFacts).decode


class ReleaseFacts(msgspec.Struct, array_like=True, gc=False):
    """One release, and where it came from."""

    day: int
    released: str
    source_ref: str
    license_class: str
    observed_at: str
    facts: msgspec.Raw
    """`ProcessFacts`, as JSON."""
    service_ids: dict[str, str]
    """Organisations that parties were matched with, by their id in the release."""


class ProcessReleases(msgspec.Struct, array_like=True, gc=False):
    """A process; the oldest release comes first."""

    ocid: str
    releases: list[ReleaseFacts]


class ProcessOnDay(NamedTuple):
    """A process as its releases up to a day add up."""

    ocid: str
    facts: ProcessFacts
    last: ReleaseFacts
    service_ids: dict[str, str]


class FlagFacts(NamedTuple):
    """What indicators read in one release."""

    facts: bytes
    """`ProcessFacts`, as JSON."""
    service_ids: dict[str, str]
    """The organisations of its parties, by the id that each has in the release."""


NO_FACTS: Final = FlagFacts(b"", {})


def flag_facts(body: str, service_id_of: Callable[[str], str | None]) -> FlagFacts:
    """What indicators read in a release. `service_id_of` resolves the name of a party."""
    facts = _facts(body)
    named = ((str(one.id), service_id_of(one.name)) for one in facts.references() if one.id and one.name)
    return FlagFacts(encode(facts), {party: service_id for party, service_id in named if service_id})


def on_day(process: ProcessReleases, day: int) -> ProcessOnDay | None:
    """The process on a day; None before its first release."""
    known = [release for release in process.releases if release.day <= day]
    if not known:
        return None
    last = known[-1]
    if len(known) == 1 and _is_compiled(facts := _facts(last.facts)):
        return ProcessOnDay(process.ocid, facts, last, last.service_ids)
    adding = Process()
    service_ids: dict[str, str] = {}
    for release in known:
        whole: dict[str, Any] = decode(release.facts)
        adding.add(whole, _NOBODY)
        service_ids |= release.service_ids
    return ProcessOnDay(
        process.ocid, msgspec.convert(adding.compiled().release, ProcessFacts), last, service_ids
    )


def _is_compiled(facts: ProcessFacts) -> bool:
    """Whether a single release is what it adds up to: no list names an id twice."""
    bids, awards = (facts.bids and facts.bids.details) or (), facts.awards or ()
    lists: list[Sequence[Bid | AwardFacts | Reference]] = [bids, awards, facts.parties or ()]
    lists += [bid.tenderers or () for bid in bids]
    lists += [award.suppliers or () for award in awards]
    return all(len(one) < 2 or len({str(part.id) for part in one}) == len(one) for one in lists)
