"""Writes the figures of docs/explanation/reliability.md from the records of `make torture`.

python tools/reliability.py RECORD...   merge the lines into reliability.jsonl beside it and write the table
python tools/reliability.py --check     exit 1 when the table is not what reliability.jsonl says

The last full run of a test counts, a failed one too. A test that no longer exists is left out.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parent.parent
_DOCS: Final = _ROOT / "docs" / "explanation"
RECORD: Final = _DOCS / "reliability.jsonl"
PAGE: Final = _DOCS / "reliability.md"
_BEGIN, _END = "<!-- figures: written by tools/reliability.py -->\n", "<!-- end of figures -->\n"
_NAME = re.compile(r"(?P<file>[^:]+)::test_(?P<test>[^\[]+)(?:\[(?P<case>.*)\])?$")

Line = dict[str, Any]


def merged(lines: list[Line]) -> list[Line]:
    """The last full run of each existing test, ordered by name."""
    last: dict[str, Line] = {}
    for line in lines:
        if line["full"]:
            last[line["test"]] = line
    return [last[name] for name in sorted(last) if _exists(_parts(name))]


def _parts(test: str) -> re.Match[str]:
    match = _NAME.match(test)
    if match is None:
        raise SystemExit(f"not the name of a test: {test}")
    return match


def _exists(test: re.Match[str]) -> bool:
    file = _ROOT / test["file"]
    return file.exists() and f"def test_{test['test']}(" in file.read_text()


def table(lines: list[Line]) -> str:
    """A table of the runs, folder by folder."""
    rows = ["| test | tries | outcomes | seed | day |", "|---|---|---|---|---|"]
    for line in lines:
        test = _parts(line["test"])
        what = test["test"].replace("_", " ") + (f" ({test['case']})" if test["case"] else "")
        outcomes = [f"{outcome}: {count:,}" for outcome, count in line["outcomes"].items()]
        outcomes += [f"{name}: {value:g}" for name, value in line["figures"].items()]
        if not line["passed"]:
            outcomes.insert(0, "**FAILED**")
        seed = f"`{line['seed']}`"
        cells = (
            what,
            f"{line['tries']:,}",
            "; ".join(outcomes),
            seed,
            f"{line['day']}, {line['seconds']:.0f} s",
        )
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def page(text: str, lines: list[Line]) -> str:
    """The page with the table in its place."""
    before, mark, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not mark or not end:
        raise SystemExit(f"{PAGE}: the marks of the figures are missing")
    return f"{before}{mark}\n{table(lines)}\n{end}{after}"


def _read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        stale = PAGE.read_text() != page(PAGE.read_text(), _read(RECORD))
        if stale:
            print(f"{PAGE} is stale: python tools/reliability.py", file=sys.stderr)  # noqa: T201 - a command
        return int(stale)
    lines = merged([line for path in (RECORD, *map(Path, arguments)) for line in _read(path)])
    RECORD.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    PAGE.write_text(page(PAGE.read_text(), lines))
    return int(not all(line["passed"] for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
