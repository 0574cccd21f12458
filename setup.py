"""Everything is declared in pyproject.toml; this adds to a wheel what only a checkout has: commit and
docs.
"""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildFromCheckout(build_py):
    """Copies the package with the commit it comes from, and adds the documentation for the pages."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        sys.path.insert(0, str(ROOT / "src"))
        from sankofa.operations.service import COMMIT_FILE, commit_of_checkout  # half the package

        if commit := commit_of_checkout():
            Path(self.build_lib, "sankofa", COMMIT_FILE).write_text(commit + "\n", encoding="utf-8")
        if (ROOT / "docs").is_dir():
            target = Path(self.build_lib, "sankofa", "documentation")
            shutil.copytree(ROOT / "docs", target / "docs", dirs_exist_ok=True)
            for page in ROOT.glob("*.md"):
                shutil.copy(page, target)


setup(cmdclass={"build_py": BuildFromCheckout})
