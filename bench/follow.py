"""The time until a node serves a change, and the share of the edition that it pulls.

    python -m bench.follow [--scale small|300k|3m] [--share 0.001]

A world is published and pushed to a folder that nginx serves, and a node follows it. Then one issuer in a
thousand restates a figure. Measured are the time from the end of `publish` (and of `push`) to the first
answer of the new edition, and the share of the edition's bytes that the node pulls. Publisher and node share
the cores and the disk of this machine.
"""

import argparse
import http.client
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from bench.history import report
from bench.load import HOST, serving
from bench.world import CACHE, SANKOFA, SCALES, SOURCE, Scale, document, environment_of, published_home
from tests.nodes.servers import StaticServer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.follow")
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--share", type=float, default=0.001, help="of the issuers that report something new")
    options = parser.parse_args()
    scale = SCALES[options.scale]
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir=_room(scale))))
        home = Path(shutil.copytree(published_home(scale), folder / "home"))
        environment = environment_of(home)
        origin = running.enter_context(StaticServer(folder / "pushed", folder / "nginx"))
        _timed("first push", environment, "push", str(folder / "pushed"))
        node = folder / "node"
        following = {**environment_of(node), "SANKOFA_EDITIONS": origin.url}
        _timed("first pull", following, "follow", "--once")
        server = running.enter_context(
            serving(
                lambda port: [SANKOFA, "serve", "--host", HOST, "--port", str(port)], following, "/v1/status"
            )
        )
        server.use_all_cores()
        changed = _restate(scale, folder, options.share)
        _timed(f"ingest of {changed} restated issuers", environment, "ingest", SOURCE, str(folder / "news"))
        _timed("publish", environment, "publish")
        published = time.monotonic()
        edition = (home / "editions" / "CURRENT").read_text().strip()
        _timed("push", environment, "push", str(folder / "pushed"))
        pushed = time.monotonic()
        while _serves(server.port) != edition:
            time.sleep(0.02)
        served = time.monotonic()
        report("from the end of publish to the first answer of a node", served - published, unit="s", most=5)
        report("from the end of push to the first answer of a node", served - pushed, unit="s")
        _sizes(node, home / "editions" / edition)


def _sizes(node: Path, edition: Path) -> None:
    deadline = time.monotonic() + 60
    while (state := json.loads((node / "editions" / "FOLLOWING").read_text()))[
        "remote_edition"
    ] != edition.name or (not state["pulled_bytes"]):
        if time.monotonic() > deadline:
            raise SystemExit(f"the node does not say what it pulled: {state}")
        time.sleep(0.1)
    whole = sum(path.stat().st_size for path in edition.rglob("*") if path.is_file())
    pulled = state["pulled_bytes"]
    count = state["pulled_files"]
    print(f"{pulled:,} bytes in {count} files pulled of {whole:,}")
    report("bytes pulled, share of the edition", pulled / whole * 100, unit="%", most=2)


def _room(scale: Scale) -> Path:
    folder = CACHE / f"follow-{scale.name}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _timed(what: str, environment: dict[str, str], *command: str) -> None:
    began = time.monotonic()
    done = subprocess.run([SANKOFA, *command], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{what}: {done.stderr}")
    print(f"{time.monotonic() - began:8.2f} s {what}", flush=True)


def _restate(scale: Scale, folder: Path, share: float) -> int:
    """Report the first figure of some issuers again, restated."""
    news = folder / "news"
    news.mkdir()
    shape = scale.shapes[0]
    numbers = range(shape.first_cik, shape.first_cik + shape.issuers, max(1, round(1 / share)))
    for number in numbers:
        content = msgspec.json.decode(document(number, shape.rows))
        concept = next(iter(content["facts"]["us-gaap"].values()))
        rows = next(iter(concept["units"].values()))
        rows.append(rows[0] | {"val": 12_345_000, "filed": "2025-06-30", "accn": f"{number:010d}-25-000181"})
        (news / f"CIK{number:010d}.json").write_bytes(msgspec.json.encode(content))
    return len(numbers)


def _serves(port: int) -> str | None:
    with suppress(OSError):
        connection = http.client.HTTPConnection(HOST, port, timeout=5)
        connection.request("GET", "/v1/status")
        return str(json.loads(connection.getresponse().read())["edition"])
    return None


if __name__ == "__main__":
    main()
