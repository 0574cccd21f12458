"""For a quant: an as-reported factor panel, free of look-ahead.

    python examples/quant_factor_panel.py KEY [URL]

Every figure is the one first filed (vintage 1), known from the day it was filed. On each day of rebalancing
the panel holds, per issuer, the margin and growth of the latest full year public by then. Needs Polars.
"""

import sys
import warnings
from datetime import date

import polars as pl

from sankofa.client import Client, LookAhead, TruncatedWarning, look_ahead_check

FIGURES = ["revenue", "profit"]
REBALANCED = [date(year, 6, 30) for year in (2012, 2015, 2018, 2021)]


def reported(client: Client) -> pl.DataFrame:
    """Revenue and profit of full years as first filed, each with its provenance."""
    frames = []
    # every issuer that ever reported: a universe of today's survivors would flatter every factor
    for issuer in client.list_issuers(all=True):
        name = issuer["legal_name"] or issuer["service_id"]
        answer = client.columns.get_fundamentals(
            issuer["service_id"], period_type="FY", vintages="as_reported"
        )
        frame = answer.to_polars().filter(pl.col("line_item").is_in(FIGURES))
        if answer.truncated:
            print(f"{name}: the first {answer.count} rows only, on the sample tier")
        # today a row also says when it was superseded, which was unknown on the days of the panel
        frame = frame.drop("superseded_at", "superseding_record_ref")
        frames.append(frame.with_columns(issuer=pl.lit(name)))
    return pl.concat(frames)


def panel_on(facts: pl.DataFrame, day: date) -> pl.DataFrame:
    """The factors that could be computed on the day, standardised across issuers."""
    public = facts.filter(pl.col("available_at") <= day)
    look_ahead_check(public, day)  # raises LookAhead if the line above is forgotten
    years = (
        # several concepts of a source may have one line item: the first one served counts
        public.unique(["issuer", "period_end", "line_item"], keep="first", maintain_order=True)
        .pivot(on="line_item", on_columns=FIGURES, index=["issuer", "period_end"], values="value_reported")
        .drop_nulls()
        .sort("issuer", "period_end")
        .with_columns(
            margin=pl.col("profit") / pl.col("revenue"),
            growth=pl.col("revenue") / pl.col("revenue").shift(1).over("issuer") - 1,
            days=(pl.col("period_end") - pl.col("period_end").shift(1).over("issuer")).dt.total_days(),
        )
        # after a missing report or a change of the year-end the row before is not the year before
        .with_columns(growth=pl.when(pl.col("days").is_between(355, 375)).then("growth"))
    )
    latest = years.group_by("issuer", maintain_order=True).last().drop_nulls("growth")
    return latest.with_columns(
        score=sum((pl.col(n) - pl.col(n).mean()) / pl.col(n).std() for n in ("margin", "growth")) / 2
    ).sort("score", descending=True)


def main(key: str, url: str) -> None:
    warnings.simplefilter("ignore", TruncatedWarning)  # it is said by name below
    with Client(key, url) as client:
        facts = reported(client)
        print(f"{facts['issuer'].n_unique()} issuers, {facts.height} figures as first filed")
        for day in REBALANCED:
            panel = panel_on(facts, day)
            print(f"\n{day}: {panel.height} issuers")
            for row in panel.head(3).iter_rows(named=True):
                print(
                    f"  {row['score']:+.2f}  margin {row['margin']:.3f}  growth {row['growth']:+.3f}"
                    f"  year to {row['period_end']}  {row['issuer']}"
                )
        try:
            look_ahead_check(facts, REBALANCED[0])
        except LookAhead as caught:
            print(f"\nWithout the filter: {caught}")
        for row in facts.head(1).iter_rows(named=True):
            print(f"Every row says where it is from: {row['source_ref']} ({row['license_class']})")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8000")
