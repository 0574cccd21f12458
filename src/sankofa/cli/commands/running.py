"""Commands that run the service, or ask how it is."""

import asyncio
import sys
from typing import NamedTuple

import click

from sankofa import settings
from sankofa.cli.clock import now
from sankofa.engines.datastore import Datastore
from sankofa.engines.factory import open_keyvalue
from sankofa.engines.keyvalue import KeyValue
from sankofa.replication.stores import open_store


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Worker processes.")
def serve(host: str, port: int, workers: int) -> None:
    """Serve the current edition, and each newer one from the moment it is published."""
    from sankofa.cli import serving  # `status` needs nothing of it

    serving.serve(settings.load(), host, port, workers)


class _Stores(NamedTuple):
    datastore: Datastore
    keystore: KeyValue
    usagestore: KeyValue


@click.command()
def status() -> None:
    """The dependency reads of /v1/status; exit code 1 when degraded. Creates nothing."""
    from sankofa.operations.service import following, probe

    current = settings.load()

    def opened(url: str, name: str, component: str) -> KeyValue:
        reserve = current.usage_reserve << 20 if name == "usage" else 0
        return open_keyvalue(current.keyvalue_url(url, name), component, reserve=reserve, create=False)

    async def look() -> dict[str, tuple[str | None, float]]:
        stores = _Stores(
            open_store(current),
            opened(current.keystore, "keys", "key store"),
            opened(current.usagestore, "usage", "usage store"),
        )
        try:
            checks = await probe(stores)
            if (followed := following(stores.datastore, now())) is not None:
                checks["editions"] = (followed[1], 0.0)
            return checks
        finally:
            await stores.keystore.close()
            await stores.usagestore.close()
            stores.datastore.close()

    checks = asyncio.run(look())
    for name, (failure, took) in checks.items():
        click.echo(f"{name:<10}  {'ok' if failure is None else 'FAILED: ' + failure}  {took:.1f} ms")
    if any(failure is not None for failure, _ in checks.values()):
        sys.exit(1)
