"""Countries (ISO 3166-1) and currencies (ISO 4217)."""

from collections.abc import Iterable
from functools import cache

import pycountry


@cache
def alpha3_of() -> dict[str, str]:
    """Alpha-3 code by alpha-2 code."""
    return {country.alpha_2: country.alpha_3 for country in pycountry.countries}


@cache
def alpha2_of() -> dict[str, str]:
    """Alpha-2 code by alpha-3 code."""
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
def _names() -> dict[str, str]:
    """Alpha-2 code by every name of a country, in lower case."""
    return {
        name.lower(): country.alpha_2
        for country in pycountry.countries
        for field in ("name", "official_name", "common_name")
        if (name := getattr(country, field, None))
    }


def country_names() -> Iterable[str]:
    """Every English name of a country, in lower case."""
    return _names()


def begins_country(word: str) -> bool:
    """Whether the English name of a country begins with a word, in lower case."""
    return word in _first_words()


@cache
def _first_words() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _names())


def country_named(name: str) -> str | None:
    """The alpha-2 code of a country by its English name; None if there is no such country."""
    return _names().get(" ".join(name.lower().split()))


@cache
def country_name(alpha2: str) -> str | None:
    """The English name of a country, the short one if there are two."""
    match = pycountry.countries.get(alpha_2=alpha2)
    return None if match is None else str(getattr(match, "common_name", None) or match.name)


@cache
def currency_name(code: str) -> str | None:
    """The English name of a currency; None if there is no such currency today."""
    match = pycountry.currencies.get(alpha_3=code)
    return None if match is None else str(match.name)


def country_in(query_words: list[str]) -> tuple[str | None, list[str]]:
    """The country that words name besides others, and the others: `gdp south africa` is the GDP of one."""
    starts = [at for at, word in enumerate(query_words) if begins_country(word)]
    for length in (3, 2, 1) if starts else ():
        for at in starts:
            if at + length > len(query_words):
                continue
            code = country_named(" ".join(query_words[at : at + length]))
            others = query_words[:at] + query_words[at + length :]
            if code is not None and others:
                return code, [word for word in others if word not in ("of", "in", "the")] or others
    return None, query_words
