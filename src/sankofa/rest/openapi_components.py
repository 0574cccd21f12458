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
from sankofa.operations.answers import API_VERSION, envelope_of, problem_body
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
_STORES = ("datastore", "keystore", "usagestore")


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
    issuer = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
    return {
        "400": _Refusal(
            "BadRequest",
            "A parameter is malformed, missing, unknown or given twice: `parameter` names it. A request "
            "without exactly one Host header gets this too, uncounted and without `parameter`.",
            InvalidParameter("as_of", "no such day in the calendar"),
            issuer,
            sometimes=COUNTED,
        ),
        "401": _Refusal(
            "Unauthorized",
            "Missing or invalid API key.",
            Unauthorized(),
            issuer,
            always=("WWW-Authenticate",),
        ),
        "402": _Refusal(
            "UpgradeRequired",
            "A sample-tier key asked for more rows than its cap, or made a lookup in the paid crosswalk. "
            "Omitting `limit` gives the free preview.",
            UpgradeRequired("limit: the sample tier serves at most 25 rows.", settings.upgrade_url),
            "/v1/screen",
            always=("X-Upgrade-URL", *COUNTED),
        ),
        "404": _Refusal(
            "NotFound",
            "No record with that identifier; or `edition` names one that was never published.",
            NotFound("No organisation with service_id DC000000000000000000000000."),
            "/v1/fundamentals/DC000000000000000000000000",
            sometimes=COUNTED,
        ),
        "410": _Refusal(
            "Gone",
            "The edition asked for is no longer kept, or withdrawn.",
            Gone("edition: 20240701T060000Z-00011-5d41402abc is no longer kept."),
            "/v1/changes",
            sometimes=COUNTED,
        ),
        "412": _Refusal(
            "PreconditionFailed",
            "The file is not the one that `If-Match` names.",
            PreconditionFailed(),
            "/open/procurement-demand.parquet",
            sometimes=COUNTED,
        ),
        "414": _Refusal(
            "UriTooLong",
            f"The path is longer than {LONGEST_PATH} bytes or the query than {LONGEST_QUERY}. Not counted.",
            UriTooLong(f"A query of at most {LONGEST_QUERY} bytes is accepted."),
            issuer,
        ),
        "416": _Refusal(
            "RangeNotSatisfiable",
            "No byte of the range asked for is in the file.",
            RangeNotSatisfiable(1024),
            "/open/procurement-demand.parquet",
            sometimes=COUNTED,
        ),
        "429": _Refusal(
            "RateLimited",
            "The per-minute burst limit or the monthly cap was reached. An address that sent too many "
            "unknown keys gets it for further ones, without `RateLimit`: they have no limits of their own.",
            RateLimited("The limit of 60 requests per minute is reached.", 42),
            issuer,
            always=("Retry-After",),
            sometimes=COUNTED,
        ),
        "431": _Refusal(
            "HeadersTooLarge",
            f"The header fields have more than {LARGEST_HEADERS} bytes together. Not counted.",
            HeadersTooLarge(f"Header fields of at most {LARGEST_HEADERS} bytes are accepted."),
            issuer,
        ),
        "503": _Refusal(
            "Unavailable",
            "A store behind the service is temporarily unavailable; retry.",
            StoreUnavailable("key store"),
            issuer,
            always=("Retry-After",),
            sometimes=COUNTED,
        ),
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


def _header(description: str, example: str | int, **schema: object) -> JsonSchema:
    kind = "string" if isinstance(example, str) else "integer"
    return {"description": description, "schema": {"type": kind, **schema}, "example": example}


_HEADERS: Final[dict[str, JsonSchema]] = {
    "X-Service-API-Version": _header(
        "Version of this description.", API_VERSION.decode(), const=API_VERSION.decode()
    ),
    "X-Request-Id": _header("Names the request in our logs.", _REQUEST_ID, pattern="^[0-9a-f]{20,28}$"),
    "RateLimit": _header(
        "Requests left (r) in this UTC minute and calendar month, and the seconds until each ends (t).",
        '"minute";r=59;t=42, "month";r=4999;t=1036800',
        pattern='^"minute";r=[0-9]+;t=[0-9]+, "month";r=[0-9]+;t=[0-9]+$',
    ),
    "RateLimit-Policy": _header(
        "Requests granted (q) per window of so many seconds (w).",
        '"minute";q=60;w=60, "month";q=5000;w=2592000',
        pattern='^"minute";q=[0-9]+;w=60, "month";q=[0-9]+;w=[0-9]+$',
    ),
    "ETag": _header(
        "Names this answer; send it back as If-None-Match.", '"20240701T060000Z-1f"', pattern='^"[^"]+"$'
    ),
    "Cache-Control": _header("Who may keep the answer.", "private"),
    "Vary": _header("What the answer depends on besides its address.", "X-API-Key, Accept, Accept-Encoding"),
    "Accept-Ranges": _header("Parts of the file may be asked for.", "bytes", const="bytes"),
    "Retry-After": _header("Seconds after which to try again.", 42, minimum=1),
    "X-Upgrade-URL": _header(
        "Where the key can be upgraded.", "https://sankofa.example/upgrade", format="uri"
    ),
    "WWW-Authenticate": _header("How to authenticate.", 'ApiKey realm="sankofa", header="X-API-Key"'),
    "Allow": _header("The methods the path answers (on 405).", "GET, HEAD, OPTIONS"),
}


def page_schemas() -> JsonSchema:
    """The schemas that belong to no operation."""
    return {"Problem": _PROBLEM, "Health": _HEALTH, "Status": _STATUS}


def _object(description: str, properties: JsonSchema, optional: Iterable[str] = ()) -> JsonSchema:
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "description": description, "properties": properties, "required": required}


def _text(description: str, **schema: object) -> JsonSchema:
    return {"type": "string", "description": description, **schema}


_PROBLEM: Final = _object(
    "Why there is no answer (RFC 9457).",
    {
        "type": _text("Names the kind of problem, and leads to its explanation.", format="uri"),
        "title": _text("The kind of problem in a few words."),
        "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "The HTTP status."},
        "detail": _text("What was wrong this time, in one sentence."),
        "instance": _text("The path that was asked for.", format="uri-reference"),
        "error": _text("The same as `detail`, for simple clients."),
        "parameter": _text("The parameter at fault (400)."),
        "upgrade": _object(
            "How to get more than the sample tier serves (402).",
            {"checkout_url": _text("Where the key can be upgraded.", format="uri")},
        ),
        "docs": _text("Where the problem is explained.", format="uri"),
        "request_id": _text("Quote it when you report the problem."),
    },
    optional=("parameter", "upgrade"),
)

_HEALTH: Final = _object(
    "The service is alive.", {"status": _text("Always `ok`.", const="ok", examples=["ok"])}
)

_CHECK: Final = _object(
    "One real read.",
    {
        "status": _text("Whether it answered within a second.", enum=["ok", "failed"]),
        "latency_ms": {"type": "number", "minimum": 0, "description": "How long that took."},
    },
)

_FOLLOWING: Final = _object(
    "Only of a node that follows editions from elsewhere.",
    {
        "edition": {"type": ["string", "null"], "description": "The one that is current there."},
        "answered_at": {"type": ["string", "null"], "description": "When it last answered (UTC)."},
        "age_seconds": {"type": ["number", "null"], "description": "How long ago that was."},
        "reason": {"type": ["string", "null"], "description": "Why what is served may not be the newest."},
    },
)

_STATUS: Final = _object(
    "What a real read of each dependency gave.",
    {
        "status": _text("`degraded` where any dependency did not answer.", enum=["ok", "degraded"]),
        "build": _text("What is running: the version and the commit."),
        "version": _text("Version of the service."),
        "edition": {"type": ["string", "null"], "description": "The snapshot served; null where none is."},
        "time": _text("The service's clock (UTC).", format="date-time"),
        "checks": _object("By dependency.", dict.fromkeys(_STORES, _CHECK)),
        "degraded": {
            "type": "array",
            "items": {"type": "string", "enum": [*_STORES, "editions"]},
            "description": "The dependencies that did not answer; `editions` where the place does not that "
            "editions are followed from, which stops no answer.",
        },
        "following": _FOLLOWING,
    },
    optional=("following",),
)


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
