"""The pages for operators: settings and commands."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click

from sankofa.access.tiers import TIERS, grant
from sankofa.cli.main import main as command_line
from sankofa.settings import PREFIX, Settings
from tools.reference_pages.markdown import code, default_text, page, table


def settings_page() -> str:
    rows = []
    for f in fields(Settings):
        default = "(empty)" if f.default == "" else code(str(f.default))
        kind = "whole number above 0" if isinstance(f.default, int) else "text"
        kind = "path" if isinstance(f.default, Path) else kind
        kind = ", ".join(map(code, f.metadata["choices"])) or kind
        masked = "yes" if f.metadata["secret"] else ""
        rows.append((code(PREFIX + f.name.upper()), kind, default, masked, f.metadata["help"]))
    tiers = []
    for tier in TIERS:
        caps = grant(Settings(), "", tier, None, None)
        numbers = (caps.row_cap, caps.default_rows, caps.per_minute, caps.per_month)
        tiers.append((code(tier), *(f"{number:,}" for number in numbers)))
    return page(
        "Settings",
        "Environment variables, read when a command starts. `sankofa settings` prints each with its value and"
        " where that came from; those marked as masked are shown without their secret part.",
        table(("variable", "takes", "default", "masked", "meaning"), rows),
        "## Tiers",
        "What each tier gets with the defaults above. A key may have its own limits per minute and per month"
        " (`sankofa keys create`).",
        table(("tier", "most rows", "rows without `limit`", "per UTC minute", "per UTC month"), tiers),
    )


def commands_page() -> str:
    parts = [
        "The command `sankofa`. An error is one line on stderr and exit code 1; a wrong option or argument is"
        " exit code 2."
    ]
    for path, command in _commands("sankofa", command_line):
        parts += [f"## `{path}`", inspect.cleandoc(command.help or "")]
        usage = command.collect_usage_pieces(click.Context(command))
        parts += [f"```text\n{' '.join((path, *usage))}\n```"]
        options = [p for p in command.params if isinstance(p, click.Option)]
        rows = [(code(", ".join(o.opts)), _accepted_values(o), _default(o), o.help or "") for o in options]
        parts += [table(("option", "takes", "default", "meaning"), rows)] if rows else []
    return page("Command line", *parts)


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something; a group comes before its commands."""
    if not isinstance(command, click.Group) or command.invoke_without_command or path == "sankofa":
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            if (inner := command.get_command(context, name)) is not None:
                yield from _commands(f"{path} {name}", inner)


def _accepted_values(option: click.Option) -> str:
    if option.is_flag:
        return "nothing"
    if isinstance(option.type, click.Choice):
        return ", ".join(map(code, option.type.choices))
    if isinstance(option.type, click.IntRange):
        bounds = [f"at least {option.type.min}"] if option.type.min is not None else []
        bounds += [f"at most {option.type.max}"] if option.type.max is not None else []
        return ", ".join(("a whole number", *bounds))
    return "text"


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    return "" if option.is_flag else default_text(option.to_info_dict()["default"])
