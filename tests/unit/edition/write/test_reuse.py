"""The digests of datasets name their inputs, and together cover the whole ledger."""

from sankofa.edition.write import reuse
from sankofa.edition.write.dataset import Input, datasets
from sankofa.edition.write.tables import tables
from sankofa.ledger.seals import TABLES

ALWAYS_BUILT = {"coverage", "coverage-day", "quality", "source"}
"""Datasets with a clock in them, or made of one."""


def test_every_table_of_the_ledger_is_part_of_a_digest() -> None:
    assert {"capture"}.union(*reuse.TABLES.values()) == set(TABLES)


def test_only_macro_values_and_captures_are_not_records_of_organisations() -> None:
    macro = {"annual", "indicator", "series", "series_info"}
    assert set(TABLES) - set(reuse.TABLES[Input.RECORDS]) == {"capture", *macro}


def test_every_dataset_names_its_inputs() -> None:
    silent = {one.kind for one in datasets() if one.reads is None and not one.by_organisation}
    assert silent == ALWAYS_BUILT
    for one in datasets():
        assert set(Input).issuperset(one.reads or ())
    assert [one.name for one in tables() if not one.takes_from and one.reads is None] == []
