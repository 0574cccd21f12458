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
