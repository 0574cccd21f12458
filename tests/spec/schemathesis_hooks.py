"""More checks for Schemathesis, and values that it cannot know."""

import os
import re
from datetime import UTC, date, datetime
from typing import Any

import schemathesis

from sankofa.derive.signals.contract import panels
from sankofa.model.claims import read_claim, read_period
from sankofa.model.days import REAL_DAYS

EDITIONS = ("edition", "since")
EDITION = re.compile(r"[A-Za-z0-9-]{1,53}")
INSTANT = re.compile(r"[0-9]{4}-[0-9-]{5}T[0-9:]{8}([.][0-9]{1,6})?(Z|[+-][0-9:]{5})")
EARLIER_EDITION = os.environ["SCHEMATHESIS_EDITION"]


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
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], _: Any) -> None:
    """Replace values that no schema can know.

    No schema knows which editions are kept, so the current one replaces any other. Nor does it know the date:
    today replaces future days, which are a 400 by the description.
    """
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
        return False  # no schema knows which cursors were issued; any other is a 400
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
