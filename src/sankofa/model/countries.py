"""Countries (ISO 3166-1) and currencies (ISO 4217)."""

import re
from functools import cache
from typing import Final

import pycountry

from sankofa.model.text import search_form, toml_table

_WORDS: Final = toml_table("sankofa.model", "country_names")
_CALLED: Final[dict[str, list[str]]] = _WORDS["names"]
_LONGEST_NAME: Final = 5
_FILLER: Final = frozenset(("of", "in", "the", "for"))
_YEAR: Final = re.compile("(?:19|20)[0-9]{2}")


@cache
def alpha3_of() -> dict[str, str]:
    return {country.alpha_2: country.alpha_3 for country in pycountry.countries}


@cache
def alpha2_of() -> dict[str, str]:
    return {alpha3: alpha2 for alpha2, alpha3 in alpha3_of().items()}


@cache
def currencies() -> frozenset[str]:
    """Every current ISO 4217 code, and those of history that old filings still use."""
    return frozenset(currency.alpha_3 for currency in pycountry.currencies) | _HISTORIC


_HISTORIC = frozenset(
    (
        "AFA AOK AON AOR ARA ARP ATS AZM BEF BGL BGN BRB BRC BRE BRN BRR BYB BYR CSD CUC CYP CZK DEM DZD "
        "ECS EEK ESP FIM FRF GHC GRD GWP HRK IEP ITL LTL LUF LVL MGF MLF MRO MTL MXP MZM NIC NLG PEI PLZ "
        "PTE ROL RUR SDD SDP SIT SKK SLL STD SUR TJR TMM TPE TRL UAK UGS USN UYP VEB VEF XEU YUM YUN ZAL "
        "ZMK ZRN ZRZ ZWC ZWD ZWL ZWN ZWR"
    ).split(" ")
)


def country(code: str) -> str | None:
    """The alpha-2 code of an alpha-2 or alpha-3 code in any case; None if there is no such country."""
    code = code.strip().upper()
    return code if code in alpha3_of() else alpha2_of().get(code)


def currency(code: str) -> str | None:
    """The ISO 4217 code in any case; None if there is no such currency."""
    code = code.strip().upper()
    return code if code in currencies() else None


@cache
def country_names() -> dict[str, str]:
    """Alpha-2 code by every English name of a country in ISO 3166-1."""
    return {
        name: country.alpha_2
        for country in pycountry.countries
        for field in ("name", "official_name", "common_name")
        if (name := getattr(country, field, None))
    }


@cache
def _names() -> dict[str, str]:
    """Alpha-2 code by every English name of a country, as `search_form` writes it."""
    called = {name: code for code, names in _CALLED.items() for name in names}
    return {search_form(name): code for name, code in (country_names() | called).items()}


@cache
def _words_for_countries() -> dict[str, str]:
    """Alpha-2 code by name, adjective, and either as a possessive: `kenyas` is how `Kenya's` is searched."""
    adjectives = {search_form(adjective): code for code, adjective in _WORDS["people"].items()}
    known = _names() | adjectives
    return {f"{name}s": code for name, code in known.items()} | known


def country_named(name: str) -> str | None:
    """The alpha-2 code of a country by its English name; None if there is no such country."""
    return _names().get(search_form(name))


@cache
def country_name(alpha2: str) -> str | None:
    """The English name of a country as people write it."""
    match = pycountry.countries.get(alpha_2=alpha2)
    if match is None:
        return None
    called = _CALLED.get(alpha2)
    return called[0] if called else str(getattr(match, "common_name", None) or match.name)


@cache
def currency_name(code: str) -> str | None:
    """The English name of a currency; None if there is no such currency today."""
    match = pycountry.currencies.get(alpha_3=code)
    return None if match is None else str(match.name)


def country_in(query_words: list[str]) -> tuple[str | None, list[str]]:
    """The country that words name, and the other words without years: `south african inflation 2023` is the
    inflation of South Africa.
    """
    named = _words_for_countries()
    for length in range(_LONGEST_NAME, 0, -1):
        for at in range(len(query_words)):
            if code := named.get(" ".join(query_words[at : at + length])):
                return code, subject_words(query_words[:at] + query_words[at + length :])
    return None, subject_words(query_words)


def country_and_subject(query_words: list[str], country: str | None) -> tuple[str | None, list[str]]:
    """The country of a question about series, and the words that say what it is about.

    Words that name a country choose it, unless nothing else is left or another country is given.
    """
    named, subject = country_in(query_words)
    if not subject or country not in (None, named):
        return country, subject_words(query_words)
    return named, subject


def subject_words(query_words: list[str]) -> list[str]:
    """The words of a question that say what it is about: no years, and no `of` or `in`, if others remain."""
    dated = [word for word in query_words if word not in _FILLER]
    return [word for word in dated if not _YEAR.fullmatch(word)] or dated or query_words
