"""Files of every adapter that overlap: each covers some of four items, in one of two variants."""

import csv
import io
import json
import zipfile
from collections.abc import Callable, Mapping

from stdnum import figi as figi_numbers

from tests.spec import inline_report
from tests.spec.market import package, release
from tests.spec.register import COLUMNS, isin, lei, record

ITEMS = range(4)
LEIS = [lei(f"ITEM{item}") for item in ITEMS]
Variants = Mapping[int, int]
"""The variant of each item."""
NAMES = ("one", "two", "three")


def names(adapter: str) -> tuple[str, ...]:
    """Three file names. If a name names the series, two of them name the same one."""
    if adapter == "worldbank":
        return "NY.GDP.MKTP.CD.csv", "ny.gdp.mktp.cd.csv", "FP.CPI.TOTL.ZG.csv"
    if adapter == "alfred":
        return "CPIAUCSL.json", "cpiaucsl.json", "GDP.json"
    if adapter == "ixbrl":
        return "2024-03-28-one.zip", "2024-03-28-two.zip", "2024-03-29-one.zip"
    return tuple(f"{name}.{_ENDINGS.get(adapter, 'csv')}" for name in NAMES)


def content(adapter: str, drawn: Variants) -> bytes:
    built = MAKERS[adapter](dict(sorted(drawn.items())))
    return built if isinstance(built, bytes) else built.encode()


def _csv(header: str, rows: list[tuple[object, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([header.split(","), *rows])
    return text.getvalue()


def _archive(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()


def _ocds(drawn: Variants) -> str:
    buyers = [f"Department of {word}" for word in ("Roads", "Water", "Health", "Works")]
    return json.dumps(
        package(
            *(
                release(
                    f"item{i}",
                    buyer={"name": buyers[i]},
                    tender={
                        "title": f"Item {i} in variant {v}",
                        "value": {"amount": 5 + v, "currency": "ZAR"},
                    },
                )
                for i, v in drawn.items()
            )
        )
    )


def _series(drawn: Variants) -> str:
    rows: list[tuple[object, ...]] = [
        ("CPI.ZA", "cpi", "monthly", "ZA", f"2025-0{i + 1}-01", f"{i}.{v}", "index", "2025-06-01")
        for i, v in drawn.items()
    ]
    return _csv("series,series_type,frequency,country,date,value,unit,release_date", rows)


def _rates(drawn: Variants) -> str:
    return _csv("Date,USD,ZAR", [(f"2025-01-0{6 + i}", f"1.{i}{v}", f"20.{i}{v}") for i, v in drawn.items()])


def _alfred(drawn: Variants) -> str:
    """The frequency follows from the dates, so some are always present."""
    end = "9999-12-31"
    observed = [("2025-01-15", f"2024-{month:02}-01", "1") for month in (9, 10, 11, 12)]
    observed += [(f"2025-0{5 + v}-01", f"2025-0{i + 1}-01", f"{i}.{v}") for i, v in drawn.items()]
    rows = [
        {"realtime_start": start, "realtime_end": end, "date": day, "value": value}
        for start, day, value in observed
    ]
    whole = {"realtime_start": "1776-07-04", "realtime_end": end, "units": "lin", "output_type": 1}
    return json.dumps(whole | {"file_type": "json", "count": len(rows), "observations": rows})


def _worldbank(drawn: Variants) -> str:
    return _csv(
        "Country Name,Country Code,Year,Value", [("S", "ZAF", 2015 + i, f"{i}.{v}") for i, v in drawn.items()]
    )


def _lei_records(drawn: Variants) -> str:
    words = "Holdings", "Mining"
    return (
        "\n".join([COLUMNS, *(record(LEIS[i], f"Item {i} {words[v]} Ltd", "ZA") for i, v in drawn.items())])
        + "\n"
    )


def _isins(drawn: Variants) -> str:
    return _csv("LEI,ISIN", [(LEIS[(i + v) % len(ITEMS)], isin("ZA", f"ITEM{i}")) for i, v in drawn.items()])


def _relationships(drawn: Variants) -> str:
    node = "Relationship.StartNode.NodeID,Relationship.EndNode.NodeID,Relationship.RelationshipType"
    rest = "Relationship.RelationshipStatus,Registration.LastUpdateDate"
    kinds = "IS_DIRECTLY_CONSOLIDATED_BY", "IS_ULTIMATELY_CONSOLIDATED_BY"
    others = [LEIS[(i + 1) % len(ITEMS)] for i in ITEMS]
    rows: list[tuple[object, ...]] = [
        (LEIS[i], others[i], kinds[v % 2], "ACTIVE", "2025-01-05T00:00:00Z") for i, v in drawn.items()
    ]
    return _csv(f"{node},{rest}", rows)


def _figi(number: int) -> str:
    stem = f"BBG000B{number:04}"
    stem = "".join("BCDFGHJKLM"[int(c)] if c.isdigit() and at > 6 else c for at, c in enumerate(stem))
    return stem + figi_numbers.calc_check_digit(stem)


def _figis(drawn: Variants) -> str:
    shares = [
        {
            "figi": _figi(i), "name": f"ITEM {i}", "ticker": f"IT{(i + v) % len(ITEMS)}", "exchCode": "SJ",
            "compositeFIGI": None, "securityType": "Common Stock", "marketSector": "Equity",
            "shareClassFIGI": None, "securityType2": "Common Stock", "securityDescription": f"IT{i}",
        }
        for i, v in drawn.items()
    ]  # fmt: skip
    return json.dumps([{"data": shares}])


def _identifiers(drawn: Variants) -> str:
    rows: list[tuple[object, ...]] = [
        (f"lei:{LEIS[(i + v) % len(ITEMS)]}", "aggregator", f"za/item{i}", "OPENCORPORATES")
        for i, v in drawn.items()
    ]
    return _csv("entity,id_type,id_value,registry", rows)


def _filings(drawn: Variants) -> str:
    header = (
        "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
        "confidence"
    )
    rows: list[tuple[object, ...]] = [
        (f"lei:{LEIS[i]}", "revenue", 100 + 10 * i + v, "ZAR", "2024-01-01", "2024-12-31", "FY",
         f"2025-03-0{1 + v}", f"report-{i}", "p. 4", "0.99")
        for i, v in drawn.items()
    ]  # fmt: skip
    return _csv(header, rows)


def _companyfacts(drawn: Variants) -> str:
    rows = [
        {"start": f"{2020 + i}-01-01", "end": f"{2020 + i}-12-31", "val": 100 + 10 * i + v,
         "accn": f"0000000001-25-00000{i}", "fy": 2024, "fp": "FY", "form": "10-K",
         "filed": f"2025-02-0{1 + v}"}
        for i, v in drawn.items()
    ]  # fmt: skip
    facts = {"us-gaap": {"Revenues": {"label": None, "units": {"USD": rows}}}}
    return json.dumps({"cik": 1045810, "entityName": "ITEM CORP", "facts": facts})


def _data_sets(drawn: Variants) -> bytes:
    adsh = [f"0001104659-10-00000{i}" for i in ITEMS]
    sub = ["adsh\tcik\tname\tcountryba\tcountryinc\tstprinc\tformer\tfiled"]
    sub += [f"{adsh[i]}\t{812070 + i}\tITEM {i} INC /DE/\tUS\tUS\tDE\t\t2010021{v}" for i, v in drawn.items()]
    num = ["adsh\ttag\tversion\tddate\tqtrs\tuom\tsegments\tcoreg\tvalue\tfootnote"]
    num += [
        f"{adsh[i]}\tRevenues\tus-gaap/2009\t20091231\t4\tUSD\t\t\t{70 + 10 * i + v}.0000\t"
        for i, v in drawn.items()
    ]
    return _archive({"sub.txt": "\n".join(sub) + "\n", "num.txt": "\n".join(num) + "\n"})


def _submissions(drawn: Variants) -> bytes:
    return _archive(
        {
            f"CIK{812070 + i:010}.json": json.dumps(
                {
                    "cik": str(812070 + i),
                    "name": f"Item {i} Corporation",
                    "formerNames": [
                        {"name": f"Old Item {v} Inc", "from": "2010-01-01T00:00:00Z", "to": f"201{v}-02-01"}
                    ],
                }
            )
            for i, v in drawn.items()
        }
    )


def _reviews(drawn: Variants) -> str:
    verdicts = "confirmed", "refused", "open"
    header = "match,service_id,verdict,decided_at"
    return _csv(header, [(f"{i:012x}", f"DC{0:024X}", verdicts[v % 3], f"day {v}") for i, v in drawn.items()])


def _report(drawn: Variants) -> bytes:
    concepts = ("Revenue", "year"), ("ProfitLoss", "year"), ("Assets", "end")
    facts = "".join(
        f'<p><ix:nonFraction id="f{name}" name="ifrs-full:{name}" contextRef="{when}" '
        f'unitRef="zar" decimals="0" format="ixt:num-dot-decimal">{100 + drawn[i]}</ix:nonFraction></p>'
        for i, (name, when) in enumerate(concepts)
        if i in drawn
    )
    return inline_report.report_package(inline_report.report(facts or "<p>Nothing</p>"))


_ENDINGS = {"ocds": "json", "openfigi": "json", "edgar-companyfacts": "json"}
_ENDINGS |= {"sec-fsds": "zip", "sec-submissions": "zip"}
MAKERS: dict[str, Callable[[Variants], str | bytes]] = {
    "ocds": _ocds,
    "series-csv": _series,
    "ecb-fx": _rates,
    "alfred": _alfred,
    "worldbank": _worldbank,
    "gleif-lei": _lei_records,
    "gleif-isin": _isins,
    "gleif-rr": _relationships,
    "openfigi": _figis,
    "identifiers-csv": _identifiers,
    "filings-csv": _filings,
    "edgar-companyfacts": _companyfacts,
    "sec-fsds": _data_sets,
    "sec-submissions": _submissions,
    "ixbrl": _report,
    "match-reviews": _reviews,
}
