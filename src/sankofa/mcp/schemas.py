"""The schemas of tools, short: an agent reads the list of all of them before its first question.

They say what the parameters and answers are called and which words are taken. Everything that a value is held
to is in OpenAPI, and in the error that names the argument.
"""

from typing import Final

from sankofa.model.rows import Row
from sankofa.operations.contract import Operation, Parameter
from sankofa.operations.parameter_types import JsonSchema
from sankofa.operations.schemas import envelope_members

_KEYWORDS: Final = ("type", "enum", "format", "minimum")
_LONGEST_ENUM: Final = 12
"""Words of an optional argument that are spelled out; more only where one of them is needed."""

_IN_SHORT: Final = {
    "as_of": "Default today",
    "base": "Priced currency",
    "country": "ISO alpha-2",
    "cursor": "Last next_cursor",
    "from": "First day",
    "limit": "Most rows",
    "metric": "Metric slug",
    "order": "Of the rows",
    "period_type": "Cadence",
    "service_id": "Organisation",
    "to": "Last day",
    "vintages": "latest known, first filed, or all",
    "frequency": "Series mode",
    "series": "Series mode: key such as FX.EUR.ZAR",
    "series_type": "Series mode: family, e.g. fx, cpi",
    "indicator": "Annual mode: indicator code",
    "line_items": "Only these line items",
    "detail": "full: with the OCDS release",
    "query": "Words to look for",
    "quote": "Currency of the price",
    "via": "Third currency",
    "id_type": "Kind of identifier",
    "role": "Such as buyer or supplier",
    "exchange": "Such as JSE or XJSE",
    "q": "Words of its key or name, complete or not",
    "shape": "wide: a row per line item, a column per period",
    "kind": "Only this statement",
    "ocid": "Only this contracting process",
    "category": "As the portal publishes it",
}
"""What an argument is, where the description of the parameter says more than an agent needs."""


def argument_schema(parameter: Parameter, default: object) -> JsonSchema:
    """What an argument is: its type, its words, its default, and an example where it is needed."""
    whole = parameter.kind.schema()
    schema: JsonSchema = {name: whole[name] for name in _KEYWORDS if name in whole}
    if not parameter.required and len(schema.get("enum", ())) > _LONGEST_ENUM:
        del schema["enum"]
    if "items" in whole:
        schema["items"] = {"type": whole["items"]["type"]}
    in_full = parameter.description.partition(". ")[0].removesuffix(".")
    schema["description"] = _IN_SHORT.get(parameter.name, in_full)
    if default is not None:
        schema["default"] = default
    if parameter.required and whole.get("examples"):
        schema["examples"] = whole["examples"]
    return schema


def answer_schema(operation: Operation) -> JsonSchema:
    """The members of an answer and the fields of its rows, by name."""
    members = list(envelope_members(operation))
    return {
        "type": "object",
        "properties": {
            operation.rows_under: {"type": "array", "items": _row_schema(operation)},
            "truncated": {"type": "boolean"},
            "hint": {"type": "string"},
        },
        "required": members,
    }


def _row_schema(operation: Operation) -> JsonSchema:
    """The fields that every row has besides its provenance; those of either shape where two differ."""
    shapes = [
        [name for name in shape.__struct_fields__ if name not in Row.__struct_fields__]
        for shape in operation.shapes
    ]
    common = [name for name in shapes[0] if all(name in fields for fields in shapes)]
    if len(shapes) != 2 or set(common) in map(set, shapes):
        return {"type": "object", "required": common}
    return {"type": "object", "anyOf": [{"required": list(fields)} for fields in shapes]}
