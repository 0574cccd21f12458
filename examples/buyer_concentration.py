"""For a procurement analyst: how concentrated the public buyers of a country are, as a chart.

    python examples/buyer_concentration.py KEY [URL [CHART.svg]]

The panel is an open Parquet file, of which Polars reads only what the query needs. Needs Polars.
"""

import sys
from pathlib import Path

import polars as pl

from sankofa.client import Client

COUNTRY = "ZA"


def quarters(client: Client) -> pl.DataFrame:
    """Concentration of buyers by closed quarter, oldest first; of quarters that name any."""
    panel: pl.LazyFrame = client.scan_panel("public-buyer-concentration", engine="polars")
    return (
        panel.filter(pl.col("country") == COUNTRY)
        .select("quarter", "tender_count", "buyer_count", "buyer_hhi", "top_buyer_share")
        .drop_nulls("buyer_hhi")
        .sort("quarter")
        .collect()
    )


def text_chart(frame: pl.DataFrame) -> str:
    """A bar for each quarter: 1 is a single buyer."""
    lines = [f"Buyer concentration (HHI) in {COUNTRY}"]
    for row in frame.iter_rows(named=True):
        bar = "#" * round(row["buyer_hhi"] * 60)
        lines.append(f"{row['quarter']}  {row['buyer_hhi']:.3f} {bar:<30} {row['buyer_count']:>2} buyers")
    return "\n".join(lines)


def svg_chart(frame: pl.DataFrame) -> str:
    """The same as a picture."""
    width, height, step = 60 * frame.height + 20, 220, 60
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="10">']
    for position, row in enumerate(frame.iter_rows(named=True)):
        tall = round(row["buyer_hhi"] * 180)
        left = 10 + position * step
        parts.append(f'<rect x="{left}" y="{190 - tall}" width="40" height="{tall}" fill="#2a6f6b"/>')
        parts.append(f'<text x="{left}" y="205">{row["quarter"]}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(key: str, url: str, chart: str | None) -> None:
    with Client(key, url) as client:
        frame = quarters(client)
        print(text_chart(frame))
        if chart is not None:
            Path(chart).write_text(svg_chart(frame))
        print(f"\nWho buys most in {COUNTRY}:")
        parties = client.get_resolved_parties(country=COUNTRY, role="buyer", limit=3)
        for party in parties:
            print(f"  {party['release_count']:>3} releases  {party['name']} ({party['org_evidence']})")
        print("How it is computed: /methodology/signals-v1/public-buyer-concentration")


if __name__ == "__main__":
    arguments = [*sys.argv[1:], None, None]
    main(sys.argv[1], arguments[1] or "http://127.0.0.1:8000", arguments[2])
