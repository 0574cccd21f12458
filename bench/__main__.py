"""Runs the benchmarks: `python -m bench [NAME [ARGUMENT...]]`; without a name, those with a goal.

`python -m bench table` writes the table of README.md from the figures of all runs (bench/history.jsonl).

Each benchmark has its own process, so that none inherits the memory, pinning or imports of another.
"""

import subprocess
import sys
from pathlib import Path

from bench import history

_AGAINST_TARGETS = (
    "ingest",
    "fundamentals",
    "identifiers",
    "tenders",
    "macro",
    "metrics",
    "finding",
    "export",
    "client",
)


def _names() -> set[str]:
    """Every benchmark in this folder, without this module and the client that replaces wrk."""
    files = Path(__file__).parent.glob("*.py")
    runnable = {p.stem for p in files if "def main() -> None:" in p.read_text()}
    return runnable - {"__main__"}


def main() -> int:
    arguments = sys.argv[1:]
    names = sorted(_names())
    if arguments[:1] == ["table"]:
        return history.main()
    if arguments and arguments[0] not in names:
        print(f"usage: python -m bench [NAME [ARGUMENT...]]; names: table, {', '.join(names)}")
        return 2
    for name in arguments[:1] or _AGAINST_TARGETS:
        print(f"== {name}", flush=True)
        failed = subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments[1:]]).returncode
        if failed:
            return failed
    history.PAGE.write_text(history.page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
