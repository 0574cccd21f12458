"""The JSON schemas of what operations answer, for OpenAPI and for the output schemas of the MCP tools."""

from collections.abc import Mapping
from typing import Any

import msgspec

from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.model.rows import Row
from sankofa.operations.contract import Operation
from sankofa.operations.parameter_types import JsonSchema


def row_schema(row_type: type[Row], ref_template: str) -> tuple[JsonSchema, dict[str, JsonSchema]]:
    """The schema of a row, and by name those of the types it refers to as `ref_template` says."""
    (reference,), components = msgspec.json.schema_components((row_type,), ref_template=ref_template)
    schemas = {name: _as_on_the_wire(schema) for name, schema in components.items()}
    return schemas.pop(_name(reference, ref_template)), schemas


def envelope_members(operation: Operation) -> Mapping[str, JsonSchema]:
    """The members of an operation's answer."""
    members: Mapping[str, JsonSchema] = envelope_of(operation, {})["properties"]
    return members


def envelope_of(operation: Operation, *shapes: JsonSchema) -> JsonSchema:
    """The schema of an operation's answer around those of its rows (schemas, or references to them).

    It is open: a member may be added without a new version.
    """
    row = shapes[0] if len(shapes) == 1 else {"anyOf": list(shapes)}
    properties: dict[str, JsonSchema] = {
        operation.rows_under: {"type": "array", "items": row, "description": "In the documented order."},
        "count": {"type": "integer", "minimum": 0, "description": "How many rows this answer holds."},
        "_license": {
            "type": "string",
            "description": "The terms of the data, and the attribution that its sources ask for.",
            "examples": [LICENSE_NOTICE],
        },
    }
    if "as_of" in operation.parameters:
        properties["as_of"] = {
            "type": "string",
            "format": "date",
            "description": "The day applied: nothing that was published after it is in the answer. "
            "Sent back, it gives the same rows.",
        }
    properties["edition"] = {"type": "string", "description": "The snapshot that answered."}
    properties["truncated"] = {
        "type": "boolean",
        "description": "True exactly when more rows matched than are here.",
    }
    if "cursor" in operation.parameters:
        properties["next_cursor"] = {
            "type": ["string", "null"],
            "description": "Passed back verbatim as `cursor` for the next page; null on the last.",
        }
    properties |= operation.members
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": True,
    }


def _as_on_the_wire(schema: Any) -> Any:
    """Decimals are written as numbers, and every field of a row is always present."""
    if isinstance(schema, list):
        return [_as_on_the_wire(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "decimal":
        return {**{k: v for k, v in schema.items() if k != "format"}, "type": "number"}
    fixed = {key: _as_on_the_wire(value) for key, value in schema.items()}
    if "properties" in fixed:
        fixed["required"] = list(fixed["properties"])
    return fixed


def _name(reference: JsonSchema, ref_template: str) -> str:
    before, _, after = ref_template.partition("{name}")
    return str(reference["$ref"]).removeprefix(before).removesuffix(after)
