"""What an edition is called: by the instant of its ledger, its last capture, and what is in it.

And whether one that is kept may still be shown.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def edition_name(clock: str, last_capture: int, digest: str) -> str:
    """The last capture orders the editions of one second; the digest tells their contents apart."""
    stamp = clock.translate({ord(c): None for c in "-:"})
    return f"{stamp}-{last_capture:05d}-{digest[:10]}"


def ledger_position(edition: str) -> int:
    """The last capture of the ledger that an edition was made of; 0 for what is not named so."""
    _, _, rest = edition.partition("-")
    capture = rest.partition("-")[0]
    return int(capture) if capture.isascii() and capture.isdigit() else 0


def may_name_a_person(edition: str, last_person_capture: int) -> bool:
    """Whether an edition was made before a capture that proved somebody in the ledger a natural person."""
    return last_person_capture > 0 and int(edition.split("-")[1]) < last_person_capture


def may_hold(manifest: Mapping[str, Any], source_ids: Collection[str]) -> bool:
    """Whether an edition may hold rows of one of these sources; one that does not say which it has, may."""
    held = manifest.get("sources")
    return bool(source_ids) if held is None else not set(held).isdisjoint(source_ids)


def holds_withdrawn(
    edition: str, manifest: Mapping[str, Any], withdrawals: Iterable[Mapping[str, Any]]
) -> bool:
    """Whether an edition may hold what was withdrawn everywhere: its ledger had it, without its tombstone.

    `withdrawals` are those of a later manifest.
    """
    return any(
        withdrawal["everywhere"]
        and withdrawal["first_capture"] <= ledger_position(edition) < withdrawal["number"]
        and may_hold(manifest, [withdrawal["source"]])
        for withdrawal in withdrawals
    )
