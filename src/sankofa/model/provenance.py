"""Provenance and licence of rows: licence classes, `source_ref`, notices."""

import unicodedata
from collections.abc import Iterable
from typing import Final

LICENSE_CLASSES: Final = (
    "public-domain",
    "cc0",
    "cc-by",
    "open-government",
    "statutory-filing",
    "licensed-redistribution",
    "synthetic",
)
_FROM_THE_FREEST: Final = (
    "public-domain",
    "cc0",
    "cc-by",
    "open-government",
    "synthetic",
    "statutory-filing",
    "licensed-redistribution",
)
KEYED_CLASSES: Final = frozenset({"statutory-filing", "licensed-redistribution"})
"""Rows of these classes need an API key: no open file holds them."""
OWING_CLASSES: Final = frozenset({"cc-by", "open-government", "statutory-filing", "licensed-redistribution"})
"""Classes whose sources are to be named wherever their data is used."""

SKUS: Final = ("AF-FUND", "AF-TENDER", "AF-MACRO")
ORGANISATIONS: Final = "organisations"
"""The key of the sources of organisation records, beside the skus of the datasets."""
EVERY_SOURCE: Final = ""
"""The key of all sources of an edition."""

OPEN_LICENSE: Final = "CC-BY-4.0"
KEYED_LICENSE: Final = "LicenseRef-Sankofa-Bulk"
SERVICE: Final = "sankofa"
"""The source id of the few rows that the service itself originates."""

LICENSE_NOTICE: Final = (
    "Licence-clean data: every row names its source and the licence class it is held under, and no "
    "natural-person data is served. For research and information only; not a regulated benchmark."
)
_MARK_DIGITS: Final = 8
_LONGEST_HEADER: Final = 4_000


def source_ref(source_id: str, document: str, location: str, content_sha256: str = "") -> str:
    """`<source id>:<document>#<location>`: how every row of every surface says where it is from.

    A document that is the captured file itself is followed by `@` and the beginning of the file's digest: the
    next capture of the same table is another document. One that a publisher names (an accession number, an
    annual report) is the same in whichever file it came.
    """
    mark = f"@{file_mark(content_sha256)}" if content_sha256 else ""
    return f"{source_id}:{document}{mark}#{location}"


def file_mark(content_sha256: str) -> str:
    """How a `source_ref` tells a captured file."""
    return content_sha256[:_MARK_DIGITS]


def source_of_ref(ref: str) -> str:
    """The id of the source that a `source_ref` begins with."""
    return ref.partition(":")[0]


def strictness(license_class: str) -> int:
    """Orders the classes: the lower, the freer."""
    return _FROM_THE_FREEST.index(license_class)


def strictest(license_classes: Iterable[str]) -> str:
    """The licence class of a value derived from rows of these classes."""
    return max(license_classes, key=strictness)


def file_license(license_classes: Iterable[str], *, keyed: bool) -> str:
    """The licence of a file that holds rows of these classes; `keyed` where it needs a key in any case."""
    return KEYED_LICENSE if keyed or not KEYED_CLASSES.isdisjoint(license_classes) else OPEN_LICENSE


def notice(owed: Iterable[str]) -> str:
    """The `_license` text: the terms of the data, and the sources to attribute."""
    attribution = "; ".join(owed)
    return f"{LICENSE_NOTICE} Attribution: {attribution}." if attribution else LICENSE_NOTICE


def in_a_header(text: str) -> str:
    """A notice as a header field can have it: ASCII, on one line, and not too long for a proxy."""
    decomposed = unicodedata.normalize("NFKD", text)
    ascii_only = "".join(
        c if c.isascii() and c.isprintable() else "" if unicodedata.combining(c) else "?" for c in decomposed
    )
    if len(ascii_only) <= _LONGEST_HEADER:
        return ascii_only
    whole = ascii_only[:_LONGEST_HEADER].rpartition("; ")[0]
    return f"{whole}; and more: see _license of the JSON form."
