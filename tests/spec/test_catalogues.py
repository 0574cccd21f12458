"""/catalog.*: rdflib, pyshacl, mlcroissant and frictionless read it unmodified and without a key."""

import pytest

from tests.foreign import foreign
from tests.live import LiveServer

pytestmark = pytest.mark.slow
DCAT_AP = """
dcat:Catalog (literal) dct:title+ dct:description+ dct:issued? dct:modified? (foaf:Agent) dct:publisher!
    dct:creator? (dcat:Dataset) dcat:dataset (dcat:DataService) dcat:service (dcat:Catalog) dcat:catalog
    dct:hasPart (dcat:CatalogRecord) dcat:record (foaf:Document) foaf:homepage? (dct:LinguisticSystem)
    dct:language (dct:LicenseDocument) dct:license? (dct:RightsStatement) dct:rights (dct:Location)
    dct:spatial (dct:PeriodOfTime) dct:temporal (skos:ConceptScheme) dcat:themeTaxonomy
dcat:Dataset (literal) dct:title+ dct:description+ dct:identifier dct:issued? dct:modified? dcat:keyword
    dcat:version? (foaf:Agent) dct:publisher? dct:creator (dcat:Distribution) dcat:distribution
    (dcat:Dataset) dct:source dcat:hasVersion (dcat:DatasetSeries) dcat:inSeries (dct:RightsStatement)
    dct:accessRights? (dct:Frequency) dct:accrualPeriodicity? (dct:Standard) dct:conformsTo (foaf:Document)
    foaf:page dcat:landingPage (dct:LinguisticSystem) dct:language (dct:Location) dct:spatial
    (dct:PeriodOfTime) dct:temporal (dct:ProvenanceStatement) dct:provenance (vcard:Kind) dcat:contactPoint
    (skos:Concept) dcat:theme dct:type (node) dct:relation dct:isReferencedBy (xsd:duration)
    dcat:temporalResolution?
dcat:Distribution (literal) dct:title dct:description dct:issued? dct:modified? (node) dcat:accessURL+
    dcat:downloadURL (dcat:DataService) dcat:accessService (xsd:nonNegativeInteger) dcat:byteSize?
    (spdx:Checksum) spdx:checksum? (dct:MediaType) dcat:mediaType? dcat:compressFormat? dcat:packageFormat?
    (dct:MediaTypeOrExtent) dct:format? (dct:LicenseDocument) dct:license? (dct:RightsStatement) dct:rights
    (dct:Standard) dct:conformsTo (dct:LinguisticSystem) dct:language (foaf:Document) foaf:page
    (skos:Concept) dcatap:availability? adms:status?
dcat:DataService (literal) dct:title+ dct:description dcat:keyword (node) dcat:endpointURL+
    dcat:endpointDescription (foaf:Agent) dct:publisher? (dcat:Dataset) dcat:servesDataset
    (dct:RightsStatement) dct:accessRights? (dct:LicenseDocument) dct:license? (dct:Standard) dct:conformsTo
    (dct:MediaTypeOrExtent) dct:format (foaf:Document) foaf:page dcat:landingPage (vcard:Kind)
    dcat:contactPoint (skos:Concept) dcat:theme
foaf:Agent (literal) foaf:name+ (skos:Concept) dct:type?
spdx:Checksum (spdx:ChecksumAlgorithm) spdx:algorithm! (xsd:hexBinary) spdx:checksumValue!
dct:LicenseDocument (skos:Concept) dct:type
dct:RightsStatement
dct:MediaType
spdx:ChecksumAlgorithm
"""
"""DCAT-AP 3.0.1 for the classes of the catalogue: a kind of value in brackets, then its properties.
`+` means at least one value, `?` at most one, `!` exactly one."""
SHACL = """
import rdflib, urllib.request
from pyshacl import validate
from rdflib.namespace import DCAT, DCTERMS, RDF, SH
prefixes = {
    "adms": "http://www.w3.org/ns/adms#", "dcat": DCAT, "dct": DCTERMS, "dcatap": "http://data.europa.eu/r5r/",
    "foaf": "http://xmlns.com/foaf/0.1/", "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#", "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
def name(text):
    prefix, _, rest = text.partition(":")
    return rdflib.URIRef(str(prefixes[prefix]) + rest)
shapes, known = rdflib.Graph(), set()
for rule in inputs["rules"].strip().replace("\\n    ", " ").splitlines():
    own, *words = rule.split()
    known.add(name(own))
    shape, kind = rdflib.BNode(), ""
    shapes.add((shape, SH.targetClass, name(own)))
    for word in words:
        if word.startswith("("):
            kind = word.strip("()")
            continue
        value, literal = rdflib.BNode(), kind.startswith(("literal", "xsd:"))
        shapes.add((shape, SH.property, value))
        shapes.add((value, SH.path, name(word.rstrip("+?!"))))
        shapes.add((value, SH.nodeKind, SH.Literal if literal else SH.BlankNodeOrIRI))
        if ":" in kind:
            shapes.add((value, SH.datatype if literal else SH["class"], name(kind)))
        if word[-1] in "+!":
            shapes.add((value, SH.minCount, rdflib.Literal(1)))
        if word[-1] in "?!":
            shapes.add((value, SH.maxCount, rdflib.Literal(1)))
    shapes.add((shape, RDF.type, SH.NodeShape))
def violations(graph):
    _, report, _ = validate(graph, shacl_graph=shapes)
    return sorted({str(path) for path in report.objects(None, SH.resultPath)})
base = inputs["base"]
graphs = []
for form, kind in (("ttl", "turtle"), ("jsonld", "json-ld")):
    graph = rdflib.Graph()
    graph.parse(data=urllib.request.urlopen(f"{base}/catalog.{form}").read(), format=kind)
    graphs.append(graph)
output["same"] = set(graphs[0]) == set(graphs[1])
graph = graphs[0]
output["violations"] = violations(graph)
output["without rules"] = sorted(set(graph.objects(None, RDF.type)) - known)
listed = graph.objects(None, DCAT.dataset)
output["datasets"] = sorted(str(graph.value(one, DCTERMS.identifier)) for one in listed)
output["downloads"] = sorted(str(one) for one in graph.objects(None, DCAT.downloadURL))
for lost in ("dct:title", "foaf:name", "spdx:algorithm"):  # to see the rules fail
    graph.remove((None, name(lost), None))
output["lost"] = len(violations(graph))
"""
READERS = """
import mlcroissant, frictionless
dataset = mlcroissant.Dataset(jsonld=f"{base}/catalog.croissant.json")
output["issues"] = [dataset.metadata.ctx.issues.report()] if dataset.metadata.ctx.issues.errors else []
output["record_sets"] = sorted(one.uuid for one in dataset.metadata.record_sets)
if output["record_sets"]:
    name = output["record_sets"][0]
    output["records"] = [name, sum(1 for _ in dataset.records(name))]
package = frictionless.Package(f"{base}/catalog.datapackage.json")
output["resources"] = sorted(package.resource_names)
output["valid"] = frictionless.Package.validate_descriptor(package.to_descriptor()).valid
"""


@pytest.mark.rule("DIA-6")
def test_catalogues_are_read_without_a_key(server: LiveServer, paid_key: str) -> None:
    output = foreign(SHACL + READERS, base=server.url, rules=DCAT_AP)
    files = server.get("/v1/export", paid_key).json()["data"]
    assert output["same"]
    assert (output["violations"], output["without rules"]) == ([], [])
    assert output["lost"] == 3
    assert output["datasets"] == sorted(row["name"].removesuffix(".parquet") for row in files)
    opened = {row["name"].removesuffix(".parquet"): row for row in files if row["access"] == "open"}
    assert [url.partition("?")[0] for url in output["downloads"]] == sorted(
        row["url"] for row in opened.values()
    )
    assert output["issues"] == []
    assert output["record_sets"] == sorted(opened)
    name, count = output["records"]
    assert count == opened[name]["row_count"]
    assert output["resources"] == sorted([*opened, "tables"])
    assert output["valid"]


@pytest.mark.ci
@pytest.mark.rule("DIA-6", "LOCK-3")
def test_the_catalogues_of_a_locked_view_name_no_file_and_no_later_capture(server: LiveServer, paid_key: str):
    output = foreign(SHACL + READERS, base=f"{server.url}/at/2023-06-30", rules=DCAT_AP)
    assert output["datasets"] == ["af-fund-fundamentals", "af-macro-series", "af-tender-releases"]
    assert (output["downloads"], output["record_sets"], output["resources"]) == ([], [], ["tables"])
    assert (output["same"], output["violations"], output["valid"]) == (True, [], True)
    edition = server.get("/v1/export", paid_key).json()["edition"]
    for form in ("jsonld", "ttl", "croissant.json", "datapackage.json"):
        text = server.http.get(f"/at/2023-06-30/catalog.{form}").text
        assert edition not in text


def test_a_registry_finds_the_mcp_server(server: LiveServer) -> None:
    entry = server.http.get("/server.json").json()
    assert entry["remotes"][0]["type"] == "streamable-http"
    assert entry["remotes"][0]["url"].endswith("/mcp")
    assert server.http.get("/catalog.other").status_code == 404
