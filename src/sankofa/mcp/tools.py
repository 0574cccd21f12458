"""The tools: their schemas, and answers of bounded size (contract: MCP-9).

Schemas are short, because an agent reads all of them before its first question; OpenAPI has the details. If
the rows of the call fit, the answer is the endpoint's, byte for byte. Otherwise it has the rows that the
endpoint gives for a smaller `limit`, and a cursor to the rest.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sankofa.access.tiers import Grant
from sankofa.edition.read.edition import Selection
from sankofa.model.errors import InvalidParameter
from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.model.rows import Row
from sankofa.model.text import toml_table
from sankofa.operations.answers import envelope
from sankofa.operations.contract import NO_ROWS, Answer, Call, Operation, Parameter, operations, printable
from sankofa.operations.locked import perform
from sankofa.operations.parameter_types import JsonSchema
from sankofa.settings import Settings

_KEYWORDS: Final = ("type", "enum", "format", "minimum")
_LONGEST_ENUM: Final = 12
"""The maximum number of words listed for an optional argument; required ones list all."""

_IN_SHORT: Final[dict[str, str]] = toml_table("sankofa.mcp", "arguments")
"""Short descriptions of arguments, for agents."""
_COMMON: Final = ("limit", "cursor")
"""Arguments that the instructions explain for all tools."""


def argument_schema(parameter: Parameter, default: object) -> JsonSchema:
    """The schema of an argument: its type, words and default, and an example if it is required."""
    whole = parameter.kind.schema()
    schema: JsonSchema = {name: whole[name] for name in _KEYWORDS if name in whole}
    if not parameter.required and len(schema.get("enum", ())) > _LONGEST_ENUM:
        del schema["enum"]
    if "items" in whole:
        schema["items"] = {"type": whole["items"]["type"]}
    in_full = parameter.description.partition(". ")[0].removesuffix(".")
    if parameter.name not in _COMMON:
        schema["description"] = _IN_SHORT.get(parameter.name, in_full)
    if default is not None:
        schema["default"] = default
    if parameter.required and whole.get("examples"):
        schema["examples"] = whole["examples"]
    return schema


def answer_schema(operation: Operation) -> JsonSchema:
    """The fields of the rows, and the members of this answer only; the instructions explain the others."""
    return {
        "type": "object",
        "properties": {operation.rows_under: {"items": _row_schema(operation)}},
        "required": [operation.rows_under, *operation.members],
    }


def _row_schema(operation: Operation) -> JsonSchema:
    """The fields that every row has besides its provenance; if two shapes differ, the fields of both."""
    shapes = [
        [name for name in shape.__struct_encode_fields__ if name not in Row.__struct_fields__]
        for shape in operation.shapes
    ]
    common = [name for name in shapes[0] if all(name in fields for fields in shapes)]
    if len(shapes) != 2 or set(common) in map(set, shapes):
        return {"required": common}
    return {"anyOf": [{"required": list(fields)} for fields in shapes]}


def instructions(settings: Settings) -> str:
    """The text with the configured limits filled in."""
    text = files("sankofa.mcp").joinpath("instructions.txt").read_text("utf-8").rstrip("\n")
    return text.format(settings=settings, notice=LICENSE_NOTICE)


Arguments = Mapping[str, Any]

_JSON_NAMES: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction or an exponent",
    str: "text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class Tool:
    """One operation as an agent sees it."""

    def __init__(self, operation: Operation, name: str) -> None:
        self.operation = operation
        self.name = name
        names = operation.tool_names
        self._parameters = {names.get(name, name): p for name, p in operation.parameters.items()}
        types = {"integer": int, "number": float, "array": list}
        self._types = {name: types.get(p.kind.schema()["type"], str) for name, p in self._parameters.items()}

    def described(self) -> dict[str, Any]:
        """The tool as `tools/list` has it."""
        return {
            # Read-only tools can be repeated: no hint is needed.
            "annotations": {"destructiveHint": False, "openWorldHint": False, "readOnlyHint": True},
            "description": self.description,
            "inputSchema": self.input_schema(),
            "name": self.name,
            "outputSchema": answer_schema(self.operation),
            "title": self.name.replace("_", " ").capitalize(),
        }

    @property
    def description(self) -> str:
        operation = self.operation
        return operation.agent.description or "\n\n".join(
            filter(None, (operation.summary, operation.description))
        )

    def read(self, arguments: Arguments, today: date, grant: Grant) -> dict[str, Any]:
        """The arguments of the operation, decoded and checked. Problems use the tool's argument names.

        Raises InvalidParameter, NotFound or UpgradeRequired.
        """
        checked: dict[str, Any] = {}
        for name, value in arguments.items():
            parameter = self._parameters.get(name)
            if parameter is None:
                known = ", ".join(self._parameters)
                raise InvalidParameter(printable(name), f"no such argument; this tool takes: {known}")
            if value is None and not parameter.required:
                continue
            checked[parameter.name] = self._checked(name, value)
        try:
            whole = self.operation.read({}, today, checked, self.operation.agent.defaults)
            self.operation.admit(grant, whole)
        except InvalidParameter as problem:
            raise self.translated(problem) from None
        return whole

    def translated(self, problem: InvalidParameter) -> InvalidParameter:
        """The problem with the tool's name for the argument."""
        name = self.operation.tool_names.get(problem.parameter, problem.parameter)
        return InvalidParameter(name, problem.detail.removeprefix(f"{problem.parameter}: "))

    def instance(self, arguments: Arguments) -> str | None:
        """The REST path of this call, so that its problem reads the same; None if there is none."""
        path = self.operation.path
        if not path:
            return None
        for name, parameter in self._parameters.items():
            if parameter.in_path:
                value = arguments.get(name)
                if not isinstance(value, str) or value != printable(value) or not value:
                    return None
                path = path.replace(f"{{{parameter.name}}}", value)
        return path

    def _checked(self, name: str, value: object) -> object:
        """An argument of the right type, as the text of a REST query unless it is a list.

        Nothing is guessed: "5" and 5.0 are not 5.
        """
        expected = self._types[name]
        if expected is float and type(value) in (int, float):
            return f"{Decimal(str(value)):f}"
        if type(value) is not expected:
            raise InvalidParameter(name, f"expected {_JSON_NAMES[expected]}, not {_JSON_NAMES[type(value)]}")
        try:
            return value if expected is list else str(value)
        except ValueError:  # Python writes at most 4,300 digits
            raise InvalidParameter(name, "expected a whole number that is not as long") from None

    def input_schema(self) -> JsonSchema:
        """The schema of its arguments, under the tool's names."""
        defaults = self.operation.agent.defaults
        properties = {
            name: argument_schema(parameter, defaults.get(parameter.argument, parameter.default))
            for name, parameter in self._parameters.items()
        }
        required = [name for name, parameter in self._parameters.items() if parameter.required]
        return {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }


def tools() -> dict[str, Tool]:
    """Every operation that is a tool, by the name of the tool."""
    return {operation.tool: Tool(operation, operation.tool) for operation in operations() if operation.tool}


_SMALLEST_ROW: Final = 150
"""The smallest size of a row, which always has its source, licence and time."""
_CURSOR: Final = 256
"""Bytes reserved for the cursor, which depends on the rows; a longer cursor costs a row."""
_raws: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _ReleaseAddress(msgspec.Struct):
    country: str = ""
    release_date: str = ""
    ocid: str = ""


async def bounded_body(operation: Operation, call: Call, arguments: dict[str, Any], budget: int) -> bytes:
    """The body of a tool's answer. Raises what the operation raises."""
    if "limit" not in operation.parameters:  # one record or a few: never cut
        answer = await perform(operation, call, arguments)
        body = envelope(answer, call.edition, operation)
        too_large = operation.agent.compact is not None and len(body) > budget
        return _one_row(operation, call, answer, budget) if too_large else body
    requested: int | None = arguments["limit"]
    limit = requested if call.grant.sample else _at_most(operation, requested, budget // _SMALLEST_ROW)
    answer = await perform(operation, call, {**arguments, "limit": limit})
    selection = answer.selection
    size = sum(map(len, selection.slices))
    if size <= budget and (limit == requested or not selection.truncated):
        body = envelope(answer, call.edition, operation)
        if len(body) <= budget:
            return body
    hint = _hint(operation, call, budget)
    room = budget - len(_body(operation, call, replace(answer, selection=NO_ROWS), hint)) - _CURSOR
    if _may_shorten(operation, arguments):
        arguments = {**arguments, **operation.agent.overflow}
        # An estimate from the rows in the other order, slightly low: one row too many costs a second read.
        rows = max(1, room * selection.count * 97 // (max(size, 1) * 100))
        answer = await perform(operation, call, {**arguments, "limit": rows})
    rows = _rows_within(answer.selection, room)
    return await _cut(operation, call, {**arguments, "limit": rows}, answer, budget)


def _at_most(operation: Operation, requested: int | None, most: int) -> int | None:
    """The `limit` to ask with: at most the rows that can fit."""
    if requested is None:
        return most if operation.parameters["limit"].all_by_default else None
    return min(requested, most)


def _may_shorten(operation: Operation, arguments: dict[str, Any]) -> bool:
    """Whether the tool may choose the first rows, because the call does not."""
    free = (*operation.agent.overflow, "limit", "cursor")
    return bool(operation.agent.overflow) and all(arguments.get(name) is None for name in free)


def _rows_within(selection: Selection, room: int) -> int:
    """The number of rows that fit into this many bytes."""
    if sum(map(len, selection.slices)) + selection.count <= room:
        return selection.count
    rows = 0
    for size in _sizes(selection):
        room -= size + 1
        if room < 0:
            break
        rows += 1
    return rows


def _sizes(selection: Selection) -> Iterator[int]:
    if len(selection.slices) == selection.count:
        yield from map(len, selection.slices)
        return
    for rows in selection.lists():
        yield from (len(bytes(row)) for row in _raws(rows))


async def _cut(
    operation: Operation, call: Call, arguments: dict[str, Any], answer: Answer, budget: int
) -> bytes:
    """The answer with as many rows as fit, or with one row if none fits."""
    rows: int = arguments["limit"]
    while True:
        if rows != answer.selection.count:
            answer = await perform(operation, call, {**arguments, "limit": max(rows, 1)})
        usable = answer.members.get("next_cursor") is not None
        body = _body(operation, call, answer, _hint(operation, call, budget, usable=usable))
        if len(body) <= budget:
            return body
        if rows <= 1:
            return _one_row(operation, call, answer, budget)
        rows -= 1 + rows * (len(body) - budget) // len(body)


def _one_row(operation: Operation, call: Call, answer: Answer, budget: int) -> bytes:
    """A row that is too large by itself, without its largest part, and the address of the whole row."""
    shrink = operation.agent.compact
    row = next(answer.selection.lists())[1:-1]
    if shrink is None:
        return _body(operation, call, answer, _hint(operation, call, budget))
    placed = msgspec.json.decode(row, type=_ReleaseAddress)
    selection = replace(answer.selection, slices=(shrink(row),), between=b",", slices_per_row=1)
    rest = f"{call.base_url}{operation.path}?country={placed.country}&from={placed.release_date[:10]}"
    if "{ocid}" in operation.path:
        rest = f"{call.base_url}{operation.path.format(ocid=quote(placed.ocid, safe=''))}"
    hint = f"The whole of this row is larger than {budget:,} bytes: GET {rest} over REST has it."
    return _body(operation, call, replace(answer, selection=selection), hint)


def _hint(operation: Operation, call: Call, budget: int, *, usable: bool = True) -> str:
    """One sentence: what is missing, and how to get it."""
    names = " or ".join(f"`{name}`" for name in operation.agent.narrow_by) or "`limit`"
    left_out = f"Rows beyond {budget:,} bytes are left out"
    if usable:
        return f"{left_out}: pass `next_cursor` as `cursor` for the rest, or narrow by {names}."
    if call.grant.sample and "cursor" in operation.parameters:
        up = call.grant.upgrade_url
        return f"{left_out}: narrow by {names}, or page on by cursor with a paid key ({up})."
    return f"{left_out}: narrow by {names}."


def _body(operation: Operation, call: Call, answer: Answer, hint: str) -> bytes:
    hinted = replace(answer, members={**answer.members, "hint": hint})
    return envelope(hinted, call.edition, operation)
