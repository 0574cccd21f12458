"""Commands on API keys."""

import click
import msgspec

from sankofa.access.domains import Domains
from sankofa.access.keys import KeyRecord, Keys
from sankofa.access.tiers import TIERS
from sankofa.cli.key_store import with_keys
from sankofa.cli.listing import as_json, print_json
from sankofa.model.errors import OperatorError


@click.group()
def keys() -> None:
    """Issue, list and revoke API keys."""


@keys.command("create")
@click.option("--tier", required=True, type=click.Choice(TIERS), help="What the key may have.")
@click.option("--label", default="", help="What the key is for.")
@click.option("--per-minute", type=click.IntRange(1), help="Its own limit per UTC minute.")
@click.option("--per-month", type=click.IntRange(1), help="Its own cap per UTC calendar month.")
@with_keys
async def create(
    store: Keys, _: Domains, tier: str, label: str, per_minute: int | None, per_month: int | None
) -> None:
    """Print a new key, once: only its hash is stored."""
    click.echo(await store.create(tier, label, per_minute, per_month))


@keys.command("list")
@as_json
@with_keys
async def list_keys(store: Keys, _: Domains, as_json: bool) -> None:
    """What is issued: id, tier, label, limits and whether it is revoked."""
    records = await store.list()
    if as_json:
        columns = [f.name for f in msgspec.structs.fields(KeyRecord) if f.name != "hash"]
        print_json([{name: getattr(key, name) for name in columns} for key in records])
        return
    for key in records:
        limits = f"{key.per_minute or '-'}/min {key.per_month or '-'}/month"
        state = f"revoked {key.revoked_at}" if key.revoked_at else "active"
        click.echo(f"{key.id}  {key.tier:<12}  {key.created_at}  {state}  {limits}  {key.label}")


@keys.command("revoke")
@click.argument("id_or_key", metavar="ID|KEY")
@with_keys
async def revoke(store: Keys, _: Domains, id_or_key: str) -> None:
    """Revoke a key, by its id or by the key itself: it gets 401 from the next request on."""
    record = await store.revoke(id_or_key)
    click.echo(f"revoked {record.id} at {record.revoked_at}")


@keys.command("reseal")
@with_keys
async def reseal(store: Keys, _: Domains) -> None:
    """Seal the records of keys and domains with the first secret of KEYS_SECRET, so that the others can go.

    Run no other command on keys or domains meanwhile.
    """
    resealed, refused = await store.reseal()
    click.echo(f"{resealed} records sealed with the first secret")
    if refused:
        raise OperatorError(f"{refused} records are damaged, or sealed with a secret that is not listed")
