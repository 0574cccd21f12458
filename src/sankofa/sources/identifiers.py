"""Identifiers of organisations and of their securities.

GLEIF: LEI records (level 1), accounting parents (level 2), and ISINs of LEIs. Golden copies and relationship
files are CSV; replies of the GLEIF API are JSON. OpenFIGI: FIGIs of listed shares, in replies of its API.
"""

import csv
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from itertools import chain
from operator import itemgetter
from typing import IO, Final, NamedTuple

import msgspec

from sankofa.model import text
from sankofa.model.countries import country
from sankofa.model.days import file_instant, instant
from sankofa.model.errors import FormatError
from sankofa.model.identifiers import exchange_of_figi, is_isin, is_lei, make_identifier
from sankofa.model.records import EntityRecord, IdentifierLink, Profile, Record, Rejected, Skipped, Withheld
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.tables import peek

_MARK: Final = b"\xef\xbb\xbf"
_FIELDS: Final = {
    "lei": ("LEI", "lei"),
    "legal_name": ("Entity.LegalName", "entity.legalName.name"),
    "category": ("Entity.EntityCategory", "entity.category"),
    "address_country": ("Entity.LegalAddress.Country", "entity.legalAddress.country"),
    "jurisdiction": ("Entity.LegalJurisdiction", "entity.jurisdiction"),
    "legal_form": ("Entity.LegalForm.EntityLegalFormCode", "entity.legalForm.id"),
    "other_form": ("Entity.LegalForm.OtherLegalForm", "entity.legalForm.other"),
    "entity_status": ("Entity.EntityStatus", "entity.status"),
    "registration_status": ("Registration.RegistrationStatus", "registration.status"),
    "authority": ("Entity.RegistrationAuthority.RegistrationAuthorityID", "entity.registeredAt.id"),
    "number": ("Entity.RegistrationAuthority.RegistrationAuthorityEntityID", "entity.registeredAs"),
    "successor": ("Entity.SuccessorEntity.1.SuccessorLEI", "entity.successorEntity.lei"),
    "updated": ("Registration.LastUpdateDate", "registration.lastUpdateDate"),
    "first": ("Registration.InitialRegistrationDate", "registration.initialRegistrationDate"),
}
"""For each field of `_Published`, in order: its column in the golden copy and its path in an API reply."""
_API_PATHS: Final = tuple(("attributes", *path.split(".")) for _, path in _FIELDS.values())
_REQUIRED: Final = ("lei", "legal_name", "category")  # without a category no sole proprietor could be told
_OLDER_NAME: Final = {"Entity.SuccessorEntity.1.SuccessorLEI": "Entity.SuccessorEntity.SuccessorLEI"}
_OTHER_NAME = re.compile(
    r"Entity\.(?:TransliteratedOtherEntityNames\.Transliterated|OtherEntityNames\.)OtherEntityName\.[0-9]+\Z"
)
_EVENT: Final = "Entity.LegalEntityEvents.LegalEntityEvent.{}."
_EVENTS: Final = range(1, 6)
_EVENT_FIELDS: Final = ("LegalEntityEventType", "event_status", "LegalEntityEventRecordedDate")
_RENAMED: Final = ("CHANGE_LEGAL_NAME", "COMPLETED")
_PREVIOUS: Final = "PREVIOUS_LEGAL_NAME"
_EXPECTED: Final = "expected a GLEIF golden copy CSV or a GLEIF API reply with lei-records"
_NO_AUTHORITY: Final = ("RA999999", "RA888888")  # "none" and "not listed": no register
_NO_FORM: Final = ("8888", "9999")  # "other" and "not applicable": the form is given in words, or not at all
_ASSIGNED = re.compile(r"[1-9]")


class _Names(NamedTuple):
    """The other names of a record, and when its register recorded changes of the legal name."""

    others: list[str]
    previous: list[str]
    changed: list[str]

    @property
    def change(self) -> tuple[str | None, str]:
        """The former name and the day of the change; none if there were several, which nothing orders."""
        if len(self.previous) != 1 or len(self.changed) != 1:
            return None, ""
        try:
            former, day = text.name(self.previous[0]), instant_text(self.changed[0])[:10]
        except ValueError:
            return None, ""
        return (former, day) if former else (None, "")


class _Published(NamedTuple):
    """One record from either GLEIF format; the empty string for missing values."""

    lei: str
    legal_name: str
    category: str
    address_country: str
    jurisdiction: str
    legal_form: str
    other_form: str
    entity_status: str
    registration_status: str
    authority: str
    number: str
    successor: str
    updated: str
    first: str


@adapter("gleif-lei", names_people=True)
def lei_records(file: InputFile) -> Iterator[Record]:
    """GLEIF LEI records: golden copy CSV and API JSON.

    A sole proprietor is a person: the record is counted as withheld and dropped here.
    """
    for title, prefix, header, stream in _documents(file, _EXPECTED):
        published = _from_json(title, stream.read()) if header is None else _from_csv(title, header, stream)
        for position, record, names in published:
            if record is None:
                yield Rejected(prefix + position, "malformed record")
            else:
                yield from _entity(prefix + position, record, names)


def _documents(file: InputFile, expected: str) -> Iterator[tuple[str, str, bytes | None, IO[bytes]]]:
    """Each document with its title, the prefix of its positions, and its header; None for a reply in JSON."""
    for name, stream in file.documents(".csv", ".json", expected=f"{expected}, found neither in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        is_json = peek(stream).removeprefix(_MARK).lstrip()[:1] in (b"{", b"[")
        header = None if is_json else stream.readline().removeprefix(_MARK)
        yield f"{file.name}: {prefix}".strip(), prefix, header, stream


def _entity(position: str, published: _Published, names: _Names) -> Iterator[Record]:
    person = "SOLE" in published.category.upper()  # in any spelling: no person may slip through
    try:
        subject = lei_subject(published.lei)
    except ValueError as failure:
        yield Withheld(position) if person else Rejected(position, str(failure))
        return
    where = country(published.address_country) or country(published.jurisdiction.partition("-")[0])
    if person:
        yield Withheld(position, str(subject), published.legal_name, where or "")
        return
    legal_name = text.one_line(published.legal_name)
    others = [text.one_line(name) for name in names.others]
    if not legal_name or not text.fit(legal_name) or not all(map(text.fit, others)):
        yield Rejected(position, "a name is missing or not in UTF-8")
        return
    fields: dict[str, str] = {}
    for name, make in _OPTIONAL.items():
        try:
            fields[name] = make(published)
        except ValueError as failure:
            yield Rejected(position, f"the record is kept without {name}: {failure}")
    first, last = fields.get("first_registered", ""), fields.get("effective", "")[:10]
    former, renamed = names.change
    if former == legal_name or not first < renamed <= last:
        former, renamed = None, ""
    coded = published.legal_form and published.legal_form not in _NO_FORM
    profile = Profile(
        legal_name=legal_name,
        other_names=tuple(name for name in dict.fromkeys(others) if name and name != legal_name),
        jurisdiction=published.jurisdiction or None,
        country=where,
        status=published.registration_status or published.entity_status or None,
        category=published.category or None,
        legal_form=published.legal_form if coded else text.name(published.other_form),
        identifiers=(subject, *filter(None, (fields.get("registered"),))),
        successor=fields.get("successor") or None,
        document=subject.removeprefix("lei:"),
        registered=first,
        former_name=former,
        renamed=renamed,
    )
    yield EntityRecord(subject, fields.get("effective", ""), profile)


def lei_subject(written: str) -> str:
    """The identifier of an LEI. Raises ValueError."""
    return f"lei:{written}" if is_lei(written) else str(make_identifier("lei", written))


def _registered(published: _Published) -> str:
    """The number in a companies register. A placeholder (`N/A`, `0`) would merge unrelated organisations."""
    if published.authority in ("", *_NO_AUTHORITY) or not _ASSIGNED.search(published.number):
        return ""
    return str(make_identifier("registry", published.number, published.authority))


def instant_text(text: str) -> str:
    if not text:
        return ""
    try:
        parsed = datetime.fromisoformat(text)
        return instant(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ValueError("expected an instant") from None


_OPTIONAL: Final[dict[str, Callable[[_Published], str]]] = {
    "registered": _registered,
    "successor": lambda one: lei_subject(one.successor) if one.successor else "",
    "effective": lambda one: instant_text(one.updated),
    "first_registered": lambda one: instant_text(one.first)[:10],
}
"""Members that a record may lack."""
Published = Iterator[tuple[str, _Published | None, _Names]]
_NO_NAMES: Final = _Names([], [], [])


def golden_copy_rows(first: bytes, stream: IO[bytes]) -> Iterator[tuple[str, list[str] | None]]:
    """The header, then each row with its position; None for rows that do not fit the header."""
    # Bytes that are not UTF-8 become surrogates, so that only their own record fails.
    lines = (line.decode("utf-8", "surrogateescape") for line in chain((first,), stream))
    rows = csv.reader(lines)
    header = [name.strip() for name in next(rows, [])]
    yield "", header
    while True:
        position = f"row {rows.line_num + 1}"
        try:
            row = next(rows, None)
        except csv.Error:
            yield position, None
            continue
        if row is None:
            return
        if row:
            yield position, row if len(row) == len(header) else None


def _from_csv(title: str, first: bytes, stream: IO[bytes]) -> Published:
    rows = golden_copy_rows(first, stream)
    header = next(rows)[1] or []
    column_of = {name: index for index, name in enumerate(header)}
    for field in _REQUIRED:
        if _FIELDS[field][0] not in column_of:
            raise FormatError(f"{title} {_EXPECTED}; found no column {_FIELDS[field][0]}")
    absent = len(header)  # added as an empty field
    named = (name for name, _ in _FIELDS.values())
    columns = [column_of.get(name, column_of.get(_OLDER_NAME.get(name, ""), absent)) for name in named]
    fields = itemgetter(*columns)
    others = [index for index, name in enumerate(header) if _OTHER_NAME.match(name)]
    previous = [(i, column_of.get(f"{header[i]}.type", absent)) for i in others]
    events = [
        [column_of.get(f"{_EVENT.format(n)}{name}", absent) for name in _EVENT_FIELDS]
        for n in _EVENTS
        if f"{_EVENT.format(n)}{_EVENT_FIELDS[0]}" in column_of
    ]
    for position, row in rows:
        if row is None:
            yield position, None, _NO_NAMES
        else:
            row.append("")
            own = [row[i] for i in others if row[i]]
            old = [row[i] for i, of_type in previous if row[of_type] == _PREVIOUS] if own else own
            changed = (
                [row[day] for kind, status, day in events if (row[kind], row[status]) == _RENAMED]
                if old
                else old
            )
            names = _Names(own, old, changed) if own else _NO_NAMES
            yield position, _Published(*fields(row)), names


def _from_json(title: str, data: bytes) -> Published:
    for index, record in enumerate(_api_records(title, data, "lei-records", _EXPECTED)):
        entity = _get(record, "attributes", "entity")
        if _at(record, "type") != "lei-records" or not isinstance(entity, dict):
            yield f"data/{index}", None, _NO_NAMES
            continue
        lists = (entity.get("otherNames"), entity.get("transliteratedOtherNames"))
        others = [name for some in lists if isinstance(some, list) for name in some]
        groups = entity.get("eventGroups")
        grouped = (_get(group, "events") for group in groups) if isinstance(groups, list) else ()
        events = [event for some in grouped if isinstance(some, list) for event in some]
        names = _Names(
            [_at(name, "name") for name in others],
            [_at(name, "name") for name in others if _at(name, "type") == _PREVIOUS],
            [
                _at(event, "recordedDate")
                for event in events
                if (_at(event, "type"), _at(event, "status")) == _RENAMED
            ],
        )
        yield f"data/{index}", _Published(*(_at(record, *path) for path in _API_PATHS)), names


def _api_records(title: str, data: bytes, kind: str, expected: str) -> list[object]:
    """The records in a reply of the API, some of this kind; none if a search has no results."""
    try:
        reply = msgspec.json.decode(data.removeprefix(_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError(f"{title} {expected}; this is not JSON") from None
    records = _get(reply, "data")
    if records == [] and _get(reply, "meta", "goldenCopy") is not None:
        return []
    if isinstance(records, dict) and kind == "lei-records":  # of one LEI
        records = [records]
    if not isinstance(records, list) or not any(_at(record, "type") == kind for record in records):
        answer = "an error reply" if isinstance(reply, dict) and "errors" in reply else "other JSON"
        raise FormatError(f"{title} {expected}; this is {answer}")
    return records


def _get(value: object, *path: str) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _at(value: object, *path: str) -> str:
    """The text at a path; empty if there is none, or something else."""
    text = _get(value, *path)
    return text.strip() if isinstance(text, str) else ""


_EXPECTED_PARENTS: Final = "expected a GLEIF relationship record golden copy CSV"
_CHILD: Final = "Relationship.StartNode.NodeID"
_PARENT: Final = "Relationship.EndNode.NodeID"
_TYPE: Final = "Relationship.RelationshipType"
_STATUS: Final = "Relationship.RelationshipStatus"
_REQUIRED_COLUMNS: Final = (_CHILD, _PARENT, _TYPE, _STATUS)
_RELATIONSHIPS: Final = {
    "IS_DIRECTLY_CONSOLIDATED_BY": "direct",
    "IS_ULTIMATELY_CONSOLIDATED_BY": "ultimate",
}
_VOID: Final = ("RETIRED", "ANNULLED", "DUPLICATE")
"""Registration statuses of records that no longer count; lapsed records count, like lapsed LEIs."""
_PERIODS: Final = range(1, 6)


@adapter("gleif-rr")
def relationships(file: InputFile) -> Iterator[Record]:
    """GLEIF level 2 relationship records: golden copy CSV, plain or zip.

    Direct and ultimate accounting consolidation are read, other relationships (of funds and branches) are
    skipped. A record that is inactive, retired or annulled, or whose period is over, ends the relationship
    on the day it was last updated.
    """
    day = file_instant(file.name, str(date.max))[:10]
    for name, stream in file.documents(".csv", expected=f"{_EXPECTED_PARENTS}, found none in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        rows = golden_copy_rows(stream.readline().removeprefix(_MARK), stream)
        header = next(rows)[1] or []
        for column in _REQUIRED_COLUMNS:
            if column not in header:
                raise FormatError(f"{file.name}: {prefix}{_EXPECTED_PARENTS}; found no column {column}")
        for position, row in rows:
            if row is None:
                yield Rejected(prefix + position, "malformed record")
            else:
                yield from _relationship(prefix + position, dict(zip(header, row, strict=True)), day)


def _relationship(position: str, fields: dict[str, str], file_day: str) -> Iterator[Record]:
    relationship = _RELATIONSHIPS.get(fields[_TYPE])
    if relationship is None:
        yield Skipped(1)
        return
    try:
        child, parent = lei_subject(fields[_CHILD]), lei_subject(fields[_PARENT])
        first, updated = (
            instant_text(fields.get(f"Registration.{name}Date", ""))
            for name in ("InitialRegistration", "LastUpdate")
        )
    except ValueError as failure:
        yield Rejected(position, str(failure))
        return
    if child == parent:
        yield Rejected(position, "an organisation cannot be its own parent")
        return
    void = fields.get("Registration.RegistrationStatus") in _VOID
    profile = Profile(
        document=child.removeprefix("lei:"),
        registered=first[:10],
        secondary=True,
        relationship=relationship,
        parent=parent,
        ended=fields[_STATUS] == "INACTIVE" or void or _is_over(fields, updated[:10] or file_day),
    )
    yield EntityRecord(child, updated, profile)


def _is_over(fields: dict[str, str], day: str) -> bool:
    """Whether every period of the relationship ended by the day of the last update, or of the file."""
    ends = [
        fields.get(f"Relationship.Period.{number}.endDate", "")[:10]
        for number in _PERIODS
        if fields.get(f"Relationship.Period.{number}.periodType") == "RELATIONSHIP_PERIOD"
    ]
    return bool(ends and day) and all(end and _is_day(end) and end <= day for end in ends)


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


_EXPECTED_ISINS: Final = "expected a LEI-ISIN relationship CSV or a GLEIF API reply with isins"

Pairs = Iterator[tuple[str, str, str] | Rejected]
"""(location, LEI, ISIN) as published."""


@adapter("gleif-isin")
def isin_links(file: InputFile) -> Iterator[Record]:
    """The LEI-ISIN relationship CSV and GLEIF API JSON."""
    for title, prefix, header, stream in _documents(file, _EXPECTED_ISINS):
        if header is None:
            yield from _isin_links(_isins_of_json(title, prefix, stream.read()))
        else:
            yield from _isin_links(_isins_of_csv(title, prefix, header, stream))


def _isin_links(pairs: Pairs) -> Iterator[Record]:
    previous = subject = ""
    for pair in pairs:
        if isinstance(pair, Rejected):
            yield pair
            continue
        location, lei, isin = pair
        try:
            if lei != previous:  # the file has the ISINs of an LEI together, thousands for a bank
                subject, previous = lei_subject(lei), lei
            identifier = f"isin:{isin}" if is_isin(isin) else str(make_identifier("isin", isin))
        except ValueError as failure:
            yield Rejected(location, str(failure))
        else:
            yield IdentifierLink(identifier, subject, location)


def _isins_of_csv(title: str, prefix: str, first: bytes, stream: IO[bytes]) -> Pairs:
    columns = [name.upper() for name in _fields(first)]
    if columns.count("LEI") != 1 or columns.count("ISIN") != 1:
        raise FormatError(f"{title} {_EXPECTED_ISINS}; found no columns LEI and ISIN")
    lei, isin, width = columns.index("LEI"), columns.index("ISIN"), len(columns)
    for number, line in enumerate(stream, 2):
        fields = _fields(line)
        if len(fields) == width:
            yield f"{prefix}row {number}", fields[lei], fields[isin]
        elif fields != [""]:
            yield Rejected(f"{prefix}row {number}", f"{len(fields)} fields where the header has {width}")


def _fields(line: bytes) -> list[str]:
    # Identifiers have no quotes or commas, so an open quote need not cost the rest of the file.
    return line.decode("utf-8", "replace").replace('"', "").strip().split(",")


def _isins_of_json(title: str, prefix: str, data: bytes) -> Pairs:
    for index, record in enumerate(_api_records(title, data, "isins", _EXPECTED_ISINS)):
        location = f"{prefix}data/{index}"
        attributes = _get(record, "attributes") if _at(record, "type") == "isins" else None
        lei, isin = (_get(attributes, key) for key in ("lei", "isin"))
        if isinstance(lei, str) and isinstance(isin, str):
            yield location, lei, isin
        else:
            yield Rejected(location, "malformed record")


_EXPECTED_FIGIS: Final = "expected a reply of the OpenFIGI API (mapping, search or filter)"
_FIGIS: Final = ("figi", "compositeFIGI", "shareClassFIGI")
_SHARES: Final = {"common stock", "preference", "depositary receipt", "partnership shares", "reit"}
"""`securityType2`, else `securityType`, of securities whose ticker identifies the issuer. Options, warrants,
rights, indices and funds trade as equities too, but their tickers name the instrument."""
_REPLY: Final = {"data", "next", "total", "error", "warning"}


@adapter("openfigi")
def figi_links(file: InputFile) -> Iterator[Record]:
    """OpenFIGI mapping responses JSON; search and filter replies too.

    Each FIGI of a share, its composite and its share-class FIGI are linked to EXCHANGE:TICKER where it is
    listed. A job answered with an error or a warning ("No identifier found.", one or the other by version of
    the API) is rejected in the reply's own words, so the rejects file shows which jobs remained unmapped.
    """
    for name, stream in file.documents(".json", expected=f"{_EXPECTED_FIGIS}, found none in the archive"):
        prefix = f"{name} " if file.is_zip else ""
        for position, reply in _replies(f"{file.name}: {prefix}".strip(), stream.read()):
            yield from _instruments(prefix + position, reply)


def _replies(title: str, content: bytes) -> list[tuple[str, object]]:
    """Each reply and its position: a mapping request has one reply per job."""
    try:
        document = msgspec.json.decode(content.removeprefix(_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError(f"{title} {_EXPECTED_FIGIS}; this is not JSON") from None
    if isinstance(document, list):
        replies = [(f"{index}/", reply) for index, reply in enumerate(document)]
    else:
        replies = [("", document)]
    if replies and not any(_is_reply(reply) for _, reply in replies):
        raise FormatError(f"{title} {_EXPECTED_FIGIS}; this is other JSON")
    return replies


def _is_reply(reply: object) -> bool:
    if not isinstance(reply, dict):
        return False
    data = reply.get("data")
    if isinstance(data, list) and data:
        return any(isinstance(instrument, dict) and "figi" in instrument for instrument in data)
    return bool(reply) and reply.keys() <= _REPLY  # other services answer with an empty `data` as well


def _instruments(position: str, reply: object) -> Iterator[Record]:
    data = _get(reply, "data")
    if isinstance(data, list):
        nasdaq = {
            _at(instrument, "compositeFIGI") for instrument in data if _exchange(instrument) == "NASDAQ"
        }
        for index, instrument in enumerate(data):
            if _exchange(instrument) == "NYSE" and _at(instrument, "compositeFIGI") in nasdaq:
                yield Skipped(1)  # every American share trades on the NYSE, wherever it is listed
            else:
                yield from _links(f"{position}data/{index}", instrument)
        return
    for outcome in ("error", "warning"):
        if message := _at(reply, outcome):
            yield Rejected(f"{position}{outcome}", f"nothing was mapped: {text.name(message[:200])}")
            return
    yield Rejected(position.rstrip("/"), "malformed reply")


def _links(location: str, instrument: object) -> Iterator[Record]:
    if not isinstance(instrument, dict):
        yield Rejected(location, "malformed instrument")
        return
    fields = {key: value.strip() for key, value in instrument.items() if isinstance(value, str)}
    name = _exchange(fields)
    kind = fields.get("securityType2") or fields.get("securityType", "")
    if fields.get("marketSector") != "Equity" or kind.lower() not in _SHARES or name is None:
        yield Skipped(1)
        return
    try:
        # The standard writes a slash where the exchange has a dot: BRK/B is BRK.B, BP/ is BP.
        subject = str(make_identifier("ticker", fields.get("ticker", "").replace("/", "."), name))
    except ValueError as failure:
        yield Rejected(location, str(failure))
        return
    figis = dict.fromkeys(fields[key] for key in _FIGIS if fields.get(key))
    if not figis:
        yield Rejected(location, "no FIGI is given")
    for figi in figis:
        try:
            yield IdentifierLink(str(make_identifier("figi", figi)), subject, location)
        except ValueError as failure:
            yield Rejected(location, str(failure))


def _exchange(instrument: object) -> str | None:
    return exchange_of_figi(_at(instrument, "exchCode"))
