"""One publisher at a time on every engine, and a pointer that only a rollback moves back."""

import threading
from contextlib import closing

import pytest

from sankofa.edition.format.keys import ledger_position
from sankofa.edition.write.publish import publish, switch
from sankofa.ledger.store import Ledger
from sankofa.model.errors import EditionError
from tests.depth import deep_after
from tests.engines.datastores import NOW, SMALL_SOURCES, Engine, ingest_sample, shelve
from tests.patience import PATIENCE

LATER = "20990101T000000Z-99999-aaaaaaaaaa"


class _Waiting:
    """A second publisher, in a thread with a store of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.told = threading.Event()
        self.edition = ""
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _publish(self) -> None:
        store = Engine(self._engine.name, self._engine.url, self._engine.home).store
        with closing(Ledger(store, b"a key of the tests", lambda: NOW)) as ledger:
            self.edition = publish(store, ledger, 9, waiting=self.told.set)["edition"]
        store.close()

    def ended(self, seconds: float = PATIENCE) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


@pytest.mark.deep
@pytest.mark.rule("PUB-3")
def test_a_second_publisher_waits_and_then_reads_what_was_ingested_meanwhile(engine: Engine) -> None:
    ingest_sample(engine, SMALL_SOURCES[:1]).close()
    with engine.store.exclusive("publish"):
        second = _Waiting(engine)
        assert second.told.wait(PATIENCE)
        ingest_sample(engine, SMALL_SOURCES[1:2]).close()
        assert not second.ended(0.2)
    assert second.ended()
    assert ledger_position(second.edition) == engine.raw("SELECT max(capture_id) FROM capture")[0][0]
    assert engine.store.list_editions().current == second.edition


@pytest.mark.deep
@pytest.mark.parametrize("turn", deep_after(1, ["publish", "switch"]))
def test_a_killed_holder_lets_go(engine: Engine, turn: str) -> None:
    ingest_sample(engine, SMALL_SOURCES[:1]).close()
    holder = engine.start_worker(turn)
    second = _Waiting(engine)
    assert second.told.wait(PATIENCE) if turn == "publish" else not second.ended(0.5)
    assert engine.store.list_editions().current is None
    holder.kill()
    holder.communicate()
    assert second.ended()
    assert engine.store.list_editions().current == second.edition


@pytest.mark.rule("PUB-3")
def test_the_pointer_does_not_move_back_to_an_older_ledger(engine: Engine) -> None:
    shelve(engine.store, LATER)
    switch(engine.store, LATER, 9)
    with (
        closing(ingest_sample(engine, SMALL_SOURCES[:1])) as ledger,
        pytest.raises(EditionError, match=r"the ledger stands at capture .*editions rollback") as refused,
    ):
        publish(engine.store, ledger, 0)
    shelf = engine.store.list_editions()
    assert shelf.current == LATER
    (older,) = set(shelf.editions) - {LATER}
    assert older in str(refused.value), "it is kept, for a rollback to name it"


@pytest.mark.deep
def test_a_rollback_while_an_edition_is_built_stands_until_the_next_publish(engine: Engine) -> None:
    first = _published(engine, 1)
    second = _published(engine, 2)
    begun: list[str] = []

    def roll_back_once(kind: str) -> None:
        if not begun:
            with engine.store.exclusive("switch"):
                switch(engine.store, first, 9)
        begun.append(kind)

    with closing(ingest_sample(engine, SMALL_SOURCES[2:3])) as ledger:
        with pytest.raises(EditionError, match=f"changed to {first} while this one was built"):
            publish(engine.store, ledger, 9, roll_back_once)
        assert engine.store.list_editions().current == first
        third = publish(engine.store, ledger, 9)["edition"]
    assert engine.store.list_editions() == ((third, second, first), third)


def _published(engine: Engine, sources: int) -> str:
    with closing(ingest_sample(engine, SMALL_SOURCES[sources - 1 : sources])) as ledger:
        return str(publish(engine.store, ledger, 9)["edition"])
