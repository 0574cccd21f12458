"""Exchanges: the name people write before the colon of EXCHANGE:TICKER, whichever code the source uses.

Sources name an exchange by its market identifier code (ISO 10383) or by a vendor's letters; people write
JSE:NPN. Each exchange here has one name, and the codes that mean it. A code that is not listed stands for
itself, so nothing is refused and nothing is guessed.
"""

from typing import Final

_CODES: Final = {
    # name: (MICs and vendor codes)
    "JSE": ("XJSE", "ALTX", "JNB", "SJ"),
    "A2X": ("A2XX",),
    "NGX": ("XNSA", "NL"),
    "NSE-KE": ("XNAI", "KN"),
    "EGX": ("XCAI", "EY"),
    "GSE": ("XGHA", "GN"),
    "CSE-MA": ("XCAS", "MC"),
    "BSE-BW": ("XBOT", "BG"),
    "BRVM": ("XBRV", "IA"),
    "DSE-TZ": ("XDAR", "TZ"),
    "SEM": ("XMAU", "MP"),
    "LUSE": ("XLUS", "ZL"),
    "NSX": ("XNAM", "NW"),
    "MSE-MW": ("XMSW", "MW"),
    "USE-UG": ("XUGA", "UG"),
    "RSE": ("RSEX", "RW"),
    "ZSE": ("XZIM", "ZH"),
    "VFEX": ("VFEX",),
    "BVMT": ("XTUN", "TU"),
    "BVM": ("XBVM",),
    "NSE": ("XNSE", "IS"),
    "BSE": ("XBOM", "IB"),
    "LSE": ("XLON", "LN"),
    "NYSE": ("XNYS", "UN"),
    "NASDAQ": ("XNAS", "UW"),
}
_NAME: Final = {code: name for name, codes in _CODES.items() for code in (name, *codes)}


def exchange(code: str) -> str:
    """The one name of an exchange, by any of its codes in any case."""
    code = code.strip().upper()
    return _NAME.get(code, code)
