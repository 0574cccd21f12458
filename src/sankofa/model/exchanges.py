"""Exchanges: the name people write before the colon of EXCHANGE:TICKER, whichever code the source uses.

Sources name an exchange by its market identifier code (ISO 10383) or by a vendor's letters; people write
JSE:NPN. Each exchange here has one name, and the codes that mean it. A code that is not listed stands for
itself: nothing is rejected and nothing is guessed.

The two-letter codes of the FIGI standard (its "pricing sources") are read only where a source speaks FIGI:
to everybody else `NL` is the Netherlands, not Lagos, and `B3` a stock exchange, not a trading platform.
"""

from typing import Final, NamedTuple


class _Codes(NamedTuple):
    of_sources: tuple[str, ...]
    """Market identifier codes, of the exchange and of its segments, and a vendor's letters."""
    of_figi: tuple[str, ...] = ()


_CODES: Final = {
    # Africa
    "JSE": _Codes(("XJSE", "ALTX", "JNB"), ("SJ",)),
    "A2X": _Codes(("A2XX",)),
    "NGX": _Codes(("XNSA",), ("NL",)),
    "NSE-KE": _Codes(("XNAI",), ("KN",)),
    "EGX": _Codes(("XCAI", "NILX"), ("EY",)),
    "GSE": _Codes(("XGHA",), ("GN",)),
    "CSE-MA": _Codes(("XCAS",), ("MC",)),
    "BSE-BW": _Codes(("XBOT", "BOTE", "BOTV"), ("BG",)),
    "BRVM": _Codes(("XBRV",), ("BC",)),
    "DSE-TZ": _Codes(("XDAR",), ("TZ",)),
    "SEM": _Codes(("XMAU",), ("MP",)),
    "LUSE": _Codes(("XLUS",), ("ZL",)),
    "NSX": _Codes(("XNAM",), ("NW",)),
    "MSE-MW": _Codes(("XMSW",), ("MW",)),
    "USE-UG": _Codes(("XUGA",), ("UG",)),
    "RSE": _Codes(("RSEX",), ("RW",)),
    "ZSE": _Codes(("XZIM",), ("ZH",)),
    "VFEX": _Codes(("VFEX",)),
    "BVMT": _Codes(("XTUN",), ("TU",)),
    "BVM": _Codes(("XBVM",)),
    "BODIVA": _Codes(("XBDV",)),
    "ESE": _Codes(("XSWA",)),
    "MERJ": _Codes(("TRPX",)),
    # Elsewhere: where organisations of this service are listed too
    "NSE": _Codes(("XNSE",), ("IS",)),
    "BSE": _Codes(("XBOM",), ("IB",)),
    "LSE": _Codes(("XLON", "AIMX"), ("LN",)),
    "NYSE": _Codes(("XNYS",), ("UN",)),
    "NASDAQ": _Codes(("XNAS", "XNGS", "XNMS", "XNCM"), ("UW", "UQ", "UR")),
    "TSX": _Codes(("XTSE",), ("CT",)),
    "ASX": _Codes(("XASX",), ("AT", "AU")),
}
_OF_FIGI: Final = {code: name for name, codes in _CODES.items() for code in codes.of_figi}
_NAME: Final = {code: name for name, codes in _CODES.items() for code in (name, *codes.of_sources)}


def exchange(code: str) -> str:
    """The one name of an exchange, by any of its codes in any case."""
    code = code.strip().upper()
    return _NAME.get(code, code)


def exchange_of_figi(code: str) -> str | None:
    """The name of the exchange behind a code of the FIGI standard; None for whatever else has one.

    Most codes are of trading platforms, off-exchange reporting and whole countries: a share has a hundred
    of them, and EXCHANGE:TICKER only where it is listed.
    """
    return _OF_FIGI.get(code.strip().upper())
