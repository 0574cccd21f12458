"""What the organisation gate lets through, and how fast: names per second, and the share served by label.

    python bench/gate.py [folder of labelled names]

The folder holds `paraguay_suppliers_labelled.csv` and `probablepeople-labelled/`; without one, only the
speed is measured, on the names of the tests. rigour and cleanco are compared where they are installed.
"""

import csv
import importlib
import re
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sankofa.model.organisations import org_evidence

OWN = Path(__file__).parent.parent / "tests" / "unit" / "model" / "organisation_names.toml"
CLEAR_FORM = re.compile(
    r"(?<!\w)(s\. ?a\.?|s\. ?r\. ?l\.?|srl|sociedad an[oó]nima|ltda?|limitada|saci\w*|saeca|s\.a\.[a-z.]+"
    r"|e\.a\.s\.?|llc|inc|ltd|limited|llp|plc)(?!\w)",
    re.IGNORECASE,
)
ROUNDS = 5


class Labelled(NamedTuple):
    source: str
    name: str
    person: bool


def labelled(folder: Path) -> Iterator[Labelled]:
    for file, person in (("person_labeled.xml", True), ("company_labeled.xml", False)):
        for name in ElementTree.parse(folder / "probablepeople-labelled" / file).getroot():  # noqa: S314 - our own file
            yield Labelled("probablepeople", " ".join("".join(name.itertext()).split()), person)
    with (folder / "paraguay_suppliers_labelled.csv").open(encoding="utf-8-sig", newline="") as lines:
        for row in csv.DictReader(lines):
            yield Labelled("Paraguayan suppliers", row["name"], row["label"] == "natural_person")


def own_names() -> list[str]:
    lists = tomllib.loads(OWN.read_text("utf-8"))
    text = "\n".join(lists[key] for key in ("people", "legal_form", "public_body")) * 20
    return [name for line in text.splitlines() for name in line.split("|") if name]


def rate(gate: Callable[[str], object], names: Iterable[str]) -> float:
    """Names per second of one core: the best of a few rounds, as others use the machine too."""
    names = list(names)
    gate(names[0])
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for name in names:
            gate(name)
        best = min(best, time.process_time() - began)
    return len(names) / best


def peers() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Maintained data on legal forms, asked the nearest question it answers: does the name hold a form?"""
    try:
        rigour = importlib.import_module("rigour.names")
        yield "rigour extract_org_types", lambda name: rigour.extract_org_types(name.casefold())
    except ImportError:
        print("rigour is not installed: not compared")
    try:
        cleanco = importlib.import_module("cleanco.classify")
        types = cleanco.typesources()
        yield "cleanco matches", lambda name: cleanco.matches(name, types)
    except ImportError:
        print("cleanco is not installed: not compared")


def report(title: str, gate: Callable[[str], object], rows: list[Labelled]) -> None:
    print(f"\n{title}: {rate(gate, (row.name for row in rows)):,.0f} names/s on one core")
    for source in sorted({row.source for row in rows}):
        people = [row.name for row in rows if row.source == source and row.person]
        bodies = [row.name for row in rows if row.source == source and not row.person]
        clear = [name for name in bodies if CLEAR_FORM.search(name)]
        for label, names in (("people", people), ("organisations", bodies), ("with a clear form", clear)):
            served = sum(bool(gate(name)) for name in names)
            print(f"  {source:<22}{label:<20}{served:>6} of {len(names):>5}  {served / len(names):7.2%}")


def main() -> None:
    began = time.perf_counter()
    org_evidence("Sample (Pty) Ltd")
    print(f"tables read in {(time.perf_counter() - began) * 1000:.0f} ms")
    if len(sys.argv) < 2:
        print(f"{rate(org_evidence, own_names()):,.0f} names/s on one core (half of them served)")
        return
    rows = list(labelled(Path(sys.argv[1])))
    report("the gate", org_evidence, rows)
    for title, gate in peers():
        report(title, gate, rows)


if __name__ == "__main__":
    main()
