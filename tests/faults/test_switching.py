"""A server switches to a newer or an older edition under load without a failed request."""

import shutil
from pathlib import Path

import pytest

from tests.faults.conftest import Serve, publish_another
from tests.faults.load import Load, ask, wait_for_edition
from tests.live import succeed


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


@pytest.mark.deep
def test_an_edition_removed_while_served_still_answers(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    live = serve()
    assert ask(live, key) == (200, editions[1])
    shutil.rmtree(home / "editions" / editions[1])
    assert ask(live, key) == (200, editions[1])
