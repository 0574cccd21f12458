"""Facts stored by column: however files divide them, they are read in one order, each once."""

import random

from sankofa.ledger.capture import FactColumns, encode_facts, facts_in, join_facts

AWKWARD = 'tab\there, "quotes", back\\slash, line\nfeed, \x1f\x01, Ünïcödé \U0001f600'
FACTS = [
    (
        concept,
        "USD",
        f"{year}-12-31",
        f"{year}-01-01",
        f"{year + 1}-02-01",
        f"doc {year}",
        value,
        "",
        place,
        "",
    )
    for concept in ("Assets", "Revenues", AWKWARD)
    for year in range(2015, 2025)
    for value, place in (("1", "p. 1"), ("9007199254740993", AWKWARD))
]


def test_stored_facts_are_read_as_they_were_told() -> None:
    whole = join_facts([(7, "source", encode_facts(sorted(FACTS)))])
    assert list(zip(*whole[:-1], strict=True)) == sorted(FACTS)
    assert set(whole.capture_id) == {7}


def test_facts_of_several_files_are_in_the_order_of_one() -> None:
    shuffled = random.Random(1).sample(FACTS, len(FACTS))
    rows = [(number, "source", encode_facts(sorted(shuffled[number::4]))) for number in range(4)]
    joined = join_facts(rows)
    assert list(zip(*joined[:-1], strict=True)) == sorted(FACTS)
    by_capture = {fact: number for number in range(4) for fact in shuffled[number::4]}
    assert joined.capture_id == [by_capture[fact] for fact in sorted(FACTS)]


def test_only_facts_of_the_documents_asked_for_are_compared() -> None:
    told = encode_facts(sorted(FACTS))
    assert list(facts_in(told, {"doc 2016", "another"})) == sorted(FACTS)
    assert list(facts_in(told, {"another"})) == []


def test_a_subject_without_facts_has_empty_columns() -> None:
    assert join_facts([]) == FactColumns(*([] for _ in FactColumns._fields))
