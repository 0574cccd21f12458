"""Numbers told apart in little memory."""

import random

from sankofa.edition.build.number_set import NumberSet


def test_it_tells_what_was_there_as_a_set_does_while_it_grows() -> None:
    chance = random.Random(3)
    numbers = [chance.getrandbits(64) for _ in range(20_000)]
    given = chance.sample(numbers, 20_000) + chance.sample(numbers, 5_000)
    known: set[int] = set()
    ours = NumberSet()
    for number in given:
        assert ours.add(number) == (number not in known)
        known.add(number)
    assert len(ours) == len(known)


def test_many_at_once_are_told_as_one_by_one() -> None:
    chance = random.Random(5)
    numbers = [chance.getrandbits(64) for _ in range(9_000)] + [0, 1]
    given = [chance.choice(numbers) for _ in range(30_000)]
    one_by_one, together = NumberSet(), NumberSet()
    expected = [one_by_one.add(number) for number in given]
    told = [
        new for first in range(0, len(given), 700) for new in together.add_all(given[first : first + 700])
    ]
    assert told == expected
    assert len(together) == len(one_by_one)


def test_numbers_that_fall_in_one_slot_are_different_numbers() -> None:
    ours = NumberSet()
    assert [ours.add(number << 40) for number in range(1, 100)] == [True] * 99
    assert [ours.add(number << 40) for number in range(1, 100)] == [False] * 99
