"""What a start loads, and what it answers meanwhile."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.live import COMMAND, free_port
from tests.patience import until

_SLOW = ("mcp", "mcp_types", "pydantic", "pyarrow", "duckdb", "polars", "pandas", "numpy", "markdown_it")
"""What takes long to load."""

_WITHOUT = """
import asyncio, json, sys
from importlib import import_module

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name in %r:
            raise ImportError(name)

sys.meta_path.insert(0, Refusing())
from sankofa.cli.main import _COMMANDS

for command in _COMMANDS.values():
    import_module("sankofa.cli." + command.partition(":")[0])
by_commands = [name for name in ("granian", "sankofa.rest.app", "sankofa.web.app") if name in sys.modules]
import sankofa.cli.serving
from sankofa.cli.application import application

async def main():
    app, sent, over = application(), [], asyncio.Event()
    started = asyncio.Event()

    async def lifespan():
        if started.is_set():
            await over.wait()
        return {}

    async def note(message):
        if message["type"] == "lifespan.startup.complete":
            started.set()
        sent.append(message)

    async def body():
        return {"type": "http.request", "body": b"{}"}

    serving = asyncio.create_task(app({"type": "lifespan"}, lifespan, note))
    await started.wait()
    scope = {"type": "http", "query_string": b"", "client": ("127.0.0.1", 1)}
    scope["headers"] = [(b"host", b"localhost"), (b"x-api-key", b"sankofa-sandbox")]
    for method, path in (("GET", sys.argv[1]), ("POST", "/mcp")):
        await app({**scope, "method": method, "path": path}, body, note)
    over.set()
    await serving
    print(json.dumps([by_commands, [message["status"] for message in sent if "status" in message]]))

asyncio.run(main())
"""


@pytest.mark.deep
@pytest.mark.rule("MCP-13")
def test_rest_answers_where_nothing_slow_can_be_loaded_and_commands_load_no_server(
    sample_home: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT % (_SLOW,), "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"],
        env={"SANKOFA_HOME": str(shutil.copytree(sample_home, tmp_path / "home"))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    by_commands, statuses = json.loads(done.stdout)
    assert by_commands == []
    assert statuses == [200, 503]  # of REST, and of MCP, whose SDK cannot be loaded


@pytest.mark.deep
@pytest.mark.rule("MCP-13")
def test_an_mcp_message_sent_at_once_after_the_start_is_answered(tmp_path: Path) -> None:
    """In a process that has loaded nothing, unlike the servers of other tests."""
    port = free_port()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"X-API-Key": "sankofa-sandbox", "Accept": "application/json, text/event-stream"}
    answers: list[httpx.Response] = []

    def answered() -> bool:
        try:
            answers.append(
                httpx.post(f"http://127.0.0.1:{port}/mcp", json=message, headers=headers, timeout=60)
            )
        except httpx.ConnectError:
            return False
        return True

    serving = subprocess.Popen(
        [COMMAND, "serve", "--port", str(port)],
        env={"SANKOFA_HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(answered, every=0.01)
    finally:
        serving.terminate()
        serving.wait(60)
    assert answers[0].status_code == 200
    assert "get_fundamentals" in [tool["name"] for tool in answers[0].json()["result"]["tools"]]
