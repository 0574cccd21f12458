"""`sankofa push` and `sankofa follow`, and the follower beside a server."""

from contextlib import closing, suppress
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import click

from sankofa.cli.output import progress_bar
from sankofa.cli.process import (
    configure,
    end_soon_after_signals,
    keep_freed_memory,
    return_freed_memory,
    stop_on_signals,
)
from sankofa.engines.object_store import (
    ObjectError,
    ObjectMissing,
    ObjectSource,
    open_destination,
    open_source,
)
from sankofa.engines.private_files import locked, make_private_folder
from sankofa.model.errors import OperatorError, SettingsError
from sankofa.model.signed_notes import NotTrusted
from sankofa.replication.follow import Follower, FollowState
from sankofa.replication.push import push
from sankofa.replication.remote_log import note_pushed_to, take_log
from sankofa.replication.stores import (
    followed_address,
    open_following_store,
    open_store,
    refuse_where_editions_are_followed,
)
from sankofa.settings import Settings, load

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def follow_editions(settings: Settings, *, once: bool) -> FollowState:
    """Follow until a stop signal, or with `once` until the current edition is here. Raises OperatorError."""
    if not followed_address(settings):
        raise SettingsError("SANKOFA_EDITIONS: not set: there is nothing to follow")
    make_private_folder(settings.home)
    keep_freed_memory()  # deltas are made and applied in a fifth less time
    refusal = "another process follows editions into this HOME"  # the lock ends with the process
    with locked(settings.home / ".follow.lock", refusal=refusal), closing(_source(settings)) as source:
        follower = Follower(source, open_following_store(settings), settings.editions_kept)
        if once:
            try:
                follower.look()
            except ObjectError as failure:
                raise OperatorError(f"SANKOFA_EDITIONS: {failure}") from failure
            return follower.state
        with stop_on_signals() as stop:

            def stopped(seconds: float) -> bool:
                return_freed_memory()
                return stop.wait(seconds)

            follower.run(settings.editions_poll_seconds, stopped)
        return follower.state


def _source(settings: Settings) -> ObjectSource:
    try:
        return open_source(followed_address(settings))
    except SettingsError as failure:
        raise SettingsError(f"SANKOFA_EDITIONS: {failure}") from None


def check_followed(settings: Settings) -> None:
    """Check the address that a server follows before it starts. Raises SettingsError."""
    _source(settings).close()
    address = urlsplit(followed_address(settings))
    if address.scheme == "http" and address.hostname not in _LOOPBACK:
        click.echo(
            "Warning: editions are followed over http://: anyone on the path can replace them.",
            err=True,
        )


def follow_beside() -> None:
    """Follow in a separate process beside the workers, until a stop signal."""
    settings = load()
    configure(settings)
    with end_soon_after_signals(), suppress(OperatorError):  # another process follows: read its state
        follow_editions(settings, once=False)


@click.command("push")
@click.argument("destination")
@click.option(
    "--keep-unused",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0),
    metavar="MINUTES",
    help="Time to keep files that no edition needs, for nodes that still pull them.",
)
def push_command(destination: str, keep_unused: float) -> None:
    """Send the kept editions to DESTINATION, for nodes to follow: a folder that a web server serves,
    s3://bucket/path, gs:// or az://. Only missing files are sent."""
    settings = load()
    refuse_where_editions_are_followed(settings)
    try:
        target = open_destination(destination)
    except SettingsError as failure:
        raise OperatorError(f"{destination}: {failure}") from None
    keep_freed_memory()
    try:
        with closing(target), progress_bar("push", None) as progress:
            store = open_store(settings)
            if store.log.tree().entries:
                with suppress(ObjectMissing, NotTrusted):
                    take_log(store, target)
            pushed = push(store, target, timedelta(minutes=keep_unused), progress=progress)
            note_pushed_to(settings.home, destination)
    except ObjectError as failure:
        raise OperatorError(str(failure)) from failure
    if pushed.replaced:
        click.echo(f"replaced at the destination: {pushed.replaced}", err=True)
    if not pushed.changed and not pushed.files:
        click.echo(f"nothing to send: the destination has edition {pushed.current}")
        return
    click.echo(
        f"edition {pushed.current}: {pushed.files} files and {pushed.bytes} bytes sent, "
        f"{pushed.editions} editions there, {pushed.removed} files removed"
    )


@click.command("follow")
@click.option("--once", is_flag=True, help="Pull the current edition and exit.")
def follow_command(once: bool) -> None:
    """Follow the editions at SANKOFA_EDITIONS into HOME. `sankofa serve` does this by itself."""
    current = load()
    configure(current)
    state = follow_editions(current, once=once)
    if once:
        pulled = f"{state.pulled_files} files and {state.pulled_bytes} bytes pulled"
        click.echo(f"edition {state.remote_edition}: {pulled}")
        if state.refusal:
            raise click.ClickException(state.refusal)
