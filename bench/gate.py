"""The speed of the organisation gate in names per second, and the share that it serves by label.

    python bench/gate.py [folder of labelled names]

The folder holds `paraguay_suppliers_labelled.csv` and `probablepeople-labelled/`. Without it, only the speed
is measured, on the names of the tests. If `ocds/` is beside it, the texts cut from its releases are printed,
and the share of planted texts that is found. rigour and cleanco are compared if they are installed.
"""

import csv
import importlib
import json
import re
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sankofa.model.ocds.fields import free_fields
from sankofa.model.ocds.redaction import Secrets
from sankofa.model.organisations import org_evidence
from sankofa.model.text import composed

OWN = Path(__file__).parent.parent / "tests" / "unit" / "model" / "organisation_names.toml"
CLEAR_FORM = re.compile(
    r"(?<!\w)(s\. ?a\.?|s\. ?r\. ?l\.?|srl|sociedad an[oó]nima|ltda?|limitada|saci\w*|saeca|s\.a\.[a-z.]+"
    r"|e\.a\.s\.?|llc|inc|ltd|limited|llp|plc)(?!\w)",
    re.IGNORECASE,
)
ROUNDS = 5
PLANTED = (
    ("Contact person: Zqthemba Khoza; cell 0825551234", "Zqthemba"),
    ("Enquiries: S. Zqzulu, Tel: 011 555 0000.", "Zqzulu"),
    ("Evaluation by Dr A. Zqpillay", "Zqpillay"),
    ("Veuillez contacter M. Zqkouassi Yao au 07 07 12 34 56", "Zqkouassi"),
    ("Pessoa de contacto: João de Zqsouza, +258 84 300 1234", "Zqsouza"),
    ("Wasiliana na Bw. Zqjuma Hamisi kwa simu 0712 345 678", "Zqjuma"),
    ("call 0825551234", "0825551234"),
    ("fax +234 803 123 4567", "803 123"),
)


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
    """Names per second of one core: the best of a few rounds, because others use the machine too."""
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
    """Maintained data on legal forms, with the most similar question that it answers: does the name
    contain a form?
    """
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


def free_texts(value: object, field: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and (field in free_fields() or field.rpartition("_")[0] in free_fields()):
        yield field, value
    elif isinstance(value, list):
        for inner in value:
            yield from free_texts(inner, field)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if "contact" not in key.lower():
                yield from free_texts(inner, key)


def report_free_text(folder: Path) -> None:
    """Both sides: what is cut from real texts, and from the same texts with a planted contact."""
    texts: set[tuple[str, str]] = set()
    for path in sorted(folder.rglob("*.json")):
        try:
            texts.update(free_texts(json.loads(path.read_bytes())))
        except ValueError:
            continue
    secrets, changed, missed = Secrets(), [], 0
    for field, text in sorted(texts):
        address = field in ("streetAddress", "locality", "region")
        cut = secrets.cut(text, address=address)
        if cut != composed(text):
            changed.append(f"  {field}: {' '.join(cut.split())[:150]}")
        missed += sum(token in secrets.cut(f"{text[:200]}. {plant}") for plant, token in PLANTED)
    print(f"\nfree text: {len(texts):,} real texts, {len(changed)} changed:", *changed, sep="\n")
    total = len(texts) * len(PLANTED)
    print(f"planted contacts: {total - missed:,} of {total:,} cut ({(total - missed) / max(total, 1):.2%})")


def main() -> None:
    began = time.perf_counter()
    org_evidence("Sample (Pty) Ltd")
    print(f"tables read in {(time.perf_counter() - began) * 1000:.0f} ms")
    if len(sys.argv) < 2:
        print(f"{rate(org_evidence, own_names()):,.0f} names/s on one core (half of them served)")
        return
    report_free_text(Path(sys.argv[1]).parent / "ocds")
    rows = list(labelled(Path(sys.argv[1])))
    report("the gate", org_evidence, rows)
    for title, gate in peers():
        report(title, gate, rows)


if __name__ == "__main__":
    main()
