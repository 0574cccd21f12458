"""Three nodes on one store of editions, keys and counts, and the clock of one of them jumps."""

import shutil
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import publish_another
from tests.faults.test_clocks import clocked
from tests.faults.test_clocks import library as library
from tests.live import LiveServer, create_key, run
from tests.nodes.conftest import push
from tests.patience import until
from tests.spec.test_quotas import state

TENDERS = "/v1/tenders?limit=1"


def moment(**shift: int) -> str:
    return f"{datetime.now(UTC) + timedelta(**shift):%Y-%m-%d %H:%M:%S}"


@pytest.mark.deep
@pytest.mark.rule("SIGN-3", "KEY-6", "NODE-4")
def test_a_clock_that_jumps_costs_its_node_nothing_but_what_is_said(
    home: Path, destination: Path, redis_url: str, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An hour ahead it follows and honours cursors. Days back it refuses what was signed later than tomorrow
    by its clock, says so, and serves on. Set right, it comes back by itself."""
    folder = tmp_path_factory.mktemp("nodes")
    settings: dict[str, Any] = {
        "keystore": redis_url,
        "usagestore": redis_url,
        "keys_secret": "k" * 32,
        "cursor_secret": "c" * 32,
        "editions": f"file://{destination}",
        "trusted_keys": run(home, "editions", "key").stdout.strip(),
    }
    key = create_key(home, "professional", "--per-month", "1000", keystore=redis_url, keys_secret="k" * 32)
    for name in ("one", "two", "three"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        one, two = (
            stack.enter_context(LiveServer(folder / name / "home", **settings)) for name in ("one", "two")
        )
        three = stack.enter_context(clocked(folder / "three" / "home", library, moment(), **settings))
        edition = one.get("/v1/status").json()["edition"]
        for node in (one, two, three):
            until(lambda: node.get("/v1/status").json()["edition"] == edition)  # noqa: B023 - at once
        spent = [state(node.get(TENDERS, key))[2] for node in (one, two, three)]
        assert spent == [999, 998, 997]
        three.set(moment(hours=1))
        page = one.get(TENDERS, key).json()
        following = f"{TENDERS}&cursor={page['next_cursor']}"
        assert three.get(following, key).json()["data"] == two.get(following, key).json()["data"]
        third = publish_another(home, 2)
        push(home, destination)
        for node in (one, two, three):
            until(lambda: node.get("/v1/status").json()["edition"] == third)  # noqa: B023 - at once
        until(lambda: three.get("/v1/status").json()["status"] == "ok")
        three.set(moment(days=-3))
        fourth = publish_another(home, 3)
        push(home, destination)
        until(lambda: one.get("/v1/status").json()["edition"] == fourth)
        until(lambda: "later than tomorrow" in str(three.get("/v1/status").json().get("following")))
        assert three.get("/v1/status").json()["degraded"] == ["editions"]
        assert three.get(TENDERS, key).json()["edition"] == third, "it serves on"
        assert two.get("/v1/status").json()["status"] == "ok"
        three.set(moment())
        until(lambda: three.get(TENDERS, key).json()["edition"] == fourth)
        until(lambda: three.get("/v1/status").json()["status"] == "ok")
    shutil.rmtree(folder)
