"""The API description: OpenAPI 3.1, written from the operations themselves.

New operations appear automatically. The document does not change from day to day: the descriptions of
parameters say that future days are rejected, their schemas do not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from sankofa.model import errors
from sankofa.model.days import REAL_DAYS
from sankofa.model.text import toml_table
from sankofa.operations.answers import API_VERSION, envelope_of, problem_body, row_schema
from sankofa.operations.contract import EDITION, FORMAT, KNOWN_BY, Operation, Parameter, endpoints
from sankofa.operations.parameter_types import JsonSchema
from sankofa.operations.proofs import PROOF, PROVEN
from sankofa.operations.service import (
    LARGEST_HEADERS,
    LONGEST_PATH,
    LONGEST_QUERY,
    HeadersTooLarge,
    UriTooLong,
)
from sankofa.rest.formats import ARROW, CSV, XLSX
from sankofa.rest.request import DEPRECATIONS
from sankofa.settings import Settings

_PARTS: Final = toml_table("sankofa.rest", "openapi")
"""Parts of OpenAPI that no operation declares: keys, header fields, refusals, other paths and schemas."""
_REFUSALS: Final[dict[str, JsonSchema]] = {"304": {"name": "NotModified"}, **_PARTS["refusals"]}
_HEADERS: Final[dict[str, JsonSchema]] = {
    name: {
        "description": header.pop("description"),
        "example": (example := header.pop("example")),
        "schema": {"type": "string" if isinstance(example, str) else "integer", **header},
    }
    for name, header in _PARTS["headers"].items()
}
_COMMON: Final = ("X-Service-API-Version", "X-Request-Id")
"""On every response, errors included."""
_COUNTED: Final = ("RateLimit", "RateLimit-Policy")
"""On every response to a request that was counted: one with a valid key."""
_CACHED: Final = ("ETag", "Cache-Control", "Vary")
_REQUEST_ID: Final = "9f2c41d07ab300000001"
_SCHEMA: Final = "#/components/schemas/{name}"
_SERVICE: Final = "service"
_EXTENSION: Final = "x-sankofa-extension"


_ABOUT: Final = files("sankofa.rest").joinpath("about.txt").read_text("utf-8")


def describe(settings: Settings, described: Sequence[Operation] | None = None) -> dict[str, Any]:
    """The OpenAPI document, for every operation or only for those given."""
    described = endpoints() if described is None else described
    base_url = settings.base_url.rstrip("/")
    paths = _static_paths()
    for operation in described:
        paths[operation.path] = {"get": _entry(operation, described)}
    format_headers = {name: one for operation in described for name, one in _format_fields(operation).items()}
    tags = {_tag(operation): f"Endpoints under /v1/{_tag(operation)}." for operation in described}
    tags[_SERVICE] = "The state of the service, and this description. No key is needed."
    statuses = {status for path in paths.values() for status in path["get"]["responses"]}
    unused = {"Allow"} if "402" in statuses else {"Allow", "X-Upgrade-URL"}
    headers = {name: {**one, "required": True} for name, one in _HEADERS.items() if name not in unused}
    info = _PARTS["info"]
    contact = {**info["contact"], "url": base_url}
    return {
        "openapi": "3.1.0",
        "info": {**info, "version": API_VERSION.decode(), "description": _ABOUT, "contact": contact},
        "servers": [{"url": base_url, "description": "The only environment."}],
        "security": [{"ApiKey": []}, {"Bearer": []}],
        "tags": [{"name": name, "description": tags[name]} for name in sorted(tags)],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": _PARTS["securitySchemes"],
            "headers": headers | format_headers,
            "responses": _response_components(settings, statuses),
            "schemas": dict(sorted(_schemas(described).items())),
        },
    }


@cache
def examples() -> Mapping[str, Any]:
    """A recorded answer of each operation, by name."""
    folder = files("sankofa.rest") / "examples"
    return {
        file.name.removesuffix(".json"): msgspec.json.decode(file.read_bytes())
        for file in folder.iterdir()
        if file.name.endswith(".json")
    }


_TIMES: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?(?!\d)")


def without_later_examples(document: bytes, day: date) -> bytes:
    """A description without examples that have a time after a day (contract: LOCK-2)."""

    def is_later(example: object) -> bool:
        times = _TIMES.findall(msgspec.json.encode(example).decode())
        return any(time > str(day)[: len(time)] for time in times)

    def shown(part: Any) -> Any:
        if isinstance(part, list):
            return [shown(one) for one in part]
        if not isinstance(part, dict):
            return part
        return {
            name: shown(one)
            for name, one in part.items()
            if name not in ("example", "examples") or not is_later(one)
        }

    return msgspec.json.encode(shown(msgspec.json.decode(document)))


def _entry(operation: Operation, described: Sequence[Operation]) -> JsonSchema:
    answer: JsonSchema = {"schema": {"$ref": _SCHEMA.format(name=_answer_name(operation))}}
    if operation.name in examples():
        answer["example"] = examples()[operation.name]
    success: JsonSchema = {
        "description": operation.summary,
        "headers": _header_fields((*_COMMON, *_COUNTED, *(_CACHED[1:] if operation.live else _CACHED)))
        | {name: {"$ref": f"#/components/headers/{name}"} for name in _format_fields(operation)},
        "content": {"application/json": answer, **_format_contents(operation)},
    }
    links = _links(operation, described)
    if links:
        success["links"] = links
    parameters = [*operation.parameters.values()]
    parameters += [EDITION, KNOWN_BY, FORMAT, *([PROOF] if operation.name in PROVEN else [])]
    unchanged = () if operation.live else ("304",)
    entry: JsonSchema = {
        "operationId": operation.name,
        "tags": [_tag(operation)],
        "summary": operation.summary.rstrip("."),
        "description": operation.description or operation.summary,
        "parameters": [_parameter(parameter) for parameter in parameters],
        "responses": {
            "200": success,
            **_refused((*unchanged, *map(str, operation.statuses))),
        },
    }
    if operation.path in DEPRECATIONS:
        entry["deprecated"] = True
    if operation.extension:
        entry[_EXTENSION] = True
    return entry


def _parameter(parameter: Parameter) -> JsonSchema:
    schema = _days_spelled_out(parameter.kind.schema())
    examples = schema.pop("examples", ())
    if parameter.default is not None:
        schema["default"] = parameter.default
    described: JsonSchema = {
        "name": parameter.name,
        "in": "path" if parameter.in_path else "query",
        "required": parameter.required,
        "description": parameter.description,
        "schema": schema,
    }
    if schema["type"] == "array":  # its words are separated by commas
        described |= {"style": "form", "explode": False}
    if parameter.extension:
        described[_EXTENSION] = True
    return described | ({"example": examples[0]} if examples else {})


def _days_spelled_out(schema: JsonSchema) -> JsonSchema:
    """The schema with the days of the calendar where it has a date."""
    if "anyOf" in schema:
        schema = {**schema, "anyOf": [_days_spelled_out(part) for part in schema["anyOf"]]}
    return {**schema, "pattern": REAL_DAYS} if schema.get("format") == "date" else schema


def _links(operation: Operation, described: Sequence[Operation]) -> JsonSchema:
    """Links of an answer: its next page, and other operations about the organisation."""
    links: JsonSchema = {}
    cursor = operation.parameters.get("cursor")
    if cursor is not None and not cursor.extension:
        # A cursor is valid only with the same filters, so the link repeats them.
        same = {
            p.name: f"$request.{'path' if p.in_path else 'query'}.{p.name}"
            for p in operation.parameters.values()
        }
        links["NextPage"] = {
            "operationId": operation.name,
            "description": "The next page; there is none where `next_cursor` is null.",
            "parameters": {**same, "cursor": "$response.body#/next_cursor"},
        }
    # Links use request parameters only: an answer may have no first row to link from.
    if "service_id" in operation.parameters and operation.parameters["service_id"].in_path:
        for other in described:
            parameter = other.parameters.get("service_id")
            if other is not operation and parameter is not None and parameter.in_path:
                links[_camel(other)] = {
                    "operationId": other.name,
                    "description": other.summary,
                    "parameters": {"service_id": "$request.path.service_id"},
                }
    return links


def _schemas(described: Sequence[Operation]) -> JsonSchema:
    """Every schema by name: rows, answers and open pages."""
    schemas = dict(_PARTS["schemas"])
    for operation in described:
        for shape in operation.shapes:
            row, referred = row_schema(shape, _SCHEMA)
            schemas |= {shape.__name__: row, **referred}
        schemas[_answer_name(operation)] = {
            "title": _answer_name(operation),
            "description": operation.summary,
            **envelope_of(
                operation, *({"$ref": _SCHEMA.format(name=row.__name__)} for row in operation.shapes)
            ),
        }
    return schemas


def _static_paths() -> JsonSchema:
    """Paths without an operation: open pages, and the two folders of files."""
    declared = dict(_PARTS["paths"])
    for path, own in _PARTS["files"].items():
        file, edition, known_by = _PARTS["file"]["parameters"]
        known_by = {**known_by, "schema": KNOWN_BY.kind.schema()}
        parameters = [{**file, "example": own["example"]}, edition, known_by]
        refused = [*_PARTS["file"]["refused"], *own["refused"]]
        declared[path] = {**_PARTS["file"], **own, "parameters": parameters, "refused": refused}
    return {path: {"get": _static_entry(entry)} for path, entry in declared.items()}


def _static_entry(declared: JsonSchema) -> JsonSchema:
    """A full OpenAPI entry, from an entry that only names its header fields and refusals."""
    responses = {
        status: {**answer, "headers": _header_fields((*_COMMON, *answer["headers"]))}
        for status, answer in declared["responses"].items()
    }
    entry = {name: value for name, value in declared.items() if name not in ("refused", "example")}
    return {**entry, "responses": {**responses, **_refused(sorted(declared["refused"]))}}


def _refused(statuses: Iterable[str]) -> JsonSchema:
    return {status: {"$ref": f"#/components/responses/{_REFUSALS[status]['name']}"} for status in statuses}


def _tag(operation: Operation) -> str:
    return operation.path.split("/")[2]


def _camel(operation: Operation) -> str:
    return "".join(word.capitalize() for word in operation.name.removeprefix("get_").split("_"))


def _answer_name(operation: Operation) -> str:
    return f"{_camel(operation)}Answer"


def _response_components(settings: Settings, statuses: set[str]) -> JsonSchema:
    """The refusals of all paths, by the name of their component (contract: ERR-1).

    Each example is the body that the service writes for such a problem.
    """
    examples: tuple[errors.Problem, ...] = (
        errors.InvalidParameter("as_of", "no such day in the calendar"),
        errors.Unauthorized(),
        errors.UpgradeRequired("limit: the sample tier serves at most 25 rows.", settings.upgrade_url),
        errors.NotFound("No organisation with service_id DC000000000000000000000000."),
        errors.Gone("edition: 20240701T060000Z-00011-5d41402abc is no longer kept."),
        errors.PreconditionFailed(),
        UriTooLong(f"A query of at most {LONGEST_QUERY} bytes is accepted."),
        errors.RangeNotSatisfiable(1024),
        errors.RateLimited("The limit of 60 requests per minute is reached.", 42),
        HeadersTooLarge(f"Header fields of at most {LARGEST_HEADERS} bytes are accepted."),
        errors.StoreUnavailable("key store"),
    )
    bounds = {"path": LONGEST_PATH, "query": LONGEST_QUERY, "headers": LARGEST_HEADERS}
    components: JsonSchema = {
        "NotModified": {
            "description": "The client already has this answer: `If-None-Match` names its ETag.",
            "headers": _header_fields((*_COMMON, *_COUNTED, *_CACHED)),
        }
    }
    for example in examples:
        if (status := str(example.status)) in statuses:
            about = _REFUSALS[status]
            problem: JsonSchema = {"$ref": "#/components/schemas/Problem"}
            if status == "402":
                problem = {"allOf": [problem, {"type": "object", "required": list(example.members)}]}
            body = problem_body(example, settings.base_url.rstrip("/"), about["instance"], _REQUEST_ID)
            shown = {"schema": problem, "example": msgspec.json.decode(body)}
            components[about["name"]] = {
                "description": about["description"].format(**bounds),
                "headers": _header_fields((*_COMMON, *about.get("always", ())), about.get("sometimes", ())),
                "content": {"application/problem+json": shown},
            }
    return components


def _header_fields(always: Iterable[str], sometimes: Iterable[str] = ()) -> JsonSchema:
    """The header fields of a response: references for those always sent, inline for optional ones."""
    shared = {name: {"$ref": f"#/components/headers/{name}"} for name in always}
    return shared | {name: {**_HEADERS[name], "required": False} for name in sometimes}


def _format_contents(operation: Operation) -> JsonSchema:
    """The content of an answer in CSV, Arrow and Excel."""
    fields = ",".join(operation.row.__struct_encode_fields__)
    lines = f"A header row ({fields}) and a line for each row."
    stream = "Arrow IPC stream of the rows. Add `;compression=zstd` to the type in `Accept` to compress it."
    return {
        CSV: {"schema": {"type": "string", "description": lines}},
        ARROW: {"schema": {"type": "string", "format": "binary", "description": stream}},
        XLSX: {"schema": {"type": "string", "format": "binary", "description": "A workbook of Excel."}},
    }


def _format_fields(operation: Operation) -> JsonSchema:
    """The header fields that hold the members of the envelope in CSV and Arrow."""
    fields = {}
    for name, schema in envelope_of(operation, {})["properties"].items():
        if name != operation.rows_under:
            text = schema["description"]
            field = "-".join(part.capitalize() for part in ("x", *name.strip("_").split("_")))
            fields[field] = {
                "description": f"In CSV and Arrow, if not null: {text[:1].lower()}{text[1:]}",
                "schema": {"type": "string"},
            }
    return fields
