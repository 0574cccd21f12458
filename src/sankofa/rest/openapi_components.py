"""The shared parts of the API description: header fields, problems, and the answers of the open pages.

What a problem looks like is shown by raising one: its example is the body the service writes.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import msgspec

from sankofa.model.errors import (
    Gone,
    InvalidParameter,
    NotFound,
    PreconditionFailed,
    Problem,
    RangeNotSatisfiable,
    RateLimited,
    StoreUnavailable,
    Unauthorized,
    UpgradeRequired,
)
from sankofa.model.text import toml_table
from sankofa.operations.answers import envelope_of, problem_body
from sankofa.operations.contract import Operation
from sankofa.operations.parameter_types import JsonSchema
from sankofa.operations.service import (
    LARGEST_HEADERS,
    LONGEST_PATH,
    LONGEST_QUERY,
    HeadersTooLarge,
    UriTooLong,
)
from sankofa.rest.formats import ARROW, CSV, XLSX
from sankofa.settings import Settings

COMMON: Final = ("X-Service-API-Version", "X-Request-Id")
"""On every response, errors included."""
COUNTED: Final = ("RateLimit", "RateLimit-Policy")
"""On every response to a request that was counted: one with a valid key."""
CACHED: Final = ("ETag", "Cache-Control", "Vary")

_REQUEST_ID = "9f2c41d07ab300000001"


class _Refusal(NamedTuple):
    """How a status is described: an example, and the header fields it always and sometimes has."""

    name: str
    description: str
    example: Problem
    instance: str
    always: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()


def refusals(settings: Settings) -> dict[str, _Refusal]:
    """Every error response by its status (contract: ERR-1)."""
    examples: tuple[Problem, ...] = (
        InvalidParameter("as_of", "no such day in the calendar"),
        Unauthorized(),
        UpgradeRequired("limit: the sample tier serves at most 25 rows.", settings.upgrade_url),
        NotFound("No organisation with service_id DC000000000000000000000000."),
        Gone("edition: 20240701T060000Z-00011-5d41402abc is no longer kept."),
        PreconditionFailed(),
        UriTooLong(f"A query of at most {LONGEST_QUERY} bytes is accepted."),
        RangeNotSatisfiable(1024),
        RateLimited("The limit of 60 requests per minute is reached.", 42),
        HeadersTooLarge(f"Header fields of at most {LARGEST_HEADERS} bytes are accepted."),
        StoreUnavailable("key store"),
    )
    bounds = {"path": LONGEST_PATH, "query": LONGEST_QUERY, "headers": LARGEST_HEADERS}
    return {
        str(example.status): _Refusal(
            entry["name"],
            entry["description"].format(**bounds),
            example,
            entry["instance"],
            tuple(entry.get("always", ())),
            tuple(entry.get("sometimes", ())),
        )
        for example in examples
        for entry in (PARTS["refusals"][str(example.status)],)
    }


def response_components(settings: Settings, used: Iterable[str]) -> JsonSchema:
    """The error responses of these statuses, and 304 where named, by the name of their component."""
    known = refusals(settings)
    components = {}
    for status in sorted(set(used)):
        if status == "304":
            components["NotModified"] = {
                "description": "The client holds this very answer: `If-None-Match` named its ETag.",
                "headers": header_fields((*COMMON, *COUNTED, *CACHED)),
            }
        else:
            components[known[status].name] = _response(known[status], settings.base_url.rstrip("/"))
    return components


def _response(refusal: _Refusal, base_url: str) -> JsonSchema:
    problem: JsonSchema = {"$ref": "#/components/schemas/Problem"}
    members = list(refusal.example.members())
    if refusal.example.status == 402:
        problem = {"allOf": [problem, {"type": "object", "required": members}]}
    body = problem_body(refusal.example, base_url, refusal.instance, _REQUEST_ID)
    return {
        "description": refusal.description,
        "headers": header_fields((*COMMON, *refusal.always), refusal.sometimes),
        "content": {"application/problem+json": {"schema": problem, "example": msgspec.json.decode(body)}},
    }


def header_fields(always: Iterable[str], sometimes: Iterable[str] = ()) -> JsonSchema:
    """The header fields of a response: references for those always sent, inline for optional ones."""
    shared = {name: {"$ref": f"#/components/headers/{name}"} for name in always}
    return shared | {name: {**_HEADERS[name], "required": False} for name in sometimes}


def header_components(statuses: Collection[str]) -> JsonSchema:
    """The header fields to share, without those of statuses that no endpoint has."""
    left_out = {"Allow"} if "402" in statuses else {"Allow", "X-Upgrade-URL"}
    return {name: {**header, "required": True} for name, header in _HEADERS.items() if name not in left_out}


PARTS: Final = toml_table("sankofa.rest", "openapi")
"""Parts of OpenAPI that no operation declares: header fields, refusals, other paths and schemas."""
_HEADERS: Final[dict[str, JsonSchema]] = {
    name: {
        "description": header.pop("description"),
        "example": (example := header.pop("example")),
        "schema": {"type": "string" if isinstance(example, str) else "integer", **header},
    }
    for name, header in PARTS["headers"].items()
}


_STREAM: Final = (
    "An IPC stream of the rows, its buffers packed where `Accept` has `;compression=zstd` after the type."
)


def format_contents(operation: Operation) -> JsonSchema:
    """The content of an answer in CSV, Arrow and Excel."""
    fields = ",".join(operation.row.__struct_encode_fields__)
    return {
        CSV: {
            "schema": {"type": "string", "description": f"A header row ({fields}) and a line for each row."}
        },
        ARROW: {"schema": {"type": "string", "format": "binary", "description": _STREAM}},
        XLSX: {"schema": {"type": "string", "format": "binary", "description": "A workbook of Excel."}},
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
