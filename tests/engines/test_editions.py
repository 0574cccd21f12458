"""Every datastore engine builds, checks, switches, stores and removes editions."""

import pytest

from sankofa.edition.write.publish import switch
from sankofa.engines.block_file import stored_block
from sankofa.model.errors import EditionError
from tests.engines.datastores import BLOCKS, Engine, run, shelve


def test_blocks_under_a_key(engine: Engine) -> None:
    shelve(engine.store, "one")
    blocks = [(index, rows) for _, index, rows in BLOCKS]

    async def read() -> None:
        reader = engine.store.open("one")
        assert reader.manifest["rows"] == {"fundamentals": 1}
        for skip, most, expected in (
            (0, 2, blocks[0:2]),
            (2, 2, blocks[2:4]),
            (4, 8, blocks[4:5]),
            (5, 8, []),
            (0, 0, []),
            (0, 2**31 - 1, blocks[:5]),
            (2**31 - 1, 2**31 - 1, []),
        ):
            assert [*(await reader.blocks("fundamentals", "A", skip, most) or ())] == expected
        empty = await reader.blocks("fundamentals", "B", 0, 9)
        assert empty is not None
        assert [*empty] == []
        assert [*(await reader.blocks("entity", "A", 0, 9) or ())] == blocks[5:7]
        for kind, key in (
            ("fundamentals", "C"),
            ("entity", "B"),
            ("", ""),
            ("fundamentals", "A\0"),
            ("x", "%?'"),
        ):
            assert await reader.blocks(kind, key, 0, 9) is None
        reader.close()
        engine.store.close()

    run(read)


def test_byte_ranges_of_blocks_with_any_keys(engine: Engine) -> None:
    shelve(engine.store, "one")
    rows = {number: rows for number, _, rows in BLOCKS}

    async def read() -> None:
        reader = engine.store.open("one")
        ranges = [(7, 0, 6), (1, 3, 500), (7, 1, 2), (6, 34_990, 34_999), (1, 3, 3)]
        contents = await reader.byte_ranges("fundamentals", ranges)
        assert [bytes(p) for p in contents] == [rows[n][a:b] for n, a, b in ranges]
        assert list(await reader.byte_ranges("fundamentals", [])) == []
        reader.close()
        engine.store.close()

    run(read)


def test_an_edition_is_invisible_until_finished(engine: Engine) -> None:
    assert engine.store.list_editions() == ((), None)
    writer = engine.store.build()
    writer.write(stored_block(index, rows) for _, index, rows in BLOCKS)
    assert engine.store.list_editions() == ((), None)
    writer.finish("one", {"content_sha256": "x"})
    assert engine.store.list_editions() == (("one",), None)
    engine.store.set_current_and_prune(["one"], "one")
    assert engine.store.list_editions() == (("one",), "one")


def test_a_removed_edition_is_still_listed_as_published(engine: Engine) -> None:
    assert engine.store.published() == frozenset()
    for name in ("one", "two", "three", "two"):
        shelve(engine.store, name)
        engine.store.set_current_and_prune([name], name)
    assert engine.store.list_editions() == (("two",), "two")
    assert engine.store.published() == {"one", "two", "three"}
    assert Engine(engine.name, engine.url, engine.home).store.published() == {"one", "two", "three"}


def test_an_abandoned_edition_leaves_nothing(engine: Engine) -> None:
    shelve(engine.store, "one")
    writer = engine.store.build()
    writer.write(stored_block(index, rows) for _, index, rows in BLOCKS)
    writer.abandon()
    assert engine.store.list_editions().editions == ("one",)
    assert engine.leftovers() == []


def test_keep_removes_unlisted_editions_and_rollback_is_one_step(engine: Engine) -> None:
    for edition in ("1", "2", "3", "4"):
        shelve(engine.store, edition)
        switch(engine.store, edition, keep=2)
    assert engine.store.list_editions() == (("4", "3", "2"), "4")
    switch(engine.store, "2", keep=2)
    assert engine.store.list_editions() == (("4", "3", "2"), "2")
    assert engine.leftovers() == []


def test_publishing_again_replaces_a_damaged_edition(engine: Engine) -> None:
    shelve(engine.store, "one")
    engine.damage("one", "remove part")
    shelve(engine.store, "one")
    engine.store.open("one").close()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("remove manifest.json", "manifest.json is missing"),
        ("remove part", " is missing"),
        ("shorten part", "incomplete: "),
        ("change part", "corrupt: "),
        ("shorten manifest.json", "corrupt: "),
        ("remove ", "is missing"),
    ],
)
def test_a_damaged_edition_is_refused_by_name(engine: Engine, damage: str, message: str) -> None:
    shelve(engine.store, "one")
    shelve(engine.store, "two")
    engine.store.open("one").close()
    engine.damage("one", damage)
    with pytest.raises(EditionError, match=r"^edition one: ") as refused:
        engine.store.open("one", check_all=True)
    assert message in str(refused.value)
    engine.store.open("two").close()


@pytest.mark.parametrize("name", ["nowhere", "", "..", "a/b", 'a"b', "a b", "x" * 200, "a\0"])
def test_a_folder_without_an_edition_is_refused(engine: Engine, name: str) -> None:
    with pytest.raises(EditionError):
        engine.store.open(name)


def test_the_list_of_withdrawn_editions_only_grows(engine: Engine) -> None:
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
