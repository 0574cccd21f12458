"""Runs other people's clients, which live in their own environment (`make foreign`)."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.services import missing

_PYTHON = Path(__file__).resolve().parent.parent / ".venv-foreign" / "bin" / "python"
_AROUND = """
import json, sys, warnings
warnings.simplefilter("ignore")
output = {}
inputs = json.loads(sys.argv[1])
%s
print(json.dumps(output, default=str))
"""


def foreign(script: str, **inputs: Any) -> Any:
    """Runs a script and returns its `output`; the script reads its input from `inputs`."""
    if not (_PYTHON.parent.parent / ".clients").exists():
        missing("other people's clients are not installed: make foreign")
    done = subprocess.run(
        [_PYTHON, "-c", _AROUND % script, json.dumps(inputs)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
