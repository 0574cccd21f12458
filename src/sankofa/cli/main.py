"""The command `sankofa`: a name is looked up in a table, and only the file of its command is loaded."""

import errno
from importlib import import_module
from typing import Any

import click

from sankofa import __version__, settings
from sankofa.cli.descriptors import raise_descriptor_limit
from sankofa.model.errors import OperatorError, StoreUnavailable

_COMMANDS = {
    "serve": "running:serve",
    "ingest": "data:ingest",
    "collect": "collect:collect",
    "withdraw": "data:withdraw",
    "publish": "data:publish",
    "push": "replication:push",
    "follow": "replication:follow",
    "starter": "data:starter",
    "sample": "data:sample",
    "keys": "keys:keys",
    "domains": "domains:domains",
    "sources": "describing:list_sources",
    "editions": "editions:editions",
    "ledger": "ledger:ledger",
    "backup": "backups:backup",
    "restore": "backups:restore",
    "doctor": "health:doctor",
    "upgrade-check": "health:upgrade_check",
    "vault": "vault:vault",
    "status": "running:status",
    "settings": "describing:show_settings",
    "openapi": "openapi:print_description",
    "show": "showing:show",
    "open": "showing:open_pages",
}
"""Each command with the file under `commands` that has it, in the order of the help text."""


_READING = (("editions",), ("keys", "list"), ("domains", "list"))
"""Commands that only list what is in HOME."""

_OF_THE_MACHINE = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        *(errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE),
    }
)
"""What an operator can mend: permissions, a full or failing disk, file descriptors."""


class _Commands(click.Group):
    """Errors meant for the operator are one line on stderr and exit code 1, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        file, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"sankofa.cli.commands.{file}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            raise_descriptor_limit()
            if _reads_a_home_that_is_not_there(ctx):
                return None
            return super().invoke(ctx)
        except StoreUnavailable as failure:
            raise click.ClickException(failure.logged) from failure
        except OperatorError as failure:
            raise click.ClickException(str(failure)) from failure
        except OSError as failure:
            if failure.errno not in _OF_THE_MACHINE:
                raise
            where = f"{failure.filename}: " if failure.filename else ""
            raise click.ClickException(f"{where}{failure.strerror}") from failure


def _reads_a_home_that_is_not_there(ctx: click.Context) -> bool:
    """Says so, and that nothing is there to list: a mistyped HOME must not become an empty folder."""
    given = (*ctx._protected_args, *ctx.args)
    words = [word for word in given if not word.startswith("-")]
    if not any(words[: len(reading)] == list(reading) for reading in _READING):
        return False
    current = settings.load()
    elsewhere = current.datastore != "sqlite:" or current.keystore != "embedded:"
    if elsewhere or current.home.is_dir():
        return False
    click.echo(
        f"Warning: HOME is {current.home}, and there is no such folder; SANKOFA_HOME names another.", err=True
    )
    if "--json" in given:
        click.echo("[]")
    return True


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sankofa")
def main() -> None:
    """Point-in-time data for African and emerging markets."""
    for variable in settings.unknown():
        click.echo(f"Warning: {variable} is no setting; see `sankofa settings`.", err=True)
