"""The command `sankofa`: looks up a command's name in a table and loads only that command's module."""

import errno
import os
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from sankofa import __version__, settings
from sankofa.cli.process import end_soon_after_signals, raise_descriptor_limit
from sankofa.model.errors import OperatorError, StoreUnavailable

_COMMANDS = {
    "serve": "serving:serve_command",
    "ingest": "ledger:ingest_command",
    "collect": "collecting:collect",
    "withdraw": "ledger:withdraw_command",
    "publish": "publishing:publish_command",
    "push": "replicating:push_command",
    "follow": "replicating:follow_command",
    "starter": "publishing:starter",
    "sample": "publishing:sample",
    "keys": "keys:keys",
    "domains": "keys:domains",
    "sources": "describing:list_sources",
    "editions": "editions:editions",
    "ledger": "ledger:ledger_commands",
    "matches": "ledger:matches",
    "backup": "backup:backup_command",
    "restore": "backup:restore_command",
    "doctor": "doctor:doctor",
    "upgrade-check": "doctor:upgrade_check",
    "vault": "ledger:vault",
    "status": "doctor:status",
    "settings": "describing:show_settings",
    "openapi": "describing:print_description",
    "show": "describing:show",
    "audit": "auditing:audit",
    "verify": "describing:verify_command",
    "hooks": "hooks:hooks",
    "open": "serving:open_pages",
}
"""Each command with its module and function, in the order of the help text."""


_LISTING = (("editions",), ("keys", "list"), ("domains", "list"))
"""Commands that list what is in HOME. Without a HOME they list nothing."""
_NEED_HOME = frozenset(
    "status show open audit ledger matches editions vault withdraw push backup upgrade-check domains".split()
)
_KEYS_NEED_HOME = frozenset("list usage link rotate revoke reseal copy".split())
"""Commands that do nothing without a HOME: a mistyped HOME must not create a new folder."""
_SHARED = frozenset({"push"})
"""Commands whose files others read; the operator's umask decides the permissions."""

_MENDABLE = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        *(errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE),
    }
)
"""Errors that an operator can fix: permissions, a full or failing disk, file descriptors."""


class _Commands(click.Group):
    """Errors meant for the operator are one line on stderr and exit code 1, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        file, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"sankofa.cli.{file}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            raise_descriptor_limit()
            arguments = (*ctx._protected_args, *ctx.args)
            words = tuple(word for word in arguments if not word.startswith("-"))
            if not _SHARED.intersection(words[:1]):
                os.umask(0o077)  # only the owner can read what is created under HOME
            if not {"--help", "-h"}.intersection(arguments) and _lists_nothing(words):
                if "--json" in arguments:
                    click.echo("[]")
                return None
            if words[:1] == ("serve",):  # its supervisor forks, and may have no thread
                return super().invoke(ctx)
            with end_soon_after_signals():
                return super().invoke(ctx)
        except StoreUnavailable as failure:
            raise click.ClickException(failure.logged + _read_only(failure)) from failure
        except OperatorError as failure:
            raise click.ClickException(str(failure) + _read_only(failure)) from failure
        except OSError as failure:
            if failure.errno not in _MENDABLE:
                raise
            where = f"{failure.filename}: " if failure.filename else ""
            raise click.ClickException(f"{where}{failure.strerror}{_read_only(failure)}") from failure


def _read_only(failure: Exception) -> str:
    """The end of a message about a file that could not be opened because HOME is read-only."""
    from sankofa.engines.private_files import SQLITE_FAILURES  # most commands never need it

    if not isinstance(failure, OSError) and not isinstance(failure.__cause__, (OSError, *SQLITE_FAILURES)):
        return ""
    with suppress(OperatorError):
        home = settings.load().home
        if home.is_dir() and not os.access(home, os.W_OK):
            return (
                f"; HOME ({home}) is read-only for this user, but this command must lock or write files there"
            )
    return ""


def _lists_nothing(words: tuple[str, ...]) -> bool:
    """Whether the command lists a HOME that does not exist. Raises OperatorError if it would do anything else
    there."""
    needs_home = not _NEED_HOME.isdisjoint(words[:1])
    if words[:1] == ("keys",):
        needs_home = not _KEYS_NEED_HOME.isdisjoint(words[1:2])
    if not needs_home and words != ("sources",):
        return False
    current = settings.load()
    elsewhere = current.datastore != "sqlite:" or current.keystore != "embedded:"
    if elsewhere or current.home.is_dir():
        return False
    message = f"HOME ({current.home}) does not exist; SANKOFA_HOME names another folder"
    if needs_home and words not in _LISTING:
        raise OperatorError(message)
    click.echo(f"Warning: {message}", err=True)
    return needs_home


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sankofa")
def main() -> None:
    """Point-in-time data for African and emerging markets."""
    for variable in settings.unknown():
        click.echo(f"Warning: {variable} is not a setting; see `sankofa settings`.", err=True)
