"""Seals a ledger that a test changed past the code, to see what other checks find."""

from contextlib import closing

from sankofa.ledger import seals
from sankofa.replication.stores import open_store
from sankofa.settings import Settings


def seal_again(settings: Settings) -> None:
    """Seal every row of a ledger whose seals were dropped."""
    with (
        closing(open_store(settings)) as store,
        closing(store.ledgers.open()) as session,
        session.transaction(),
    ):
        seals.append_seals(session, settings.gate_key(), seals._scan(session))
