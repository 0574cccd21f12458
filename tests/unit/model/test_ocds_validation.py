"""Cleaning breaks no rule of the OCDS schema that a publisher kept; decided by the schema itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sankofa.model.errors import FormatError
from sankofa.model.ocds.parties import Gate
from sankofa.model.ocds.release import Unusable, clean
from sankofa.model.organisations import org_evidence
from sankofa.model.records import Release
from sankofa.sources.base import InputFile, adapters
from tests.ocds_schema import validation_errors
from tests.torture import ALL_ROUNDS


def evidence(name: str, identifiers: tuple[tuple[str, str], ...], country: str) -> str | None:
    found = org_evidence(name, identifiers, country=country)
    return None if found is None else str(found)


def releases(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(folder.rglob("*.json")):
        try:
            for record in adapters()["ocds"].read(InputFile(path)):
                if type(record) is Release:
                    yield f"{path.name} {record.position}", json.loads(msgspec.json.encode(record.content))
        except FormatError:
            continue


@pytest.mark.deep
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_real_releases_break_no_rule_after_cleaning_that_they_did_not_break_before(
    shared_data: Path, version: str
) -> None:
    gate = Gate(evidence)
    cleaned = 0
    found = list(releases(shared_data / "ocds"))
    some = found if ALL_ROUNDS else found[version == "1.1" :: 4]
    for place, release in some:
        try:
            after = validation_errors(json.loads(clean(release, "", gate, str.upper).body), version)
        except Unusable:
            continue
        cleaned += 1
        before = validation_errors(release, version) if after else after  # no error is no new one
        broken = {error.path for error in before if error.path}
        # A list of one that was written without its brackets is understood, then judged for what it holds.
        new = [e for e in after - before if not any(e.path.startswith(path) for path in broken)]
        assert not new, (place, new)
    assert cleaned > (700 if ALL_ROUNDS else 175)


@pytest.mark.deep
def test_a_release_full_of_people_is_still_one() -> None:
    person = {"id": "9001015009087", "name": "Plonk Quibbleworth", "roles": ["supplier"]}
    other = {"id": "9001015009088", "name": "Zelda Quibbleworth", "roles": ["supplier"]}
    contact = {"name": "Ms Wanda Flimflam", "email": "wanda@example.org", "url": "http://example.org/wanda"}
    references = [{"id": p["id"], "name": p["name"]} for p in (person, other)]
    release = {
        "ocid": "ocds-213czf-1", "id": "1", "date": "2026-01-01T00:00:00Z", "tag": ["award"],
        "initiationType": "tender", "language": "en", "parties": [{**person, "contactPoint": contact}, other],
        "buyer": references[0],
        "tender": {
            "id": "t", "title": "Painting by Quibbleworth, Plonk", "tenderers": references,
            "documents": [{"id": "d", "url": "http://example.org/wanda-flimflam.pdf"}],
            "value": {"amount": 0, "currency": "ZAR"},
        },
        "awards": [{"id": "a", "suppliers": references, "date": "0001-01-01T00:00:00Z"}],
    }  # fmt: skip
    assert not validation_errors(release)
    body = clean(release, "ZA", Gate(evidence), str.upper).body
    assert not validation_errors(json.loads(body))
    for planted in (b"Quibbleworth", b"Flimflam", b"flimflam", b"wanda", b"900101500908"):
        assert planted not in body
