"""Suggestions for a mistaken identifier, so that the client's next request works."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from difflib import get_close_matches
from typing import Final, Literal
from urllib.parse import quote

import msgspec

from sankofa.access.tiers import Grant
from sankofa.edition.format.keys import ENTITIES, ID_TYPES, MACRO_ITEMS, ORGANISATIONS, RELATIONS, code_key
from sankofa.edition.read.day_view import ID_LENGTH, DayView
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.search import (
    Hit,
    NameQuery,
    codes_sharing_words,
    search_code,
    search_symbol,
    series_named,
)
from sankofa.edition.read.search_words import known_meanings, postings_of
from sankofa.edition.read.series_catalogue import CATALOGUE_ORDER, columns_of_series, entry_on
from sankofa.model.countries import country_and_subject, subject_words
from sankofa.model.errors import InvalidParameter, NotFound, StoreUnavailable
from sankofa.model.identifiers import FREE_ID_TYPES, lookup_keys_of_text
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.observations import currency_pair
from sankofa.model.rows import Predecessor, RelationRow
from sankofa.model.text import code_words, fit, toml_table, words
from sankofa.operations.contract import Call, Operation, printable
from sankofa.operations.service import Service

ID_PARAMETER: Final = "service_id"
_ID_PARAMETERS: Final = (ID_PARAMETER, "entity_id")
_ISSUED: Final = re.compile(r"DC[0-9A-Fa-f]{24}\Z")
_SERIES: Final = "series"
_TWO_CURRENCIES: Final = re.compile(r"([A-Z]{3})[ ._:/-]?([A-Z]{3})\Z")
MOST_NEAREST: Final = 5
_LONGEST: Final = 64
MacroCode = Literal["series", "indicator"]
_OTHER_MODE: Final[dict[MacroCode, str]] = {
    "series": "an annual indicator: pass it as `indicator`, without `as_of`",
    "indicator": "a series: pass it as `series`",
}
"""Hints for a code passed as the other kind."""


_SYNONYMS: Final[dict[str, str]] = toml_table("sankofa.operations", "synonyms")
"""Line items by their everyday names."""


class Identified(msgspec.Struct):
    service_id: str
    legal_name: str | None
    id_type: str
    scheme: str | None


_matches = msgspec.json.Decoder(list[Identified]).decode
_relations = msgspec.json.Decoder(list[RelationRow]).decode
_predecessor = msgspec.json.Decoder(Predecessor).decode


async def unknown_organisation(call: Call, text: str) -> InvalidParameter | NotFound:
    """A 404 for an unknown id; for another kind of identifier, a 400 that names the service_id."""
    if hint := await service_id_hint(call, text):
        return InvalidParameter(ID_PARAMETER, hint)
    by_name = "" if _ISSUED.match(text) else f" Search for its name: /v1/search?q={quote(text)}."
    return NotFound(f"No organisation with service_id {printable(text)}.{by_name}")


async def refuse_other_identifier(call: Call, text: str, parameter: str = ID_PARAMETER) -> None:
    """Raises InvalidParameter if an unknown id is in fact another identifier or a name."""
    if hint := await service_id_hint(call, text):
        raise InvalidParameter(parameter, hint)


async def explained_id(
    service: Service,
    grant: Grant,
    operation: Operation,
    problem: InvalidParameter | NotFound,
    texts: Mapping[str, object],
    lock: date | None = None,
) -> InvalidParameter | NotFound:
    """The error for a malformed service_id or series key.

    For another kind of identifier it names the service_id; for two currencies, their exchange rates.
    """
    in_path = (one.name for one in operation.parameters.values() if one.in_path)
    parameter = problem.parameter if isinstance(problem, InvalidParameter) else next(in_path, ID_PARAMETER)
    text = texts.get(parameter)
    hinted = (*_ID_PARAMETERS, _SERIES)
    if parameter not in hinted or parameter not in operation.parameters or not isinstance(text, str):
        return problem
    try:
        edition = service.edition.get()
    except StoreUnavailable:
        return problem
    edition = edition if lock is None else DayView(edition, lock)
    if parameter == _SERIES:
        rates = ", ".join(await exchange_rates(edition, text.upper()))
        hint = f"{printable(text)} is the exchange rate {rates}: ask for that key" if rates else ""
    else:
        call = Call(edition, grant, lock or service.today(), service.cursors, service.edition.for_cursor)
        hint = await service_id_hint(call, text)
    return InvalidParameter(parameter, hint) if hint else problem


async def service_id_hint(call: Call, text: str) -> str:
    """A sentence that names the service_id of an identifier, a bare ticker or a name.

    Ignores kinds of identifiers that the tier may not look up.
    """
    if len(text) > _LONGEST or not fit(text) or _ISSUED.match(text):
        return ""
    if matches := await identified(call, text, FREE_ID_TYPES if call.grant.sample else ID_TYPES):
        what, listed = matches[0].id_type, _named(matches)
    elif hits := (await search_symbol(call.edition, text))[:MOST_NEAREST]:
        what, listed = "ticker", _listed(hits)
    elif named := await having_name(call, text, MOST_NEAREST):
        what, listed = "name", _listed(named)
    else:
        return ""
    return f"{printable(text)} is the {what} of {listed}: ask for that service_id."


def _named(organisations: Iterable[Identified | Predecessor]) -> str:
    return ", ".join(f"{one.service_id} ({one.legal_name or 'no name known'})" for one in organisations)


def _listed(hits: Iterable[Hit]) -> str:
    return ", ".join(dict.fromkeys(f"{hit.id} ({hit.matched_value})" for hit in hits))


async def identified(
    call: Call, text: str, id_types: Iterable[str], most: int = MOST_NEAREST
) -> list[Identified]:
    """The first organisations with this identifier. Kinds are tried in order until one matches."""
    for _, key in lookup_keys_of_text(id_types, text):
        selection = await call.edition.select("identifier", key, day=call.today.toordinal(), limit=most)
        if selection is not None and selection.count:
            return _matches(b"[%b]" % selection.rows)
    return []


async def having_name(call: Call, text: str, most: int) -> list[Hit]:
    """The organisations with exactly this name, legal form included; else those with its words."""
    hits, _ = await NameQuery(call.edition, ORGANISATIONS, words(text), None).search(most, forgiving=False)
    named = [hit for hit in hits if words(hit.matched_value) == words(text)]
    whole = " ".join(text.split()).casefold()
    return [hit for hit in named if hit.matched_value.casefold() == whole] or named


async def words_to_find(edition: Edition, text: str, country: str | None) -> set[str]:
    """The words of a text for which a search alone may find something: known ones, identifiers and codes."""
    named = await NameQuery(edition, ORGANISATIONS, words(text), country).meanings(forgiving=True)
    items = NameQuery(edition, MACRO_ITEMS, subject_words(code_words(text)), None)
    also = await items.meanings(forgiving=True)
    unknown = {word for word in named.keys() & also if not (named[word].words or also[word].words)}
    every = text.split()
    return {word for word in every if word.lower() not in unknown or await _is_code(edition, word.upper())}


async def _is_code(edition: Edition, text: str) -> bool:
    if ":" in text or len(text) == ID_LENGTH:
        return True
    for index in (ORGANISATIONS, MACRO_ITEMS):
        if (await postings_of(edition, index, code_key(text))).numbers:
            return True
    for _, key in lookup_keys_of_text(ID_TYPES, text):
        if await edition.holds("identifier", key):
            return True
    return False


async def series_can_be_found(edition: Edition, text: str) -> bool:
    """Whether every word of a text is known in a series or names its country."""
    _, subject = country_and_subject(code_words(text), None)
    meanings = [await known_meanings(edition, MACRO_ITEMS, word, "", True) for word in subject]
    return all(meant.words for meant in meanings)


async def kinds_of_code(edition: Edition, code: str) -> set[str]:
    """Whether a code names a series, an indicator or both; in a locked view, as of its day."""
    kinds = {hit.type for hit in await search_code(edition, code)}
    if not kinds and edition.lock is None and await columns_of_series(edition, code):
        return {"series"}  # made from annual tables, which search does not know
    return kinds


async def refuse_unknown_series(edition: Edition, text: str) -> None:
    """Raises NotFound, naming the closest codes, if nothing has this code."""
    if not await kinds_of_code(edition, text.upper()):
        nearest = await nearest_codes(edition, text)
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        raise NotFound(f"No series {printable(text)}; see /v1/series.{hint}")


async def nearest_codes(edition: Edition, text: str) -> list[str]:
    """The series and indicators closest to a code; for an exchange rate (FX.USD.NGN, USDNGN), its rates
    first."""
    text = text.upper()
    first = [rate for rate in await exchange_rates(edition, text) if rate != text]
    codes = await codes_sharing_words(edition, code_words(text))
    return list(dict.fromkeys(first + get_close_matches(text, codes, MOST_NEAREST, 0.5)))[:MOST_NEAREST]


async def exchange_rates(edition: Edition, text: str) -> list[str]:
    """The keys of the rates between two currencies (FX.USD.NGN, USD/NGN, USDNGN), the asked pair first."""
    bare = _TWO_CURRENCIES.match(text)
    pair = currency_pair(f"FX.{bare[1]}.{bare[2]}" if bare else text)
    if pair is None:
        return []
    keys = []
    for first, _ in await series_named(edition, [code.lower() for code in pair]):
        if (row := await entry_on(edition, first)) is not None:
            keys.append(str(CATALOGUE_ORDER.key_of(row)[0]))
    rates = [(own != pair, key) for key in keys if (own := currency_pair(key)) in (pair, pair[::-1])]
    return [key for _, key in sorted(rates)]


async def nearest_series(
    edition: Edition, code: str | None, parameter: MacroCode, country: str | None = None
) -> dict[str, object]:
    """Envelope members for an answer about a series or indicator that does not exist.

    `/v1/series` lists both kinds, so for a code of the other kind the hint names the right parameter.
    """
    if code is None:
        return {}
    kinds = await kinds_of_code(edition, code.upper())
    if not kinds:
        return {"nearest": await nearest_codes(edition, code)}
    if parameter in kinds:
        return {}
    dated = "; add `country` for the values known on a day" if parameter == "series" else ""
    if dated and country:
        dated = f"; nothing of {country} was known on that day"
    return {"hint": f"{printable(code.upper())} is {_OTHER_MODE[parameter]}{dated}."}


async def relations(edition: Edition, service_id: str, day: date) -> list[RelationRow]:
    """An organisation's successor, predecessors and parents on a day."""
    selection = await edition.select(RELATIONS, service_id.upper(), day=day.toordinal())
    return [] if selection is None else _relations(b"[%b]" % selection.rows)


async def predecessors(edition: Edition, of: Iterable[RelationRow], day: date) -> list[Predecessor]:
    """The predecessors among some relations, ordered by service_id, with their names on the day."""
    named = []
    for service_id in sorted(one.value for one in of if one.kind == "predecessor"):
        selection = await edition.select(ENTITIES, service_id, day=day.toordinal())
        if selection is not None and selection.count:
            named.append(_predecessor(bytes(selection.rows)))
    return named


async def predecessor_hint(
    edition: Edition, service_id: str, selection: Selection, day: date
) -> dict[str, object]:
    """Envelope members for an answer without rows about a successor: they name its predecessors."""
    if selection.count:
        return {}
    earlier = await predecessors(edition, await relations(edition, service_id, day), day)
    if not earlier:
        return {}
    hint = f"took over from {_named(earlier)}: earlier figures are under that service_id."
    return {"hint": f"{service_id.upper()} {hint}"}


def line_items_meant(names: Iterable[str]) -> list[str]:
    """The documented line items that names may mean: by everyday name, then by spelling."""
    known = list(names)
    near = [_SYNONYMS[name] for name in known if name in _SYNONYMS]
    near += [one for name in known if name not in _SYNONYMS for one in get_close_matches(name, LINE_ITEMS, 3)]
    return list(dict.fromkeys(near))
