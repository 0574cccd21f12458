"""Why an answer has no rows, and what to ask instead: the `absent` member of every answer (contract: ABS-1).

A locked view looks nothing up: the reason follows from the question alone and reveals no later day.
"""

import asyncio
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from sankofa.edition.format.keys import (
    COVERAGE,
    ENTITIES,
    MACRO_ANNUAL,
    MACRO_SERIES,
    annual_key,
    coverage_key,
    key_list,
    series_list,
)
from sankofa.edition.format.row_blocks import entries_of
from sankofa.edition.read.issuers import first_day_of_issuers
from sankofa.edition.read.macro import column_summaries
from sankofa.edition.read.tenders import process_releases
from sankofa.model.catalogue_rows import CoverageRow
from sankofa.model.countries import alpha2_of, country_in, country_name
from sankofa.model.days import FOREVER, months_before
from sankofa.model.errors import ABSENCES, Absence, Suggestion
from sankofa.model.identifiers import lookup_key_of_text
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.observations import TABLED, tabled_series
from sankofa.model.provenance import FUND, MACRO, TENDER
from sankofa.model.rows import decoder_of
from sankofa.model.text import code_words
from sankofa.model.vintages import Mode
from sankofa.operations.contract import Call, Operation
from sankofa.operations.nearest import (
    kinds_of_code,
    line_items_meant,
    nearest_codes,
    predecessors,
    relations,
    series_can_be_found,
    words_to_find,
)

_ORGANISATION_OPERATIONS: Final = {
    "get_fundamentals": "fundamentals",
    "get_fundamentals_matrix": "fundamentals",
    "get_statement": "fundamentals",
    "get_metrics": "fundamentals",
    "get_shared_facts": "fundamentals",
    "get_restatements": "restatement",
    "get_panel": "fundamentals",
}
"""Operations about one organisation's figures, and the dataset that says when those figures were known."""
_MACRO_OPERATIONS: Final = ("get_macro", "get_series_vintages", "get_series_revisions", "get_series_matrix")
_REQUIRED_FILTERS: Final = frozenset(
    "as_of metric q query id_type id_value base quote series entity_id dataset".split()
)
"""Arguments that a suggested question always keeps."""
_REQUIRED_BY: Final = {
    **dict.fromkeys(
        ("get_shared_facts", "get_flags", "search_tenders", "get_procurement_demand"), frozenset({"country"})
    ),
    "get_restatements": frozenset({"service_id"}),
    "get_panel": frozenset({"metrics", "line_items", "series", "from", "to", "every"}),
}
"""Arguments that a suggested question keeps for one operation only."""
_NOT_FILTERS: Final = frozenset("limit cursor order detail release shape vintages basis".split())
_SHORT: Final = 3
"""A word of so many letters is not suggested alone."""
_NOTHING: Final = "Nothing that matches was public on {}."
_NOTHING_BY: Final = {
    "get_flags": "Nothing is flagged on {}. `ocid` shows every indicator of a process.",
    "get_cross_rates": "As known on {}, no day has daily rates of both currencies against a third.",
}


class _KnownDays(NamedTuple):
    first: date | None
    last: date | None


def _absent(reason: str, detail: str, *suggestions: Suggestion, known: _KnownDays | None = None) -> Absence:
    first, last = known or (None, None)
    return Absence(reason, detail, first, last, suggestions)


_facts = decoder_of([("line_item", str), ("available_at", date), ("period_end", date)]).decode
_covered = msgspec.json.Decoder(list[CoverageRow]).decode


async def absence_of(call: Call, operation: Operation, arguments: Mapping[str, Any]) -> Absence:
    if arguments.get("cursor") is not None:
        return Absence("end_of_list", "The list ends here: the page before was the last one.")
    question = _Question(call, operation, arguments)
    if (by_name := question.line_items()) is not None:
        return by_name
    if call.lock is not None:
        return Absence("nothing_known", f"Nothing that matches was public on {question.day}.")
    if operation.name in _ORGANISATION_OPERATIONS and question.subject is not None:
        return await question.organisation(question.subject)
    if operation.name in _MACRO_OPERATIONS and question.code is not None:
        return await question.macro(question.code)
    return await question.coverage()


class _Question:
    def __init__(self, call: Call, operation: Operation, arguments: Mapping[str, Any]) -> None:
        self.call = call
        self.operation = operation
        self.day = arguments.get("to" if _is_panel(operation) else "as_of") or call.today
        self._arguments = {
            parameter.name: arguments[parameter.argument]
            for parameter in operation.parameters.values()
            if arguments.get(parameter.argument) is not None and parameter.argument not in _NOT_FILTERS
        }
        own = self._arguments.get("service_id") or self._arguments.get("entity_id")
        issuers: tuple[str, ...] = self._arguments.get("issuers") or ()
        own = issuers[0] if len(issuers) == 1 else own
        self.subject = own.upper() if own and len(own) > len("ZAF") else None
        code = self._arguments.get("series") or self._arguments.get("indicator")
        self.code = code.upper() if isinstance(code, str) else None
        country = self._arguments.get("country")
        self.country: str | None = alpha2_of().get(country or "", country)
        self._edition = call.edition
        names = "line_items", "line_item", "measure"
        self._item_parameter = next((name for name in names if name in self._arguments), "")
        items = self._arguments.get(self._item_parameter, ())
        self._items: tuple[str, ...] = (items,) if isinstance(items, str) else items

    def _try(self, why: str, path: str = "", /, **changes: object) -> Suggestion:
        """Suggests this question with other arguments (None drops one), or another path."""
        arguments = {} if path else dict(self._arguments)
        arguments |= changes
        texts = {name: _text(value) for name, value in arguments.items() if value is not None}
        path = path or self.operation.path or "/v1/search"
        for name in [name for name in texts if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", quote(texts.pop(name), safe=":"))
        return Suggestion(path, texts, why)

    def line_items(self) -> Absence | None:
        """Suggests the documented line item for an everyday name, such as `sales`."""
        names = self._items
        if not set(names).isdisjoint(LINE_ITEMS) or not (near := line_items_meant(names)[:3]):
            return None
        alternatives = " or ".join(f"`{name}`" for name in near)
        listed = ", ".join(f"`{name}`" for name in names)
        others = (self._try(f"The line item {one}.", **{self._item_parameter: one}) for one in near)
        return _absent("unknown_line_item", f"No line item {listed}; did you mean {alternatives}?", *others)

    async def organisation(self, service_id: str) -> Absence:
        edition, today = self._edition, self.call.today
        if not await edition.holds(ENTITIES, service_id):
            by_name = self._try("Find it by name or identifier.", "/v1/search", q=service_id)
            return _absent("unknown_organisation", f"No organisation with service_id {service_id}.", by_name)
        if self._arguments.get("dataset") == TENDER:
            return Absence("no_match", f"No award to the organisation was public on {self.day}.")
        known, items = await self._figures(service_id)
        if known.first is None:
            earlier = await predecessors(edition, await relations(edition, service_id, today), today)
            if earlier:
                named = ", ".join(one.legal_name or one.service_id for one in earlier)
                detail = f"The organisation has no figures; it took over from {named}."
                paths = (f"/v1/fundamentals/{one.service_id}" for one in earlier)
                others = (self._try("Its predecessor.", path) for path in paths)
                return _absent("figures_of_predecessor", detail, *others)
            if self.operation.name == "get_restatements" and items:
                return Absence("no_match", "No figure of the organisation was restated.")
            crosswalk = self._try("Its identifiers.", f"/v1/crosswalk/{service_id}")
            return _absent("no_figures", ABSENCES["no_figures"], crosswalk)
        if self.day < known.first:
            return self._too_early(known)
        if self._item_parameter != "measure" and self._items and items.isdisjoint(self._items):
            listed = ", ".join(f"`{name}`" for name in self._items)
            own = f"/v1/fundamentals/{service_id}" if self._item_parameter == "line_item" else ""
            all_items = self._try("Every line item it reports.", own, line_items=None, line_item=None)
            detail = f"The organisation reports no {listed}."
            return _absent("not_reported", detail, all_items, known=known)
        return self._narrowed(known)

    async def _figures(self, service_id: str) -> tuple[_KnownDays, set[str]]:
        """The first and last day on which a figure of an organisation was known, and its line items."""
        kind = _ORGANISATION_OPERATIONS[self.operation.name]
        selection = await self._edition.select(kind, service_id, day=FOREVER - 1, modes=int(Mode.ALL))
        days: set[date] = set()
        items: set[str] = set()
        for chunk in selection.lists() if selection is not None else ():
            for one in _facts(chunk):
                days.add(max(one.available_at, one.period_end))
                items.add(one.line_item)
            await asyncio.sleep(0)  # let other requests run
        if not days and kind != "fundamentals":
            own = await self._edition.select("fundamentals", service_id, day=FOREVER - 1, modes=int(Mode.ALL))
            items.update({""} if own is not None and own.count else ())
        return _KnownDays(min(days, default=None), max(days, default=None)), items

    def _too_early(self, known: _KnownDays) -> Absence:
        later: list[Suggestion] = []
        if "as_of" in self.operation.parameters:
            first = self._try("The first day on which something is known.", as_of=known.first)
            later = [first, self._try("As known today.", as_of=None)]
        elif _is_panel(self.operation):
            later = [self._try("All days since.", **{"from": known.first, "to": None})]
        detail = f"Not known on {self.day}: the first was public on {known.first}."
        return _absent("not_yet_known", detail, *later, known=known)

    def _narrowed(self, known: _KnownDays) -> Absence:
        """Something is known, but the filters exclude all of it."""
        if outside := self._outside(known):
            return outside
        required = {name for name, one in self.operation.parameters.items() if one.required}
        required |= _REQUIRED_FILTERS | _REQUIRED_BY.get(self.operation.name, frozenset())
        dropped: dict[str, object] = dict.fromkeys(name for name in self._arguments if name not in required)
        wider = self._try(
            "Without filters." if dropped else "As known today.", **(dropped or {"as_of": None})
        )
        filters = " and ".join(f"`{name}`" for name in dropped if name != "max_age")
        nothing = _NOTHING_BY.get(self.operation.name, _NOTHING)
        detail = f"Nothing matches {filters}." if filters else nothing.format(self.day)
        if months := self._arguments.get("max_age"):
            which = f"Nothing that matches {filters}" if filters else "Nothing"
            detail = f"{which} has a year that ended on or after {months_before(self.day, months)}."
        others = [wider] if self.operation.path and (dropped or "as_of" in self._arguments) else []
        for who in ("buyer", "supplier"):
            if name := self._arguments.get(who):
                words = {"country": self.country, f"{who}_query": name}
                why = f"{who.title()}s whose name has these words."
                others.insert(0, self._try(why, "/v1/tenders", **words))
        return _absent("no_match", detail, *others, known=known)

    def _outside(self, known: _KnownDays) -> Absence | None:
        """Whether the requested days are all before, or all after, the known ones."""
        given = self._arguments
        since = _day(given.get("from") or given.get("since"))
        until = _day(given.get("to") or given.get("until"))
        if known.first is None or known.last is None or _is_panel(self.operation):
            return None
        if not (since and since > known.last) and not (until and until < known.first):
            return None
        whole: dict[str, object] = dict.fromkeys(("from", "to", "since", "until"))
        if "release" in self.operation.parameters:
            whole["release"] = "latest"  # the whole matrix may be too large
        detail = f"Something is known from {known.first} to {known.last}."
        return _absent("outside_dates", detail, self._try("All days.", "", **whole), known=known)

    async def macro(self, code: str) -> Absence:
        edition = self._edition
        kinds = await kinds_of_code(edition, code)
        wants_series = "indicator" not in self._arguments
        if not kinds:
            near = await nearest_codes(edition, code)
            name = "series" if wants_series else "indicator"
            others = [self._try(f"The nearest {name}.", **{name: one}) for one in near[:3]]
            words = self._try("Look it up in the catalogue.", "/v1/series", q=code.replace(".", " "))
            nearest = f"; nearest: {', '.join(near)}" if near else ""
            return _absent("unknown_code", f"No series or indicator {code}{nearest}.", *others, words)
        if not wants_series and "indicator" not in kinds:
            dated = self._try("The series.", indicator=None, series=code)
            return _absent("dated_series", f"{code} is a series, not an annual indicator.", dated)
        if not wants_series:
            return await self._indicator(code)
        if "series" not in kinds:
            return await self._annual(code)
        columns = await column_summaries(edition, MACRO_SERIES, key_list(code))
        columns = [one for one in columns if self.country in (None, one.key.split("|")[3])]
        if not columns:
            return await self._elsewhere(code)
        first = date.fromordinal(min(one.known for one in columns))
        if self.day < first:
            return self._too_early(_KnownDays(first, None))
        oldest, newest = min(one.oldest for one in columns), max(one.newest for one in columns)
        days = (date.fromordinal(min(day, self.day.toordinal())) for day in (oldest, newest))
        return self._narrowed(_KnownDays(*days))

    async def _annual(self, code: str) -> Absence:
        table = self._try("The latest captured table.", "/v1/macro", indicator=code, country=self.country)
        country = self.country
        dated = tabled_series(code, country) if country else f"{TABLED}{code}:<alpha-3 country>"
        detail = f"{code} is an annual indicator; its dated series is {dated}."
        columns = await column_summaries(self._edition, MACRO_SERIES, key_list(dated)) if country else []
        if not columns:
            return _absent("annual_indicator", detail, table)
        first = date.fromordinal(min(one.known for one in columns))
        series = self._try("Its dated series.", "/v1/macro", series=dated, as_of=max(self.day, first))
        if self.day < first:
            detail = f"{detail[:-1]}, first captured on {first}."
        return _absent("annual_indicator", detail, series, table, known=_KnownDays(first, None))

    async def _indicator(self, code: str) -> Absence:
        columns = await column_summaries(self._edition, MACRO_ANNUAL, annual_key("", code))
        columns = [one for one in columns if self.country in (None, one.key.partition("|")[0])]
        if not columns:
            return await self._elsewhere(code)
        years = min(one.oldest for one in columns), max(one.newest for one in columns)
        known = _KnownDays(date(years[0], 12, 31), date(years[1], 12, 31))
        whole = self._try("Every year.", "", **{"from": None, "to": None})
        detail = f"{code} has values from {years[0]} to {years[1]}."
        return _absent("outside_dates", detail, whole, known=known)

    async def _elsewhere(self, code: str) -> Absence:
        where = _named(self.country) if self.country else "there"
        listed = self._try("The countries that have it.", "/v1/series", q=code)
        return _absent("not_covered", f"{code} has no values of {where}.", listed)

    async def coverage(self) -> Absence:
        """For list endpoints: whether the dataset covers the country."""
        if ocid := self._arguments.get("ocid"):
            countries = {one for _, one, _ in await process_releases(self._edition, ocid)}
            if countries and self.country not in (None, *countries):
                return self._process_elsewhere(ocid, sorted(countries))
        dataset = FUND if _is_panel(self.operation) else self.operation.dataset
        dataset = self._arguments.get("dataset", dataset)
        sku = dataset if dataset in (FUND, MACRO, TENDER) else None
        known = _KnownDays(None, None)
        if self.country and sku:
            rows = await self._edition.select(COVERAGE, coverage_key(self.country, sku), day=FOREVER - 1)
            if rows is None or not rows.count:
                return self._not_covered(sku)
            covered = _covered(b"[%b]" % rows.rows)
            first = min((one.first_date for one in covered if one.first_date), default=None)
            known = _KnownDays(first, max((one.last_date for one in covered if one.last_date), default=None))
        public = known.first if sku == TENDER else await self._first_public(sku)
        if public is not None and self.day < public:
            return self._too_early(_KnownDays(public, known.last))
        if known.last and "query" not in self._arguments:
            return self._narrowed(known._replace(first=public) if sku == FUND else known)
        words = self._arguments.get("q") or self._arguments.get("query")
        if words:
            return await self._no_words(words)
        if value := self._arguments.get("id_value"):
            return await self._identifier(value)
        return self._narrowed(_KnownDays(None, None))

    def _process_elsewhere(self, ocid: str, countries: list[str]) -> Absence:
        names, own = " and ".join(map(_named, countries)), _named(self.country or "")
        path = self.operation.path
        others = (self._try(f"In {_named(one)}.", path, country=one, ocid=ocid) for one in countries)
        return _absent("no_match", f"The process is of {names}, not of {own}.", *others)

    async def _identifier(self, value: str) -> Absence:
        """No organisation has the identifier on the day; one may have it on other days."""
        blocks = await self._edition.blocks(
            "identifier", lookup_key_of_text(self._arguments["id_type"], value), 0, FOREVER
        )
        held = [(entry.first, entry.until) for block in blocks for entry in entries_of(block)]
        day = self.day.toordinal()
        first = min((date.fromordinal(first) for first, _ in held if first), default=None)
        last = max((until for _, until in held), default=FOREVER)
        known = _KnownDays(first, None if last == FOREVER else date.fromordinal(last - 1))
        if before := [until for _, until in held if until <= day]:
            ended = date.fromordinal(max(before) - 1)
            then = self._try("Who had it until then.", as_of=ended)
            now = self._try("Who has it today.", as_of=None)
            detail = f"No organisation has this identifier on {self.day}; one had it until {ended}."
            return _absent("no_match", detail, then, now, known=known)
        if first is not None and self.day < first:
            return self._too_early(known)
        by_name = self._try("Find it by name.", "/v1/search", q=value)
        return _absent("no_match", "No organisation has this identifier.", by_name, known=known)

    async def _first_public(self, sku: str | None) -> date | None:
        """The first day on which issuers, or series, of the country were public."""
        first = None
        if sku == FUND:
            first = await first_day_of_issuers(self._edition, self.country)
        elif sku == MACRO and self.country:
            filters = (self._arguments.get(name, "") for name in ("series_type", "frequency"))
            listed = series_list(self.country, *filters)
            columns = await column_summaries(self._edition, MACRO_SERIES, listed)
            first = min((one.known for one in columns), default=None)
        return None if first is None else date.fromordinal(first)

    async def _no_words(self, words: str) -> Absence:
        """Nothing has the words of a search; a country that they name has its own list of series."""
        own_path = self.operation.path or "/v1/search"
        elsewhere = [
            ("/v1/search", "q", "Organisations, series and indicators."),
            ("/v1/series", "q", "Series by words of their key or name."),
            ("/v1/tenders", "query", "Tenders by words of their title and description."),
        ]
        if not await series_can_be_found(self._edition, words):
            del elsewhere[1]
        others = [
            self._try(why, path, country=self.country, **{name: words})
            for path, name, why in elsewhere
            if path != own_path
        ]
        required = {"q", "query", *_REQUIRED_BY.get(self.operation.name, ())}
        dropped = [name for name in self._arguments if name not in required]
        filters = " and ".join(f"`{name}`" for name in dropped)
        which = f"Nothing that matches {filters}" if filters else "Nothing"
        detail = f"{which} has these words; try fewer or others. Legal forms (Ltd, SA) are not searched."
        if dropped:
            others.insert(0, self._try("Without filters.", **dict.fromkeys(dropped)))
        several = sorted(
            {word for word in words.split() if len(word) > _SHORT}, key=lambda word: (-len(word), word)
        )[:3]
        if self.operation.path == "/v1/search":
            findable = await words_to_find(self._edition, words, self.country)
            several = [word for word in several if word in findable]
        if len(words.split()) > 1:
            parameter = "q" if "q" in self._arguments else "query"
            others += [self._try(f"`{word}` alone.", **{parameter: word}) for word in several]
            if "buyer_query" in self.operation.parameters:
                others += [
                    self._try(f"{who.title()}s named {word}.", **{"query": None, f"{who}_query": word})
                    for who in ("buyer", "supplier")
                    for word in several
                ]
        country = self.country or country_in(code_words(words))[0]
        if country and own_path == "/v1/search":
            name = _named(country)
            if await self._edition.holds(COVERAGE, coverage_key(country, MACRO)):
                others.insert(0, self._try(f"Every series of {name}.", "/v1/series", country=country))
            elif not self.country:
                detail = f"There are no series of {name}, and no organisation has these words."
        return _absent("no_match", detail, *others)

    def _not_covered(self, sku: str) -> Absence:
        what = {FUND: "issuers with figures", TENDER: "tenders", MACRO: "series"}[sku]
        number = self._edition.manifest.get("organisations", {}).get(self.country or "", 0)
        country, has_organisations = _named(self.country or ""), sku == FUND and number
        suggestions = [
            self._try("What is covered.", "/v1/coverage", country=self.country),
            self._try("The countries that have some.", "/v1/coverage", sku=sku),
        ]
        if has_organisations:
            suggestions.append(self._try("Its organisations.", "/v1/search", q=country, country=self.country))
        others = f"; {number} organisations" if has_organisations else ""
        return _absent("not_covered", f"No {what} of {country}{others}.", *suggestions)


def _is_panel(operation: Operation) -> bool:
    """Whether the operation is the panel: its last day is `to`, and its rows are issuers."""
    return operation.name == "get_panel"


def _day(day_or_year: date | int | None) -> date | None:
    return date(day_or_year, 12, 31) if isinstance(day_or_year, int) else day_or_year


def _named(country: str) -> str:
    return country_name(country) or country


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return value.isoformat() if isinstance(value, date) else str(value)
