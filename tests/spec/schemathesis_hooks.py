"""More checks for Schemathesis, and values that it cannot know."""

import base64
import os
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import schemathesis

from sankofa.derive.signals.contract import panels
from sankofa.edition.format.keys import searched_words
from sankofa.model.claims import read_claim, read_period
from sankofa.model.countries import country
from sankofa.model.days import REAL_DAYS
from sankofa.model.identifiers import exchange
from sankofa.model.text import code_words
from sankofa.operations.paging import filters_digest

EDITIONS = ("edition", "since")
EDITION = re.compile(r"[A-Za-z0-9-]{1,53}")
INSTANT = re.compile(r"[0-9]{4}-[0-9-]{5}T[0-9:]{8}([.][0-9]{1,6})?(Z|[+-][0-9:]{5})")
EARLIER_EDITION = os.environ["SCHEMATHESIS_EDITION"]
PAGED = {
    "/v1/tenders": {
        "country": "ZA",
        "from": "2024-01-01",
        "query": "bridge",
        "detail": "full",
        "ocid": "ocds-999sza-00134",
        "to": "2026-12-31",
        "closing_from": "2025-01-01",
        "closing_to": "2026-12-31",
        "buyer": "Groot Sample District Municipality",
        "supplier": "Duineveld Sample Civils (Pty) Ltd",
        "category": "Services: Civil",
        "status": "complete",
        "min_value": "1",
        "buyer_query": "district",
        "supplier_query": "civils",
        "method": "open",
        "limit": "2",
    },
    "/v1/flags": {
        "country": "ZA",
        "ocid": "ocds-999sza-00134",
        "buyer": "Groot Sample District Municipality",
        "supplier": "Duineveld Sample Civils (Pty) Ltd",
        "indicator": "R028,R030",
        "as_of": "2026-06-30",
        "limit": "2",
    },
    "/v1/coverage": {"country": "ZA", "sku": "AF-MACRO", "limit": "2"},
    "/v1/changes": {"since": EARLIER_EDITION, "dataset": "tenders", "limit": "2"},
    "/v1/issuers": {"country": "ZA", "exchange": "JSE", "as_of": "2024-06-30", "limit": "2"},
    "/v1/cross-rates": {
        "via": "EUR",
        "as_of": "2024-06-30",
        "from": "2024-01-01",
        "to": "2024-06-28",
        "limit": "2",
    },
    "/v1/panel": {
        "metrics": "net_margin",
        "line_items": "revenue",
        "series": "CPI.ZA",
        "to": "2024-06-30",
        "every": "year",
        "country": "ZA",
        "exchange": "JSE",
        "issuers": "DC46AF1B1AAA424B58D1368176",
        "limit": "2",
    },
    "/v1/search": {"country": "ZA", "type": "organisation", "as_of": "2026-06-30", "limit": "2"},
    "/v1/series": {"country": "ZA", "q": "gdp", "limit": "2"},
    "/v1/series/{series}/vintages": {"limit": "2"},
    "/v1/statements/{service_id}": {
        "as_of": "2024-06-30",
        "period_type": "FY",
        "kind": "income",
        "line_items": "revenue",
        "shape": "long",
        "limit": "2",
    },
}
"""Every filter of a list with pages, so that a link to the next page repeats it."""


@schemathesis.check
def status_is_listed_or_a_plain_refusal(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """`default` would let any status pass `status_code_conformance`; each status is listed (contract:
    SPEC-2).
    """
    if response.request.method != "GET":
        return
    listed = {int(status) for status in case.operation.responses.status_codes if status.isdigit()}
    assert response.status_code in listed, (
        f"{response.status_code} is not among {sorted(listed)} of {case.operation.label}"
    )


@schemathesis.hook
def map_query(context: schemathesis.HookContext, query: dict[str, Any] | None) -> dict[str, Any] | None:
    """Repeat every filter of a list, so that the link to the next page can repeat them."""
    path = "" if context.operation is None else context.operation.path
    return {**PAGED.get(path, {}), **(query or {})}


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], _: Any) -> None:
    """Replace values that no schema can know.

    No schema knows which editions are kept, so the current one replaces any other. Nor does it know the date:
    today replaces future days, which are a 400 by the description.
    """
    if case.path in PAGED and case.query and case.query.get("format") in ("csv", "arrow", "xlsx"):
        case.query["format"] = "json"  # Schemathesis reads a link to the next page from JSON only
    as_of = str((case.query or {}).get("as_of", ""))
    if re.fullmatch(REAL_DAYS, as_of) and as_of > datetime.now(UTC).date().isoformat():
        case.query["as_of"] = datetime.now(UTC).date().isoformat()
    if case.path == "/v1/check" and case.query:
        _claim(case.query)
    if case.query and case.query.get("format") not in (None, "json"):
        case.query.pop("proof", None)  # only JSON has it
    for name in ("min_change", "min_value"):
        if case.query and "e" in str(case.query.get(name, "")):
            case.query[name] = "0.01"  # an exponent: no schema says how a number is written
    if case.query and re.fullmatch("[1-9][0-9]*", str(case.query.get("since_size", ""))):
        case.query["since_size"] = "1"  # no schema knows how long the log is
    if case.path_parameters and case.path_parameters.get("signal_key") == "procurement-demand":
        case.path_parameters["signal_key"] = "macro-momentum"  # the other is a separate endpoint
    if case.query and INSTANT.fullmatch(str(case.query.get("known_by", ""))):
        case.query["known_by"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if "edition" in case.query:  # one of the two
            del case.query["known_by"]
    for name in EDITIONS:
        if case.path == "/v1/restatements" and name == "since":
            continue  # a valid day in the schema
        if case.query and EDITION.fullmatch(str(case.query.get(name, ""))):
            case.query[name] = EARLIER_EDITION


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Leave out what only prose can exclude: a schema cannot relate two parameters."""
    query = case.query or {}
    if not all(map(_is_sent, query.values())):
        return False  # the parameter is left out of the address, so the request is valid
    cursor = query.get("cursor")
    if isinstance(cursor, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,3600}", cursor):
        return _issued(cursor, case.path, query, case.path_parameters or {})
    if case.path == "/v1/crosswalk" and query.get("id_type") == "ticker":
        market, colon, ticker = "".join(str(query.get("id_value")).split()).partition(":")
        return bool(market and colon and ticker)
    if case.path == "/v1/macro":
        by_series = "series" in query or "as_of" in query
        other_mode = {"indicator"} if by_series else {"series_type", "frequency"}
        years = [name for name in ("from", "to") if re.match(r"[0-9]{4}\Z", str(query.get(name, "")))]
        return not (other_mode & set(query) or (by_series and years))
    if case.path == "/v1/cross-rates":
        pair = [str(query[name]).upper() for name in ("base", "quote", "via") if name in query]
        return len(set(pair)) == len(pair)
    if case.path == "/v1/shared/facts":
        return _is_one_question(query)
    if case.path == "/v1/panel":
        return _is_a_panel(query)
    if case.path == "/v1/signals/{signal_key}" and "basis" in query:
        panel = panels().get(str((case.path_parameters or {}).get("signal_key")))
        return panel is not None and panel.has_basis
    return True


def _claim(query: dict[str, Any]) -> None:
    """Write value, unit and period as people do, which no pattern describes."""
    text = {name: query.get(name) for name in ("value", "unit", "period")}
    if isinstance(text["period"], str) and re.fullmatch(r"[A-Za-z0-9 .,/-]{4,40}", text["period"]):
        try:
            read_period(text["period"])
        except ValueError:
            query["period"] = "2023"
    printable = re.compile(r"[^\x00-\x1f\x7f]{1,60}")
    if isinstance(text["value"], str) and printable.fullmatch(text["value"]):
        try:
            read_claim(text["value"], text["unit"] if isinstance(text["unit"], str) else None)
        except ValueError:
            query["value"] = "43.6bn"
            if isinstance(text["unit"], str) and printable.fullmatch(text["unit"]):
                query["unit"] = "ZAR"


def _is_a_panel(query: dict[str, Any]) -> bool:
    """True if it has a column, and neither too many days nor future ones."""
    first, last = str(query.get("from")), str(query.get("to", date.max))
    today = datetime.now(UTC).date().isoformat()
    columns = {"metrics", "line_items", "series"} & set(query)
    if query.get("every") == "change" and "series" in query:
        return False
    return bool(columns) and "2015-01-01" <= first <= last and first <= today and query.get("to", "") <= today


def _is_sent(value: object) -> bool:
    """Whether the address contains any of it: an empty list is left out."""
    if isinstance(value, list):
        return any(map(_is_sent, value))
    return value is not None and value != {}


def _issued(cursor: str, path: str, query: dict[str, Any], inside_path: dict[str, Any]) -> bool:
    """Whether the service issued this cursor for these filters: any other is a 400, like an altered one."""
    try:
        inside = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        return False
    if path == "/v1/tenders":
        if not re.fullmatch(REAL_DAYS, str(query.get("from", ""))):
            return False
        words = tuple(sorted(searched_words(str(query["query"])))) if "query" in query else None
        country_code, day = str(query.get("country", "ZA")).upper(), date.fromisoformat(str(query["from"]))
        process = ("ocid", str(query["ocid"])) if "ocid" in query else ()
        texts = ("to", "closing_from", "closing_to", "buyer", "supplier", "category", "status", "method")
        narrowing = [(name, str(query[name])) for name in texts if name in query]
        if re.fullmatch(r"[0-9]{1,15}([.][0-9]{1,15})?", str(query.get("min_value", ""))):
            narrowing.append(("min_value", str(Decimal(str(query["min_value"])))))
        if "buyer_query" in query:
            narrowing.append(("buyer_query", str(query["buyer_query"])))
        if "supplier_query" in query:
            narrowing.append(("supplier_query", str(query["supplier_query"])))
        return filters_digest(("tenders", country_code, day, words, *process, *narrowing)).encode() in inside

    def text_of(name: str) -> str | None:
        return str(query[name]) if name in query else None

    def code(name: str) -> str | None:
        text = text_of(name)
        return None if text is None else country(text) or text.upper()

    filters: tuple[str | tuple[str, ...] | None, ...] = ()
    if path == "/v1/changes":
        return f"changes|{text_of('since') or ''}|{text_of('dataset') or ''}".encode() in inside
    if path == "/v1/issuers":
        market = text_of("exchange")
        filters = ("issuers", code("country"), None if market is None else exchange(market))
    elif path == "/v1/cross-rates":
        pair_and_via = tuple(str(query.get(name)).upper() for name in ("base", "quote", "via"))
        filters = ("cross-rates", *pair_and_via, str(text_of("from")), str(text_of("to")))
    elif path == "/v1/coverage":
        filters = ("coverage", code("country"), text_of("sku"))
    elif path == "/v1/series":
        words_query = text_of("q")
        filters = ("series", code("country"), None if words_query is None else tuple(code_words(words_query)))
    elif path == "/v1/series/{series}/vintages":
        filters = ("vintages", str(inside_path.get("series")).upper())
    elif path == "/v1/statements/{service_id}":
        items = text_of("line_items")
        some = None if items is None else tuple(str(items).split(","))
        own = (text_of("period_type"), text_of("kind"), some, text_of("shape") or "long")
        filters = ("statement", str(inside_path.get("service_id")).upper(), *own)
    if not filters or ("as_of" in query and not re.fullmatch(REAL_DAYS, str(query["as_of"]))):
        return False
    return filters_digest(filters).encode() in inside


def _is_one_question(query: dict[str, Any]) -> bool:
    """Whether it asks about one entity or country, and a dataset that it has."""
    entity, country_code, dataset = (query.get(name) for name in ("entity_id", "country", "dataset"))
    if (entity is None) == (country_code is None):
        return False
    if country_code is not None:
        return dataset in ("AF-TENDER", "AF-MACRO")
    return dataset != "AF-MACRO" if str(entity).startswith("DC") else dataset in (None, "AF-MACRO")


@schemathesis.hook
def before_add_examples(context: schemathesis.HookContext, examples: list[schemathesis.Case[Any]]) -> None:
    """The examples of the parameters form one question, except those of another mode."""
    for case in examples:
        if case.path in _OTHER_MODE and case.query:
            case.query.pop(_OTHER_MODE[case.path], None)


_OTHER_MODE = {"/v1/macro": "indicator", "/v1/shared/facts": "country", "/v1/signals/{signal_key}": "basis"}
