"""`sankofa keys` and `sankofa domains`: the key store, opened for one command."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, TypeVar

import click
import msgspec

from sankofa.access.domains import Domains
from sankofa.access.keys import KeyRecord, Keys
from sankofa.access.owner import A_DIALECT, FOLDER, PATHS, address_of_path
from sankofa.access.records import SealedRecords, read_records, write_records
from sankofa.access.tiers import TIERS, LastUsed, Lock, Quotas
from sankofa.cli.output import as_json, print_json, print_table
from sankofa.cli.process import now
from sankofa.engines.embedded_kv import EmptyKeyValue
from sankofa.engines.keyvalue import open_keyvalue
from sankofa.model.days import parse_day
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.settings import Settings, load

T = TypeVar("T")


def with_keys(
    command: Callable[..., Coroutine[Any, Any, T]], *, create: bool = True, usage: bool = False
) -> Callable[..., T]:
    """Run a command with the keys and the domains of the store as its first arguments.

    With `usage` it gets keys, quotas and days of last use instead. Without `create` nothing is created.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            current = load()
            async with opened_keys(current, create=create) as (keys, domains, _):
                if not usage:
                    return await command(keys, domains, *args, **kwargs)
                url = current.keyvalue_url(current.usagestore, "usage")
                counters = open_keyvalue(url, "usage store", create=create)
                try:
                    return await command(keys, Quotas(counters, now), LastUsed(counters), *args, **kwargs)
                finally:
                    await counters.close()

        return asyncio.run(opened())

    return run


reading_keys = functools.partial(with_keys, create=False)
with_usage = functools.partial(with_keys, create=False, usage=True)


@asynccontextmanager
async def opened_keys(
    current: Settings, *, create: bool = True
) -> AsyncIterator[tuple[Keys, Domains, SealedRecords]]:
    """The keys and domains of the configured key store, and their records.

    Without `create`, a missing store counts as empty, and no secret is generated for it.
    """
    url = current.keyvalue_url(current.keystore, "keys")
    store = open_keyvalue(url, "key store", create=create)
    is_empty = isinstance(store, EmptyKeyValue)
    try:
        records = SealedRecords(store, (b"",) if is_empty else current.keys_secrets())
        keys, domains = Keys(records, current, now), Domains(records, current, now)
        if not is_empty:
            await records.prepare(create=create)
        yield keys, domains, records
    finally:
        await store.close()


_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


class _Day(click.ParamType[date]):
    name = "YYYY-MM-DD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        try:
            return value if isinstance(value, date) else parse_day(value)
        except ValueError as failure:
            self.fail(str(failure), param, ctx)


class _Duration(click.ParamType[timedelta]):
    """A whole number of days, hours, minutes or seconds."""

    name = "7d|24h"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        number, unit = value[:-1], _UNITS.get(value[-1:])
        if unit is None or not (number.isascii() and number.isdigit() and len(number) <= 4):
            self.fail(f"expected days or hours, such as 7d or 24h, not {value!r}", param, ctx)
        return timedelta(**{unit: int(number)})


@click.group()
def keys() -> None:
    """Issue, list, rotate and revoke API keys."""


@keys.command("create")
@click.option("--tier", type=click.Choice(TIERS), help="Tier of the key; a locked key has the sample tier.")
@click.option("--label", default="", help="What the key is for.")
@click.option("--per-minute", type=click.IntRange(1), help="Its own limit per UTC minute.")
@click.option("--per-month", type=click.IntRange(1), help="Its own cap per UTC calendar month.")
@click.option("--expires", type=_Day(), help="The last day (UTC) on which it is valid.")
@click.option("--as-of-max", type=_Day(), help="The last day it can see: nothing that became public later.")
@click.option("--as-of-from", type=_Day(), help="The last day it can see now, moving forward by --step.")
@click.option("--step", type=_Duration(), default="1d", show_default=True, help="Whole days to move forward.")
@click.option("--every", type=_Duration(), default="1s", show_default=True, help="How often to move forward.")
@with_keys
async def create(
    store: Keys,
    _: Domains,
    tier: str | None,
    label: str,
    per_minute: int | None,
    per_month: int | None,
    expires: date | None,
    as_of_max: date | None,
    as_of_from: date | None,
    step: timedelta,
    every: timedelta,
) -> None:
    """Print a new key, once: only its hash is stored."""
    lock = None if as_of_max is None else Lock(as_of_max)
    if as_of_from is not None:
        if not step.days or step != timedelta(days=step.days):
            raise OperatorError("--step: expected one or more whole days, such as 1d")
        if not every:
            raise OperatorError("--every: expected at least one second, such as 1s")
        if as_of_max is not None and as_of_max < as_of_from:
            raise OperatorError(f"--as-of-max: {as_of_max} is before --as-of-from {as_of_from}")
        lock = Lock(as_of_from, as_of_max, now().timestamp(), step.days, every.total_seconds())
    if tier is None and lock is None:
        raise click.UsageError("Missing option '--tier'.")
    click.echo(await store.create(tier or "sample", label, per_minute, per_month, expires, lock))


@keys.command("lock")
@click.argument("id_or_key", metavar="ID|KEY")
@click.argument("day", type=_Day())
@with_keys
async def lock(store: Keys, _: Domains, id_or_key: str, day: date) -> None:
    """Lock a key to DAY: it sees nothing that became public later. A lock moves forward, never back."""
    record = await store.lock(id_or_key, day)
    click.echo(f"{record.id} is locked to {day}")


@keys.command("rotate")
@click.argument("id_or_key", metavar="ID|KEY")
@click.option(
    "--overlap", type=_Duration(), default="7d", show_default=True, help="How long the old key stays valid."
)
@with_keys
async def rotate(store: Keys, domains: Domains, id_or_key: str, overlap: timedelta) -> None:
    """Print a new key that replaces another: same tier, limits, label, domains and counts."""
    key, old, new = await store.replace(id_or_key)
    await domains.admit_too(new, beside=old)
    old = await store.expire(old, new, overlap)
    click.echo(key)
    click.echo(f"{new.id} replaces {old.id}, which is valid until {old.expires_at}", err=True)


@keys.command("list")
@as_json
@with_usage
async def list_keys(store: Keys, _: Quotas, used: LastUsed, as_json: bool) -> None:
    """List the issued keys: id, tier, label, limits, whether each is valid, and the day it was last used."""
    records = await store.list()
    days: dict[str, date | None] = dict.fromkeys(key.id for key in records)
    try:
        days = {key.id: await used.day_of(key.id) for key in records}
    except StoreUnavailable as failure:
        click.echo(f"{failure.detail} The days of last use are not known.", err=True)
    if as_json:
        columns = [f.name for f in msgspec.structs.fields(KeyRecord) if f.name not in ("hash", "of")]
        rows = [{name: getattr(key, name) for name in columns} for key in records]
        print_json([{**row, "last_used": days[row["id"]]} for row in rows])
        return
    lines = []
    for key in records:
        limits = f"{key.per_minute or '-'}/min {key.per_month or '-'}/month"
        last = f"used {days[key.id]}" if days[key.id] else "never used"
        label = f"{key.label}: {key.opens}" if key.opens else key.label
        lines.append((key.id, key.tier, key.created_at, _state(store, key), limits, last, label))
    print_table(("id", "tier", "created", "state", "limits", "last use", "label"), lines)


@keys.command("usage")
@click.argument("id_or_key", metavar="[ID|KEY]", required=False)
@as_json
@with_usage
async def usage(store: Keys, quotas: Quotas, used: LastUsed, id_or_key: str | None, as_json: bool) -> None:
    """Show the requests of each key in this UTC minute and month, its limits, and the day of last use."""
    records = [await store.find(id_or_key)] if id_or_key else await store.list()
    rows, lines = [], []
    for key in records:
        grant = store.grant_of(key)
        in_minute, in_month = await quotas.read(grant)
        last = await used.day_of(key.id)
        row: dict[str, Any] = {"id": key.id, "tier": key.tier, "label": key.label}
        row |= {"minute_used": in_minute, "minute_limit": grant.per_minute}
        row |= {"month_used": in_month, "month_limit": grant.per_month, "last_used": last}
        rows.append(row)
        minute, month = f"{in_minute}/{grant.per_minute or '-'}", f"{in_month}/{grant.per_month or '-'}"
        lines.append((key.id, key.tier, minute, month, f"used {last}" if last else "never used", key.label))
    if as_json:
        print_json(rows)
    else:
        print_table(("id", "tier", "minute", "month", "last use", "label"), lines)


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
    """Seal keys and domains with the first secret of KEYS_SECRET, so that you can remove the others."""
    resealed, refused = await store.sealed.reseal()
    click.echo(f"{resealed} records sealed with the first secret")
    if refused:
        raise OperatorError(f"{refused} records are damaged, or sealed with a secret that is not listed")


@keys.command("copy")
@click.option(
    "--to", "url", required=True, metavar="URL", help="The other store; `embedded:` means files in HOME."
)
def copy(url: str) -> None:
    """Copy every key and domain to another store; then set SANKOFA_KEYSTORE to it."""
    current = load()
    if not current.keys_secret and url.partition(":")[0] != "embedded":
        click.echo(
            "Warning: SANKOFA_KEYS_SECRET is not set: records in that store are protected against damage, "
            "not against tampering (docs/how-to/operating.md, Secrets)",
            err=True,
        )
    target = replace(current, keystore=url)
    if target.keystore == current.keystore:
        raise OperatorError("--to: the keys are already in this store (SANKOFA_KEYSTORE)")
    source = replace(current, keys_secret=current.keys_secret_of_home())

    async def copied() -> tuple[int, int, list[str]]:
        async with opened_keys(source) as (_, _, records), opened_keys(target) as (_, _, others):
            read, damaged = await read_records(records)
            return len(read), await write_records(others, read), damaged

    total, changed, damaged = asyncio.run(copied())
    for reason in damaged:
        click.echo(f"left out: {reason}", err=True)
    click.echo(f"copied {total} records; {total - changed} of them were there already")


@keys.command("link")
@click.argument("id_or_key", metavar="ID|KEY")
@click.option("--path", help="The path and parameters that it opens, e.g. /v1/macro?series=FX.EUR.ZAR.")
@click.option("--dialect", metavar="NAME", help="The dialect that it opens, e.g. fred.")
@click.option("--per-minute", type=click.IntRange(1), default=60, show_default=True, help="Its own limit.")
@click.option("--per-month", type=click.IntRange(1), default=5_000, show_default=True, help="Its own cap.")
@with_keys
async def link(
    store: Keys,
    _: Domains,
    id_or_key: str,
    path: str | None,
    dialect: str | None,
    per_minute: int,
    per_month: int,
) -> None:
    """Print an address that opens one path or one dialect, for a client that cannot send a key."""
    if (path is None) == (dialect is None):
        raise click.UsageError("Give one of --path and --dialect.")
    opens, before, behind = _one_dialect(dialect) if dialect is not None else _one_path(path or "")
    token = await store.link(id_or_key, opens, per_minute, per_month)
    click.echo(f"{load().base_url}{before}{token}{behind}")


def _one_dialect(name: str) -> tuple[str, str, str]:
    """The dialect that the link opens, and the address before and after its token."""
    from sankofa.dialects.contract import dialects

    roots = {one.name: one.roots[0] for one in dialects() if not one.open}
    if name not in roots:
        raise OperatorError(f"--dialect: no dialect {name!r}: expected one of {', '.join(roots)}")
    return f"{A_DIALECT}{name}", FOLDER, f"{roots[name]}/"


def _one_path(address: str) -> tuple[str, str, str]:
    from sankofa.dialects.contract import root_of
    from sankofa.operations.locked import day_of_path

    address = address.removeprefix(load().base_url)
    path = address.partition("?")[0]
    inside = day_of_path(path, now().date())
    plain = path if inside is None else inside[1]
    if not (plain.startswith(PATHS) or root_of(plain)):
        raise OperatorError(f"--path: expected a path of a dialect, or one below {', '.join(PATHS)}")
    try:
        return *address_of_path(address), ""
    except ValueError as failure:
        raise OperatorError(f"--path: {failure}") from None


def _state(store: Keys, key: KeyRecord) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at}"
    locked = "" if key.lock is None else f", locked to {key.lock.on(now())}"
    if key.expires_at:
        return f"{'expired' if store.is_expired(key) else 'active until'} {key.expires_at}{locked}"
    return f"active{locked}"


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
    """Answer this key on HOST, with every link on that host. Repeat for other keys of the same customer."""
    record = await store.add(host, await keys.find(key_id))
    click.echo(f"{record.host}  keys {', '.join(record.keys)}")


@domains.command("list")
@as_json
@reading_keys
async def list_domains(keys: Keys, store: Domains, as_json: bool) -> None:
    """Each host with the keys it answers, and which of these are revoked."""
    revoked = {key.id for key in await keys.list() if key.revoked_at is not None}
    rows, lines = [], []
    for record in await store.list():
        ended = [key for key in record.keys if key in revoked]
        added = record.added_at
        rows.append({"host": record.host, "keys": record.keys, "revoked_keys": ended, "added_at": added})
        shown = ", ".join(f"{key} (revoked)" if key in ended else key for key in record.keys)
        lines.append((record.host, added, shown))
    if as_json:
        print_json(rows)
    else:
        print_table(("host", "added", "keys"), lines)


@domains.command("remove")
@click.argument("host")
@with_keys
async def remove(keys: Keys, store: Domains, host: str) -> None:
    """Stop treating HOST as a customer's domain."""
    record = await store.remove(host)
    click.echo(f"removed {record.host}")
