"""Our own CSV templates, which people fill in, as CSV or as a workbook: how all of them are read."""

import csv
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from sankofa.model.countries import country
from sankofa.model.errors import FormatError
from sankofa.model.identifiers import parse_identifier, stored_identifier
from sankofa.model.line_items import snake_case
from sankofa.model.ocds.redaction import Secrets
from sankofa.model.organisations import is_no_persons, names_a_person, org_evidence
from sankofa.model.records import EntityRecord, Profile, Record, Rejected, Withheld
from sankofa.model.text import fit, harmless, one_line
from sankofa.sources.base import InputFile
from sankofa.sources.tables import Cells, best_sheet


class Template(NamedTuple):
    """A template by the name of its adapter, and its columns."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    """Columns of free text: who is named there is cut."""

    def read(self, file: InputFile, record: Callable[[dict[str, str], str], Record]) -> Iterator[Record]:
        """The record of each row and its location; a row for which `record` raises ValueError is rejected."""
        issuers = Issuers()
        names_issuers = set(ISSUER_COLUMNS) <= set(self.optional)
        people = self._withheld_names(file) if names_issuers else Secrets()
        for prefix, columns, rows in self._tables(file):
            for number, cells in rows:
                location = f"{people.cut(prefix)}row {number}"
                row: dict[str, str] = {}
                result: Record | None = None
                withheld = False
                try:
                    if isinstance(cells, ValueError):
                        withheld = LEGAL_NAME in columns  # it may hold a name
                        raise cells
                    row = {column: text for column, text in zip(columns, cells, strict=True) if column}
                    if not any(cells):
                        continue
                    withheld = self._cut(row, people)
                    taken = record(row, location)
                    unproven = names_issuers and not issuers.add(row)
                    withheld = withheld or unproven
                    if not unproven or is_no_persons(stored_identifier(subject(row["entity"]))):
                        result = taken
                except ValueError as failure:
                    column = str(failure).partition(":")[0].partition(" ")[0]
                    result = Rejected(location, str(failure), harmless(row.get(column, "")))
                    withheld = withheld or people.repeats(row.get(LEGAL_NAME, ""))
                if result is not None:
                    yield result
                if withheld:
                    yield Withheld(location)
        yield from issuers.records(file.name)

    def _cut(self, row: dict[str, str], people: Secrets) -> bool:
        """Cut who is named in free text. Whether anybody was."""
        before = [row.get(column) for column in self.free]
        for column in self.free:
            if text := row.get(column):
                row[column] = people.cut(text, numbers=" " in text)
        return before != [row.get(column) for column in self.free]

    def _withheld_names(self, file: InputFile) -> Secrets:
        """The names without evidence of an organisation: nothing else may repeat them."""
        people = Secrets()
        for _, columns, rows in self._tables(InputFile(file.path, file.limits)):
            for _, cells in rows if LEGAL_NAME in columns else ():
                row = {} if isinstance(cells, ValueError) else dict(zip(columns, cells, strict=True))
                if name := one_line(row.get(LEGAL_NAME, "")):
                    code = country(row.get("country", "")) or ""
                    is_organisation = _is_organisation(row["entity"], name, code)
                    (people.spare if is_organisation else people.add)(name)
        return people

    def _tables(self, file: InputFile) -> Iterator[tuple[str, list[str], Iterator[tuple[int, Cells]]]]:
        """Each table of a file: the prefix of row locations, the columns, and the rows.

        A table is a CSV file in UTF-8, separated by comma, semicolon or tab, with the header in its first
        line; or the sheet of an xlsx workbook that has the header.
        """
        if file.is_xlsx:
            sheet = best_sheet(file, lambda cells: len({*map(snake_case, cells)} & {*self.required}))
            title = f"{file.name}: sheet {sheet.number}:"
            yield f"sheet {sheet.number} ", self._columns(title, sheet.header, unnamed=True), sheet.rows
            return
        for name, stream in file.documents(".csv", expected="expected a .csv in the archive"):
            prefix = f"{name} " if file.is_zip else ""
            title = f"{file.name}: {prefix}".rstrip()
            try:
                text = stream.readline().decode("utf-8-sig").strip()
            except UnicodeDecodeError:
                raise FormatError(f"{title} expected the {self.name} template in UTF-8") from None
            separator = max(",;\t", key=text.count)
            columns = self._columns(title, [name.strip().strip('"') for name in text.split(separator)])
            width = len(columns)
            yield prefix, columns, ((n, _fields(line, separator, width)) for n, line in enumerate(stream, 2))

    def _columns(self, title: str, names: list[str], *, unnamed: bool = False) -> list[str]:
        """The columns by the names in a header, which may leave some `unnamed`. Raises FormatError."""
        columns = [snake_case(name) for name in names]
        if not set(columns) & set(self.required):
            expected = f"the {self.name} template, with columns {', '.join(self.required)}"
            raise FormatError(f"{title} expected {expected}")
        named = [column for column in columns if column or not unnamed]
        unknown = [column for column in named if column not in self.required + self.optional]
        for column in self.required:
            if column not in columns:
                beside = f" (unknown column {unknown[0][:40]!r})" if unknown else ""
                raise FormatError(f"{title} the required column {column} is missing{beside}")
        for column in named:
            if column in unknown:
                raise FormatError(f"{title} unknown column {column[:40]!r}")
            if named.count(column) > 1:
                raise FormatError(f"{title} column {column} is given twice")
        return columns


LEGAL_NAME: Final = "legal_name"
ISSUER_COLUMNS: Final = (LEGAL_NAME, "country")
"""Columns about the entity, in every template that has one."""
SUCCESSOR: Final = "successor"
"""The column that names who took over from the entity."""
_LISTED: Final = ("ticker", "isin")
_LONGEST_NAME: Final = 300


class Issuers:
    """Entities as the rows of a file describe them in the columns `ISSUER_COLUMNS`."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._countries: dict[str, str] = {}
        self._successors: dict[str, str] = {}

    def add(self, row: dict[str, str]) -> bool:
        """Take in one row; False if its name may be a person's. Raises ValueError naming the column."""
        legal_name, country_code = (row.get(column, "") for column in ISSUER_COLUMNS)
        if following := row.get(SUCCESSOR):
            self._successors[subject(row["entity"])] = subject(following, SUCCESSOR)
        if not (legal_name or country_code):
            return True
        code = country(country_code) if country_code else None
        if country_code and not code:
            raise ValueError("country: expected an ISO 3166-1 code")
        legal_name = one_line(legal_name)
        if not fit(legal_name) or len(legal_name) > _LONGEST_NAME:
            raise ValueError(f"legal_name: a control character, or more than {_LONGEST_NAME} characters")
        entity = subject(row["entity"])
        if code:
            self._countries[entity] = code
        if legal_name and not _is_organisation(entity, legal_name, code or ""):
            return False
        if legal_name:
            names = self._names.setdefault(entity, {})
            names.pop(legal_name, None)
            names[legal_name] = None  # the last is the one in use
        return True

    def records(self, document: str) -> Iterator[EntityRecord]:
        """A profile of each entity that was named, placed or succeeded."""
        for entity in sorted({*self._names, *self._countries, *self._successors}):
            *former, legal_name = self._names.get(entity) or [None]
            profile = Profile(
                legal_name=legal_name,
                other_names=tuple(sorted(name for name in former if name)),
                country=self._countries.get(entity),
                successor=self._successors.get(entity),
                identifiers=(entity,),
                document=document,
                secondary=True,
            )
            yield EntityRecord(entity, "", profile, incidental=True)


@lru_cache(maxsize=4096)
def _is_organisation(entity: str, legal_name: str, country_code: str) -> bool:
    """The organisation gate; who has listed shares is an organisation, an LEI by itself proves nothing."""
    try:
        identifier = stored_identifier(subject(entity))
    except ValueError:  # the row will be rejected
        return False
    if identifier.id_type in _LISTED:
        return not names_a_person(legal_name)
    registered = [(identifier.scheme, identifier.value)] if identifier.scheme else []
    return org_evidence(legal_name, registered, country=country_code) is not None


@lru_cache(maxsize=4096)
def subject(entity: str, column: str = "entity") -> str:
    """The strong identifier in a column. Raises ValueError."""
    try:
        identifier = parse_identifier(entity)
    except ValueError as failure:
        raise ValueError(f"{column}: {failure}") from None
    if not identifier.strong:
        raise ValueError(f"{column}: a {identifier.id_type} does not identify an organisation")
    return str(identifier)


def _fields(line: bytes, separator: str, width: int) -> Cells:
    """The cells of a line, or its fault. A row is one line: a quote left open costs its own row alone."""
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return ValueError("not UTF-8")
    if "\0" in text:
        return ValueError("a NUL byte")
    if not text.strip(separator + " "):
        return [""] * width
    try:
        row = next(csv.reader([text], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        return ValueError("a quote is left open, or stands where none may be")
    if len(row) != width:
        return ValueError(f"{len(row)} fields where the header has {width}")
    return [cell.strip() for cell in row]
