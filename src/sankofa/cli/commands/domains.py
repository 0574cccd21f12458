"""Commands on customers' own domains."""

import click

from sankofa.access.domains import Domains
from sankofa.access.keys import Keys
from sankofa.cli.key_store import reading_keys, with_keys
from sankofa.cli.listing import as_json, print_json, print_table


@click.group()
def domains() -> None:
    """Answer professional customers on hosts of their own."""


@domains.command("add")
@click.argument("host")
@click.option(
    "--key", "key_id", required=True, metavar="ID", help="A key of the customer, professional tier."
)
@with_keys
async def add(keys: Keys, store: Domains, host: str, key_id: str) -> None:
    """Answer this key on HOST, with every link on that host; again with another key of the same customer."""
    record = await store.add(host, await keys.find(key_id))
    click.echo(f"{record.host}  keys {', '.join(record.keys)}")


@domains.command("list")
@as_json
@reading_keys
async def list_domains(keys: Keys, store: Domains, as_json: bool) -> None:
    """Each host, the keys answered there, and those of them that are revoked."""
    revoked = {key.id for key in await keys.list() if key.revoked_at is not None}
    records = await store.list()
    if as_json:
        rows = [
            {
                "host": record.host,
                "keys": record.keys,
                "revoked_keys": [key for key in record.keys if key in revoked],
                "added_at": record.added_at,
            }
            for record in records
        ]
        print_json(rows)
        return
    lines = []
    for record in records:
        keys_text = ", ".join(f"{key} (revoked)" if key in revoked else key for key in record.keys)
        lines.append((record.host, record.added_at, keys_text))
    print_table(("host", "added", "keys"), lines)


@domains.command("remove")
@click.argument("host")
@with_keys
async def remove(keys: Keys, store: Domains, host: str) -> None:
    """Answer HOST as any other host from now on."""
    record = await store.remove(host)
    click.echo(f"removed {record.host}")
