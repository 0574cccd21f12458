"""The schemas of tools, short: an agent reads the list of all of them before its first question.

They say what the parameters and answers are called and which words are taken. Everything that a value is held
to is in OpenAPI, and in the error that names the argument.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from importlib.resources import files
from types import TracebackType
from typing import Any, Final

from sankofa.model.errors import InvalidParameter
from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.model.rows import Row
from sankofa.model.text import toml_table
from sankofa.operations.contract import Operation, Parameter, operations, printable
from sankofa.operations.parameter_types import JsonSchema
from sankofa.settings import Settings

_KEYWORDS: Final = ("type", "enum", "format", "minimum")
_LONGEST_ENUM: Final = 12
"""Words of an optional argument that are spelled out; more only where one of them is needed."""

_IN_SHORT: Final[dict[str, str]] = toml_table("sankofa.mcp", "arguments")
"""Short descriptions of arguments, for agents."""
_TOLD_ONCE: Final = ("limit", "cursor")
"""Arguments that the instructions explain for all tools."""


def argument_schema(parameter: Parameter, default: object) -> JsonSchema:
    """The schema of an argument: its type, its words, its default, and an example where it is required."""
    whole = parameter.kind.schema()
    schema: JsonSchema = {name: whole[name] for name in _KEYWORDS if name in whole}
    if not parameter.required and len(schema.get("enum", ())) > _LONGEST_ENUM:
        del schema["enum"]
    if "items" in whole:
        schema["items"] = {"type": whole["items"]["type"]}
    in_full = parameter.description.partition(". ")[0].removesuffix(".")
    if parameter.name not in _TOLD_ONCE:
        schema["description"] = _IN_SHORT.get(parameter.name, in_full)
    if default is not None:
        schema["default"] = default
    if parameter.required and whole.get("examples"):
        schema["examples"] = whole["examples"]
    return schema


def answer_schema(operation: Operation) -> JsonSchema:
    """The fields of the rows, and the members that only this answer has; the instructions tell the others."""
    return {
        "type": "object",
        "properties": {operation.rows_under: {"items": _row_schema(operation)}},
        "required": [operation.rows_under, *operation.members],
    }


def _row_schema(operation: Operation) -> JsonSchema:
    """The fields that every row has besides its provenance; those of either shape where two differ."""
    shapes = [
        [name for name in shape.__struct_encode_fields__ if name not in Row.__struct_fields__]
        for shape in operation.shapes
    ]
    common = [name for name in shapes[0] if all(name in fields for fields in shapes)]
    if len(shapes) != 2 or set(common) in map(set, shapes):
        return {"required": common}
    return {"anyOf": [{"required": list(fields)} for fields in shapes]}


def instructions(settings: Settings) -> str:
    """The text, with the limits in force."""
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
        self._types = {name: _json_type(p) for name, p in self._parameters.items()}
        self._translated = _TranslatedNames(operation)

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()

    @property
    def description(self) -> str:
        operation = self.operation
        return operation.agent.description or "\n\n".join(
            filter(None, (operation.summary, operation.description))
        )

    def read(self, arguments: Arguments, today: date) -> dict[str, Any]:
        """The arguments of the operation. Raises InvalidParameter with the tool's name of the argument."""
        given: dict[str, Any] = {}
        for name, value in arguments.items():
            parameter = self._parameters.get(name)
            if parameter is None:
                known = ", ".join(self._parameters)
                raise InvalidParameter(printable(name), f"no such argument; this tool takes: {known}")
            if value is None and not parameter.required:
                continue
            given[parameter.name] = self._checked(name, value)
        with self.translated_names():
            return self.operation.read_tool(given, today)

    def translated_names(self) -> "_TranslatedNames":
        """An InvalidParameter raised inside names the argument as the tool does."""
        return self._translated

    def instance(self, arguments: Arguments) -> str | None:
        """The path REST has for this call, so that its problem reads the same; None if it has none."""
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
        """An argument of its type, as the text REST would have in its query unless it is a list.

        Nothing is guessed: "5" and 5.0 are not 5.
        """
        expected = self._types[name]
        if expected is float and type(value) in (int, float):
            return f"{Decimal(str(value)):f}"
        if type(value) is not expected:
            raise InvalidParameter(name, f"expected {_JSON_NAMES[expected]}, not {_JSON_NAMES[type(value)]}")
        try:
            return value if expected is list else str(value)
        except ValueError:  # Python writes no more than 4,300 digits
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


class _TranslatedNames:
    """See `Tool.translated_names`. Three are entered for each call, so none is made for it."""

    __slots__ = ("_names",)

    def __init__(self, operation: Operation) -> None:
        self._names = operation.tool_names

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(problem, InvalidParameter):
            name = self._names.get(problem.parameter, problem.parameter)
            detail = problem.detail.removeprefix(f"{problem.parameter}: ")
            raise InvalidParameter(name, detail) from None


def tools() -> dict[str, Tool]:
    """Every operation that is a tool, by the name of the tool."""
    return {operation.tool: Tool(operation, operation.tool) for operation in operations() if operation.tool}


def _json_type(parameter: Parameter) -> type:
    return {"integer": int, "number": float, "array": list}.get(parameter.kind.schema()["type"], str)
