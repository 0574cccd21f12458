"""AF-FUND: every vintage of every reported fact, and the organisations."""

from sankofa.edition.build.tables import Table, table
from sankofa.model.facts import FUND
from sankofa.model.rows import EntityRow, FundamentalsRow

table(
    Table(
        "af-fund-fundamentals",
        FundamentalsRow,
        FUND,
        "Reported facts of every issuer, every vintage, as `vintages=all` serves them today.",
        takes_from="fundamentals",
        sorted_by=("service_id", "-period_end"),
    )
)
table(
    Table(
        "af-fund-entities",
        EntityRow,
        FUND,
        "The resolved organisations, as `/v1/entities` serves them.",
        takes_from="entity",
        sorted_by=("service_id",),
    )
)
