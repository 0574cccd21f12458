"""Where a row comes from: the address of the publisher's own document behind a `source_ref`."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from sankofa.model.provenance import source_of_ref

_ACCESSION: Final = re.compile(r"\d{10}-\d{2}-\d{6}", re.ASCII)
"""A filing with the SEC, such as "0001193125-09-246637"."""
_INDICATOR: Final = re.compile(r"([A-Z][A-Z0-9.]{3,}) ([A-Z]{2}) \d{4}", re.ASCII)
"""A value of the World Bank, such as "NY.GDP.MKTP.CD NG 2025"."""
_LEI: Final = re.compile(r"lei:([A-Z0-9]{20})", re.ASCII)
"""A record of GLEIF, such as "lei:5299003KXIBJQYCBBD72"."""


def filing_of(source_ref: str) -> str | None:
    """The accession number of the filing behind a `source_ref`; None if it is of no filing with the SEC."""
    match = _ACCESSION.match(source_ref, len(source_of_ref(source_ref)) + 1)
    return match[0] if match else None


def original(sources: Mapping[str, str], filers: Mapping[str, int], source_ref: str) -> str:
    """The filing, the indicator's page, the record, the document itself, or the publisher's site; or "".

    `filers` has the CIK of the company that a filing is about: an accession number begins with the CIK of
    whoever sent it, often an agent, under which the SEC has no such folder.
    """
    name = source_of_ref(source_ref)
    document, _, place = source_ref[len(name) + 1 :].partition("#")
    site = sources.get(name, "")
    host = urlsplit(site).hostname or name
    if document.startswith(("https://", "http://")):
        return document
    is_sec = "sec" in host.replace("-", ".").split(".")
    if is_sec and (filing := filing_of(source_ref)) and (cik := filers.get(filing)):
        folder = filing.replace("-", "")
        return f"https://www.sec.gov/Archives/edgar/data/{cik}/{folder}/{filing}-index.htm"
    if "worldbank" in host and (value := _INDICATOR.fullmatch(place)):
        return f"https://data.worldbank.org/indicator/{value[1]}?locations={value[2]}"
    if "gleif" in host and (record := _LEI.fullmatch(place)):
        return f"https://search.gleif.org/#/record/{record[1]}"
    return site if site.startswith(("https://", "http://")) else ""
