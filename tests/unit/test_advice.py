"""Messages that give instructions name only things that exist (contract: ERR-9)."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import sankofa
from sankofa.cli.main import main
from sankofa.operations.contract import endpoints, operations
from sankofa.settings import OF_THE_CLIENT, PREFIX, Settings

SOURCE = Path(sankofa.__file__).parent
ROOT = SOURCE.parents[1]
PLACEHOLDER = "{}"
_WORD = r"(?:-{0,2}[a-z][a-z-]*|\{\})"
COMMAND = re.compile(rf"(?:`|(?:run|try|with): )sankofa ({_WORD}(?: {_WORD})*)(?=[`,;.)]|\Z)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN_OPTIONS = {"--enable", "--help"}
"""Options of pg_checksums, and of every command."""
SETTING = re.compile(r"SANKOFA_[A-Z][A-Z_]*[A-Z](?![A-Z_{])")
BARE_SETTING = re.compile(r"(?<![A-Z_`{])(?:[A-Z]+_)+[A-Z]+(?![A-Z_`])")
ENDPOINT = re.compile(r"(?<!\w)/v1/[a-z][a-z/-]*[a-z]")
PARAMETER = re.compile(r"(/v1/[a-z][a-z/-]*)\?([a-z_]+)=")
OUTSIDE_OPERATIONS = {"/v1/status", "/v1/export/files"}
TOOL = re.compile(r"\b(?:get|search|screen|list|find|lookup|check)_[a-z_]+")
DOCUMENT = re.compile(r"(docs/[a-z-]+\.md)(?:, ([A-Z][A-Za-z ]+))?")
"""A page, and the heading in it that is named after a comma."""


class Message(NamedTuple):
    where: str
    text: str


@cache
def messages() -> list[Message]:
    """Every text of the package except docstrings; values filled in later are placeholders."""
    return [message for path in sorted(SOURCE.rglob("*.py")) for message in _messages(path)]


def _messages(path: Path) -> Iterator[Message]:
    nodes: list[ast.AST] = [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values
            )
            yield Message(f"{path.relative_to(SOURCE)}:{node.lineno}", text)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield Message(f"{path.relative_to(SOURCE)}:{node.lineno}", node.value)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr)):
            for value in vars(node).values():
                parts = value if isinstance(value, list) else [value]
                nodes.extend(part for part in parts if isinstance(part, ast.AST))


def command_at(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the first words name, and the words after it."""
    command: click.Command = main
    context = click.Context(main)
    for number, word in enumerate(words):
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            return command, words[number:]
        command = inner
    return command, []


def all_commands(command: click.Command = main) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from all_commands(inner)


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.rule("ERR-9")
def test_every_command_that_a_message_names_exists_with_its_options() -> None:
    advised = [(message, match[1]) for message in messages() for match in COMMAND.finditer(message.text)]
    assert len(advised) > 20
    wrong = []
    for message, text in advised:
        command, rest = command_at(text.split())
        has_arguments = any(isinstance(one, click.Argument) for one in command.params)
        own_options = options(command)
        if command is main or not all(
            w in own_options if w.startswith("--") else has_arguments for w in rest
        ):
            wrong.append(message)
    assert wrong == []


@pytest.mark.rule("ERR-9")
def test_every_option_and_setting_that_a_message_names_exists() -> None:
    known_options = {name for command in all_commands() for name in options(command)} | FOREIGN_OPTIONS
    known_settings = {PREFIX + field.name.upper() for field in fields(Settings)} | OF_THE_CLIENT
    wrong = []
    for message in messages():
        of_the_command = message.where.startswith("cli/") or "sankofa " in message.text
        if of_the_command and not known_options.issuperset(OPTION.findall(message.text)):
            wrong.append(message)
        if not known_settings.issuperset(SETTING.findall(message.text)):
            wrong.append(message)
        # Without its prefix it sets nothing.
        bare = {PREFIX + name for name in BARE_SETTING.findall(message.text) if " " in message.text}
        if not bare.isdisjoint(known_settings) and not message.where.startswith("settings.py"):
            wrong.append(message)
    assert wrong == []


@pytest.mark.rule("ERR-9")
def test_every_path_parameter_and_page_that_a_message_names_exists() -> None:
    by_path = {re.sub(r"/?\{.*", "", one.path): one for one in endpoints()}
    paths = {*by_path, *OUTSIDE_OPERATIONS}
    wrong = []
    for message in messages():
        for path in ENDPOINT.findall(message.text):
            if not any(existing == path or existing.startswith(path + "/") for existing in paths):
                wrong.append(message)
        for path, parameter in PARAMETER.findall(message.text):
            if parameter not in {*by_path[path].parameters, "edition", "known_by", "format"}:
                wrong.append(message)
        for page, heading in DOCUMENT.findall(message.text):
            text = (ROOT / page).read_text()
            if heading and not re.search(rf"^#+ {heading}$", text, re.MULTILINE):
                wrong.append(message)
    assert wrong == []


@pytest.mark.rule("ERR-9")
def test_every_tool_and_argument_that_a_tool_recommends_exists() -> None:
    tools = {one.tool: one for one in operations() if one.tool}
    wrong = []
    for name, one in tools.items():
        names = {one.tool_names.get(parameter, parameter) for parameter in one.parameters}
        advised = set(TOOL.findall(one.agent.description))
        if not advised <= {*tools, *names} or not set(one.agent.narrow_by) <= names:
            wrong.append((name, advised - {*tools}))
    assert wrong == []
