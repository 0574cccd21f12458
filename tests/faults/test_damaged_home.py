"""If any file under HOME is flipped or truncated, before a server starts or while it runs, answers are right
or refused.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import httpx
import pytest

from tests.depth import deep_after
from tests.faults.conftest import World, current
from tests.faults.load import cut_short, flip_a_bit
from tests.live import LiveServer, succeed
from tests.torture import Trial, rounds

QUESTIONS = (
    "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?period_type=FY&as_of=2022-01-01",
    "/v1/entities/DC46AF1B1AAA424B58D1368176",
    "/v1/tenders?country=KE&limit=2",
    "/v1/macro?series=CPI.NG&as_of=2024-12-31",
    "/v1/screen?metric=net_margin",
    "/open/macro-momentum.parquet",
)
REFUSED = {401, 404, 410, 429, 503}
DAMAGES = {"flipped": flip_a_bit, "cut short": cut_short}
COMPANIONS = ("-wal", "-shm", "-lock", ".lock")


def answers(live: LiveServer, key: str) -> dict[str, tuple[int, bytes]]:
    """The body of each answer, without members that change with every answer."""
    bodies = {}
    for path in QUESTIONS:
        response = live.get(path, key)
        body = response.json() if path.startswith("/v1/") else response.content
        if isinstance(body, dict):
            for name in ("next_cursor", "request_id", "generated_at"):
                body.pop(name, None)
        bodies[path] = (response.status_code, repr(body).encode())
    return bodies


@pytest.fixture(scope="module")
def expected(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[int, bytes]]]:
    """The allowed answers: those of either edition."""
    home = Path(shutil.copytree(world.home, tmp_path_factory.mktemp("whole") / "home"))
    right: dict[str, set[tuple[int, bytes]]] = {path: set() for path in QUESTIONS}
    for edition in reversed(world.editions):
        succeed(home, "editions", "rollback", edition)
        with LiveServer(home) as live:
            for path, answer in answers(live, world.key).items():
                assert answer[0] == 200, (path, answer)
                right[path].add(answer)
    return right


def kinds(home: Path) -> list[list[Path]]:
    """The files under HOME by kind, so that a hundred Parquet files count as much as one ledger."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file() and path.stat().st_size]
    by_kind: dict[tuple[str, str], list[Path]] = {}
    for path in files:
        if not path.name.endswith(COMPANIONS):
            name = path.name if path.parent == home else path.suffix or path.name
            by_kind.setdefault((path.parent.name[:8], name), []).append(path)
    return list(by_kind.values())


@contextmanager
def served(home: Path) -> Iterator[LiveServer | None]:
    """A server on it; None if it does not start, with a reason of one line."""
    live = LiveServer(home)
    try:
        live.start()
    except AssertionError:
        live.stop()
        live.http.close()
        assert "Traceback" not in live.log
        assert len(live.log.splitlines()) == 1, live.log
        yield None
        return
    try:
        yield live
    finally:
        live.stop()
        live.http.close()


@pytest.mark.parametrize("when", deep_after(1, ["while it runs", "before it starts"]))
def test_whatever_file_is_damaged_no_answer_is_wrong(
    world: World, expected: dict[str, set[tuple[int, bytes]]], tmp_path: Path, trial: Trial, when: str
) -> None:
    for number in range(trial.count(rounds(2, 6), 300)):
        home = Path(shutil.copytree(world.home, tmp_path / "home"))
        choices = kinds(home)
        path = trial.chance.choice(choices[number % len(choices)])
        how = trial.chance.choices(list(DAMAGES), (5, 1))[0]
        what = DAMAGES[how](path, trial.chance) if when == "before it starts" else ""
        with served(home) as live:
            if live is None:
                trial.saw("refused to start, in a line")
            else:
                what = what or DAMAGES[how](path, trial.chance)
                trial.saw(judged(live, world.key, expected, f"{path.parent.name}/{what}"))
                assert "Traceback" not in live.log, (what, live.log)
        if path.parent.name == "derived" or path.parent.parent.name == "derived":
            succeed(home, "publish")
            assert current(home) == world.editions[1], what
        shutil.rmtree(home)


def judged(live: LiveServer, key: str, expected: dict[str, set[tuple[int, bytes]]], what: str) -> str:
    refusals = 0
    for _ in range(2):
        try:
            own = answers(live, key)
        except (HTTPException, httpx.TransportError) as failure:
            raise AssertionError(f"{what}: {failure!r}\n{live.log}") from failure
        for path, answer in own.items():
            if answer[0] in REFUSED:
                refusals += 1
            else:
                assert answer in expected[path], (what, path, answer)
    return "refused in part or whole" if refusals else "as published"
