"""Everything is declared in pyproject.toml; this writes the commit into a wheel, which has no checkout."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "src"))

from sankofa.operations.build_id import COMMIT_FILE, commit_of_checkout  # noqa: E402


class BuildWithCommit(build_py):
    """Copies the package, and says which commit it is of."""

    def run(self) -> None:
        super().run()
        commit = commit_of_checkout(ROOT)
        if commit and not self.editable_mode:
            Path(self.build_lib, "sankofa", COMMIT_FILE).write_text(commit + "\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildWithCommit})
