"""Coverage and freshness of each dataset, by its sku."""

from itertools import groupby

from sankofa.derive.quality import Quality
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, KeyRows, Outcome, dataset
from sankofa.model.catalogue_rows import QualityRow
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import wire


@dataset("quality", QualityRow)
def quality(context: BuildContext) -> Building:
    rows, shortfalls = context.quality
    for sku, measures in groupby(rows, key=lambda one: one.sku):
        yield KeyRows(sku, [Entry(wire.encode(_row(context, one))) for one in measures])
    floors = {"despite_floors": shortfalls} if shortfalls else {}
    return Outcome(manifest_extras={"quality": [_line(one) for one in rows], **floors})


def _row(context: BuildContext, one: Quality) -> QualityRow:
    """Of what is measured the first capture is named; of a dataset without any, the ledger."""
    first = context.first_capture(one.sku)
    location = f"{one.sku} {one.measure}"
    return QualityRow(
        **one._asdict(),
        measured_at=context.clock,
        source_ref=source_ref(SERVICE, "ledger", location) if first is None else first.ref(location),
        license_class="public-domain",
        observed_at=context.clock,
    )


def _line(one: Quality) -> str:
    """As `sankofa publish` prints it."""
    value, floor = ("-" if figure is None else f"{figure:f}" for figure in (one.value, one.floor))
    return f"{one.sku:<10}  {one.measure:<34}  {value:>14}  floor {floor:>10}  {one.status or ''}".rstrip()
