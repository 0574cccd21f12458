"""SEC submissions: who a registrant is, and the names it used before."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

import msgspec

from sankofa.model import text
from sankofa.model.days import day_in
from sankofa.model.errors import FormatError
from sankofa.model.identifiers import cik
from sankofa.model.organisations import org_evidence
from sankofa.model.records import EntityRecord, Profile, Record, Rejected, Withheld
from sankofa.sources.base import InputFile, adapter

_EXPECTED: Final = "expected SEC submissions JSON with cik, name and formerNames"
_OF_ORGANISATIONS: Final = ("operating", "investment")
"""Values of `entityType`. People who file are `other`, and so are some organisations."""


class _Former(msgspec.Struct):
    name: str
    from_: str = msgspec.field(name="from")
    to: str


class _Registrant(msgspec.Struct):
    cik: int | str
    name: str
    former: list[dict[str, object]] = msgspec.field(name="formerNames")
    entity_type: str | None = msgspec.field(name="entityType", default=None)


class _Named(msgspec.Struct):
    """A name, and the first day on which the registrant used it."""

    day: str
    name: str


_decode = msgspec.json.Decoder(_Registrant).decode


@adapter("sec-submissions", names_people=True)
def read(file: InputFile) -> Iterator[Record]:
    """SEC submissions JSON, one document per registrant, or the bulk zip of them.

    Each former name is the registrant's from its first day on; the present name from the day after the last
    one ended. People file with the SEC too: a registrant that neither its type nor one of its names shows to
    be an organisation is withheld.
    """
    readable = 0
    for name, stream in file.documents(".json", expected=f"{_EXPECTED}, found none in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        try:
            registrant = _decode(stream.read())
            subject = str(cik(registrant.cik))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as failure:
            if not file.is_zip:
                raise FormatError(f"{file.name}: {_EXPECTED}; {failure}") from None
            if "-submissions-" not in name:  # a further page of filings, which names nobody
                yield Rejected(name, _EXPECTED)
            continue
        readable += 1
        yield from _records(prefix, subject, registrant)
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
