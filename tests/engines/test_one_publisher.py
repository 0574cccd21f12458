"""One publisher at a time on every engine, and a pointer that only a rollback moves back."""

from contextlib import closing

import pytest

from sankofa.edition.write.publish import publish, switch
from sankofa.model.errors import EditionError
from tests.engines.datastores import SMALL_SOURCES, Engine, ingest_sample, shelve

LATER = "20990101T000000Z-99999-aaaaaaaaaa"


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
