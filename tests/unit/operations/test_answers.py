"""Which answers are kept, and which are dropped."""

from sankofa.operations.answers import AnswerCache, AnswerKey, CachedAnswer

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


def ask(cache: AnswerCache, tag: str) -> bool:
    """Whether the answer came from the cache."""
    if cache.get(key(tag)) is not None:
        return True
    cache.offer(key(tag), answer())
    return False


def test_the_one_asked_for_longest_ago_is_dropped_first() -> None:
    cache = AnswerCache(ROOM)
    offer_twice(cache, *"abcdefgh")
    assert cache.get(key("a"))
    for _ in range(17):
        cache.offer(key("i"), answer())
    assert kept(cache, *"abcdefghi") == list("acdefghi")
    assert cache.size == ROOM


def test_of_more_questions_than_there_is_room_for_some_are_answered_every_time() -> None:
    """The same ones again and again in the same order: were the oldest dropped each time, none would be."""
    cache = AnswerCache(ROOM)
    questions = [f"question {number}" for number in range(24)]
    answered = [ask(cache, question) for _ in range(100) for question in questions]
    assert sum(answered[len(questions) * 2 :]) > 0.25 * len(answered)
    assert cache.size <= ROOM


def test_answers_that_nobody_asks_for_any_more_give_way_to_others() -> None:
    """Those of an edition before."""
    cache = AnswerCache(ROOM)
    offer_twice(cache, *"abcdefgh")
    for _ in range(20):
        for tag in "ijklmnop":
            ask(cache, tag)
    assert kept(cache, *"ijklmnop") == list("ijklmnop")


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
