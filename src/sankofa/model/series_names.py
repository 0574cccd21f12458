"""Series in words, where their source has no name for them."""

from typing import Final

from sankofa.model.countries import country_name, currency_name
from sankofa.model.observations import currency_pair

_FAMILIES: Final = {
    "commodity": "Commodity price",
    "cpi": "Consumer price index (CPI)",
    "ppi": "Producer price index (PPI)",
    "weo": "IMF WEO",
}
_WEO: Final = {
    "BCA": "Current account balance, US dollars",
    "BCA_NGDPD": "Current account balance, percent of GDP",
    "GGR": "General government revenue",
    "GGR_NGDP": "General government revenue, percent of GDP",
    "GGSB": "General government structural balance",
    "GGSB_NPGDP": "General government structural balance, percent of potential GDP",
    "GGX": "General government expenditure",
    "GGX_NGDP": "General government expenditure, percent of GDP",
    "GGXCNL": "General government balance (net lending or borrowing)",
    "GGXCNL_NGDP": "General government balance (net lending or borrowing), percent of GDP",
    "GGXONLB": "General government primary balance",
    "GGXONLB_NGDP": "General government primary balance, percent of GDP",
    "GGXWDG": "General government gross debt",
    "GGXWDG_NGDP": "General government gross debt, percent of GDP",
    "GGXWDN": "General government net debt",
    "GGXWDN_NGDP": "General government net debt, percent of GDP",
    "LE": "Employment",
    "LP": "Population",
    "LUR": "Unemployment rate",
    "NGAP_NPGDP": "Output gap, percent of potential GDP",
    "NGDP": "GDP, current prices, national currency",
    "NGDPD": "GDP, current US dollars",
    "NGDPDPC": "GDP per person, current US dollars",
    "NGDPPC": "GDP per person, current prices, national currency",
    "NGDPRPC": "Real GDP per person, national currency",
    "NGDPRPPPPC": "Real GDP per person, purchasing power parity",
    "NGDP_D": "GDP deflator",
    "NGDP_FY": "GDP of the fiscal year, current prices",
    "NGDP_R": "Real GDP, national currency",
    "NGDP_RPCH": "Real GDP growth",
    "NGSD_NGDP": "Gross national savings, percent of GDP",
    "NID_NGDP": "Investment, percent of GDP",
    "PCPI": "Consumer price index (CPI), average of the year",
    "PCPIE": "Consumer price index (CPI), end of the year",
    "PCPIEPCH": "Inflation of consumer prices, end of the year",
    "PCPIPCH": "Inflation of consumer prices, average of the year",
    "PPPEX": "Purchasing power parity, national currency per international dollar",
    "PPPGDP": "GDP, purchasing power parity",
    "PPPPC": "GDP per person, purchasing power parity",
    "PPPSH": "Share of world GDP, purchasing power parity",
    "TMG_RPCH": "Growth of imports of goods, volume",
    "TM_RPCH": "Growth of imports of goods and services, volume",
    "TXG_RPCH": "Growth of exports of goods, volume",
    "TX_RPCH": "Growth of exports of goods and services, volume",
}
"""The subjects of the IMF's World Economic Outlook, by its codes."""
_VOWELS: Final = frozenset("AEIOUY")


def series_name(series: str, family: str, frequency: str, country: str) -> str:
    """A series in words: those of its key, family, frequency and country.

    `WEO.NGDP_RPCH.GH` is "Real GDP growth, Ghana (IMF WEO)", `COMMODITY.PALM-OIL` "Commodity price: palm oil,
    monthly".
    """
    if pair := currency_pair(series):
        base, quote = (f"{currency_name(code)} ({code})" if currency_name(code) else code for code in pair)
        source = ".".join(series.split(".")[3:])
        return f"{quote} for one {base}, {frequency}" + (f" ({source})" if source else "")
    words = _FAMILIES.get(family) or (
        family.upper() if len(family) <= 4 else family.replace("_", " ").capitalize()
    )
    first, *rest = series.split(".")
    suffixes = (country, frequency[0].upper())
    codes = (
        [part for part in rest if part not in suffixes] if first.replace("-", "_").lower() == family else []
    )
    place = country_name(country) if country else ""
    if family == "weo" and codes and codes[0] in _WEO:
        return ", ".join(filter(None, (_WEO[codes[0]], place))) + f" ({words})"
    detail = " ".join(_word(word) for code in codes for word in code.replace("_", "-").split("-") if word)
    return ", ".join(filter(None, (f"{words}: {detail}" if detail else words, place, frequency)))


def _word(code: str) -> str:
    """A part of a key as a word; countries (`ZA`) and abbreviations without a vowel (`HRW`) stay."""
    return code if len(code) == 2 or _VOWELS.isdisjoint(code) else code.lower()
