"""Machine-readable catalogues: DCAT-AP 3, Croissant 1.1, Frictionless and MCP's server.json. They need no
key and link only to open files. See contract: DIA-6."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from sankofa import __version__
from sankofa.dialects.contract import Dialect, DialectQuestion, DialectReply, DialectRequest
from sankofa.model.errors import NotFound, Problem
from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.operations.catalogue import (
    LICENSED_FILES,
    MEDIA_TYPE,
    OPEN_FILES,
    file_schema,
    is_dated,
    table_name,
)

_TITLE: Final = "Sankofa"
_DESCRIPTION: Final = (
    "Point-in-time data on African and emerging-market companies, public tenders and economies. Every row "
    "names its source, licence class and the day on which it became public."
)
_CC_BY: Final = "https://creativecommons.org/licenses/by/4.0/"
_PREFIXES: Final = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcatap": "http://data.europa.eu/r5r/",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA: Final = "http://www.iana.org/assignments/media-types/"
_SHA256: Final = "http://spdx.org/rdf/terms#checksumAlgorithm_sha256"
_PUBLIC: Final = "http://publications.europa.eu/resource/authority/access-right/PUBLIC"
_RESTRICTED: Final = "http://publications.europa.eu/resource/authority/access-right/RESTRICTED"


class _File(NamedTuple):
    """A file of a table, and its address if it needs no key."""

    name: str
    entry: Mapping[str, Any]
    url: str

    @property
    def stem(self) -> str:
        return self.name.removesuffix(".parquet")


class _Table(NamedTuple):
    name: str
    description: str
    attribution: str
    columns: dict[str, tuple[str, str]]
    """Arrow type and description of each column, by name."""
    files: list[_File]
    is_open: bool


_Node = dict[str, Any]
"""A JSON-LD node: its address, its class, and its nodes and values by predicate."""


async def _answer(question: DialectQuestion) -> DialectReply:
    request = question.request
    base = question.call.base_url
    if request.root == _SERVER:
        return DialectReply(_pretty(_server(question)))
    tables = await _tables(question)
    if request.path == "jsonld":
        return DialectReply(_pretty({"@context": _PREFIXES, **_dcat(base, tables)}), "application/ld+json")
    if request.path == "ttl":
        prefixes = [f"@prefix {name}: <{address}> ." for name, address in _PREFIXES.items()]
        lines = [*prefixes, *dict.fromkeys(_turtle(_dcat(base, tables))), ""]
        return DialectReply("\n".join(lines).encode(), "text/turtle; charset=utf-8")
    if request.path == "croissant.json":
        return DialectReply(_pretty(_croissant(base, tables, question)), "application/ld+json")
    if request.path == "datapackage.json":
        return DialectReply(_pretty(_package(base, tables)))
    raise NotFound("Catalogues are /catalog.jsonld, .ttl, .croissant.json and .datapackage.json.")


def _pretty(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


async def _tables(question: DialectQuestion) -> list[_Table]:
    """The tables of the edition; in a locked view only tables with dated rows, without files."""
    edition, base = question.call.edition, question.call.base_url
    tables: dict[str, _Table] = {}
    for name, entry in sorted(edition.files.items()):
        if edition.lock is not None and not is_dated(name):
            continue
        table = tables.get(table_name(name))
        if table is None:
            schema = await file_schema(edition, name)
            metadata = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
            descriptions = json.loads(metadata.get("columns", "{}"))
            columns = {field.name: (str(field.type), descriptions.get(field.name, "")) for field in schema}
            table = _Table(
                table_name(name),
                metadata.get("methodology", "").split("\n\n")[0].lstrip("# "),
                metadata.get("attribution", "") if edition.lock is None else "",
                columns,
                [],
                entry["access"] == "open",
            )
            tables[table.name] = table
        if edition.lock is None:
            folder = OPEN_FILES if table.is_open else LICENSED_FILES
            table.files.append(_File(name, entry, f"{base}{folder}{name}?edition={edition.id}"))
    return list(tables.values())


def _node(subject: str, kind: str, **values: "_Node | list[_Node] | None") -> _Node:
    """A node, without empty predicates; `dct__title` means `dct:title`."""
    own = {name.replace("__", ":"): value for name, value in values.items() if value}
    return {"@id": subject, "@type": kind, **own}


def _iri(address: str) -> _Node:
    return {"@id": address}


def _text(text: str) -> _Node:
    return {"@value": text, "@language": "en"}


def _dcat(base: str, tables: list[_Table]) -> _Node:
    """The catalogue; DCAT-AP's shapes require the class of each address."""
    publisher = _node(f"{base}/#publisher", "foaf:Agent", foaf__name=_text(_TITLE))
    services = {
        "rest": ("REST", "", f"{base}/openapi.json"),
        "mcp": ("Model Context Protocol", "/mcp", f"{base}/server.json"),
        "delta": ("Delta Sharing", "/delta-sharing", ""),
        "sdmx": ("SDMX-REST 2.2", "/sdmx", ""),
    }
    return _node(
        f"{base}/catalog.ttl",
        "dcat:Catalog",
        dct__title=_text(_TITLE),
        dct__description=_text(f"{_DESCRIPTION} {LICENSE_NOTICE}"),
        dct__publisher=publisher,
        dcat__dataset=[_dataset(base, table, publisher) for table in tables],
        dcat__service=[
            _node(
                f"{base}/#{name}",
                "dcat:DataService",
                dct__title=_text(f"{_TITLE}: {title}"),
                dcat__endpointURL=_iri(f"{base}{path or '/'}"),
                dcat__endpointDescription=_iri(described) if described else None,
            )
            for name, (title, path, described) in services.items()
        ],
    )


def _dataset(base: str, table: _Table, publisher: _Node) -> _Node:
    about = " ".join(filter(None, (table.description, table.attribution))) or table.name
    return _node(
        f"{base}/catalog.ttl#{table.name}",
        "dcat:Dataset",
        dct__title=_text(table.name),
        dct__identifier=_text(table.name),
        dct__description=_text(about),
        dct__publisher=_iri(publisher["@id"]),
        dct__accessRights=_node(_PUBLIC if table.is_open else _RESTRICTED, "dct:RightsStatement"),
        dcat__distribution=[
            _node(
                f"{base}/catalog.ttl#{file.name}",
                "dcat:Distribution",
                dct__title=_text(file.name),
                dcat__accessURL=_iri(file.url),
                dcat__downloadURL=_iri(file.url) if table.is_open else None,
                dcat__mediaType=_node(_MEDIA + MEDIA_TYPE, "dct:MediaType"),
                dcat__byteSize={"@value": str(file.entry["size_bytes"]), "@type": "xsd:nonNegativeInteger"},
                dct__license=_node(_CC_BY, "dct:LicenseDocument")
                if file.entry["license"] == "CC-BY-4.0"
                else None,
                spdx__checksum=_node(
                    f"{base}/catalog.ttl#{file.name}-checksum",
                    "spdx:Checksum",
                    spdx__algorithm=_node(_SHA256, "spdx:ChecksumAlgorithm"),
                    spdx__checksumValue={"@value": file.entry["sha256"], "@type": "xsd:hexBinary"},
                ),
            )
            for file in table.files
        ],
    )


def _turtle(node: _Node) -> Iterator[str]:
    """The statements about a node and the nodes below it."""
    statements = [f"a {node['@type']}"]
    for name, value in node.items():
        values = value if isinstance(value, list) else [value]
        if not name.startswith("@"):
            statements.append(f"{name} {', '.join(map(_term, values))}")
            for one in values:
                if "@id" in one and "@type" in one:
                    yield from _turtle(one)
    yield f"\n<{node['@id']}> " + " ;\n    ".join(statements) + " ."


def _term(value: _Node) -> str:
    if "@id" in value:
        return f"<{value['@id']}>"
    text = json.dumps(value["@value"])
    return f"{text}^^{value['@type']}" if "@type" in value else f"{text}@en"


_CROISSANT_TYPES: Final = {
    "double": "sc:Float",
    "int64": "sc:Integer",
    "bool": "sc:Boolean",
    "date32[day]": "sc:Date",
    "timestamp[us, tz=UTC]": "sc:DateTime",
}
_CROISSANT_WORDS: Final = (
    "citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes "
    "isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)
_CROISSANT_CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
    **{word: f"cr:{word}" for word in _CROISSANT_WORDS.split()},
}


def _croissant(base: str, tables: list[_Table], question: DialectQuestion) -> dict[str, Any]:
    """The open files, readable without a key; a locked view has none."""
    files = [(table, file) for table in tables if table.is_open for file in table.files]
    built = question.call.edition.manifest["built_from"] if question.call.lock is None else None
    dates = {"datePublished": built[:10]} if built else {"datePublished": str(question.call.lock)}
    return {
        "@context": _CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": "sankofa",
        "description": f"{_DESCRIPTION} {LICENSE_NOTICE}",
        "license": _CC_BY,
        "url": f"{base}/",
        "version": "1.0.0",
        "creator": {"@type": "sc:Organization", "name": _TITLE, "url": f"{base}/"},
        "citeAs": f"{_TITLE}, {base}/",
        **dates,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file.name,
                "name": file.name,
                "description": table.attribution,
                "contentUrl": file.url,
                "contentSize": f"{file.entry['size_bytes']} B",
                "encodingFormat": "application/x-parquet",
                "sha256": file.entry["sha256"],
            }
            for table, file in files
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": file.stem,
                "name": file.stem,
                "description": table.description,
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{file.stem}/{name}",
                        "name": name,
                        "description": description,
                        "dataType": _CROISSANT_TYPES.get(kind, "sc:Text"),
                        "source": {"fileObject": {"@id": file.name}, "extract": {"column": name}},
                    }
                    for name, (kind, description) in table.columns.items()
                ],
            }
            for table, file in files
        ],
    }


_TABLE_TYPES: Final = {"double": "number", "int64": "integer", "bool": "boolean", "date32[day]": "date"}


def _package(base: str, tables: list[_Table]) -> dict[str, Any]:
    """A data package: the open files, and a table that lists all tables."""
    listed = [
        {"name": table.name, "description": table.description, "access": "open" if table.is_open else "key"}
        for table in tables
    ]
    resources: list[dict[str, Any]] = [
        {
            "name": file.stem,
            "title": table.name,
            "description": table.description,
            "path": file.url,
            "scheme": "http" if file.url.startswith("http:") else "https",
            "mediatype": MEDIA_TYPE,
            "bytes": file.entry["size_bytes"],
            "hash": f"sha256:{file.entry['sha256']}",
            "licenses": [{"name": "CC-BY-4.0", "path": _CC_BY}],
            "schema": {
                "fields": [
                    {"name": name, "type": _TABLE_TYPES.get(kind, "any"), "description": description}
                    for name, (kind, description) in table.columns.items()
                ]
            },
        }
        for table in tables
        if table.is_open
        for file in table.files
    ]
    resources.append(
        {"name": "tables", "description": "Every table in bulk.", "data": listed or [{"name": ""}]}
    )
    return {
        "name": "sankofa",
        "title": _TITLE,
        "description": f"{_DESCRIPTION} {LICENSE_NOTICE}",
        "homepage": f"{base}/",
        "resources": resources,
    }


def _server(question: DialectQuestion) -> dict[str, Any]:
    settings, call = question.service.settings, question.call
    url = f"{settings.public_mcp_url}/mcp" if call.lock is None else f"{call.base_url}/mcp"
    key = {"name": "X-API-Key", "description": "An API key.", "isRequired": True, "isSecret": True}
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-09-29/server.schema.json",
        "name": "io.github.sankofa/sankofa",
        "title": _TITLE,
        "description": "Point-in-time African market data: fundamentals, tenders, macro and identifiers.",
        "version": __version__,
        "remotes": [{"type": "streamable-http", "url": url, "headers": [key]}],
    }


def _refuse(problem: Problem, _: DialectRequest) -> DialectReply:
    return DialectReply(
        msgspec.json.encode({"error": problem.title, "detail": problem.detail}), status=problem.status
    )


_SERVER: Final = "/server.json"
DIALECT: Final = Dialect("catalogue", ("/catalog.", _SERVER), _answer, _refuse, open=True)
