"""Inline XBRL: annual reports that people and machines read alike. `ixbrl_worker` parses them."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final
from xml.parsers import expat

import msgspec

from sankofa.model.days import day_of_name
from sankofa.model.errors import FormatError, OperatorError
from sankofa.model.figures import exact
from sankofa.model.identifiers import make_identifier
from sankofa.model.limits import limit
from sankofa.model.records import EntityRecord, Fact, Profile, Record, Rejected, Skipped
from sankofa.model.text import name as fit_name
from sankofa.settings import load
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.ixbrl_worker import Ending, FactLine, Request

MOST_LEVELS: Final = limit("levels of an inline XBRL report", 200, "levels", "the file is refused")
"""Deeper than any report; libxml2 itself gives up at 256."""
_NAMESPACES: Final = (b"http://www.xbrl.org/2013/inlineXBRL", b"http://www.xbrl.org/2008/inlineXBRL")
"""Namespaces of inline XBRL; every report names one of them."""


class UnsafeDocument(ValueError):
    """XML that is not handed on."""


def check_xml(data: bytes) -> None:
    """Raises UnsafeDocument if it declares entities, is nested too deeply or is not XML."""
    parser = expat.ParserCreate()
    level = 0

    def begin(*_: object) -> None:
        nonlocal level
        level += 1
        if level > MOST_LEVELS:
            raise UnsafeDocument(f"elements nested more than {MOST_LEVELS} deep")

    def end(*_: object) -> None:
        nonlocal level
        level -= 1

    def declared(*_: object) -> None:
        raise UnsafeDocument("it declares entities")

    def doctype(_: object, __: object, ___: object, has_internal_subset: int) -> None:
        if has_internal_subset:
            raise UnsafeDocument("its document type has its own declarations")

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = declared
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as failure:
        raise UnsafeDocument(f"not well-formed XML: {failure}") from None


_EXPECTED: Final = "expected an inline XBRL report (XHTML), alone or in its report package (zip)"
_REPORTS: Final = (".xhtml", ".html", ".htm")
_PARTS: Final = (*_REPORTS, ".xsd", ".xml")
_TAXONOMIES: Final = re.compile(
    r"https?://(?:xbrl\.ifrs\.org/taxonomy/[0-9-]+/(?P<ifrs>ifrs-[a-z]+)"
    r"|fasb\.org/(?P<fasb>us-gaap|srt)/.*|xbrl\.sec\.gov/(?P<sec>dei|ecd|cyd)/.*)"
)
"""Taxonomies whose concepts have the same name under any declared prefix."""
_ABOUT_PERSONS: Final = ("ecd", "cyd")
_NAMES: Final = ("ifrs-full:NameOfReportingEntityOrOtherMeansOfIdentification", "dei:EntityRegistrantName")
_SCHEMES: Final = (
    (re.compile(r"https?://standards\.iso\.org/iso/17442"), "lei", None),
    (re.compile(r"https?://www\.sec\.gov/CIK"), "registry", "US-SEC-CIK"),
    (re.compile(r"https?://(?:www\.)?cipc\.co\.za.*"), "registry", "ZA-CIPC"),
)
_lines = msgspec.json.Decoder(FactLine | Ending).decode
_Key = tuple[str, ...]


@adapter("ixbrl", names_people=True)
def read(file: InputFile) -> Iterator[Record]:
    """Inline XBRL reports (ESEF, 20-F, South African statements), alone or in a report package.

    Taxonomies are read from the packages in HOME/taxonomies, never from the network. An issuer's own concept
    keeps its name. Text, and facts with dimensions, are skipped. A file whose name begins with a day was
    public by then; for other files the day of capture counts.
    """
    if importlib.util.find_spec("arelle") is None:
        raise OperatorError("the adapter ixbrl needs arelle: make setup XBRL=1, or install sankofa[xbrl]")
    packages = sorted(str(path) for path in (load().home / "taxonomies").resolve().glob("*.zip"))
    with TemporaryDirectory(prefix="sankofa-xbrl-") as folder:
        reports = _unpacked(file, Path(folder))
        if _is_package(file):
            packages = [*packages, str(file.path.resolve())]
        if not reports:
            raise FormatError(f"{file.name}: {_EXPECTED}")
        for report in reports:
            document = f"{file.name}/{report.name}" if file.is_zip else file.name
            yield from _Report(file, document).records(_facts(file, report, packages, folder))


def _is_package(file: InputFile) -> bool:
    """Whether the package names its own taxonomies."""
    if not file.is_zip:
        return False
    with file.archive() as archive:
        return any(name.endswith("META-INF/taxonomyPackage.xml") for name in archive.namelist())


def _unpacked(file: InputFile, folder: Path) -> list[Path]:
    """The parts of a package, unpacked to a folder, and which are reports. Raises FormatError if unsafe."""
    reports = []
    for name, stream in file.documents(*(_PARTS if file.is_zip else ())):
        data = stream.read()
        parts = [
            part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")
        ]
        try:
            check_xml(data)
        except UnsafeDocument as failure:
            raise FormatError(f"{file.name}: {parts[-1]}: {failure}") from None
        if "META-INF" in parts:  # part of the package: beside a report it would count as a report
            continue
        path = folder.joinpath("report", *parts)
        if not path.name.lower().endswith(_PARTS):
            path = path.with_name(f"{path.name}.xhtml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if path.name.lower().endswith(_REPORTS) and any(namespace in data for namespace in _NAMESPACES):
            reports.append(path)
    return reports


def _facts(file: InputFile, report: Path, packages: list[str], folder: str) -> Iterator[FactLine]:
    """The facts of a report, read in a separate process. Raises FormatError if it cannot be read."""
    limits = file.limits
    # Not the report's folder: arelle treats files in this one as downloads.
    cache = Path(folder, "cache")
    cache.mkdir(exist_ok=True)
    request = Request(str(report), packages, str(cache), limits.xbrl_memory_bytes, limits.xbrl_seconds)
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sankofa.sources.ixbrl_worker"],
            input=msgspec.json.encode(request),
            capture_output=True,
            check=False,
            cwd=folder,
            env={**environment, "HOME": folder, "XDG_CONFIG_HOME": folder, "TMPDIR": folder},
            timeout=2 * limits.xbrl_seconds,
        )
    except subprocess.TimeoutExpired:
        raise FormatError(f"{file.name}: not read within {2 * limits.xbrl_seconds} s") from None
    lines = [_lines(line) for line in done.stdout.splitlines()]
    if done.returncode or not lines or not isinstance(lines[-1], Ending):
        raise FormatError(
            f"{file.name}: could not be read within {limits.xbrl_seconds} s of processor time and "
            f"{limits.xbrl_memory_bytes:,} bytes of memory (SANKOFA_INGEST_XBRL_SECONDS, "
            "SANKOFA_INGEST_XBRL_MEMORY_BYTES)"
        )
    if lines[-1].missing:
        missing = ", ".join(lines[-1].missing)
        raise FormatError(f"{file.name}: needs taxonomies that no package in HOME/taxonomies has: {missing}")
    return (line for line in lines if isinstance(line, FactLine))


class _Report:
    """The facts of one report on their way into records."""

    def __init__(self, file: InputFile, document: str) -> None:
        self._document = document
        self._available_at = day_of_name(file.name)
        self._chosen: dict[_Key, tuple[int, Fact]] = {}
        self._named: dict[str, str] = {}
        self._skipped = 0

    def records(self, lines: Iterator[FactLine]) -> Iterator[Record]:
        for line in lines:
            try:
                rejected = self._take(line)
            except ValueError as failure:
                rejected = Rejected(f"{self._document}#{line.location}", str(failure))
            if rejected is not None:
                yield rejected
        for subject, legal_name in self._named.items():
            profile = Profile(
                legal_name=legal_name, identifiers=(subject,), document=self._document, secondary=True
            )
            yield EntityRecord(subject, self._available_at, profile, incidental=True)
        yield from (fact for _, fact in self._chosen.values())
        if self._skipped:
            yield Skipped(self._skipped)

    def _take(self, line: FactLine) -> Rejected | None:
        """A reject if it contradicts another figure of the report. Raises ValueError if it is not a
        figure."""
        concept = _concept(line)
        if concept in _NAMES and line.value:
            self._named.setdefault(_subject(line), fit_name(line.value) or "")
        prefix = concept.partition(":")[0]
        of_cover = prefix == "dei" and line.unit != "shares"
        is_ours = not (line.dimensions or of_cover or prefix in _ABOUT_PERSONS)
        if not (is_ours and line.is_numeric and line.value is not None):
            self._skipped += 1
            return None
        fact = Fact(
            *(_subject(line), concept, line.unit, line.start, line.end),
            *(self._available_at, self._document, exact(line.value), line.location),
        )
        key = fact[:5]
        known = self._chosen.get(key)
        if known is None or known[0] < line.decimals:
            self._chosen[key] = (line.decimals, fact)
        elif known[0] == line.decimals and known[1].value != fact.value:
            return Rejected(f"{self._document}#{line.location}", f"another figure than {known[1].location}")
        self._skipped += known is not None
        return None


def _concept(line: FactLine) -> str:
    """`ifrs-full:Revenue` under any declared prefix; other taxonomies have the declared prefix."""
    known = _TAXONOMIES.fullmatch(line.namespace)
    prefix = next(filter(None, known.groups())) if known else line.prefix or "own"
    return f"{prefix}:{line.name}"


def _subject(line: FactLine) -> str:
    for pattern, id_type, scheme in _SCHEMES:
        if pattern.fullmatch(line.scheme.strip()):
            return str(make_identifier(id_type, line.identifier.strip(), scheme))
    raise ValueError("identifier: unknown scheme (known: LEI, SEC CIK, CIPC)")
