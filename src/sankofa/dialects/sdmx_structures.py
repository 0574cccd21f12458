"""The structures of the SDMX dialect, as SDMX-JSON 2.0 and as SDMX-ML 2.1 (contract: DIA-7)."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec
from jinja2 import Environment, StrictUndefined, Template

AGENCY: Final = "SANKOFA"
FLOW: Final = "MACRO"
VERSION: Final = "1.0.0"
DIMENSIONS: Final = ("FREQ", "REF_AREA", "SERIES")
FREQUENCIES: Final = {"daily": "D", "weekly": "W", "monthly": "M", "quarterly": "Q", "annual": "A"}
NO_AREA: Final = "_Z"
_SCHEMA: Final = (
    "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/structure-message/tools/schemas/2.0.0/"
    "sdmx-json-structure-schema.json"
)
_CONCEPTS: Final = {
    "FREQ": "Frequency",
    "REF_AREA": "Reference area",
    "SERIES": "Series key of Sankofa",
    "TIME_PERIOD": "Date of the value",
    "OBS_VALUE": "Value; NaN where it was withdrawn",
    "AVAILABLE_AT": "Day on which the value became public",
}
_FLOW_NAME: Final = "Macroeconomic series, as known on any day"
_URN: Final = "urn:sdmx:org.sdmx.infomodel."
_SCHEMAS: Final = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/"
Codes = Mapping[str, Mapping[str, str]]
"""By dimension, the names of its codes."""


class Wanted(NamedTuple):
    """The kinds of structures that a message has."""

    flows: bool = True
    others: bool = True
    partial: bool = False
    """Whether the code list of series has some of them only."""
    constraint: Codes | None = None
    """The codes that have data, where that was asked for."""


def _concept(name: str) -> str:
    return f"{_URN}conceptscheme.Concept={AGENCY}:CONCEPTS({VERSION}).{name}"


def _codelist(name: str) -> str:
    return f"{_URN}codelist.Codelist={AGENCY}:CL_{name}({VERSION})"


def _maintained(name: str, title: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": title,
        "names": {"en": title},
        "version": VERSION,
        "agencyID": AGENCY,
        "isExternalReference": False,
    }


def _named(name: str, title: str) -> dict[str, Any]:
    return {"id": name, "name": title, "names": {"en": title}}


def structure_json(codes: Codes, prepared: str, wanted: Wanted) -> bytes:
    data: dict[str, Any] = {}
    if wanted.flows:
        structure = f"{_URN}datastructure.DataStructure={AGENCY}:{FLOW}({VERSION})"
        data["dataflows"] = [{**_maintained(FLOW, _FLOW_NAME), "structure": structure}]
    if wanted.others:
        data["dataStructures"] = [{**_maintained(FLOW, _FLOW_NAME), "dataStructureComponents": _components()}]
        concepts = [_named(name, title) for name, title in _CONCEPTS.items()]
        data["conceptSchemes"] = [
            {**_maintained("CONCEPTS", "Concepts"), "isPartial": False, "concepts": concepts}
        ]
        data["codelists"] = [
            {
                **_maintained(f"CL_{name}", _CONCEPTS[name]),
                "isPartial": wanted.partial and name == "SERIES",
                "codes": [_named(code, title) for code, title in codes[name].items()],
            }
            for name in DIMENSIONS
        ]
    if wanted.constraint is not None:
        attached = f"{_URN}datastructure.Dataflow={AGENCY}:{FLOW}({VERSION})"
        values = [
            {"id": name, "include": True, "values": [{"value": code} for code in wanted.constraint[name]]}
            for name in DIMENSIONS
        ]
        data["dataConstraints"] = [
            {
                **_maintained("AVAILABLE", "What there is"),
                "role": "Actual",
                "constraintAttachment": {"dataflows": [attached]},
                "cubeRegions": [{"include": True, "components": values}],
            }
        ]
    meta = {
        "schema": _SCHEMA,
        "id": f"{AGENCY}-{FLOW}",
        "test": False,
        "prepared": prepared,
        "contentLanguages": ["en"],
        "sender": {"id": AGENCY},
    }
    return msgspec.json.encode({"meta": meta, "data": data})


def _components() -> dict[str, Any]:
    dimensions = [
        {
            "id": name,
            "position": at,
            "conceptIdentity": _concept(name),
            "localRepresentation": {"enumeration": _codelist(name)},
        }
        for at, name in enumerate(DIMENSIONS)
    ]
    time = {
        "id": "TIME_PERIOD",
        "conceptIdentity": _concept("TIME_PERIOD"),
        "localRepresentation": {"format": {"dataType": "ObservationalTimePeriod"}},
    }
    measure = {
        "id": "OBS_VALUE",
        "conceptIdentity": _concept("OBS_VALUE"),
        "localRepresentation": {"format": {"dataType": "Double"}},
        "usage": "optional",
    }
    attribute = {
        "id": "AVAILABLE_AT",
        "conceptIdentity": _concept("AVAILABLE_AT"),
        "localRepresentation": {"format": {"dataType": "ObservationalTimePeriod"}},
        "usage": "optional",
        "attributeRelationship": {"observation": {}},
    }
    return {
        "dimensionList": {"id": "DimensionDescriptor", "dimensions": dimensions, "timeDimension": time},
        "measureList": {"id": "MeasureDescriptor", "measures": [measure]},
        "attributeList": {"id": "AttributeDescriptor", "attributes": [attribute]},
    }


def structure_xml(codes: Codes, prepared: str, wanted: Wanted) -> bytes:
    """SDMX-ML 2.1, which older clients read."""
    written = _template().render(
        agency=AGENCY,
        flow=FLOW,
        flow_name=_FLOW_NAME,
        version=VERSION,
        dimensions=DIMENSIONS,
        concepts=_CONCEPTS,
        schemas=_SCHEMAS,
        codes=codes,
        prepared=prepared,
        wanted=wanted,
    )
    return ('<?xml version="1.0" encoding="UTF-8"?>\n' + "".join(written.splitlines())).encode()


@cache
def _template() -> Template:
    text = files("sankofa.dialects").joinpath("sdmx_structures.xml").read_text("utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
