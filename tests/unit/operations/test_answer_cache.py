"""Which answers are kept, and which are dropped."""

from sankofa.operations.answer_cache import AnswerCache, AnswerKey, CachedAnswer

ROOM = 800


def key(tag: str, encoding: bytes = b"", base_url: str = "", edition: str | None = None) -> AnswerKey:
    return AnswerKey(tag, encoding, base_url, edition)


def answer(size: int = 100) -> CachedAnswer:
    return CachedAnswer([], bytes(size))


def kept(cache: AnswerCache, *tags: str) -> list[str]:
    return [tag for tag in tags if cache.get(key(tag)) is not None]


def offer_twice(cache: AnswerCache, *tags: str, size: int = 100) -> None:
    for tag in (*tags, *tags):
        cache.offer(key(tag), answer(size))


def test_what_is_asked_once_is_not_kept() -> None:
    cache = AnswerCache(ROOM)
    cache.offer(key("a"), answer())
    assert cache.get(key("a")) is None
    assert cache.size == 0


def test_what_is_asked_twice_is() -> None:
    cache = AnswerCache(ROOM)
    offer_twice(cache, "a")
    assert cache.get(key("a")) == answer()


def test_the_same_tag_for_another_encoding_address_or_named_edition_is_another_answer() -> None:
    cache = AnswerCache(ROOM)
    offer_twice(cache, "a")
    others = key("a", b"gzip"), key("a", base_url="https://other"), key("a", edition="e1")
    assert [cache.get(other) for other in others] == [None, None, None]


def test_the_one_asked_for_longest_ago_is_dropped_first() -> None:
    cache = AnswerCache(ROOM)
    offer_twice(cache, *"abcdefgh")
    assert cache.get(key("a"))
    offer_twice(cache, "i")
    assert kept(cache, *"abcdefghi") == list("acdefghi")
    assert cache.size == ROOM


def test_a_walk_through_everything_drops_nothing() -> None:
    cache = AnswerCache(ROOM)
    offer_twice(cache, "often")
    for number in range(10_000):
        cache.offer(key(f"page {number}"), answer())
    assert kept(cache, "often") == ["often"]
    assert cache.size == 100


def test_one_that_would_take_much_of_the_room_is_not_kept() -> None:
    cache = AnswerCache(ROOM)
    offer_twice(cache, "large", size=ROOM // 8 + 1)
    assert cache.get(key("large")) is None


def test_without_room_nothing_is_kept() -> None:
    cache = AnswerCache(0)
    offer_twice(cache, "a")
    assert cache.get(key("a")) is None
