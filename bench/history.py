"""The figures of the benchmarks: each run appends to history.jsonl, and README.md shows the latest of each.

python -m bench table            write the table of README.md from history.jsonl
python -m bench table --check    exit 1 if the table does not match history.jsonl

Set BENCH_HISTORY to write a run's figures to another file.
"""

import json
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).resolve().parent
HISTORY: Final = _FOLDER / "history.jsonl"
PAGE: Final = _FOLDER / "README.md"
_BEGIN, _END = "<!-- figures: written by `python -m bench table` -->\n", "<!-- end of figures -->\n"
_HEAD: Final = "| benchmark | measure | figure | goal | date |\n|---|---|---:|---|---|\n"

_EFFORT: Final = re.compile(r" --(?:(?:rounds|seconds) [0-9.]+|fresh|only(?: (?!--)\S+)*)")
"""Options that say how much of a benchmark to run and how often; they do not change what a measure means."""

Line = dict[str, Any]


def report(
    measure: str, figure: float, *, unit: str = "", least: float | None = None, most: float | None = None
) -> bool:
    """Print a figure with its goal, and append it to the history. False if it misses the goal."""
    line: Line = {
        "benchmark": _command(),
        "measure": measure,
        "figure": float(f"{figure:.4g}"),
        "unit": unit,
        **({} if least is None else {"least": least}),
        **({} if most is None else {"most": most}),
        "date": datetime.now(UTC).date().isoformat(),
    }
    print(f"{_number(line['figure']):>12} {unit} {measure}; goal: {_goal(line) or 'none'}", flush=True)
    with Path(os.environ.get("BENCH_HISTORY") or HISTORY).open("a", encoding="utf-8") as history:
        history.write(json.dumps(line) + "\n")
    return _met(line)


def _command() -> str:
    """The running benchmark, as `python -m bench` takes it."""
    return " ".join([Path(sys.argv[0]).stem, *sys.argv[1:]])


def _met(line: Line) -> bool:
    return bool(line.get("least", line["figure"]) <= line["figure"] <= line.get("most", line["figure"]))


def _goal(line: Line) -> str:
    bounds = [f"at {name} {_number(line[name])}" for name in ("least", "most") if name in line]
    return " and ".join(bounds) + ("" if _met(line) else ": missed")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:g}"


def table(lines: list[Line]) -> str:
    """The latest figure of each measure, by benchmark with the options that change the measure."""
    latest = {(_EFFORT.sub("", line["benchmark"]), line["measure"]): line for line in lines}
    rows = []
    for (benchmark, measure), line in sorted(latest.items()):
        figure = f"{_number(line['figure'])} {line['unit']}".strip()
        rows.append(f"| `{benchmark}` | {measure} | {figure} | {_goal(line)} | {line['date']} |\n")
    return _HEAD + "".join(rows)


def page() -> str:
    """README.md with the table from history.jsonl."""
    lines = [json.loads(line) for line in HISTORY.read_text(encoding="utf-8").splitlines()]
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    return head + _BEGIN + table(lines) + _END + rest.partition(_END)[2]


def main() -> int:
    """`python -m bench table`."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print("bench/README.md is stale: run `python -m bench table`", file=sys.stderr)
        return 1
    return 0
