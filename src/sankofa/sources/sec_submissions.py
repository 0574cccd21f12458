"""SEC submissions: who a registrant is, the names it used before, and when its filings were accepted."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from sankofa.model import text
from sankofa.model.days import day_in, instant
from sankofa.model.errors import FormatError
from sankofa.model.identifiers import cik
from sankofa.model.organisations import org_evidence
from sankofa.model.records import Acceptance, EntityRecord, Profile, Record, Rejected, Withheld
from sankofa.sources.base import InputFile, adapter

_EXPECTED: Final = "expected SEC submissions JSON with cik, name and formerNames"
NEW_YORK: Final = ZoneInfo("America/New_York")
_OF_ORGANISATIONS: Final = ("operating", "investment")
"""Values of `entityType`. People who file are `other`, and so are some organisations."""
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
    """Filings by column."""

    accession: list[str] = msgspec.field(name="accessionNumber")
    accepted: list[str] = msgspec.field(name="acceptanceDateTime")
    form: list[str] = []


class _Named(msgspec.Struct):
    """A name, and the first day on which the registrant used it."""

    day: str
    name: str


_decode = msgspec.json.Decoder(_Registrant).decode
_decode_filings = msgspec.json.Decoder(_Filings).decode


@adapter("sec-submissions", names_people=True)
def read(file: InputFile) -> Iterator[Record]:
    """SEC submissions JSON, one document per registrant, or the bulk zip of them.

    Each former name is the registrant's from its first day on; the present name from the day after the last
    one ended. People file with the SEC too: a registrant that neither its type nor one of its names shows to
    be an organisation is withheld. `filings` say when each filing was accepted, and so became public.
    """
    readable = 0
    organisations: set[str] = set()
    for name, stream in file.documents(".json", expected=f"{_EXPECTED}, found none in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        if page := _PAGE.fullmatch(name):
            if page[1] in organisations:  # of people nothing is read
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
    former, last_day = [], ""
    for index, given in enumerate(registrant.former):
        position = f"{prefix}formerNames/{index}"
        try:
            one = msgspec.convert(given, _Former)
            first, end = (day_in(field, day[:10]) for field, day in (("from", one.from_), ("to", one.to)))
        except (msgspec.ValidationError, ValueError) as failure:
            yield Rejected(position, str(failure))
            continue
        if end < first or not text.name(one.name):
            yield Rejected(position, "a name is missing, or ends before it begins")
            continue
        former.append(_Named(first, one.name))
        last_day = max(last_day, end)
    names = sorted(former, key=lambda one: one.day)
    following = (date.fromisoformat(last_day) + timedelta(days=1)).isoformat() if last_day else ""
    names.append(_Named(following, registrant.name))
    known = registrant.entity_type in _OF_ORGANISATIONS
    if not known and not any(org_evidence(used.name, country="US") for used in names):
        yield Withheld(prefix + "name")
        return
    for used in names:
        if legal_name := text.name(used.name):
            profile = Profile(
                legal_name=legal_name,
                identifiers=(subject,),
                document=f"CIK{subject.rpartition(':')[2]}.json",
                registered=names[0].day,
            )
            yield EntityRecord(subject, used.day, profile)
        else:
            yield Rejected(prefix + "name", "the present name is missing")
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
    """UTC, as `acceptanceDateTime` is written; New York's where only that agrees with the hours of EDGAR.

    For some registrants the SEC publishes the clock of New York with the mark of UTC.
    """
    clocks = (UTC, NEW_YORK)
    hours = [[time.replace(tzinfo=clock).astimezone(NEW_YORK).hour for time in times] for clock in clocks]
    as_utc, as_local = (sum(hour in _ACCEPTS for hour in own) for own in hours)
    return NEW_YORK if as_local > as_utc else UTC
