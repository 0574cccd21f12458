"""A cache of bounded size."""

from sankofa.edition.read.edition import BoundedCache


def test_what_was_put_in_first_goes_first() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    for number, name in enumerate("abc"):
        cache.put(name, number)
    assert [cache.get(name) for name in "abc"] == [None, 1, 2]
    assert len(cache) == 2


def test_to_put_what_is_there_drops_nothing() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("b", 3)
    assert [cache.get(name) for name in "ab"] == [1, 3]
