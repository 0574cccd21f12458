"""`sankofa keys link`: addresses for clients that cannot send a key."""

from typing import Final
from urllib.parse import parse_qsl, unquote

import click

from sankofa import settings
from sankofa.access.domains import Domains
from sankofa.access.keys import Keys
from sankofa.cli.keys import keys, with_keys
from sankofa.cli.process import now
from sankofa.model.errors import OperatorError

_PATHS: Final = ("/v1/", "/feeds/", "/open/")
"""How the paths begin that a link can open, besides those of dialects."""


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
    click.echo(f"{settings.load().base_url}{before}{token}{behind}")


def _one_dialect(name: str) -> tuple[str, str, str]:
    """What the link opens, and the address before and behind its token."""
    from sankofa.dialects.contract import dialects
    from sankofa.operations.linked import A_DIALECT, FOLDER

    roots = {one.name: one.roots[0] for one in dialects() if not one.open}
    if name not in roots:
        raise OperatorError(f"--dialect: no dialect {name!r}: expected one of {', '.join(roots)}")
    return f"{A_DIALECT}{name}", FOLDER, f"{roots[name]}/"


def _one_path(address: str) -> tuple[str, str, str]:
    from sankofa.dialects.contract import dialects
    from sankofa.operations.linked import one_path
    from sankofa.operations.locked import day_of_path

    path, _, query = address.removeprefix(settings.load().base_url).partition("?")
    inside = day_of_path(path, now().date())
    plain = path if inside is None else inside[1]
    if not (plain.startswith(_PATHS) or any(one.takes(plain) for one in dialects())):
        raise OperatorError(f"--path: expected one that begins with {', '.join(_PATHS)} or is of a dialect")
    if any(name == "link" for name, _value in parse_qsl(query, keep_blank_values=True)):
        raise OperatorError("--path: the address has a link already")
    return one_path(unquote(path), query), f"{path}?{query}{'&' if query else ''}link=", ""
