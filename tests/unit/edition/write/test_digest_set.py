"""Digests told apart in little memory."""

import random

from sankofa.edition.write.shared_facts import DIGEST_BYTES, DigestSet


def test_it_tells_what_was_there_as_a_set_does_while_it_grows() -> None:
    chance = random.Random(3)
    digests = [chance.randbytes(DIGEST_BYTES) for _ in range(20_000)] + [bytes(8), b"\xff" * 8]
    given = [chance.choice(digests) for _ in range(60_000)]
    known: set[bytes] = set()
    ours = DigestSet()
    for first in range(0, len(given), 700):
        some = given[first : first + 700]
        expected = []
        for digest in some:
            expected.append(digest not in known)
            known.add(digest)
        assert ours.add_all(b"".join(some)) == expected
    assert len(ours) == len(known)


def test_the_end_of_one_and_the_beginning_of_the_next_are_no_digest() -> None:
    ours = DigestSet()
    one, next_one, between = b"\0\0abcdef", b"\0\0ghijkl", b"\0\0defghi"
    assert ours.add_all(one + next_one) == [True, True]
    assert ours.add_all(between) == [True]
    assert ours.add_all(one + next_one + between) == [False, False, False]


def test_digests_that_share_their_first_bytes_are_different_ones() -> None:
    ours = DigestSet()
    given = b"".join(number.to_bytes(8, "big") for number in range(500))
    assert ours.add_all(given) == [True] * 500
    assert ours.add_all(given) == [False] * 500
