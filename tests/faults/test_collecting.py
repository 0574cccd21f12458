"""After faults and kills during collecting, ledger and vault equal those of an undisturbed run.

Each round has eleven faults and a kill; `make test` runs one round, `make torture` a hundred.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests import publisher as faults
from tests.live import COMMAND, run, succeed
from tests.publisher import Publisher
from tests.spec.test_collect import Home, table
from tests.torture import Trial

PATHS = tuple(f"/{code}.csv" for code in ("NY.GDP.MKTP.CD", "FP.CPI.TOTL.ZG", "SP.POP.TOTL", "SL.UEM.TOTL"))


def content(number: int, version: int) -> str:
    return table(*range(number, number + 30 + version), filler=100)


def register(home: Home) -> None:
    for number, path in enumerate(PATHS):
        home.source(f"bank-{number}", path, f"/second{path}", every="1d")


def some_fault(chance: random.Random, length: int) -> faults.Fault:
    return chance.choice(
        (
            faults.cut_after(chance.randrange(length)),
            faults.cut_after(chance.randrange(length)),
            faults.status(chance.choice((429, 500, 503))),
            faults.status(chance.choice((403, 404, 410))),
            faults.page(),
            faults.not_gzip,
            faults.as_gzip,
            faults.slow(0.05),
            faults.redirect("/login"),
            faults.redirect("/nowhere"),
            faults.sends(b'{"error": "nothing"}'),
            faults.sends(b"short"),
        )
    )


def facts(home: Home) -> list[tuple[str, str, str]]:
    """The captures, by source."""
    return [(one["source"], one["file"], one["sha256"]) for one in home.captures()]


def vault_digests(home: Home) -> dict[str, str]:
    """Every object of the vault, with a digest of its content."""
    folder = home.path / "vault" / "objects"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.*")}


def killed_somewhere(home: Home, chance: random.Random) -> bool:
    """True if the command was still running when the signal came."""
    environment = {**os.environ, "SANKOFA_HOME": str(home.path)}
    command = [str(COMMAND), "collect", *(f"bank-{n}" for n in range(len(PATHS)))]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as one:
        time.sleep(chance.uniform(0.2, 1.2))
        running = one.poll() is None
        one.send_signal(chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        one.wait(60)
    return running


def collect_until_done(home: Home) -> None:
    for _ in range(40):
        if home.collect(*(f"bank-{n}" for n in range(len(PATHS))), collect_attempts="2").returncode == 0:
            return
    raise AssertionError("it never succeeded")


@pytest.mark.deep
@pytest.mark.rule("COL-2", "VLT-1")
def test_after_faults_and_kills_ledger_and_vault_equal_an_undisturbed_run(
    tmp_path: Path, trial: Trial
) -> None:
    chance = trial.chance
    with Publisher() as server:
        homes = []
        for name in ("disturbed", "quiet"):
            (tmp_path / name).mkdir()
            homes.append(Home(tmp_path / name, server))
            register(homes[-1])
        disturbed, quiet = homes
        for version in range(trial.count(1, 100)):
            documents: dict[str, Any] = {}
            for number, path in enumerate(PATHS):
                documents[path] = content(number, version)
                documents[f"/second{path}"] = content(number + 50, version)
            for path, text in documents.items():
                server.put(path, text)
            collect_until_done(quiet)
            for _ in range(11):
                trial.saw("faults")
                path = chance.choice(list(documents))
                server.fail(path, some_fault(chance, len(documents[path])))
            trial.saw("killed or told to stop" if killed_somewhere(disturbed, chance) else "ended before")
            collect_until_done(disturbed)
            server.faults.clear()
            collect_until_done(disturbed)
        assert sorted(facts(disturbed)) == sorted(facts(quiet))
        for number in range(len(PATHS)):
            own = [[one for one in facts(home) if one[0] == f"bank-{number}"] for home in homes]
            assert own[0] == own[1], "and of each source in the same order"
        assert vault_digests(disturbed) == vault_digests(quiet)
        for home in homes:
            succeed(home.path, "ledger", "verify")
            succeed(home.path, "vault", "verify")
            replayed = run(home.path, "vault", "replay")
            assert "equal to the ledger of HOME" in replayed.stdout, replayed.stderr
            partial = home.path / "collect" / "partial"
            assert [path for path in partial.rglob("*") if path.is_file()] == []
        published = [_figures(home) for home in homes]
        assert published[0] == published[1]


def _figures(home: Home) -> Any:
    """The row counts of the edition: the content is the same, but the time of capture is not."""
    done = succeed(home.path, "publish")
    return json.dumps(done.stdout.splitlines()[-1].split(":", 1)[1])
