"""The OCDS validator of the tests finds what is wrong with a release, and nothing where nothing is."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.ocds_schema import Error, validation_errors

GOOD: dict[str, Any] = {
    "ocid": "ocds-213czf-1",
    "id": "1",
    "date": "2024-03-01T09:00:00Z",
    "tag": ["tender", "award"],
    "initiationType": "tender",
    "language": "en",
    "parties": [{"id": "ZA-1", "name": "Department of Health", "roles": ["buyer"]}],
    "buyer": {"id": "ZA-1", "name": "Department of Health"},
    "tender": {
        "id": "1",
        "title": "Vaccines",
        "title_fr": "Vaccins",
        "value": {"amount": 1000000.50, "currency": "ZAR"},
        "tenderPeriod": {"endDate": "2024-04-01T00:00:00+02:00"},
        "documents": [{"id": "1", "url": "https://example.org/notice.pdf"}],
        "lots": [{"id": "1", "title": "of an extension"}],
    },
    "awards": [
        {
            "id": "1",
            "value": {"amount": 1, "currency": "ZAR"},
            "suppliers": [{"id": "2", "name": "Acme (Pty) Ltd"}],
        },
        {"id": "2", "value": {"amount": 2, "currency": "ZAR"}},
    ],
}


def told(errors: Counter[Error]) -> dict[tuple[str, str], int]:
    return {(error.path, error.rule): count for error, count in errors.items()}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_good_release_has_no_errors(version: str) -> None:
    assert not validation_errors(GOOD, version)


def break_required(release: dict[str, Any]) -> None:
    del release["ocid"]


def break_type(release: dict[str, Any]) -> None:
    release["tender"]["value"]["amount"] = "1000000.50"


def break_code(release: dict[str, Any]) -> None:
    release["tender"]["status"] = "half open"


def break_date(release: dict[str, Any]) -> None:
    release["tender"]["tenderPeriod"]["endDate"] = "1 April 2024"


def break_url(release: dict[str, Any]) -> None:
    release["tender"]["documents"][0]["url"] = "not a url"


def break_empty(release: dict[str, Any]) -> None:
    release["tag"] = []


def break_twins(release: dict[str, Any]) -> None:
    release["awards"].append(release["awards"][0])


@pytest.mark.parametrize(
    ("damage", "path", "rule"),
    [
        (break_required, "", "'ocid' is a required property"),
        (break_type, "tender/value/amount", "type"),
        (break_code, "tender/status", "enum"),
        (break_date, "tender/tenderPeriod/endDate", "format"),
        (break_url, "tender/documents/url", "format"),
        (break_empty, "tag", "minItems"),
        (break_twins, "awards", "uniqueItems"),
    ],
)
def test_each_kind_of_damage_is_one_error(
    damage: Callable[[dict[str, Any]], None], path: str, rule: str
) -> None:
    bad = copy.deepcopy(GOOD)
    damage(bad)
    assert told(validation_errors(bad)) == {(path, rule): 1}


def test_an_error_more_of_a_kind_that_was_there_before_is_new() -> None:
    before = copy.deepcopy(GOOD)
    del before["awards"][0]["id"]
    after = copy.deepcopy(before)
    del after["awards"][1]["id"]
    new = validation_errors(after) - validation_errors(before)
    assert told(new) == {("awards", "'id' is a required property"): 1}
    assert not validation_errors(before) - validation_errors(after)


def test_the_releases_of_a_package_are_read_and_linked_ones_passed_over() -> None:
    bad = {key: value for key, value in GOOD.items() if key != "date"}
    missing_date = ("", "'date' is a required property")
    assert told(validation_errors({"version": "1.1", "releases": [GOOD, bad, bad]})) == {missing_date: 2}
    record = {"releases": [{"url": "https://example.org/1", "date": "2024-03-01"}], "compiledRelease": bad}
    assert told(validation_errors({"version": "1.1", "records": [record, {"releases": [bad]}]})) == {
        missing_date: 2
    }


@pytest.mark.parametrize("odd", [{"releases": None}, {"records": "none"}, {"records": [1, {"releases": {}}]}])
def test_a_package_without_releases_has_nothing_to_say_against(odd: dict[str, Any]) -> None:
    assert not validation_errors(odd)


def test_a_release_that_is_no_object_is_an_error() -> None:
    assert told(validation_errors({"releases": [True]})) == {("", "type"): 1}


def test_the_version_of_the_package_decides() -> None:
    # 1.0 does not know `amendments`, so anything goes there.
    odd = GOOD | {"tender": {"id": 1, "amendments": "none"}}
    assert not validation_errors({"version": "1.0", "releases": [odd]})
    assert validation_errors({"version": "1.1", "releases": [odd]})
