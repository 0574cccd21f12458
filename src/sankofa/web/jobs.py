"""Commands that the owner starts on a page, one at a time; their output is in HOME for every worker."""

import asyncio
import subprocess  # nosec B404
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

from sankofa.engines.private_files import is_alive, make_private_folder, open_private
from sankofa.model.errors import BadRequest

OPERATOR: Final = "/operator"
"""The path of the owner's page."""
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {"collect": ("collect",), "publish": ("publish",)}
"""The command of each button. Both only add data, and reject data that fails a check."""
_LINES_SHOWN: Final = 200
_EVERY_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 3600.0
"""The stream ends after this time; the command continues."""
_ENDED: Final = "exit "
_RUN: Final = """
import sys
from sankofa.cli.main import main
code = 1
try:
    main()
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
finally:
    sys.stderr.flush()
    print(f"exit {code}", flush=True)
"""


class Jobs:
    """The last command started."""

    def __init__(self, home: Path) -> None:
        self._path = home / "operator" / "log"

    def start(self, name: str) -> None:
        """Start a command of `COMMANDS`. Raises BadRequest while another is running."""
        if self.is_running():
            raise BadRequest("Another command is still running.")
        make_private_folder(self._path.parent)
        words = COMMANDS[name]
        with open(self._path, "wb", opener=open_private) as log:
            log.write(f"$ sankofa {' '.join(words)}\n".encode())
            log.flush()
            process = subprocess.Popen(  # nosec B603  # noqa: S603 - of this program, with constant arguments
                [sys.executable, "-u", "-c", _RUN, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._path.with_name("pid").write_text(f"{process.pid}\n")

    def lines(self) -> list[str]:
        """The last lines of the command, `exit` and its code at the end."""
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES_SHOWN:]
        except FileNotFoundError:
            return []

    def is_running(self) -> bool:
        if not (lines := self.lines()) and not self._path.exists():
            return False
        if lines and lines[-1].startswith(_ENDED):
            return False
        pid = self._path.with_name("pid")
        return pid.exists() and is_alive(pid.read_text())  # a killed command writes no exit line

    async def events(self) -> AsyncIterator[bytes]:
        """The lines as server-sent events, until the command has ended."""
        sent = 0
        for _ in range(int(_LONGEST_SECONDS / _EVERY_SECONDS)):
            running = await asyncio.to_thread(self.is_running)
            lines = await asyncio.to_thread(self.lines)
            new, sent = lines[sent:], len(lines)
            yield b"".join(f"data: {line}\n\n".encode() for line in new) or b": waiting\n\n"
            if not running:
                break
            await asyncio.sleep(_EVERY_SECONDS)
        yield b"event: end\ndata:\n\n"
