"""One suite over every datastore engine: the keys of an edition in order, with a digest of their blocks."""

from collections.abc import Sequence

import pytest

from sankofa.model.errors import EditionError
from tests.engines.datastores import Engine, run, shelve

Listed = Sequence[tuple[str, bytes]]
AWKWARD = ["", "A", "A|b", "a", "é", "ÿ", "\uffff", "😀"]  # in the order of their bytes


def build(engine: Engine, edition: str, keys: Sequence[str], changed: int = 0) -> None:
    """A block for each key, one of them another than before."""
    writer = engine.store.build()
    blocks = [(n, b"index", b"rows %d" % (n + 100 * (n == changed))) for n in range(1, len(keys) + 1)]
    writer.write(blocks)
    writer.register([("kind", key, n, 1) for n, key in enumerate(keys, 1)])
    writer.register([("other", "A", 1, len(keys)), ("other", "none", 1, 0)])
    writer.finish(edition, {"format": 1, "content_sha256": edition})


def digests(engine: Engine, edition: str, *asked: tuple[str, str, int]) -> list[Listed]:
    async def read() -> list[Listed]:
        reader = engine.store.open(edition)
        found = [await reader.digests(*question) for question in asked]
        reader.close()
        engine.store.close()
        return found

    return run(read)


def test_keys_are_listed_in_the_order_of_their_bytes(engine: Engine) -> None:
    build(engine, "one", AWKWARD[1:][::-1])
    whole, two, behind, between, last, nothing = digests(
        engine,
        "one",
        ("kind", "", 99),
        ("kind", "", 2),
        ("kind", "A", 2),
        ("kind", "B", 1),
        ("kind", AWKWARD[-1], 9),
        ("nothing", "", 9),
    )
    assert [key for key, _ in whole] == sorted(AWKWARD[1:], key=str.encode)
    assert list(two) == list(whole)[:2]
    assert list(behind) == list(whole)[1:3]
    assert [key for key, _ in between] == ["a"]
    assert list(last) == list(nothing) == []


def test_a_digest_tells_whether_blocks_are_the_same(engine: Engine) -> None:
    build(engine, "one", AWKWARD[1:])
    build(engine, "two", AWKWARD[1:], changed=3)
    ours, theirs = (dict(digests(engine, e, ("kind", "", 99))[0]) for e in ("one", "two"))
    assert [key for key in ours if ours[key] != theirs[key]] == [AWKWARD[3]]
    assert all(ours.values())
    other, changed = (dict(digests(engine, e, ("other", "", 99))[0]) for e in ("one", "two"))
    assert other["A"] != changed["A"]


def test_an_edition_that_is_gone_is_not_opened_though_it_was_compared(engine: Engine) -> None:
    for name in ("one", "two"):
        shelve(engine.store, name)
    engine.store.open("one").close()
    engine.store.set_current_and_prune(["two"], "two")
    with pytest.raises(EditionError):
        engine.store.open("one")
    engine.store.close()
