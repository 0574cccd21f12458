"""One visit to a page: the request, the visitor, and the operations performed for them.

A page gets rows only from the operations behind REST, under the visitor's key and the caps of its tier.
A page counts as one request, however many operations it performs.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from sankofa.access.domains import Site
from sankofa.access.tiers import RateState
from sankofa.model.errors import BadRequest, InvalidParameter, NotFound
from sankofa.model.identifiers import SEC_CIK
from sankofa.model.limits import limit
from sankofa.model.provenance import source_of_ref
from sankofa.operations.answers import envelope
from sankofa.operations.contract import Call, Operation
from sankofa.operations.locked import AT, as_text, ask, ask_rows, decode_answer, explained, operation_named
from sankofa.operations.parameter_types import Day
from sankofa.operations.service import Service, check_request
from sankofa.web.languages import LANGUAGES, language, preferred

_KEY_COOKIE: Final = "sankofa_key"
LANGUAGE_COOKIE: Final = "sankofa_lang"
_MOST_FIELDS: Final = limit("fields of a form", 64, "fields", "400")


class PageRequest(msgspec.Struct, frozen=True):
    """The parts of a request that the pages use."""

    method: str
    path: str
    query: dict[str, str]
    host: bytes
    cookies: dict[str, str]
    language: str
    headers: dict[bytes, bytes]
    at: date | None = None
    """The day that the address is locked to."""
    embed: bool = False
    """Whether only a chart is requested, for embedding in another site's page."""
    key_cookie: str = ""
    """The name of the cookie that holds the visitor's key; empty until the site is known."""

    @property
    def api_key(self) -> str | None:
        """The visitor's key, from a header as in REST, or from the cookie of the key page."""
        header = self.headers.get(b"x-api-key")
        return header.decode("latin-1") if header is not None else self.cookies.get(self.key_cookie)


def key_cookie(base_url: str) -> str:
    """On https, a name that browsers accept only from this host and over https (RFC 6265bis)."""
    return f"__Host-{_KEY_COOKIE}" if base_url.startswith("https:") else _KEY_COOKIE


def read_request(scope: Mapping[str, Any]) -> PageRequest:
    """Raises BadRequest, InvalidParameter, UriTooLong or HeadersTooLarge."""
    check_request(scope)
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers[name] = headers[name] + b"; " + value if name in headers and name == b"cookie" else value
    query = read_form(scope["query_string"])
    cookies = _cookies(headers.get(b"cookie", b""))
    requested = query.get("lang")
    if requested is not None and requested not in LANGUAGES:
        raise InvalidParameter("lang", f"expected one of {', '.join(LANGUAGES)}")
    chosen = requested or cookies.get(LANGUAGE_COOKIE, "")
    if chosen not in LANGUAGES:
        chosen = preferred(headers.get(b"accept-language", b"").decode("latin-1"))
    return PageRequest(
        scope["method"], scope["path"], query, headers[b"host"], cookies, chosen, headers, scope.get(AT)
    )


EMBED: Final = "/embed/"


def embedded(request: PageRequest) -> PageRequest:
    """The request for a chart of the page behind `/embed`, without the visitor's cookies."""
    return msgspec.structs.replace(request, path=request.path[len(EMBED) - 1 :], cookies={}, embed=True)


def read_form(text: bytes) -> dict[str, str]:
    """The fields of a form, without empty ones.

    Raises InvalidParameter for a field given twice, BadRequest if the body is not a form.
    """
    try:
        pairs = parse_qsl(text.decode("ascii"), errors="strict", max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise BadRequest(f"The query is not valid UTF-8, or has more than {_MOST_FIELDS} fields.") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            raise InvalidParameter(name[:64], "given more than once")
        fields[name] = value
    return fields


def _cookies(header: bytes) -> dict[str, str]:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(header.decode("latin-1"))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}


Row = dict[str, Any]
T = TypeVar("T")

_MOST_ROWS: Final = limit("rows of a page", 100, "rows", "the page shows the first ones")
_ALL: Final = 1 << 31
_PAST_DAY: Final = Day(past=True)


class Result(msgspec.Struct, frozen=True):
    """The answer of an operation: its rows, and the rest of the envelope."""

    rows: list[Row]
    members: Mapping[str, Any]
    truncated: bool

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def next_cursor(self) -> str | None:
        return self.members.get("next_cursor")


class ApiCall(msgspec.Struct, frozen=True):
    """The API call that gives the data on the page."""

    path: str
    query: Mapping[str, str]
    absence: str = ""
    """The API's reason for an answer without rows; empty if it has rows."""

    @property
    def address(self) -> str:
        return self.path + (f"?{urlencode(self.query)}" if self.query else "")


class Visit:
    """A visitor on a page. Pages without a key have no `call`."""

    def __init__(
        self,
        request: PageRequest,
        site: Site,
        service: Service,
        parameters: Mapping[str, str],
        takes: Collection[str],
    ) -> None:
        """`parameters` are in the path; the page `takes` those in the query."""
        self.request = request
        self.site = site
        self.service = service
        self.language = language(request.language)
        self.parameters = parameters
        self.takes = takes
        self.calls: list[ApiCall] = []
        self.cuts: list[tuple[str, Mapping[str, Any]]] = []
        """Calls whose answers the sample tier cuts, with their parameters; the main call first."""
        self.cited: dict[str, None] = {}
        """The sources of the rows on the page."""
        self.sites: dict[str, str] = {}
        """The publishers' sites by source, for links to the origin of rows."""
        self.filers: dict[str, int] = {}
        """The CIK of the company behind an SEC filing, by accession number."""
        self.filings: dict[str, str] = {}
        """The service_id of the company behind a filing on the page, by accession number."""
        self.usage: RateState | None = None
        self.sandbox = not request.api_key
        self.lock = request.at
        """The last day that the visit can see, from its address or its key."""
        self.started: Call | None = None
        """The call of the operations; None on a page without a key."""

    @property
    def call(self) -> Call:
        if self.started is None:
            raise RuntimeError("a page without a key asked for data")
        return self.started

    @property
    def tier(self) -> str:
        return self.started.grant.tier if self.started else ""

    @property
    def today(self) -> date:
        return self.lock or self.service.today()

    @property
    def prefix(self) -> str:
        """The prefix of every address inside a locked view."""
        return "" if self.request.at is None else f"/at/{self.request.at}"

    @property
    def base_url(self) -> str:
        return self.site.base_url + self.prefix

    def refuse_lock(self) -> None:
        """Raises NotFound in a locked view, for a page about the newest data."""
        if self.lock is not None:
            raise NotFound(f"This page is about the newest data, and this view is locked to {self.lock}.")

    def most_rows(self, most: int) -> str | None:
        """The `limit` for at most this many rows; none on the sample tier, which gets its preview."""
        grant = self.call.grant
        return None if grant.sample else str(min(most, grant.row_cap))

    def given(self, name: str, otherwise: str = "") -> str:
        return self.request.query.get(name, otherwise)

    def limit(self) -> str:
        """The `limit` in the address; with a paid key, at most the rows that a page shows."""
        text = self.given("limit")
        is_long = text.isascii() and text.isdigit() and int(text[:9]) > _MOST_ROWS
        return str(_MOST_ROWS) if is_long and not self.call.grant.sample else text

    def page_number(self, most: int) -> int:
        """The page number in the address, counted from 0. Raises InvalidParameter."""
        text = self.given("page", "1")
        if not (text.isascii() and text.isdigit() and 0 < int(text[:4]) <= most):
            raise InvalidParameter("page", "expected the number of a page, from 1 on")
        return int(text[:4]) - 1

    def passed_on(self, *names: str) -> dict[str, Any]:
        """Parameters of the address that an operation takes under the same names."""
        return {name: self.given(name) for name in names}

    def day(self, name: str = "as_of") -> date:
        """The day in the address, or today if it has none. Raises InvalidParameter."""
        text = self.request.query.get(name)
        if text is None:
            return self.today
        try:
            return _PAST_DAY.read(text, self.today)
        except ValueError as failure:
            raise explained(InvalidParameter(name, str(failure)), self.lock) from None

    def chosen(self, name: str, words: Sequence[str]) -> str:
        """One of these words; the first if the address has none. Raises InvalidParameter."""
        text = self.request.query.get(name, words[0])
        if text not in words:
            raise InvalidParameter(name, f"expected one of {', '.join(words)}")
        return text

    async def ask(self, name: str, *, shown: bool = True, drawn: bool = False, **parameters: Any) -> Result:
        """Perform an operation with parameters as text, as in REST.

        Raises the problem that REST would answer with. `shown` puts the call on the page if REST takes all
        parameters. `drawn` is for rows shown without their call.
        """
        operation = operation_named(name)
        texts = {label.rstrip("_"): text for label, text in parameters.items() if text}
        call = self.call
        answer = await ask(call, name, texts)
        body = decode_answer(envelope(answer, call.edition, operation))
        if shown:
            detail = answer.absent.detail if answer.absent is not None else ""
            self._show_call(operation, texts, detail)
        rows = body.pop(operation.rows_under)
        self.note_filings(rows)
        if shown or drawn:
            if body["truncated"]:
                self._note_cut(name, texts)
            self.cited |= dict.fromkeys(
                source_of_ref(row["source_ref"]) for row in rows if "source_ref" in row
            )
        return Result(rows, body, body["truncated"])

    async def ask_pages(
        self, name: str, most_pages: int, *, shown: bool = True, **parameters: Any
    ) -> tuple[list[Row], bool]:
        """The rows of the first pages of a list, and whether there are more."""
        rows: list[Row] = []
        cursor: str | None = None
        for number in range(most_pages):
            result = await self.ask(name, shown=shown and number == 0, **parameters, cursor=cursor)
            rows += result.rows
            cursor = result.next_cursor
            if cursor is None:
                break
        return rows, cursor is not None

    async def ask_fields(self, name: str, row: type[T], **parameters: Any) -> list[T]:
        """Like `ask`, with only some fields of each row. Decodes many rows in parts, so that other
        requests are not blocked."""
        texts = {label: text for label, text in parameters.items() if text}
        answer = await ask(self.call, name, texts)
        decode = msgspec.json.Decoder(list[row]).decode  # type: ignore[valid-type]
        rows: list[T] = []
        for part in answer.selection.lists():
            rows += decode(part)
            await asyncio.sleep(0)
        if answer.selection.truncated:
            self._note_cut(name, texts)
        return rows

    def _show_call(self, operation: Operation, texts: Mapping[str, Any], absence: str) -> None:
        """Put the REST call with the same answer on the page, if there is one; without line items if REST
        cannot choose them."""
        path = operation.path
        query: dict[str, str] = {}
        for name, text in texts.items():
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(text, safe=""))
            elif name in operation.query:
                query[name] = as_text(text)
            elif name != "line_items":
                return
        if self.call.pinned:
            query["edition"] = self.call.edition.id
        if path:
            self.calls.append(ApiCall(path, query, absence))

    def _note_cut(self, name: str, texts: Mapping[str, Any]) -> None:
        if self.call.grant.sample:
            self.cuts.append((name, texts))

    def _uncut(self) -> Call:
        whole = replace(self.call.grant, tier="professional", row_cap=_ALL, default_rows=_ALL)
        return msgspec.structs.replace(self.call, grant=whole)

    async def rows_uncut(self) -> int:
        """Number of rows that the first cut answer would have with full access."""
        name, texts = self.cuts[0]
        without_limit = {label: text for label, text in texts.items() if label != "limit"}
        return (await ask(self._uncut(), name, without_limit)).selection.count

    def note_filings(self, rows: Iterable[Row]) -> None:
        """Remember the filings that rows of the page come from."""
        for row in rows:
            inputs = row.get("inputs")
            for one in (row, *inputs) if isinstance(inputs, list) else (row,):
                if "service_id" in row and (filing := filing_of(one.get("source_ref") or "")):
                    self.filings[filing] = row["service_id"]

    async def find_filers(self) -> None:
        """Look up the CIKs of the companies whose filings are on the page.

        A filing's address contains the CIK. Every tier may see it, like the filing's number.
        """
        numbers: dict[str, list[int]] = {}
        for service_id in set(self.filings.values()):
            rows = await ask_rows(self._uncut(), "get_crosswalk", {"service_id": service_id})
            numbers[service_id] = [int(row["id_value"]) for row in rows if row["scheme"] == SEC_CIK]
        for filing, service_id in self.filings.items():
            if ciks := numbers[service_id]:
                self.filers[filing] = next((cik for cik in ciks if cik == int(filing[:10])), ciks[0])

    @property
    def fixed_address(self) -> str:
        """The address of this page for its day and the edition that answers."""
        day = {"as_of": self.day().isoformat()} if "as_of" in self.takes else {}
        return self.address(edition=self.call.edition.id, **day)

    def address(self, path: str = "", **changes: str | int | None) -> str:
        """The address of a page; without a path, of this page with these parameters changed.

        An edition that the visitor pinned stays pinned.
        """
        query = {k: v for k, v in self.request.query.items() if k not in _OF_ONE_ANSWER} if not path else {}
        if path and (edition := self.request.query.get("edition")):
            query["edition"] = edition
        for name, value in changes.items():
            if value in (None, ""):
                query.pop(name, None)
            else:
                query[name] = str(value)
        return quote(path or self.request.path, safe="/:@") + (f"?{urlencode(query)}" if query else "")


_OF_ONE_ANSWER: Final = frozenset({"part", "chart", "format", "lang"})


_ACCESSION: Final = re.compile(r"\d{10}-\d{2}-\d{6}", re.ASCII)
"""A filing with the SEC, such as "0001193125-09-246637"."""
_INDICATOR: Final = re.compile(r"([A-Z][A-Z0-9.]{3,}) ([A-Z]{2}) \d{4}", re.ASCII)
"""A value of the World Bank, such as "NY.GDP.MKTP.CD NG 2025"."""
_LEI: Final = re.compile(r"lei:([A-Z0-9]{20})", re.ASCII)
"""A record of GLEIF, such as "lei:5299003KXIBJQYCBBD72"."""


def filing_of(source_ref: str) -> str | None:
    """The accession number of the filing behind a `source_ref`; None if it is not an SEC filing."""
    match = _ACCESSION.match(source_ref, len(source_of_ref(source_ref)) + 1)
    return match[0] if match else None


def original(sources: Mapping[str, str], filers: Mapping[str, int], source_ref: str) -> str:
    """The address of the filing, indicator page, record, document or publisher's site; or "".

    `filers` has the CIK of the company that a filing is about. The accession number itself begins with the
    sender's CIK, often an agent's, and the SEC has no folder under that.
    """
    name = source_of_ref(source_ref)
    document, _, location = source_ref[len(name) + 1 :].partition("#")
    site = sources.get(name, "")
    host = urlsplit(site).hostname or name
    if document.startswith(("https://", "http://")):
        return document
    is_sec = "sec" in host.replace("-", ".").split(".")
    if is_sec and (filing := filing_of(source_ref)) and (cik := filers.get(filing)):
        folder = filing.replace("-", "")
        return f"https://www.sec.gov/Archives/edgar/data/{cik}/{folder}/{filing}-index.htm"
    if "worldbank" in host and (value := _INDICATOR.fullmatch(location)):
        return f"https://data.worldbank.org/indicator/{value[1]}?locations={value[2]}"
    if "gleif" in host and (record := _LEI.fullmatch(location)):
        return f"https://search.gleif.org/#/record/{record[1]}"
    return site if site.startswith(("https://", "http://")) else ""
