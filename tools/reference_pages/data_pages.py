"""The pages for users of the figures: sources, line items, metrics, signals, tables."""

import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any, Final

import msgspec

import sankofa.sources
from sankofa.derive.metrics.contract import metrics
from sankofa.derive.metrics.lines import MEASURES
from sankofa.derive.signals.contract import columns_of, common_rules, panels
from sankofa.edition.write.tables import Table, tables
from sankofa.model import line_items
from sankofa.model.provenance import LICENSE_CLASSES, SKUS
from sankofa.operations.answers import row_schema
from sankofa.sources.base import adapters
from sankofa.sources.registry import Source, load_sources
from tools.reference_pages.markdown import code, code_lines, default_text, member_row, page, table

_NO_HOME: Final = Path(__file__).parent
"""A folder without sources of its own."""


def sources_page() -> str:
    fields = [
        (
            code(field.name),
            code(_type_name(field.type)),
            "yes" if field.required else default_text(field.default),
        )
        for field in msgspec.structs.fields(Source)
        if field.name != "id"
    ]
    built_in = [
        (code(s.id), s.title, code(s.adapter), s.sku or "", s.licence, code(s.license_class), s.publisher)
        for s in load_sources(_NO_HOME).values()
    ]
    parts = [
        "## Adapters",
        "An adapter reads one publisher's format. Every file may be plain, `.gz` or `.zip`, unless said"
        " otherwise.",
    ]
    for adapter in adapters().values():
        parts += [f"### `{adapter.name}`", _docstring_of(adapter.summary)]
    parts += [
        "## Registered sources",
        "These ship with the package. `HOME/sources.toml` adds more and overrides these by id.",
        table(("id", "title", "adapter", "sku", "licence", "license_class", "publisher"), built_in),
        "## A source entry",
        "A table `[sources.<id>]`. An unknown name is an error. A source without"
        " `commercial_redistribution = true` can be registered but not ingested. `sku` may be left out only"
        " where the adapter reads identifiers and nothing else.",
        table(("name", "type", "required, or default"), fields),
        "## Licence classes",
        ", ".join(map(code, LICENSE_CLASSES)) + ".",
        "## Datasets (sku)",
        ", ".join(map(code, SKUS)) + ".",
    ]
    return page("Sources", *parts)


def _docstring_of(summary: str) -> str:
    """The whole docstring of an adapter; its registry keeps only the first line."""
    for module in pkgutil.iter_modules(sankofa.sources.__path__):
        for function in vars(importlib.import_module(f"sankofa.sources.{module.name}")).values():
            text = inspect.getdoc(function) if inspect.isfunction(function) else None
            if text and text.splitlines()[0] == summary:
                return text
    return summary


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def line_items_page() -> str:
    items = line_items.table()
    parts = [
        "A concept that is exactly one of these line items is served under that item. Every other concept is"
        " served under its own name in snake_case, with its taxonomy before it if that name is an item here.",
        "A metric takes a line item from a figure under the item's own name, or else from the first of its"
        " routes that a filing supports. All terms of a route come from one filing, currency and period. Each"
        " route is a line of `sankofa/model/routes.toml`"
        " ([adding a route](../how-to/adding-a-metric.md#adding-a-route)).",
        "The first filing that reports all terms of a route as known on the day, and its proof if the route"
        " needs one, decides. Conditions of a route (not if the filing has ...)"
        " use only that filing; a name with `@` is a [group](#groups) of concepts."
        " Filings are read in order of publication, those of one day by document;"
        " one that only repeats figures is left out. A route by members is tried only if no"
        " earlier route gives a figure. See"
        " [decision: line item routes](../decisions/line-item-routes.md#how-a-route-is-decided).",
        "[Groups](#groups) · [Totals and their members](#totals-and-their-members) ·"
        " [Equations](#equations) · [Parts](#parts) ·"
        " [Outflows](#outflows) · [Impossible figures](#impossible-figures) · [Identities](#identities)",
    ]
    parts.append(
        table(
            ("line item", "concepts served under it", "routes"),
            [
                (
                    code(item),
                    code_lines(r.single for r in ways[1:] if r.served),
                    f"[{len(ways) - 1}](#{item})",
                )
                for item, ways in items.routes.items()
            ],
        )
    )
    for item, ways in items.routes.items():
        rows = [
            (
                str(route.number),
                code(route.text),
                "served" if route.served else "",
                route.since,
                route.why + (f" {route.provisos[0].upper()}{route.provisos[1:]}." if route.provisos else ""),
            )
            for route in ways[1:]
        ]
        parts.append(f"## {item}")
        parts.append(table(("", "route", "", "since", "why it is exact"), rows) if rows else "No concept.")
    groups = [(code(f"@{name}"), " ".join(map(code, concepts))) for name, concepts in items.groups.items()]
    parts += ["## Groups", table(("group", "concepts"), groups)]
    parts += [
        "## Totals and their members",
        "From `sankofa/model/breakdowns.toml`. A breakdown closes if the reported members add up to"
        " its total to the last digit: a member that is not reported is then zero. A reported sum replaces"
        " its parts. Up to two members of the kind `other` may be left out, or added although they are"
        " inside another; never one of another kind.",
    ]
    for name, one in items.breakdowns.items():
        kinds: dict[str, list[str]] = {}
        for concept, (sign, kind) in one.members.items():
            kinds.setdefault(kind or "other", []).append(code(concept if sign > 0 else f"-{concept}"))
        totals = " or ".join(code(line_items.written(total)) for total in one.totals)
        members = [(kind, " ".join(concepts)) for kind, concepts in kinds.items()]
        parts += [f"### {name}", f"Total: {totals}.", table(("kind", "members"), members)]
    parts += [
        "## Equations",
        "One equation of the table that a route names must hold; `$` is the value.",
    ]
    for name, equations in items.confirmations.items():
        parts += [
            f"### {name} (equations)",
            "<br>".join(code(line_items.written(e) + " = 0") for e in equations),
        ]
    wholes = [
        (code(item), "<br>".join(code(line_items.written(s)) for s in sums))
        for item, sums in items.parts.items()
    ]
    parts += [
        "## Parts",
        "A figure of one of these items that is less than one of its parts, as both are known on the day, is"
        " not used, and counted.",
        table(("line item", "parts"), wholes),
        "## Outflows",
        f"{', '.join(code(item) for item in items.routes if item in items.magnitudes)} are outflows."
        " The sign of a negative figure is reversed if, in a filing that reports it, an equation of the item"
        " or a breakdown with the concept holds with the other sign. Otherwise it is not used, and counted.",
        "## Impossible figures",
        f"{', '.join(code(item) for item in items.routes if item in items.never_negative)}"
        " cannot be negative."
        " Earnings per share cannot be larger than the whole profit. If they are about a hundred times the"
        " profit per share, they are in cents. If shares outstanding are about a thousand or a million times"
        " off profit over earnings per share, they are in another unit. A zero is a placeholder if another"
        " concept with the same meaning, or of a kind of the item, is not zero. Such figures are not used,"
        " and counted.",
        "A later vintage is not used either if it breaks an identity that the earlier vintage satisfied,"
        " and its filing reports no other member of the identity for the period. Filers sometimes tag a"
        " quarter or an adjustment with the dates of the year. `/v1/fundamentals` serves all of them as"
        " filed.",
        "## Identities",
        "Equations that must hold in a filing. If the first route of an item in doubt does not satisfy one"
        " and another does, the first is not used. If everything is reported and nothing satisfies it,"
        " the items that it refuses have no figure. Each member may be off by half a unit of its own last"
        " place, all together by a thousandth of the largest. `balance_sheet` and"
        " `gross_profit_of_any_filing` are tested for every period, with figures of any filings."
        " `identity_conflicts` of `/v1/quality-metrics` counts the routes that were not used."
        " It also has the number of full years whose figures contradict each other and stay as filed: "
        f"{', '.join(map(code, sorted(MEASURES)))} (contract: MET-15).",
    ]
    identities = [
        (
            i.name,
            code(line_items.written(i.items)),
            " ".join(code(line_items.written([term])) for term in i.optional),
            ", ".join(i.doubted),
            ", ".join(i.refused),
        )
        for i in items.identities
    ]
    parts.append(table(("", "adds up to zero", "with, if reported", "in doubt", "refused"), identities))
    return page("Line items", *parts)


def metrics_page() -> str:
    rows = [
        (code(m.slug), m.unit, m.summary, "<br>".join(map(code, m.explanation.split("\n"))))
        for m in metrics()
    ]
    return page(
        "Metrics",
        "The metrics of metrics-v1. Each is a row of `sankofa/derive/metrics/metrics.toml`. The service"
        " explains each without a key at `/methodology/` and the `methodology_ref` of its rows.",
        "Inputs are the latest vintages of the issuer's full-year figures, all in one currency;"
        " `prior_` means the year that ended one year earlier, within 10 days, by the same route. A"
        " [line item](line-items.md) comes from the first of its routes that the filing supports."
        " An absent input or a denominator of zero or less gives no value."
        " Values are exact, rounded half-even to 10 significant digits.",
        table(("metric", "unit", "is", "formula"), rows),
    )


def signals_page() -> str:
    rows = [(f"[{p.key}](#{p.key})", p.access, p.sku, p.summary) for p in panels().values()]
    parts = [table(("panel", "file", "dataset", "tells"), rows), common_rules()]
    for panel in panels().values():
        columns = [(code(name), meaning) for name, meaning in columns_of(panel)]
        parts += [f"## {panel.key}", panel.summary, panel.explanation, table(("column", "meaning"), columns)]
    return page(
        "Signals",
        "Panels of signals-v1, at `/v1/signals/` and the key. The service explains each at"
        " `/methodology/signals-v1/` and its key, without an API key.",
        *parts,
    )


def dictionary_page() -> str:
    """Every Parquet file, column by column."""
    files = [(f"[{one.name}](#{one.name})", one.sku or "", _order(one), one.summary) for one in tables()]
    parts = [table(("file", "dataset", "sorted by", "holds"), files)]
    for one in tables():
        schema, _ = row_schema(one.row, "#/{name}")
        columns = [member_row(name, member) for name, member in schema["properties"].items()]
        parts += [f"## {one.name}", one.summary, table(("column", "type", "meaning"), columns)]
    return page(
        "Data dictionary",
        "The files of an edition, as `/v1/export` lists them. Columns have the names of the fields that the"
        " endpoints serve. An unpublished value is `null`.",
        *parts,
    )


def _order(one: Table) -> str:
    return ", ".join(
        f"{code(name.removeprefix('-'))} descending" if name.startswith("-") else code(name)
        for name in one.sorted_by
    )
