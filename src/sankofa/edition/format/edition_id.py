"""Names of editions, and whether a stored edition may still be served.

A name has the instant of the ledger, its last capture, and a digest of the content.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def edition_name(clock: str, last_capture: int, digest: str) -> str:
    """The last capture orders the editions of one second; the digest distinguishes their contents."""
    stamp = clock.translate({ord(c): None for c in "-:"})
    return f"{stamp}-{last_capture:05d}-{digest[:10]}"


def ledger_position(edition: str) -> int:
    """The last capture in the ledger of an edition; 0 if the name has none."""
    _, _, rest = edition.partition("-")
    capture = rest.partition("-")[0]
    return int(capture) if capture.isascii() and capture.isdigit() else 0


def may_name_a_person(edition: str, last_person_capture: int) -> bool:
    """Whether an edition is older than a capture that proved a party to be a natural person."""
    return last_person_capture > 0 and int(edition.split("-")[1]) < last_person_capture


def may_hold(manifest: Mapping[str, Any], source_ids: Collection[str]) -> bool:
    """Whether an edition may hold rows of one of these sources. One that lists no sources may hold any."""
    held = manifest.get("sources")
    return bool(source_ids) if held is None else not set(held).isdisjoint(source_ids)


def holds_withdrawn(
    edition: str, manifest: Mapping[str, Any], withdrawals: Iterable[Mapping[str, Any]]
) -> bool:
    """Whether an edition may hold a file that a later manifest withdraws everywhere.

    Its ledger had the file, and not yet the withdrawal.
    """
    return any(
        withdrawal["everywhere"]
        and withdrawal["first_capture"] <= ledger_position(edition) < withdrawal["number"]
        and may_hold(manifest, [withdrawal["source"]])
        for withdrawal in withdrawals
    )
