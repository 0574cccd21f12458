"""The structures of the SDMX dialect, as SDMX-JSON 2.0 and as SDMX-ML 2.1 (contract: DIA-7)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr  # nosec B406

import msgspec

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
_NAMESPACES: Final = " ".join(
    f'xmlns:{short}="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/{name}"'
    for short, name in (("mes", "message"), ("str", "structure"), ("com", "common"))
)
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
    parts = []
    own = f'agencyID="{AGENCY}" version="{VERSION}" isFinal="true" isExternalReference="false"'
    if wanted.flows:
        reference = f'<Ref id="{FLOW}" version="{VERSION}" agencyID="{AGENCY}" package="datastructure" '
        parts.append(
            f'<str:Dataflows><str:Dataflow id="{FLOW}" {own}>{_name(_FLOW_NAME)}<str:Structure>{reference}'
            'class="DataStructure"/></str:Structure></str:Dataflow></str:Dataflows>'
        )
    if wanted.others:
        lists = "".join(
            f'<str:Codelist id="CL_{name}" {own}>{_name(_CONCEPTS[name])}'
            + "".join(
                f"<str:Code id={quoteattr(code)}>{_name(title)}</str:Code>"
                for code, title in codes[name].items()
            )
            + "</str:Codelist>"
            for name in DIMENSIONS
        )
        concepts = "".join(
            f'<str:Concept id="{name}">{_name(title)}</str:Concept>' for name, title in _CONCEPTS.items()
        )
        parts.append(f"<str:Codelists>{lists}</str:Codelists>")
        parts.append(
            f'<str:Concepts><str:ConceptScheme id="CONCEPTS" {own}>{_name("Concepts")}{concepts}'
            "</str:ConceptScheme></str:Concepts>"
        )
        parts.append(
            f'<str:DataStructures><str:DataStructure id="{FLOW}" {own}>{_name(_FLOW_NAME)}'
            f"<str:DataStructureComponents>{_xml_components()}</str:DataStructureComponents>"
            "</str:DataStructure></str:DataStructures>"
        )
    header = (
        f"<mes:Header><mes:ID>{AGENCY}-{FLOW}</mes:ID><mes:Test>false</mes:Test>"
        f'<mes:Prepared>{prepared}</mes:Prepared><mes:Sender id="{AGENCY}"/></mes:Header>'
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:Structure {_NAMESPACES}>{header}'
        f"<mes:Structures>{''.join(parts)}</mes:Structures></mes:Structure>"
    ).encode()


def _name(title: str) -> str:
    return f'<com:Name xml:lang="en">{escape(title)}</com:Name>'


def _identity(name: str) -> str:
    return (
        f'<str:ConceptIdentity><Ref id="{name}" maintainableParentID="CONCEPTS" '
        f'maintainableParentVersion="{VERSION}" agencyID="{AGENCY}" package="conceptscheme" class="Concept"/>'
        "</str:ConceptIdentity>"
    )


def _xml_components() -> str:
    dimensions = "".join(
        f'<str:Dimension id="{name}" position="{at}">{_identity(name)}<str:LocalRepresentation>'
        f'<str:Enumeration><Ref id="CL_{name}" version="{VERSION}" agencyID="{AGENCY}" package="codelist" '
        'class="Codelist"/></str:Enumeration></str:LocalRepresentation></str:Dimension>'
        for at, name in enumerate(DIMENSIONS, 1)
    )
    return (
        f'<str:DimensionList id="DimensionDescriptor">{dimensions}'
        f'<str:TimeDimension id="TIME_PERIOD" position="{len(DIMENSIONS) + 1}">{_identity("TIME_PERIOD")}'
        '<str:LocalRepresentation><str:TextFormat textType="ObservationalTimePeriod"/>'
        "</str:LocalRepresentation></str:TimeDimension></str:DimensionList>"
        '<str:AttributeList id="AttributeDescriptor"><str:Attribute id="AVAILABLE_AT" '
        f'assignmentStatus="Conditional">{_identity("AVAILABLE_AT")}<str:LocalRepresentation>'
        '<str:TextFormat textType="ObservationalTimePeriod"/></str:LocalRepresentation>'
        '<str:AttributeRelationship><str:PrimaryMeasure><Ref id="OBS_VALUE"/></str:PrimaryMeasure>'
        "</str:AttributeRelationship></str:Attribute></str:AttributeList>"
        f'<str:MeasureList id="MeasureDescriptor"><str:PrimaryMeasure id="OBS_VALUE">{_identity("OBS_VALUE")}'
        '<str:LocalRepresentation><str:TextFormat textType="Double"/></str:LocalRepresentation>'
        "</str:PrimaryMeasure></str:MeasureList>"
    )
