"""One publisher at a time on every engine; only a rollback moves the pointer back."""

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
        pytest.raises(EditionError, match=r"the ledger is at capture .*editions rollback") as refused,
    ):
        publish(engine.store, ledger, 0)
    shelf = engine.store.list_editions()
    assert shelf.current == LATER
    (older,) = set(shelf.editions) - {LATER}
    assert older in str(refused.value), "it is kept, for a rollback to name it"
