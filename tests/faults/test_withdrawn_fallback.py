"""A server that cannot read the current edition falls back to an older one, but to none that was withdrawn."""

from pathlib import Path

from tests.engines.datastores import Engine, shelve
from tests.faults.conftest import Serve, current
from tests.faults.load import ask
from tests.faults.test_damaged_editions import flip_one_bit
from tests.live import run

REFUSED = """
[sources.sample-worldbank]
adapter = "worldbank"
license_class = "cc-by"
commercial_redistribution = false
sku = "AF-MACRO"
"""


def test_an_edition_whose_licence_was_withdrawn_is_not_fallen_back_to(
    serve: Serve, key: str, home: Path, editions: tuple[str, str]
) -> None:
    (home / "sources.toml").write_text(REFUSED)
    published = run(home, "publish")
    assert published.returncode == 0, published.stderr
    assert current(home) not in editions
    flip_one_bit(home / "editions" / current(home))
    live = serve()
    assert ask(live, key)[0] == 503
    for edition in editions:
        assert f"edition {edition}: withdrawn by a later one" in live.log
    assert run(home, "publish").returncode == 0  # makes it again, whole
    live = serve()
    assert ask(live, key) == (200, current(home))


def test_the_list_of_withdrawn_editions_only_grows_and_is_not_that_of_the_published(engine: Engine) -> None:
    for name in ("20260101T000000Z-00001-aaaaaaaaaa", "20260102T000000Z-00002-bbbbbbbbbb"):
        shelve(engine.store, name)
    first, second = sorted(engine.store.list_editions().editions)
    engine.store.set_current_and_prune([first, second], second)
    assert engine.store.withdrawn() == frozenset()
    engine.store.withdraw([first])
    engine.store.withdraw([first])
    engine.store.withdraw([])
    engine.store.set_current_and_prune([second], second)
    assert engine.store.withdrawn() == {first}
    assert engine.store.published() == {first, second}
