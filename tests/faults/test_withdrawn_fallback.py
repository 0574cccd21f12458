"""A server that cannot read the current edition falls back to an older one, but never to a withdrawn one."""

from pathlib import Path

import pytest

from tests.faults.conftest import Serve, current
from tests.faults.load import ask
from tests.faults.test_damaged_editions import flip_one_bit
from tests.live import run, succeed

REFUSED = """
[sources.sample-worldbank]
adapter = "worldbank"
license_class = "cc-by"
commercial_redistribution = false
sku = "AF-MACRO"
"""


@pytest.mark.deep
def test_no_fallback_to_an_edition_with_a_withdrawn_licence(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    (home / "sources.toml").write_text(REFUSED)
    succeed(home, "publish")
    assert current(home) not in editions
    flip_one_bit(home / "editions" / current(home))
    live = serve()
    assert ask(live, key)[0] == 503
    assert f"edition {editions[0]}: withdrawn by a later one" in live.log
    succeed(home, "publish")
    live = serve()
    assert ask(live, key) == (200, current(home))


@pytest.mark.deep
def test_no_rollback_to_a_withdrawn_edition_even_if_the_newer_one_is_damaged(
    home: Path, editions: tuple[str, str]
) -> None:
    (home / "sources.toml").write_text(REFUSED)
    succeed(home, "publish")
    now = current(home)
    (home / "sources.toml").unlink()  # only the list records the withdrawal
    flip_one_bit(home / "editions" / now)
    for edition in editions:
        refused = run(home, "editions", "rollback", edition)
        assert refused.returncode == 1
        assert f"{edition} is withdrawn by a later edition" in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert current(home) == now
