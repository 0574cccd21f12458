"""The clients: one method per endpoint, declared by its signature.

Written by tools/client.py (make docs). Change the operation, not this module.
"""

# mypy: disable-error-code="empty-body"

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from sankofa.client import rows
from sankofa.client.answers import Answer
from sankofa.client.session import AsyncSession, Session, asks, awaited, paged, row_by_row


class Client(Session):
    """Asks the service with a key.

    `all` fetches every page and returns them as one answer.
    """

    @asks("/v1/changes", "since")
    def get_changes(
        self,
        *,
        since: str | None = None,
        dataset: rows.Dataset | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.ChangeRow]:
        """Rows added, changed or removed since an earlier edition.

        Use it to keep a copy up to date. Pass your copy's edition as `since`; without it, every row is
        listed as added. Apply the rows in order, by `dataset` and `key`, and keep `edition` as the next
        `since`. The rows are every vintage of a fact, the latest vintage of a macro value, and current
        identifiers. Derived values are not listed. Ordered by dataset and key (tenders by day, newest
        first), then as served, removed rows last. A page may be short and still have a `next_cursor`. All
        pages use the `edition` of the first. If that edition is removed meanwhile, the pages go on in the
        current one; a removed edition as `since` is a 410: start again. Needs the starter tier or above.
        """

    @asks("/v1/check", "unknown")
    def check_claim(
        self,
        subject: str,
        period: str,
        value: str,
        *,
        measure: str | None = None,
        unit: str | None = None,
        as_of: date | str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
    ) -> Answer[rows.CheckRow]:
        """Whether a claimed figure was reported, as known on a day.

        The answer is one row. `supported`: the latest figure known on `as_of` rounds to the claim as
        written. `supported_then`: only an earlier vintage does; it was restated on `restated_at`.
        `contradicted`: there is a figure, but no vintage rounds to the claim; the row shows the latest.
        `unknown`: no figure is known for that subject, measure and period, or its unit differs, or several
        figures disagree; `unknown` says which. Units and currencies are never guessed. Years, quarters and
        half-years are those of the issuer's own financial year; `period_start` and `period_end` name the
        days.
        """

    @asks("/v1/contracts/{ocid}")
    def get_contract(
        self,
        ocid: str,
        *,
        as_of: date | str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
    ) -> Answer[rows.ContractRow]:
        """One contracting process as it stood on a day, compiled from its releases up to then.

        The answer is one row. `release` is compiled by the merge rules of OCDS 1.1.5, without extensions,
        from every release with this ocid; releases with the same date are merged in the order of their ids.
        `set_by` names the release that set each value. `changes` lists amounts, deadlines, statuses and
        suppliers that a release replaced. Before its first release, a process has no row.
        """

    @asks("/v1/coverage")
    def get_coverage(
        self,
        *,
        country: str | None = None,
        sku: rows.Sku | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.CoverageRow]:
        """Coverage of each dataset by country and source: count, first and last date, freshness.

        Counts issuers (AF-FUND), releases (AF-TENDER), series and indicators (AF-MACRO), ordered by sku,
        country, source_id and unit_of_count. Dates and freshness as in `/v1/sources`. Call it to see what
        is covered.
        """

    @asks("/v1/cross-rates")
    def get_cross_rates(
        self,
        base: str,
        quote: str,
        *,
        via: str | None = None,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.CrossRateRow]:
        """Exchange rates derived from two published daily rates against a third currency.

        No source publishes these rates: `method` is `derived`, and `inputs` names both published rates with
        their vintages, sources and licences. Both rates have the same date and were known on `as_of`. The
        arithmetic is exact, rounded half-even to 10 significant digits. Each third currency gives a value
        of its own. Ordered by `via`, then date descending. Two currencies without a common third currency
        have no rows.
        """

    @asks("/v1/crosswalk", "ambiguous")
    def find_by_identifier(
        self,
        id_type: rows.IdType,
        id_value: str,
        *,
        as_of: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.CrosswalkMatchRow]:
        """The organisations behind an outside identifier.

        `lei` and `ticker` work on any tier; the others need the starter tier or above. A registry number is
        unique only within its registry: if several organisations match, `ambiguous` is true. With `as_of`,
        matches are the organisations that had the identifier on that day, with their names of that day. At
        most 20 matches are returned, ordered by service_id.
        """

    @asks("/v1/crosswalk/{service_id}", "withheld_id_types", "crosswalk_loaded")
    def get_crosswalk(
        self,
        service_id: str,
        *,
        as_of: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        proof: rows.Proof | None = None,
        all: bool = False,
    ) -> Answer[rows.CrosswalkRow]:
        """Every identifier held for one organisation.

        With `as_of`, those it had on that day. Ordered by id_type, scheme and value. The LEI and the
        listing ticker are free on every tier. On the sample tier the other kinds are only named, in
        `withheld_id_types`, and the answer is `truncated`. `crosswalk_loaded` is false until identifiers
        are loaded.
        """

    @asks("/v1/entities/{service_id}", "successor", "predecessors")
    def get_entity(
        self,
        service_id: str,
        *,
        as_of: date | str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        proof: rows.Proof | None = None,
    ) -> Answer[rows.EntityRow]:
        """One organisation's resolved entity record.

        `/v1/search` finds organisations by name. If an id was merged into another, `service_id` is the
        surviving id. An organisation that its register calls merged keeps its own record, and `successor`
        names the one that took it over. `predecessors` names those it took over from; their figures are
        under their own ids. With `as_of` the record has the names, status, listings and parents of that
        day; there is no row if the organisation was not known yet. A parent is the organisation that
        consolidates its accounts. A parent without a record here has only a LEI.
        """

    @asks("/v1/entities/{service_id}/history")
    def get_entity_history(
        self,
        service_id: str,
        *,
        as_of: date | str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
    ) -> Answer[rows.SpellRow]:
        """Every name, status, listing, parent and identifier of an organisation, with first and last days.

        One row for each name, status, legal form, jurisdiction, listing, identifier, parent, successor and
        predecessor. `from` is the first day on which it was known and `until` the last; `until` is null
        while it is current. With `as_of`, an `until` after that day is null. The sample tier gets no
        identifier but the LEI. Ordered by kind, then `from`.
        """

    @asks("/v1/export")
    def get_export(
        self, *, edition: str | None = None, known_by: str | None = None
    ) -> Answer[rows.ExportRow]:
        """The Parquet files of the current edition, ordered by name, and where to fetch them.

        Open panels are licensed CC-BY-4.0, and anyone can read them by URL without a key. Files of datasets
        and of licensed panels need a key of `min_tier`. A URL stays the same from edition to edition. Add
        `edition=<id>` to its query to read a kept edition; if your question names an edition, every URL in
        the answer does too. Range, `If-Range` and HEAD work, so a Parquet reader fetches only what it
        needs.
        """

    @asks("/v1/flags")
    def get_flags(
        self,
        *,
        country: str | None = None,
        ocid: str | None = None,
        buyer: str | None = None,
        supplier: str | None = None,
        indicator: Sequence[str] | None = None,
        as_of: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.FlagRow]:
        """Red flags of contracting processes, buyers and tenderers, as they could be raised on a day.

        The indicators are those of Cardinal, with its defaults, and those of the guide of the Open
        Contracting Partnership that releases can carry. The population is every process of the country,
        compiled from its releases up to that day. Cardinal's prices are compared in the currency of most
        bids. With `ocid` you get every indicator of that process; if one cannot be computed, `flagged` is
        null and `reason` says why. Otherwise you get only what is flagged. `buyer` and `supplier` keep the
        rows about that party and its processes, and `indicator` the rows of these indicators. A flag is a
        reason to look, not proof. Ordered by country, indicator, subject_type and subject. The method is
        explained at `/methodology/signals-v1/red-flags`.
        """

    @asks("/v1/fundamentals/{service_id}")
    def get_fundamentals(
        self,
        service_id: str,
        *,
        as_of: date | str | None = None,
        period_type: rows.PeriodType | None = None,
        vintages: rows.Vintages = "latest",
        line_items: Sequence[str] | None = None,
        order: rows.Order | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        proof: rows.Proof | None = None,
        all: bool = False,
    ) -> Answer[rows.FundamentalsRow]:
        """Point-in-time reported facts for one issuer.

        Ordered by period_end descending, period_type, line_item and vintage. Without `limit` the sample
        tier gets the first rows with `truncated: true`, paid tiers everything. `order=statement` puts the
        documented line items first (newest period first, in documented order), then all others. A cursor is
        valid for its own order only.
        """

    @asks("/v1/fundamentals/{service_id}/matrix")
    def get_fundamentals_matrix(
        self,
        service_id: str,
        line_item: str,
        *,
        period_type: rows.PeriodType | None = None,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        release: str = "all",
        edition: str | None = None,
        known_by: str | None = None,
    ) -> Answer[rows.FundamentalsMatrixRow]:
        """Every vintage of a line item side by side: a row for each period, a column for each release day.

        A cell is the figure known on that release day; `date` is the last day of the period. The rest is as
        in `/v1/series/{series}/matrix`. Figures with the same date differ in period_type, period_start,
        concept or unit. JSON always has these four fields; CSV, Arrow and Excel have only those that
        differ. Ordered by date, then by these.
        """

    @asks("/v1/issuers")
    def list_issuers(
        self,
        *,
        country: str | None = None,
        exchange: str | None = None,
        as_of: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.IssuerRow]:
        """The issuers known on a day: every issuer with a figure that was public by then.

        An issuer is listed from the day its first figure became public, and stays even if it is delisted or
        stops reporting. Take a backtest's universe from here, not from today's screen. Dates, `fact_count`,
        names, LEI and listings are those of the day; `country` and `exchange` filter by the country and
        listings of the day. Ordered by country (issuers without a country last), then service_id.
        """

    @asks("/v1/macro", "as_of")
    def get_macro(
        self,
        *,
        country: str | None = None,
        indicator: str | None = None,
        series: str | None = None,
        series_type: str | None = None,
        frequency: rows.Frequency | None = None,
        as_of: date | str | None = None,
        from_: date | int | str | None = None,
        to: date | int | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        proof: rows.Proof | None = None,
        all: bool = False,
    ) -> Answer[rows.MacroRow]:
        """Annual indicators of countries, or point-in-time series such as exchange rates and price indices.

        With `series` or `as_of` the answer is in series mode: the latest vintage of each value known on the
        day, ordered by series, series_type, frequency and country, then date descending. Otherwise it is in
        annual mode: the values of the tables captured last, ordered by country (alpha-2), indicator, then
        year descending. Annual values have no evidenced release date, so none is known with an `as_of`, and
        the envelope's `as_of` is null. A parameter of the other mode is a 400. Exchange rates are served as
        published, never inverted. If the source names no country, the row's country is that of the quoted
        currency (FX.EUR.ZAR: ZA; FX.USD.XOF: none). For an annual indicator as known on a day, ask for the
        series `WDI:<indicator>:<alpha-3 country>`, or for `series` with the indicator's code and `country`.
        If the series or indicator does not exist, the answer has no rows and `nearest` names close matches.
        If it belongs to the other mode, `hint` says so.
        """

    @asks("/v1/metrics/{service_id}", "omitted", "missing", "basis")
    def get_metrics(
        self,
        service_id: str,
        *,
        metric: rows.Metric | None = None,
        as_of: date | str | None = None,
        basis: rows.Basis | None = None,
        max_age: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.MetricsRow]:
        """Every metrics-v1 value for one issuer.

        The values are those that `/v1/screen` ranks, with the same rules for `as_of` and `basis`, ordered
        by metric. `omitted` counts the metrics without a value, by reason. `missing` names them; if a later
        filing restated or added figures, it lists those. Each row's `methodology_ref` names its formula,
        explained at `/methodology/<methodology_ref>`. For information only.
        """

    @asks("/v1/panel", "basis")
    def get_panel(
        self,
        from_: date | str,
        *,
        metrics: Sequence[str] | None = None,
        line_items: Sequence[str] | None = None,
        series: Sequence[str] | None = None,
        to: date | str | None = None,
        every: rows.Every = "month",
        country: str | None = None,
        exchange: str | None = None,
        issuers: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.IssuerDayRow]:
        """One row for each issuer and day, with every column as known on that day.

        A metric has its value from `/v1/metrics` with `basis=as_known`, a line item the latest full year's
        figure from `/v1/statements`, a series its latest observation. `missing` gives the reason for each
        empty cell; `age_days` counts the days since the year or the observation ended. An issuer has rows
        from the day its first figure became public. Ordered by country (issuers without a country last),
        then service_id and day; with `issuers`, by service_id and day. Needs the starter tier or above.
        """

    @asks("/v1/proof", "proof")
    def get_proof(
        self,
        record_ref: str,
        *,
        since_size: int | None = None,
        edition: str | None = None,
        known_by: str | None = None,
    ) -> Answer[rows.ProofRow]:
        """One row, with the proof that its edition has it.

        `proof` has the hashes from the row up to the signed checkpoint of the log of editions. `proof=true`
        adds the same to other answers, and `sankofa verify` checks them. With `since_size` it also proves
        that the log has only grown since it had that many entries. If the edition has no such row, the
        answer is a 404.
        """

    @asks("/v1/quality-metrics/{sku}")
    def get_quality_metrics(
        self,
        sku: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.QualityRow]:
        """Coverage and freshness of one dataset, ordered by measure.

        Each measure is compared with the floor that its sources set: `PASS`, `FAIL`, or `UNMEASURED` if
        there is a floor but no measurement, which is never a pass. For age, rejects and restatements the
        floor is a maximum; for every other measure it is a minimum.
        """

    @asks("/v1/restatements")
    def get_restatements(
        self,
        *,
        since: date | str | None = None,
        until: date | str | None = None,
        country: str | None = None,
        service_id: str | None = None,
        line_item: str | None = None,
        min_change: Decimal | float | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.RestatementRow]:
        """Reported figures that replaced earlier ones: from what, to what, when and by which document.

        One row for each vintage after the first. `since` and `until` bound the day on which the new figure
        became public, both included. If a filing restated the figure for a split, `split_ratio` is given.
        Ordered by available_at descending, service_id, period_end descending, line_item, concept, unit,
        period_start, then vintage. `/feeds/restatements.atom` has the newest rows as an Atom feed with the
        same parameters; `/feeds/company/{service_id}.atom` has those of one organisation.
        """

    @asks("/v1/screen", "omitted", "basis")
    def get_screen(
        self,
        metric: rows.Metric,
        *,
        order: rows.ScreenOrder = "desc",
        as_of: date | str | None = None,
        country: str | None = None,
        basis: rows.Basis | None = None,
        max_age: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.ScreenRow]:
        """Issuers ranked on a metric.

        Each issuer has the value of the latest full year published by `as_of`. A year whose figures were
        restated or completed later is left out, not replaced, and `omitted` counts it. With
        `basis=as_known` each value is computed from the figures known that day, so no later event leaves
        one out. Rows are ordered by `rank`, the position by size in the whole result; ties are ordered by
        service_id. It is not a rating.
        """

    @asks("/v1/search")
    def search(
        self,
        q: str,
        *,
        country: str | None = None,
        type: rows.Type | None = None,
        as_of: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.SearchRow]:
        """Organisations, series and indicators by name or identifier.

        Case, accents, legal forms, word order and small typing errors do not matter. Words may be
        incomplete, from three letters on. An exact identifier comes first: LEI, ticker (`JSE:NPN` or
        `NPN`), series key, indicator code; ISIN, registry number, FIGI and aggregator id from the starter
        tier on. Ordered by score descending, then type and id. With `country`, or words that name one (`gdp
        kenya`), it finds only indicators that the country has. With `as_of` it finds what was known on that
        day.
        """

    @asks("/v1/series")
    def list_series(
        self,
        *,
        country: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.SeriesCatalogueRow]:
        """The series and annual indicators that `/v1/macro` serves.

        Ordered by series, frequency and country. An annual indicator has one row for each country, with
        frequency `annual`, dates at the ends of its first and last year, and no vintages, because its
        tables have no evidenced release day. `q` keeps series with all its words in key or name; words may
        be incomplete. A word may also name the country of the series: `nigerian inflation`.
        """

    @asks("/v1/series/{series}/matrix")
    def get_series_matrix(
        self,
        series: str,
        *,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        release: str = "all",
        country: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
    ) -> Answer[rows.SeriesMatrixRow]:
        """Every vintage of a series side by side: a row for each date, a column for each release day.

        A cell is the value known on that release day, as `/v1/macro` returns it with `as_of`. Every release
        day known on `as_of` is a column, oldest first; `from` and `to` select rows, not columns. With
        `release=revisions` a cell is the value that replaced another on that day; dates and days without
        one are left out. With `first`, `latest` or a number the columns are `available_at` and `value` of
        that release of each date. Ordered by date. CSV, Arrow and Excel have `date` and these columns only.
        The sample tier gets the first rows with `truncated: true`, paid tiers everything. If several series
        share the key, choose one with `country`.
        """

    @asks("/v1/series/{series}/revisions")
    def get_series_revisions(
        self,
        series: str,
        *,
        as_of: date | str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
    ) -> Answer[rows.SeriesRevisionsRow]:
        """How far the values of a series were revised after their first release: size, bias, time to final.

        One row for each frequency and country under the key, computed from the vintages known on `as_of`.
        The latest vintage of that day counts as final. An annual indicator has no rows, because its tables
        have no evidenced release day. Ask for the series `WDI:<indicator>:<alpha-3 country>`.
        """

    @asks("/v1/series/{series}/vintages")
    def get_series_vintages(
        self,
        series: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.SeriesReleaseRow]:
        """The days on which values of a series were released, and how many each added or changed.

        Newest first, then by frequency and country where several series share the key. A release that
        changed nothing is not listed. An annual indicator has no releases: its tables have no evidenced
        release day.
        """

    @asks("/v1/shared/facts", "as_of")
    def get_shared_facts(
        self,
        *,
        entity_id: str | None = None,
        country: str | None = None,
        dataset: rows.SharedFactsDataset | None = None,
        as_of: date | str | None = None,
        measure: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.FactRow]:
        """Any dataset as entity, fact and provenance rows: the latest vintage of each value.

        Give exactly one of `entity_id` and `country`. For an organisation, `entity_id` selects its AF-FUND
        facts (the default), ordered as in `/v1/fundamentals`. With `dataset=AF-TENDER` it selects the
        contract awards it won, newest release first, then by ocid and award. For a country, give `country`
        and a `dataset`: AF-TENDER has the values of its tenders, newest release first, then by ocid; AF-
        MACRO has its series and indicators, newest period first, then by measure. The country's alpha-3
        code as `entity_id` selects its AF-MACRO facts too. `as_of` keeps the latest vintage available by
        that day. Annual macro values have no evidenced release date, so they are left out with any `as_of`,
        and an answer that holds one has a null `as_of`. An amount that is zero or not published is not a
        fact. Each winner of an award has the award's whole amount, known from the day of the release that
        reported it, not from the day of the award. `entity_name` is today's name, whatever the `as_of`.
        """

    @asks("/v1/signals/procurement-demand", "basis", rows_under="observations")
    def get_procurement_demand(
        self,
        *,
        country: str = "ZA",
        category: str | None = None,
        as_of: date | str | None = None,
        from_: date | str | None = None,
        to: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.ProcurementDemandRow]:
        """Category share, buyer concentration and momentum of public procurement, by month.

        Has months closed by `as_of` only, computed from releases dated by then. Ordered by month
        descending, then category. The method is at `/methodology/signals-v1/procurement-demand`.
        """

    @asks("/v1/signals/{signal_key}", "basis", rows_under="observations")
    def get_signal(
        self,
        signal_key: str,
        *,
        as_of: date | str | None = None,
        basis: rows.Basis | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.SignalRow]:
        """One published signal panel.

        Each panel has its own columns: `/methodology/signals-v1/<signal_key>` explains them, their order
        and the method. `basis` is for panels of issuers: fundamentals-factors, fundamentals-quality,
        fundamentals-revisions and issuer-persistence.
        """

    @asks("/v1/sources")
    def get_sources(
        self, *, edition: str | None = None, known_by: str | None = None
    ) -> Answer[rows.SourceRow]:
        """Publishers of the data, their licences and attributions.

        Lists every source with rows in the edition, ordered by source_id. `first_date` and `last_date` are
        dates of the data: period ends, releases or observations. `freshness_days` counts from the source's
        newest evidenced day of publication to the edition's last capture; it is null without such a day. A
        locked view lists the sources known on its day, with the rows known then, and counts to that day.
        """

    @asks("/v1/statements/{service_id}")
    def get_statement(
        self,
        service_id: str,
        *,
        as_of: date | str | None = None,
        period_type: rows.PeriodType | None = None,
        kind: rows.Kind | None = None,
        line_items: Sequence[str] | None = None,
        shape: rows.Shape = "long",
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.StatementRow]:
        """The statements of one issuer: one figure per line item and period.

        Each figure is the reported one that the metrics use, in one accounting standard and one currency
        per period. `alternatives` counts the other figures that `/v1/fundamentals` has for the line item
        and period. A line item has no row if the metrics compute it from several figures or leave it out.
        Ordered by period_end descending, period_type, then by line item as in a statement. `shape=wide`
        gives one row per line item with a column for each period, named by its period_end, newest first. If
        the standard or the currency changes, a new row begins. Without `period_type` the wide shape has
        full years only. Without `limit` the sample tier gets the first figures with `truncated: true`, paid
        tiers everything.
        """

    @asks("/v1/tender-parties")
    def get_resolved_parties(
        self,
        *,
        country: str | None = None,
        role: str | None = None,
        service_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.TenderPartyRow]:
        """Buyers and suppliers named in releases, resolved to organisations.

        `service_id` is set if an identifier matches, or a name that only one organisation of the country
        has. `match_method` says which, and `match_score` how sure the match is (`similar_name` is less than
        sure). Most releases first, then by name, role, country and identifier. Parties without evidence
        that they are organisations are withheld; `org_evidence` says why a party is served.
        """

    @asks("/v1/tenders", "filters")
    def search_tenders(
        self,
        *,
        country: str = "ZA",
        from_: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        query: str | None = None,
        detail: rows.Detail = "full",
        ocid: str | None = None,
        to: date | str | None = None,
        closing_from: date | str | None = None,
        closing_to: date | str | None = None,
        buyer: str | None = None,
        supplier: str | None = None,
        category: str | None = None,
        status: str | None = None,
        min_value: Decimal | float | None = None,
        buyer_query: str | None = None,
        supplier_query: str | None = None,
        method: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        proof: rows.Proof | None = None,
        all: bool = False,
    ) -> Answer[rows.TendersRow]:
        """Public tenders: OCDS releases, only from portals whose licences permit commercial redistribution.

        Newest release first, then by ocid and release id. Pass `next_cursor` back verbatim with the same
        filters to get the next page; it is null on the last page. Pages use the edition of the first page
        while it is kept, so every release comes exactly once; then they go on in the current one. `ocid`
        selects one process. Filters apply to the row's own values; a row without a value for a filter is
        left out. People are withheld: `withheld_parties` counts them.
        """

    @asks("/v1/usage")
    def get_usage(self, *, edition: str | None = None, known_by: str | None = None) -> Answer[rows.UsageRow]:
        """Usage and limits of the key, including this request.

        Limits hold per UTC minute and per UTC calendar month; `minute_reset_at` and `month_reset_at` say
        when the next begins. A key and the key it replaced share one count. The answer is never cached.
        """

    iter_changes = row_by_row(get_changes)
    iter_coverage = row_by_row(get_coverage)
    iter_cross_rates = row_by_row(get_cross_rates)
    iter_by_identifier = row_by_row(find_by_identifier)
    iter_crosswalk = row_by_row(get_crosswalk)
    iter_flags = row_by_row(get_flags)
    iter_fundamentals = row_by_row(get_fundamentals)
    iter_issuers = row_by_row(list_issuers)
    iter_macro = row_by_row(get_macro)
    iter_metrics = row_by_row(get_metrics)
    iter_panel = row_by_row(get_panel)
    iter_quality_metrics = row_by_row(get_quality_metrics)
    iter_restatements = row_by_row(get_restatements)
    iter_screen = row_by_row(get_screen)
    iter_search = row_by_row(search)
    iter_series = row_by_row(list_series)
    iter_series_vintages = row_by_row(get_series_vintages)
    iter_shared_facts = row_by_row(get_shared_facts)
    iter_procurement_demand = row_by_row(get_procurement_demand)
    iter_signal = row_by_row(get_signal)
    iter_statement = row_by_row(get_statement)
    iter_resolved_parties = row_by_row(get_resolved_parties)
    iter_tenders = row_by_row(search_tenders)


class AsyncClient(AsyncSession):
    """Asks the service with a key; awaited."""

    _ask = AsyncSession._request
    get_changes = awaited(Client.get_changes)
    iter_changes = paged(Client.iter_changes)
    check_claim = awaited(Client.check_claim)
    get_contract = awaited(Client.get_contract)
    get_coverage = awaited(Client.get_coverage)
    iter_coverage = paged(Client.iter_coverage)
    get_cross_rates = awaited(Client.get_cross_rates)
    iter_cross_rates = paged(Client.iter_cross_rates)
    find_by_identifier = awaited(Client.find_by_identifier)
    iter_by_identifier = paged(Client.iter_by_identifier)
    get_crosswalk = awaited(Client.get_crosswalk)
    iter_crosswalk = paged(Client.iter_crosswalk)
    get_entity = awaited(Client.get_entity)
    get_entity_history = awaited(Client.get_entity_history)
    get_export = awaited(Client.get_export)
    get_flags = awaited(Client.get_flags)
    iter_flags = paged(Client.iter_flags)
    get_fundamentals = awaited(Client.get_fundamentals)
    iter_fundamentals = paged(Client.iter_fundamentals)
    get_fundamentals_matrix = awaited(Client.get_fundamentals_matrix)
    list_issuers = awaited(Client.list_issuers)
    iter_issuers = paged(Client.iter_issuers)
    get_macro = awaited(Client.get_macro)
    iter_macro = paged(Client.iter_macro)
    get_metrics = awaited(Client.get_metrics)
    iter_metrics = paged(Client.iter_metrics)
    get_panel = awaited(Client.get_panel)
    iter_panel = paged(Client.iter_panel)
    get_proof = awaited(Client.get_proof)
    get_quality_metrics = awaited(Client.get_quality_metrics)
    iter_quality_metrics = paged(Client.iter_quality_metrics)
    get_restatements = awaited(Client.get_restatements)
    iter_restatements = paged(Client.iter_restatements)
    get_screen = awaited(Client.get_screen)
    iter_screen = paged(Client.iter_screen)
    search = awaited(Client.search)
    iter_search = paged(Client.iter_search)
    list_series = awaited(Client.list_series)
    iter_series = paged(Client.iter_series)
    get_series_matrix = awaited(Client.get_series_matrix)
    get_series_revisions = awaited(Client.get_series_revisions)
    get_series_vintages = awaited(Client.get_series_vintages)
    iter_series_vintages = paged(Client.iter_series_vintages)
    get_shared_facts = awaited(Client.get_shared_facts)
    iter_shared_facts = paged(Client.iter_shared_facts)
    get_procurement_demand = awaited(Client.get_procurement_demand)
    iter_procurement_demand = paged(Client.iter_procurement_demand)
    get_signal = awaited(Client.get_signal)
    iter_signal = paged(Client.iter_signal)
    get_sources = awaited(Client.get_sources)
    get_statement = awaited(Client.get_statement)
    iter_statement = paged(Client.iter_statement)
    get_resolved_parties = awaited(Client.get_resolved_parties)
    iter_resolved_parties = paged(Client.iter_resolved_parties)
    search_tenders = awaited(Client.search_tenders)
    iter_tenders = paged(Client.iter_tenders)
    get_usage = awaited(Client.get_usage)
