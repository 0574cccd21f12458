"""The modules that a process loads to read editions."""

import subprocess
import sys

from tests.every import every

READ = """
import importlib, pkgutil, sankofa.edition.read
for module in pkgutil.iter_modules(sankofa.edition.read.__path__):
    importlib.import_module(f"sankofa.edition.read.{module.name}")
"""
SERVE = "import sankofa.cli.application"


@every(
    ("program", "unneeded"),
    [
        (READ, ("sankofa.edition.write", "sankofa.ledger", "sankofa.derive", "sankofa.sources", "pyarrow")),
        (SERVE, ("sankofa.edition.write", "sankofa.sources", "pyarrow")),
    ],
    ids=["reading", "serving"],
)
def test_reading_and_serving_load_no_module_that_only_a_build_needs(program: str, unneeded: tuple[str, ...]):
    show = "import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{show}"], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "sankofa.edition.read.edition" in loaded
    assert [name for name in loaded if name.startswith(unneeded)] == []
