"""Compiled releases compared with ocdsmerge, on the real files of every publisher and on generated ones."""

import json
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ocdsmerge.exceptions import InconsistentTypeError
from ocdsmerge.merge import CompiledRelease, VersionedRelease
from ocdsmerge.rules import MergeRules, get_merge_rules

from sankofa.model.ocds.compiled import Process, SetBy
from sankofa.model.ocds.release import Gate, Unusable, clean, decode
from tests.services import REPOSITORY, missing

REQUIREMENT = REPOSITORY / "requirements" / "ocds-schema.txt"
CACHE = REPOSITORY / "build" / "ocds-schema"
DOWNLOAD = """
-m pip download --quiet --require-hashes --no-deps --no-binary :all: --no-build-isolation --retries 1
""".split()
VERSIONS = {"1.0": "1__0__3", "1.1": "1__1__4"}


@cache
def release_schema(version: str) -> dict[str, Any]:
    """The schema of a release in a version of OCDS; skips or fails the test if it cannot be fetched."""
    archive = _archive()
    if archive is None:
        missing(f"the OCDS schemas (pip cannot download {REQUIREMENT.relative_to(REPOSITORY)})")
    name = f"tests/fixtures/release-schema-{VERSIONS[version]}.json"
    with tarfile.open(archive) as members:
        content = members.extractfile(f"{archive.name.removesuffix('.tar.gz')}/{name}")
        assert content is not None
        schema: dict[str, Any] = json.load(content)
        return schema


@cache
def _archive() -> Path | None:
    """The pinned source distribution, downloaded once per checkout; pip checks its hash first."""
    pinned = REQUIREMENT.read_text().splitlines()[-1].split()[0].replace("==", "-")
    archive = CACHE / f"{pinned}.tar.gz"
    if archive.exists():
        return archive
    CACHE.mkdir(parents=True, exist_ok=True)
    # In a folder beside it: several workers may run at once.
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        command = [sys.executable, *DOWNLOAD, "--dest", folder, "--requirement", str(REQUIREMENT)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            (Path(folder) / archive.name).replace(archive)
        except (subprocess.SubprocessError, OSError):
            return None
    return archive


Json = dict[str, Any]
HISTORY = {"releaseID", "releaseDate", "releaseTag", "value"}


@pytest.fixture(scope="module")
def rules() -> MergeRules:
    return get_merge_rules(release_schema("1.1"))


def _compare(releases: list[tuple[SetBy, Json]], rules: MergeRules, every: int = 1) -> int:
    """How often a process equals what ocdsmerge makes of it."""
    process, compared = Process(), 0
    compiled, versioned = CompiledRelease(merge_rules=rules), VersionedRelease(merge_rules=rules)
    for number, (by, body) in enumerate(releases, 1):
        process.add(body, by)
        plain = _without_null_amounts(body)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # objects with the same id
            compiled.append(plain)
            versioned.append({**plain, "id": by.release_id, "date": by.release_date})
        if number % every and number != len(releases):
            continue
        ours = process.compiled()
        assert ours.release == compiled.asdict()
        expected = dict(_last_setters(versioned.asdict(), ""))
        own = {f"/{name}" for name in ("ocid", "id", "date", "tag")}
        # A versioned release does not version the id of an object in a list.
        set_by = {at: by for at, by in ours.set_by.items() if at not in own}
        assert {at: by for at, by in set_by.items() if not at.endswith("/id") or at in expected} == expected
        assert own <= ours.set_by.keys()
        compared += 1
    return compared


def _without_null_amounts(value: Any) -> Any:
    if isinstance(value, dict):
        members = {k: v for k, v in value.items() if not (k == "amount" and v is None)}
        return {k: _without_null_amounts(v) for k, v in members.items()}
    return [_without_null_amounts(one) for one in value] if isinstance(value, list) else value


def _last_setters(value: Any, at: str) -> Iterator[tuple[str, SetBy]]:
    if isinstance(value, list) and value and all(isinstance(v, dict) and set(v) == HISTORY for v in value):
        if value[-1]["value"] is not None:
            yield at, SetBy(value[-1]["releaseID"], value[-1]["releaseDate"])
    elif isinstance(value, (dict, list)):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            step = str(name).replace("~", "~0").replace("/", "~1")
            yield from _last_setters(inner, f"{at}/{step}")


def _releases(data: Any) -> Iterator[Json]:
    if isinstance(data, list):
        for one in data:
            yield from _releases(one)
    elif isinstance(data, dict):
        inner = data.get("records", data.get("releases"))
        if isinstance(inner, list):
            yield from _releases(inner)
        elif "ocid" in data:
            yield data


def _processes(folder: Path) -> list[list[tuple[SetBy, Json]]]:
    """The processes in the files of a publisher."""
    gate = Gate(lambda _name, _identifiers, _country: "an organisation")
    by_ocid: defaultdict[str, dict[tuple[str, str], Json]] = defaultdict(dict)
    for path in sorted(folder.rglob("*.json*")):
        try:
            content = [decode(path.read_bytes())]
        except ValueError:
            continue
        for raw in _releases(content):
            try:
                release = clean(raw, "ZA", gate, lambda text: text)
            except Unusable:
                continue
            by_ocid[release.ocid][release.release_date, release.release_id] = decode(release.body)
    return [[(SetBy(key[1], key[0]), one[key]) for key in sorted(one)] for one in by_ocid.values()]


@pytest.mark.deep
@pytest.mark.rule("CON-1", "CON-2")
def test_every_publisher_is_compiled_as_ocdsmerge_does(shared_data: Path, rules: MergeRules) -> None:
    compared = 0
    for folder in sorted((shared_data / "ocds").iterdir()):
        for process in _processes(folder):
            compared += _compare(process, rules)
    assert compared > 500


_IDS = st.sampled_from(["1", "2", 1, None])
_SCALARS = st.sampled_from([None, "a", "b", 1, 2])
_VALUE = st.fixed_dictionaries({}, optional={"amount": st.sampled_from([None, 1, 2]), "currency": _SCALARS})
_ITEM = st.fixed_dictionaries(
    {},
    optional={"id": _IDS, "status": _SCALARS, "value": _VALUE, "suppliers": st.lists(
        st.fixed_dictionaries({}, optional={"id": _IDS, "name": _SCALARS}), max_size=3
    )},
)  # fmt: skip
_BODY = st.fixed_dictionaries(
    {},
    optional={
        "tender": st.fixed_dictionaries({}, optional={"status": _SCALARS, "value": _VALUE, "a/~b": _SCALARS}),
        "awards": st.lists(_ITEM, max_size=4),
        "parties": st.lists(
            st.fixed_dictionaries({"id": _IDS}, optional={"roles": st.lists(st.just("buyer"), max_size=2)}),
            max_size=3,
        ),
    },
)


@given(st.lists(_BODY, min_size=1, max_size=6))
def test_any_releases_are_compiled_as_ocdsmerge_does(rules: MergeRules, bodies: list[Json]) -> None:
    days = [f"2025-01-{n:02}T00:00:00Z" for n in range(1, 7)]
    releases = [
        (SetBy(f"r{n}", day), {"ocid": "o", "id": f"r{n}", "date": day, **body})
        for n, (day, body) in enumerate(zip(days, bodies, strict=False))
    ]
    try:
        _compare(releases, rules)
    except InconsistentTypeError:  # a cleaned release never has this
        pytest.fail(json.dumps(bodies))


@pytest.mark.ci
def test_the_cost_of_a_thousand_releases_depends_on_their_changes() -> None:
    items = [{"id": str(n), "description": f"item {n}", "quantity": n} for n in range(300)]
    process = Process()
    for n in range(1_000):
        body = {
            "ocid": "o",
            "id": f"{n}",
            "date": "d",
            "tender": {"id": "t", "items": items, "status": f"{n}"},
        }
        process.add(json.loads(json.dumps(body)), SetBy(f"{n}", "d"))
    compiled = process.compiled()
    assert len(compiled.changes) == 999
    last = compiled.changes[-1]
    assert (last.field, last.path, last.old, last.new) == ("status", "/tender/status", "998", "999")
    assert compiled.set_by["/tender/items/299/quantity"].release_id == "0"
