"""A new edition, or an older one, is taken into service under load without one failed request."""

import shutil
from pathlib import Path

import pytest

from tests.faults.conftest import Serve, publish_another
from tests.faults.load import Load, ask, wait_for_edition
from tests.live import run, succeed


@pytest.mark.rule("PUB-2")
def test_publishing_and_rolling_back_under_load_fail_no_request(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    first, second = editions
    live = serve(workers=2)
    wait_for_edition(live, key, second)
    with Load(live, key) as load:
        third = publish_another(home, 2)
        wait_for_edition(live, key, third)
        for edition in (first, third):
            succeed(home, "editions", "rollback", edition)
            wait_for_edition(live, key, edition)
    assert load.failures == []
    assert set(load.editions) == {first, second, third}


def test_the_entity_tag_changes_with_the_edition(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    live = serve()
    path = "/v1/entities/DC46AF1B1AAA424B58D1368176"
    tag = live.get(path, key).headers["ETag"]
    succeed(home, "editions", "rollback", editions[0])
    wait_for_edition(live, key, editions[0])
    answer = live.get(path, key, if_none_match=tag)
    assert answer.status_code == 200
    assert answer.json()["edition"] == editions[0]


@pytest.mark.deep
def test_an_edition_that_is_removed_while_served_goes_on_answering(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    live = serve()
    assert ask(live, key) == (200, editions[1])
    shutil.rmtree(home / "editions" / editions[1])
    assert ask(live, key) == (200, editions[1])


def test_rolling_back_to_an_edition_that_is_not_kept_changes_nothing(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    refused = run(home, "editions", "rollback", "20200101T000000Z-0000000000")
    assert refused.returncode == 1
    assert "no edition" in refused.stderr
    live = serve()
    assert ask(live, key) == (200, editions[1])
