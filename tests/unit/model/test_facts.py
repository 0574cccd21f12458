"""How facts and provenances are named."""

import msgspec

from sankofa.model.facts import FUND, FactEntity, FactSource, SharedFact, fact, provenance_id, record_ref
from sankofa.model.rows import FactRow, wire

SOURCE = FactSource("report#p. 1", "synthetic", "2024-07-01T06:00:00Z", 0.9, "extracted")


def test_names_hang_on_nothing_but_what_they_name() -> None:
    """Written down: another name for the same fact would break whoever stored the old one."""
    assert record_ref("ZA", "ocds-1", "5") == "5078c25d8f23d51f6c3b38a7"
    assert provenance_id(SOURCE) == "63bb5fb4e858333580dd7ace"


def test_every_part_of_a_provenance_tells_it_from_others() -> None:
    others = [
        SOURCE._replace(**change)
        for change in (
            {"source_ref": "report#p. 2"},
            {"license_class": "cc-by"},
            {"observed_at": "2024-07-01T06:00:01Z"},
            {"extraction_confidence": None},
            {"method": "structured"},
        )
    ]
    assert len({provenance_id(source) for source in (SOURCE, *others)}) == 6


def test_a_fact_on_the_wire_is_the_row_that_is_described() -> None:
    assert set(SharedFact.__struct_fields__) == set(FactRow.__struct_fields__)
    who = FactEntity("DC1", None, "ZAF")
    value = msgspec.Raw(b"9007199254740993.25")
    made = fact(who, FUND, "abc", "revenue", value, "ZAR", ("2023-12-31", "FY"), "2024-03-01", 2, SOURCE)
    row = msgspec.json.decode(wire.encode(made), type=FactRow)
    assert (row.fact_id, row.vintage, row.extraction_confidence) == ("AF-FUND:abc:revenue", "2", 0.9)
    assert wire.encode(row.value) == bytes(value)
