"""The service connects to nobody at run time: watched from inside the process, in a namespace with loopback
only.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import missing

WATCHED = """
import os, sys
def look(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        name = arguments[1][0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        name = arguments[0]
    else:
        return
    if name not in (None, "", "127.0.0.1", b"127.0.0.1", "::1", "localhost"):
        with open(os.environ["REACHED"], "a") as stream:
            stream.write(f"{event} {name}\\n")
sys.addaudithook(look)
"""
COMMAND_LINE = (
    WATCHED
    + """
from sankofa.cli.main import main
sys.argv[0] = "sankofa"
main()
"""
)
TRAP = (
    WATCHED
    + """
import contextlib, socket
with contextlib.suppress(OSError):
    socket.create_connection(("192.0.2.1", 9), timeout=1)
"""
)
INSIDE = """
import json, subprocess, sys, time, urllib.request
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
command = [sys.executable, "-c", sys.argv[1]]
for words in (["publish"], ["status"], ["keys", "list"]):
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL)
server = subprocess.Popen([*command, "serve", "--port", "8123"], stdout=subprocess.DEVNULL)
headers = {"X-API-Key": "sankofa-sandbox", "Accept": "application/json, text/event-stream"}
def ask(path, body=None):
    fields = {**headers, **({"Content-Type": "application/json"} if body else {})}
    request = urllib.request.Request("http://127.0.0.1:8123" + path, body, fields)
    return urllib.request.urlopen(request, timeout=30).status
for _ in range(600):
    try:
        ask("/health")
        break
    except OSError:
        time.sleep(0.1)
message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
           "params": {"name": "search_tenders", "arguments": {"limit": 1}}}
paths = ["/", "/openapi.json", "/v1/status", "/v1/screen?metric=net_margin", "/v1/tenders?limit=2",
         "/v1/export", "/open/macro-momentum.parquet", "/v1/signals/macro-momentum?limit=5"]
try:
    assert {ask(path) for path in paths} | {ask("/mcp", json.dumps(message).encode())} == {200}
finally:
    server.terminate()
    server.wait(30)
"""


@pytest.mark.ci
def test_commands_and_a_server_connect_to_nobody(small_home: Path, tmp_path: Path) -> None:
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            missing(f"{tool}, to be without a network")
    if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives no network namespace")
    reached = tmp_path / "reached"
    home = Path(shutil.copytree(small_home, tmp_path / "home"))
    environment = {**os.environ, "SANKOFA_HOME": str(home), "REACHED": str(reached)}
    process = subprocess.Popen(
        ["unshare", "-rn", sys.executable, "-c", INSIDE, COMMAND_LINE],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output
    assert not reached.exists(), reached.read_text()
    subprocess.run([sys.executable, "-c", TRAP], env=environment, check=True)
    assert "192.0.2.1" in reached.read_text(), "the test can see"
