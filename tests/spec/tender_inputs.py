"""OCDS files of every kind, ingested."""

import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spec.market import Desk, PaidCaller, package, release
from tests.spec.market import desk as desk

LINK = {"url": "https://example.org/r.json", "date": "2025-01-01T00:00:00Z", "tag": ["tender"]}


def titled(ocid: str, title: str = "Roads", **fields: Any) -> dict[str, Any]:
    return release(ocid, tender={"title": title}, **fields)


def zipped(**members: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(
                name.replace("_", "."), content if isinstance(content, str) else json.dumps(content)
            )
    return buffer.getvalue()


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def records(*contents: Any) -> dict[str, Any]:
    return {"uri": "https://example.org", "version": "1.1", "records": list(contents)}


def compiled(ocid: str) -> dict[str, Any]:
    return {**titled(ocid, "Compiled"), "id": f"{ocid}-compiled", "tag": ["compiled"]}


ACCENTS = "Réfection de l'école Çédille"
FILES: dict[str, tuple[Any, set[str]]] = {
    # name: (content, the releases that are in it)
    "package.json": (package(titled("package-a"), titled("package-b")), {"package-a-1", "package-b-1"}),
    "bare.json": (titled("bare"), {"bare-1"}),
    "pretty.json": (json.dumps(package(titled("pretty")), indent=4), {"pretty-1"}),
    "list.json": ([titled("list-a"), titled("list-b")], {"list-a-1", "list-b-1"}),
    "list-of-packages.json": (
        [package(titled("lop-a"), titled("lop-b")), package(titled("lop-c"))],
        {"lop-a-1", "lop-b-1", "lop-c-1"},
    ),
    "lines.jsonl": (lines(titled("lines-a"), titled("lines-b")), {"lines-a-1", "lines-b-1"}),
    "lines-of-packages.ndjson": (
        lines(package(titled("lines-c")), package(titled("lines-d"))),
        {"lines-c-1", "lines-d-1"},
    ),
    "lines-by-content.json": (lines(titled("lines-e"), titled("lines-f")), {"lines-e-1", "lines-f-1"}),
    "line.jsonl": (json.dumps(titled("line")), {"line-1"}),
    "blank-lines.jsonl": (
        "\n" + lines(titled("blank-a")) + "\n\n" + lines(titled("blank-b")),
        {"blank-a-1", "blank-b-1"},
    ),
    "records-embedded.json": (
        records({"ocid": "x", "releases": [titled("embedded")], "compiledRelease": compiled("embedded")}),
        {"embedded-1"},
    ),
    "records-linked.json": (
        records({"ocid": "x", "releases": [LINK, LINK], "compiledRelease": compiled("linked")}),
        {"linked-compiled"},
    ),
    "records-mixed.json": (
        records({"ocid": "x", "releases": [LINK, titled("mixed")], "compiledRelease": compiled("mixed")}),
        {"mixed-1"},
    ),
    "records-compiled.json": (
        records({"ocid": "x", "compiledRelease": compiled("alone")}),
        {"alone-compiled"},
    ),
    "record.json": ({"ocid": "x", "releases": [titled("record")]}, {"record-1"}),
    "records.jsonl": (
        lines({"ocid": "x", "compiledRelease": compiled("rl")}, {"ocid": "y", "releases": [titled("rm")]}),
        {"rl-compiled", "rm-1"},
    ),
    "bom.json": (
        b"\xef\xbb\xbf" + json.dumps(package(titled("bom", ACCENTS)), ensure_ascii=False).encode(),
        {"bom-1"},
    ),
    "utf16.json": (
        json.dumps(package(titled("utf16", ACCENTS)), ensure_ascii=False).encode("utf-16"),
        {"utf16-1"},
    ),
    "utf16be.json": (
        json.dumps(package(titled("utf16be", ACCENTS)), ensure_ascii=False).encode("utf-16-be"),
        {"utf16be-1"},
    ),
    "utf16.jsonl": (lines(titled("u16-a"), titled("u16-b")).encode("utf-16-le"), {"u16-a-1", "u16-b-1"}),
    "utf32.json": (
        json.dumps(package(titled("utf32", ACCENTS)), ensure_ascii=False).encode("utf-32"),
        {"utf32-1"},
    ),
    "cp1252.json": (
        json.dumps(package(titled("cp1252", ACCENTS), titled("cp-b")), ensure_ascii=False).encode("cp1252"),
        {"cp1252-1", "cp-b-1"},
    ),
    "package.json.gz": (gzip.compress(json.dumps(package(titled("gz"))).encode()), {"gz-1"}),
    "lines.jsonl.gz": (gzip.compress(lines(titled("gz-a"), titled("gz-b")).encode()), {"gz-a-1", "gz-b-1"}),
    "archive.zip": (
        zipped(one_json=package(titled("zip-a")), two_jsonl=lines(titled("zip-b")), readme_txt="not ours"),
        {"zip-a-1", "zip-b-1"},
    ),
    "empty-list.json": ("[]", set()),
    "empty-package.json": (package(), set()),
}


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    """Every file in one folder, ingested by one command."""
    desk = Desk(tmp_path_factory.mktemp("files"))
    inbox = desk.folder / "inbox"
    inbox.mkdir()
    for name, (content, _) in FILES.items():
        desk.write(f"inbox/{name}", content)
    done = desk.succeed("ingest", "portal-za", inbox)
    assert "rejected 0" in done.stdout, desk.rejects()
    with desk.publish_and_serve() as caller:
        yield caller
