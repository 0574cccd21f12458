"""Check digits by table, for files with millions of identifiers.

python-stdnum is the judge of what is valid, at some ten thousand a second. Nearly all identifiers of a
published file are right and in canonical form: those are recognised here, many times faster, and whatever
is not goes to stdnum, which forgives a blank and says what is wrong. Nothing passes here that would not
pass there (the tests hold the two together).
"""

import re
import string
from functools import lru_cache

from stdnum import isin

# A counts as 10, Z as 35.
_VALUES = str.maketrans({letter: str(int(letter, 36)) for letter in string.ascii_uppercase})
_LEI = re.compile(r"[0-9A-Z]{18}[0-9]{2}\Z")
_ISIN = re.compile(r"[A-Z]{2}[0-9A-Z]{9}[0-9]\Z")
_SINGLE = bytes.maketrans(b"0123456789", bytes(range(10)))
_DOUBLED = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))


def is_lei(text: str) -> bool:
    """Whether this is an LEI in canonical form with the right check digits (ISO 7064, mod 97-10)."""
    return _LEI.match(text) is not None and int(text.translate(_VALUES)) % 97 == 1


def is_isin(text: str) -> bool:
    """Whether this is an ISIN in canonical form, of an issuing country, with the right check digit (Luhn)."""
    if not _ISIN.match(text) or not _issues(text[:2]):
        return False
    digits = text.translate(_VALUES).encode()
    return (sum(digits[::-2].translate(_SINGLE)) + sum(digits[-2::-2].translate(_DOUBLED))) % 10 == 0


@lru_cache(maxsize=26 * 26)
def _issues(country: str) -> bool:
    return bool(isin.is_valid(isin.from_natid(country, "0")))
