"""Filings at the SEC: the figures of a quarter, and the identity of registrants.

Financial Statement Data Sets are tab-separated members of one zip. Submissions have a registrant's former
names, and the times its filings were accepted.
"""

import calendar
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from operator import itemgetter
from typing import IO, Final
from zoneinfo import ZoneInfo

import msgspec

from sankofa.model import text
from sankofa.model.countries import country
from sankofa.model.days import day_in, instant
from sankofa.model.errors import FormatError
from sankofa.model.figures import exact
from sankofa.model.identifiers import cik
from sankofa.model.organisations import org_evidence
from sankofa.model.records import Acceptance, EntityRecord, Fact, Profile, Record, Rejected, Skipped, Withheld
from sankofa.sources.base import InputFile, adapter

_EXPECTED: Final = "expected SEC submissions JSON with cik, name and formerNames"
NEW_YORK: Final = ZoneInfo("America/New_York")
_OF_ORGANISATIONS: Final = ("operating", "investment")
"""Values of `entityType`. People are `other`, but some organisations are too."""
_PAGE: Final = re.compile(r"(?:.*/)?CIK([0-9]{10})-submissions-[0-9]+\.json")
"""The name of a further page of a registrant's filings in the bulk zip."""
_OF_OWNERS: Final = re.compile(r"(?:3|4|5|144)(?:/A)?")
"""Forms in which people report their shares: no figures, and the greater part of all filings."""
_ACCEPTS: Final = range(6, 22)
"""Hours of New York in which EDGAR accepts filings."""


class _Former(msgspec.Struct):
    name: str
    from_: str = msgspec.field(name="from")
    to: str


class _Registrant(msgspec.Struct):
    cik: int | str
    name: str
    former: list[dict[str, object]] = msgspec.field(name="formerNames")
    entity_type: str | None = msgspec.field(name="entityType", default=None)
    filings: dict[str, msgspec.Raw] | None = None


class _Filings(msgspec.Struct):
    accession: list[str] = msgspec.field(name="accessionNumber")
    accepted: list[str] = msgspec.field(name="acceptanceDateTime")
    form: list[str] = []


_decode = msgspec.json.Decoder(_Registrant).decode
_decode_filings = msgspec.json.Decoder(_Filings).decode


@adapter("sec-submissions", names_people=True)
def submissions(file: InputFile) -> Iterator[Record]:
    """SEC submissions JSON, one document per registrant, or the bulk zip of them.

    Each former name is valid from its first day; the present name from the day after the last former name
    ended. People file with the SEC too, so a registrant is withheld unless its type or one of its names shows
    an organisation. `filings` have the time each filing was accepted, and so became public.
    """
    readable = 0
    organisations: set[str] = set()
    for name, stream in file.documents(".json", expected=f"{_EXPECTED}, found none in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        if page := _PAGE.fullmatch(name):
            if page[1] in organisations:  # nothing is read about people
                yield from _acceptances(prefix, str(cik(page[1])), stream.read())
            continue
        try:
            registrant = _decode(stream.read())
            subject = str(cik(registrant.cik))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as failure:
            if not file.is_zip:
                raise FormatError(f"{file.name}: {_EXPECTED}; {failure}") from None
            yield Rejected(name, _EXPECTED)
            continue
        readable += 1
        for record in _records(prefix, subject, registrant):
            yield record
            if type(record) is EntityRecord:
                organisations.add(subject.rpartition(":")[2])
    if not readable:
        raise FormatError(f"{file.name}: {_EXPECTED}; found no such document in the archive")


def _records(prefix: str, subject: str, registrant: _Registrant) -> Iterator[Record]:
    former, last_day = list[tuple[str, str]](), ""
    for index, entry in enumerate(registrant.former):
        position = f"{prefix}formerNames/{index}"
        try:
            one = msgspec.convert(entry, _Former)
            first, end = (day_in(field, day[:10]) for field, day in (("from", one.from_), ("to", one.to)))
        except (msgspec.ValidationError, ValueError) as failure:
            yield Rejected(position, str(failure))
            continue
        if end < first or not text.name(one.name):
            yield Rejected(position, "a name is missing, or ends before it begins")
            continue
        former.append((first, one.name))
        last_day = max(last_day, end)
    names = sorted(former, key=itemgetter(0))
    following = (date.fromisoformat(last_day) + timedelta(days=1)).isoformat() if last_day else ""
    names.append((following, registrant.name))
    known = registrant.entity_type in _OF_ORGANISATIONS
    if not known and not any(org_evidence(name, country="US") for _, name in names):
        yield Withheld(prefix + "name")
        return
    for day, name in names:
        if legal_name := text.name(name):
            profile = Profile(
                legal_name=legal_name,
                identifiers=(subject,),
                document=f"CIK{subject.rpartition(':')[2]}.json",
                registered=names[0][0],
            )
            yield EntityRecord(subject, day, profile)
        else:
            yield Rejected(prefix + "name", "the current name is missing")
    if registrant.filings and "recent" in registrant.filings:
        yield from _acceptances(prefix, subject, registrant.filings["recent"])


def _acceptances(prefix: str, subject: str, columns: bytes | msgspec.Raw) -> Iterator[Record]:
    """When each filing of a registrant was accepted."""
    try:
        filings = _decode_filings(columns)
        times = [datetime.fromisoformat(written) for written in filings.accepted]
        forms = filings.form or [""] * len(times)
        rows = list(zip(filings.accession, times, forms, strict=True))
        clock = _clock(times)
        moments = [(accession, instant(time.replace(tzinfo=clock))) for accession, time, form in rows
                   if not _OF_OWNERS.fullmatch(form)]  # fmt: skip
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError):
        yield Rejected(f"{prefix}filings", "expected accessionNumber and acceptanceDateTime of each filing")
        return
    for accession, moment in moments:
        yield Acceptance(subject, accession, moment)


def _clock(times: list[datetime]) -> tzinfo:
    """`acceptanceDateTime` as UTC; read as New York time if only that fits the hours of EDGAR.

    For some registrants the SEC publishes New York time marked as UTC.
    """
    clocks = (UTC, NEW_YORK)
    hours = [[time.replace(tzinfo=clock).astimezone(NEW_YORK).hour for time in times] for clock in clocks]
    as_utc, as_local = (sum(hour in _ACCEPTS for hour in own) for own in hours)
    return NEW_YORK if as_local > as_utc else UTC


_TAXONOMIES: Final = {"us-gaap": "us-gaap", "ifrs": "ifrs-full", "ifrs-full": "ifrs-full", "srt": "srt"}
_RAGGED: Final = "a different number of columns than the header"
_ACCESSION = re.compile(r"[0-9]{10}-[0-9]{2}-[0-9]{6}\Z")
_COMPACT_DAY = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:\.0)?\Z")
_COUNT = re.compile(r"([0-9]{1,4})(?:\.0+)?\Z")

Filings = dict[str, tuple[str, str]]
"""The registrant and the day of filing, by accession."""


@adapter("sec-fsds", rounds_dates=True)
def read(file: InputFile) -> Iterator[Record]:
    """SEC Financial Statement Data Sets: a quarterly zip of sub, num, tag and pre .txt.

    Only consolidated figures are read: no segment, no co-registrant. `accepted` is the instant at which a
    filing became public, by the clock of New York. tag and pre describe the taxonomies and the presentation,
    and add nothing to a figure.
    """
    if not file.is_zip:
        raise FormatError(f"{file.name}: expected a zip with sub.txt and num.txt")
    filings: Filings = {}
    with file.member("sub.txt") as stream:
        yield from _submissions(_Table(file, "sub.txt", stream), filings)
    with file.member("num.txt") as stream:
        yield from _numbers(_Table(file, "num.txt", stream), filings)


class _Table:
    """A tab-separated member: columns by name, rows as lists, one line in memory at a time."""

    def __init__(self, file: InputFile, member: str, stream: IO[bytes]) -> None:
        self._member = member
        self._stream = stream
        header = _decoded(stream.readline().removeprefix(b"\xef\xbb\xbf")).strip("\r\n").lower().split("\t")
        self.column_of = {name.strip(): index for index, name in enumerate(header)}
        self._width = len(header)
        self._title = f"{file.name}: {member}"

    def require(self, *columns: str) -> list[int]:
        """The places of these columns. Raises FormatError naming the first that is not there."""
        for column in columns:
            if column not in self.column_of:
                raise FormatError(f"{self._title}: expected a column {column}")
        return [self.column_of[column] for column in columns]

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each row with its line number; a row of another width is an empty list."""
        for line_number, line in enumerate(self._stream, 2):
            row = _decoded(line).rstrip("\r\n").split("\t")
            if len(row) == self._width:
                yield line_number, row
            elif row != [""]:
                yield line_number, []

    def rejected(self, line_number: int, reason: object) -> Rejected:
        return Rejected(f"{self._member} row {line_number}", str(reason))


def _submissions(table: _Table, filings: Filings) -> Iterator[Record]:
    adsh, number, filed, name = table.require("adsh", "cik", "filed", "name")
    names = ("countryinc", "stprinc", "countryba", "former", "accepted")
    optional = [table.column_of.get(column) for column in names]
    for line_number, row in table.rows():
        if not row or not _ACCESSION.match(row[adsh]):
            yield table.rejected(line_number, "adsh is not an accession number" if row else _RAGGED)
            continue
        try:
            subject, day = str(cik(row[number].removesuffix(".0"))), _day("filed", row[filed]).isoformat()
        except ValueError as failure:
            yield table.rejected(line_number, failure)
            continue
        filings[row[adsh]] = (subject, day)
        incorporated, state, business, former, accepted = (
            row[i].strip() if i is not None else "" for i in optional
        )
        home = country(incorporated)
        former_name = text.name(former)
        profile = Profile(
            legal_name=text.name(row[name]),
            other_names=(former_name,) if former_name else (),
            jurisdiction=f"{home}-{state}" if home and state else home,
            country=home or country(business),
            identifiers=(subject,),
            document=row[adsh],
        )
        yield EntityRecord(subject, day, profile, incidental=True)
        if accepted:
            try:
                at = datetime.strptime(accepted[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=NEW_YORK)
                yield Acceptance(subject, row[adsh], instant(at))
            except (ValueError, OverflowError):
                yield table.rejected(line_number, "accepted: expected a day and a time")


def _numbers(table: _Table, filings: Filings) -> Iterator[Record]:
    adsh, tag, version, ddate, qtrs, uom, coreg, value = table.require(
        "adsh", "tag", "version", "ddate", "qtrs", "uom", "coreg", "value"
    )
    segments = table.column_of.get("segments")  # older files have none: they never held a segment's figure
    skipped = 0
    for line_number, row in table.rows():
        if not row:
            yield table.rejected(line_number, _RAGGED)
            continue
        if row[coreg] or not row[value] or (segments is not None and row[segments]):
            skipped += 1
            continue
        try:
            concept = _concept(row[tag], row[version], row[uom])
            if concept is None:
                skipped += 1
                continue
            subject, filed = filings[row[adsh]]
            start, end = _period(row[ddate], row[qtrs])
            figure = _figure(row[value])
            fact = Fact(subject, concept, row[uom], start, end, filed, row[adsh], figure, concept)
        except KeyError:
            yield table.rejected(line_number, "adsh: no such filing in sub.txt")
            continue
        except ValueError as failure:
            yield table.rejected(line_number, failure)
            continue
        yield fact
    if skipped:
        yield Skipped(skipped)


@lru_cache(maxsize=65536)
def _concept(tag: str, version: str, uom: str) -> str | None:
    """The concept of a tag, None if its taxonomy is not ours to read. Raises ValueError."""
    if not (tag and tag.isprintable() and " " not in tag and ":" not in tag):
        raise ValueError("tag: expected the name of a concept")
    if not (uom and uom.isprintable()):
        raise ValueError("uom: expected a unit")
    if _ACCESSION.match(version):
        return f"custom:{tag}"  # defined by the filing itself
    taxonomy = version.partition("/")[0]
    if taxonomy == "dei" and uom == "shares":
        return f"dei:{tag}"
    return f"{_TAXONOMIES[taxonomy]}:{tag}" if taxonomy in _TAXONOMIES else None


@lru_cache(maxsize=65536)
def _period(ddate: str, qtrs: str) -> tuple[str, str]:
    """The dates of a period given as its end, rounded to a month's end, and a number of quarters."""
    end = _day("ddate", ddate)
    count = _COUNT.match(qtrs)
    if not count:
        raise ValueError("qtrs: expected a number of quarters")
    quarters = int(count[1])
    if not quarters:
        return "", end.isoformat()
    month = end.year * 12 + end.month - 1 - 3 * quarters
    if month < 12:
        raise ValueError("qtrs: more quarters than the calendar has")
    year, month = month // 12, month % 12 + 1
    last_before = date(year, month, calendar.monthrange(year, month)[1])
    return (last_before + timedelta(days=1)).isoformat(), end.isoformat()


def _figure(value: str) -> str:
    """Nearly every figure is a whole number written with four zeros after the point."""
    whole, _, fraction = value.partition(".")
    return exact(whole if fraction == "0000" and whole.lstrip("-").isdecimal() else value)


def _day(field: str, compact: str) -> date:
    parts = _COMPACT_DAY.match(compact)
    if not parts:
        raise ValueError(f"{field}: expected a date as YYYYMMDD")
    try:
        return date(int(parts[1]), int(parts[2]), int(parts[3]))
    except ValueError:
        raise ValueError(f"{field}: no such day in the calendar") from None


def _decoded(line: bytes) -> str:
    """UTF-8 as documented; names in older files may be Windows-1252 or ISO Latin."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")
