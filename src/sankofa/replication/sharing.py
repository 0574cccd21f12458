"""The settings of machines that share a ledger or follow editions."""

from pathlib import Path

from sankofa.settings import Settings


def shares_ledger(settings: Settings) -> bool:
    """Whether the ledger is in a database that several machines use."""
    return settings.datastore.partition(":")[0] in ("postgresql", "postgres")


def followed_address(settings: Settings) -> str:
    """Where editions are followed from and, with a shared ledger, published to; empty for neither."""
    return settings.editions or (settings.datastore if shares_ledger(settings) else "")


def only_follows(settings: Settings) -> bool:
    """Whether this HOME has no ledger and serves what others publish."""
    return bool(settings.editions) and not shares_ledger(settings)


def editions_folder(settings: Settings) -> Path:
    """The editions of a shared ledger have a folder of their own: HOME may have others, of an own one."""
    own = settings.datastore_folder() or settings.home
    return (settings.home / "shared" if shares_ledger(settings) else own) / "editions"
