"""Parts of real files as their publishers ship them: fewer registrants, concepts or currencies.

Most of a file holds rows that no test looks at, so tests take the part they need. `make torture` takes whole
files, and so does `make test-all` if they are small.
"""

import gzip
import json
import re
import zipfile
from collections.abc import Callable, Container, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any


def statements_of(
    folder: Path,
    to: Path,
    is_included: Callable[[int, str], bool],
    tag: Callable[[str], bool] = lambda _: True,
    until: str = "9999-12-31",
) -> Path:
    """The quarters of the financial statement data sets, with the filings of some registrants up to a day.

    `wanted` gets the number and the name of each registrant, `tag` those of each figure.
    """
    last = until.replace("-", "").encode()
    to.mkdir()
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as whole, zipfile.ZipFile(to / path.name, "w") as part:
            header, *filings = whole.read("sub.txt").split(b"\n")
            assert header.startswith(b"adsh\tcik\tname\t")
            filed = header.split(b"\t").index(b"filed")
            filings = [line for line in filings if line and is_included(*_registrant(line))]
            filings = [line for line in filings if line.split(b"\t")[filed][:8] <= last]
            part.writestr("sub.txt", b"\n".join([header, *filings, b""]))
            accessions = {line.partition(b"\t")[0] for line in filings}
            header, *figures = whole.read("num.txt").split(b"\n")
            assert header.startswith(b"adsh\ttag\t")
            figures = [
                line
                for line in figures
                if line[:20].rstrip() in accessions and tag(line.split(b"\t", 2)[1].decode())
            ]
            part.writestr("num.txt", b"\n".join([header, *figures, b""]))
    return to


def _registrant(line: bytes) -> tuple[int, str]:
    _, number, name, *_ = line.decode("utf-8", "replace").split("\t")
    return int(number), name


def companyfacts_of(
    paths: Iterable[Path],
    to: Path,
    is_included: Callable[[int, str], bool],
    concepts: Container[str],
    *,
    quarters: bool = False,
) -> list[Path]:
    """The compressed files of some registrants, with some of their concepts (`us-gaap:Assets`).

    `wanted` gets the number and the name of each registrant.
    """
    to.mkdir()
    written = []
    for path in paths:
        with gzip.open(path) as stream:
            head = _HEAD.match(stream.read(1000))
        assert head is not None, path
        if not is_included(int(head[1]), head[2].decode()):
            continue
        whole = json.loads(gzip.decompress(path.read_bytes()), parse_float=Digits)
        for taxonomy, facts in whole["facts"].items():
            whole["facts"][taxonomy] = {
                name: {
                    **fact,
                    "units": {
                        unit: rows if quarters else _of_years(rows) for unit, rows in fact["units"].items()
                    },
                }
                for name, fact in facts.items()
                if f"{taxonomy}:{name}" in concepts
            }
        written.append(to / path.stem)
        written[-1].write_text(json.dumps(whole))
    return written


_HEAD = re.compile(rb'\{"cik": ?"?(\d+)"?, ?"entityName": ?"([^"]*)"')


def _of_years(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the quarters that begin after the July of the year in which they end."""
    return [row for row in rows if "start" not in row or row["start"][:7] <= f"{row['end'][:4]}-07"]


class Digits(float):
    """A figure with its original digits."""

    def __new__(cls, text: str) -> "Digits":
        assert Decimal(repr(float(text))) == Decimal(text), text
        return super().__new__(cls, text)
