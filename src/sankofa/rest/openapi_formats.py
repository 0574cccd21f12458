"""What the API description says of CSV and Arrow: their content and their header fields."""

from collections.abc import Iterable
from typing import Final

from sankofa.operations.contract import Operation
from sankofa.operations.parameter_types import JsonSchema
from sankofa.operations.schemas import envelope_of
from sankofa.rest.formats import ARROW, CSV

_STREAM: Final = (
    "An IPC stream of the rows, its buffers packed where `Accept` has `;compression=zstd` after the type."
)


def format_contents(operation: Operation) -> JsonSchema:
    """The content of an answer in CSV and in Arrow."""
    fields = ",".join(operation.row.__struct_fields__)
    return {
        CSV: {
            "schema": {"type": "string", "description": f"A header row ({fields}) and a line for each row."}
        },
        ARROW: {"schema": {"type": "string", "format": "binary", "description": _STREAM}},
    }


def format_fields(operation: Operation) -> JsonSchema:
    """The header fields of an answer in CSV or Arrow, by reference."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in _fields(operation)}


def format_headers(described: Iterable[Operation]) -> JsonSchema:
    """The header fields that hold members of the envelope, to share."""
    return {name: header for operation in described for name, header in _fields(operation).items()}


def _fields(operation: Operation) -> JsonSchema:
    members = envelope_of(operation, {})["properties"]
    return {
        "-".join(part.capitalize() for part in ("x", *name.strip("_").split("_"))): {
            "description": f"In CSV and Arrow, where not null: {_lowered(schema['description'])}",
            "schema": {"type": "string"},
        }
        for name, schema in members.items()
        if name != operation.rows_under
    }


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
