"""Small files of the SEC that name a registrant, in the form in which the SEC publishes them."""

import json
import zipfile
from pathlib import Path
from typing import Final

SETS: Final = "sec-financial-statements"
FACTS: Final = "sec-companyfacts"


def data_set(path: Path, cik: str, name: str, filed: str, accession: str, country: str = "US") -> Path:
    """A data set with one filing, which reports one figure."""
    filing = f"{accession}\t{cik}\t{name}\t{country}\t{country}\t{filed.replace('-', '')}\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sub.txt", "adsh\tcik\tname\tcountryba\tcountryinc\tfiled\n" + filing)
        head = "adsh\ttag\tversion\tddate\tqtrs\tuom\tcoreg\tvalue\n"
        archive.writestr("num.txt", f"{head}{accession}\tAssets\tus-gaap/2009\t20091231\t0\tUSD\t\t7.0000\n")
    return path


def company_facts(path: Path, cik: str, name: str, filed: str, accession: str) -> Path:
    """The same figure in a document of companyfacts whose last filing is of a day."""
    row = {"end": "2009-12-31", "val": 7, "accn": accession, "filed": filed}
    facts = {"us-gaap": {"Assets": {"units": {"USD": [row]}}}}
    path.write_text(json.dumps({"cik": int(cik), "entityName": name, "facts": facts}))
    return path
