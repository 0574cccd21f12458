"""With a read-only HOME, reading commands answer or say why not, and a server says why it cannot start."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from sankofa.settings import Settings
from tests.commands import Commands
from tests.live import COMMAND, _environment, create_key, free_port
from tests.patience import PATIENCE, until
from tests.services import missing
from tests.spec.test_terminal import READING

ISSUER = "DC46AF1B1AAA424B58D1368176"
COMMANDS_THAT_WORK = [
    *(("editions",), ("editions", "key"), ("editions", "verify"), ("sources",)),
    *(("settings",), ("collect", "--dry-run"), ("openapi",), ("show", ISSUER)),
]
"""Commands that need no lock and no counters."""
WRITING = [("publish",), ("keys", "create", "--tier", "starter"), ("sample",)]


def mounted_read_only(home: Path) -> list[str]:
    """The words of a command that runs another in a mount namespace with HOME read-only."""
    unshare = shutil.which("unshare")
    if unshare is None:
        missing("mount namespaces (no unshare in PATH)")
    namespace = [unshare, "--mount"] if os.geteuid() == 0 else [unshare, "--map-root-user", "--mount"]
    mounted = 'mount --bind -o ro "$1" "$1" || exit 99; shift; exec "$@"'
    before = [*namespace, "sh", "-c", mounted, "sh", str(home)]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        missing("mount namespaces (not permitted)")
    return before


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def read_only(home: Path) -> Iterator[Run]:
    """Runs a command with HOME read-only."""
    commands = Commands(mounted_read_only(home))
    yield lambda *arguments: commands.run(arguments, _environment(home, {}), PATIENCE)
    commands.close()


def content(home: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in sorted(home.rglob("*"))}


@pytest.mark.deep
@pytest.mark.rule("WEB-12")
def test_every_command_answers_or_names_the_reason(home: Path, read_only: Run) -> None:
    create_key(home, "starter")
    before = content(home)
    for command in [*READING, *COMMANDS_THAT_WORK, *WRITING]:
        done = read_only(*command)
        assert "Traceback" not in done.stderr, done.stderr
        if command in COMMANDS_THAT_WORK:
            assert done.returncode == 0, (command, done.stderr)
        elif done.returncode and command not in (("status",), ("doctor",), ("editions", "diff", "a", "b")):
            assert done.stderr.count("\n") == 1, done.stderr
            assert f"HOME ({home}) is read-only for this user" in done.stderr, command
    assert all(read_only(*command).returncode == 1 for command in WRITING)
    assert "keystore    FAILED: Read-only file system" in read_only("status").stdout
    assert f"HOME ({home}) cannot be written" in read_only("doctor").stdout
    assert content(home) == before, "nothing was created or changed"


@pytest.mark.rule("WEB-12")
def test_a_server_says_that_it_cannot_write_and_does_not_start(home: Path) -> None:
    refused = subprocess.run(
        [*mounted_read_only(home), COMMAND, "serve", "--port", str(free_port())],
        env=_environment(home, {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert refused.stderr == (
        f"Error: HOME ({home}) is read-only for this user, but it stores keys (SANKOFA_KEYSTORE), "
        "quotas (SANKOFA_USAGESTORE), cursor-secret (SANKOFA_CURSOR_SECRET)\n"
    )
    assert refused.stdout == "", "no address, no sandbox key"


@pytest.mark.deep
@pytest.mark.rule("WEB-12")
def test_a_server_with_external_stores_serves_a_read_only_home(home: Path, redis_url: str) -> None:
    settings = {"cursor_secret": "c" * 32, "keys_secret": "k" * 32}
    port = free_port()
    process = subprocess.Popen(
        [*mounted_read_only(home), COMMAND, "serve", "--port", str(port)],
        env=_environment(home, {**settings, "keystore": redis_url, "usagestore": redis_url}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None
        with suppress(httpx.TransportError):
            return httpx.get(f"{url}/v1/status").status_code == 200
        return False

    try:
        until(answers)
        headers = {"X-API-Key": Settings.sandbox_key}
        assert httpx.get(f"{url}/v1/entities/{ISSUER}", headers=headers).status_code == 200
    finally:
        process.terminate()
        process.wait(PATIENCE)
