"""/catalog.*: read without a key by rdflib, mlcroissant and frictionless, unmodified."""

import pytest

from tests.foreign import foreign
from tests.live import LiveServer

pytestmark = pytest.mark.slow
READERS = """
import rdflib, urllib.request
from rdflib.namespace import DCAT, DCTERMS, RDF
base = asked["base"]
graphs = []
for form, kind in (("ttl", "turtle"), ("jsonld", "json-ld")):
    graph = rdflib.Graph()
    graph.parse(data=urllib.request.urlopen(f"{base}/catalog.{form}").read(), format=kind)
    graphs.append(graph)
told["same"] = set(graphs[0]) == set(graphs[1])
graph = graphs[0]
(catalogue,) = graph.subjects(RDF.type, DCAT.Catalog)
datasets = list(graph.objects(catalogue, DCAT.dataset))
told["datasets"] = sorted(str(graph.value(one, DCTERMS.identifier)) for one in datasets)
needed = (DCTERMS.title, DCTERMS.description, DCTERMS.publisher)
told["complete"] = all(graph.value(one, name) for one in [catalogue, *datasets] for name in needed)
from rdflib import Namespace
from rdflib.namespace import FOAF
SPDX = Namespace("http://spdx.org/rdf/terms#")
ranges = {  # as the SHACL shapes of DCAT-AP 3.0.1 have them
    DCTERMS.publisher: FOAF.Agent, DCAT.dataset: DCAT.Dataset, DCAT.service: DCAT.DataService,
    DCAT.distribution: DCAT.Distribution, DCTERMS.accessRights: DCTERMS.RightsStatement,
    DCTERMS.license: DCTERMS.LicenseDocument, DCAT.mediaType: DCTERMS.MediaType,
    SPDX.checksum: SPDX.Checksum, SPDX.algorithm: SPDX.ChecksumAlgorithm,
}
told["outside"] = sorted({str(one) for name, kind in ranges.items() for one in graph.objects(None, name)
    if (one, RDF.type, kind) not in graph})
at_least = {
    DCAT.Distribution: [DCAT.accessURL], DCAT.DataService: [DCTERMS.title, DCAT.endpointURL],
    FOAF.Agent: [FOAF.name], SPDX.Checksum: [SPDX.algorithm, SPDX.checksumValue],
}
told["without"] = [[str(one), str(name)] for kind, names in at_least.items()
    for one in graph.subjects(RDF.type, kind) for name in names if len(list(graph.objects(one, name))) != 1]
told["downloads"] = sorted(str(one) for one in graph.objects(None, DCAT.downloadURL))
import mlcroissant, frictionless
dataset = mlcroissant.Dataset(jsonld=f"{base}/catalog.croissant.json")
told["issues"] = [dataset.metadata.ctx.issues.report()] if dataset.metadata.ctx.issues.errors else []
told["record_sets"] = sorted(one.uuid for one in dataset.metadata.record_sets)
if told["record_sets"]:
    name = told["record_sets"][0]
    told["records"] = [name, sum(1 for _ in dataset.records(name))]
package = frictionless.Package(f"{base}/catalog.datapackage.json")
told["resources"] = sorted(package.resource_names)
told["valid"] = frictionless.Package.validate_descriptor(package.to_descriptor()).valid
"""


@pytest.mark.rule("DIA-6")
def test_catalogues_are_read_without_a_key(server: LiveServer, paid_key: str) -> None:
    told = foreign(READERS, base=server.url)
    files = server.get("/v1/export", paid_key).json()["data"]
    assert told["same"]
    assert told["complete"]
    assert (told["outside"], told["without"]) == ([], [])
    assert told["datasets"] == sorted(row["name"].removesuffix(".parquet") for row in files)
    opened = {row["name"].removesuffix(".parquet"): row for row in files if row["access"] == "open"}
    assert [url.partition("?")[0] for url in told["downloads"]] == sorted(
        row["url"] for row in opened.values()
    )
    assert told["issues"] == []
    assert told["record_sets"] == sorted(opened)
    name, count = told["records"]
    assert count == opened[name]["row_count"]
    assert told["resources"] == sorted([*opened, "tables"])
    assert told["valid"]


@pytest.mark.rule("DIA-6", "LOCK-3")
def test_the_catalogues_of_a_locked_view_name_no_file_and_no_later_capture(server: LiveServer, paid_key: str):
    told = foreign(READERS, base=f"{server.url}/at/2023-06-30")
    assert told["datasets"] == ["af-fund-fundamentals", "af-macro-series", "af-tender-releases"]
    assert (told["downloads"], told["record_sets"], told["resources"]) == ([], [], ["tables"])
    assert told["same"]
    assert told["valid"]
    edition = server.get("/v1/export", paid_key).json()["edition"]
    for form in ("jsonld", "ttl", "croissant.json", "datapackage.json"):
        text = server.http.get(f"/at/2023-06-30/catalog.{form}").text
        assert edition not in text


def test_a_registry_finds_the_mcp_server(server: LiveServer) -> None:
    entry = server.http.get("/server.json").json()
    assert entry["remotes"][0]["type"] == "streamable-http"
    assert entry["remotes"][0]["url"].endswith("/mcp")
    assert server.http.get("/catalog.other").status_code == 404
