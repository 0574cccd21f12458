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

        Use it to keep a copy up to date. Name the edition of your copy as `since`; without it every row is
        listed as added. Apply the rows in the order given, by `dataset` and `key`, and keep `edition` for
        the next time. The rows are every vintage of a fact, the latest vintage of a macro value, and
        current identifiers. Derived values are not listed. Ordered by dataset and key, tenders by day,
        newest first; then as served, removed rows last. A page may be short and still have a `next_cursor`.
        `edition` is that of the first page; where it is removed meanwhile, the pages go on in the current
        one, and `since` with it is a 410: start again. Needs the starter tier or above.
        """

    @asks("/v1/check")
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

        One row. `supported`: the latest figure known on `as_of` rounds to the claim as it is written.
        `supported_then`: an earlier vintage does, which was restated on `restated_at`. `contradicted`:
        there is a figure, and no vintage of it rounds to the claim; the row has the latest. `unknown`: no
        figure of that subject, measure and period is known, or its unit is another one. Units and
        currencies are never guessed.
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
        """One contracting process as it stood on a day: what its releases up to then add up to.

        One row. `release` is compiled by the merge rules of OCDS 1.1.5, without extensions, from every
        release with this ocid; releases of one instant are in the order of their ids. `set_by` names the
        release that set each value, and `changes` lists amounts, deadlines, statuses and suppliers that a
        release replaced. Before its first release a process has no row.
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

        No source publishes these rates: `method` is `derived`, and `inputs` name both published rates with
        their vintages, sources and licences. Both have the same date and were known on `as_of`. Exact
        arithmetic, rounded half-even to 10 significant digits. Ordered by `via`, then date descending:
        through each third currency there is a value of its own. Two currencies without a common third have
        no rows.
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

        `lei` and `ticker` work on any tier, the others need the starter tier or above. A registry number is
        unique only within its registry: where several organisations match, `ambiguous` is true. Under
        `as_of` the match is who had the identifier on that day, by the name of that day. At most 20 matches
        are returned, ordered by service_id.
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

        Under `as_of` those that it had on that day. Ordered by id_type, scheme and value. The LEI and the
        listing ticker are free on every tier; on the sample tier the other kinds are named in
        `withheld_id_types` instead of being returned, and the answer is `truncated`. `crosswalk_loaded` is
        false until identifiers were loaded.
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

        `/v1/search` finds organisations by name. An id that was merged into another answers with the
        surviving one in `service_id`; one that its register calls merged keeps its own record, and
        `successor` leads on. `predecessors` leads back: figures reported by a predecessor are under its own
        id. Under `as_of` the record has the names, status, listings and parents of that day; nobody known
        that day is no row. A parent consolidates its accounts; one that is not held has a LEI alone.
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
        """Everything that an organisation was called, with first and last days.

        One row for each name, status, legal form, jurisdiction, listing, identifier, parent, successor and
        predecessor. `from` is the first day on which it was known, `until` the last; null while it stands.
        Under `as_of` nothing later is told: an `until` after that day is null. The sample tier sees the LEI
        among the identifiers. Ordered by kind, then `from`.
        """

    @asks("/v1/export")
    def get_export(
        self, *, edition: str | None = None, known_by: str | None = None
    ) -> Answer[rows.ExportRow]:
        """The Parquet files of the current edition, ordered by name, and where to fetch them.

        Open panels are licensed CC-BY-4.0 and are read by their URL with no key. The files of the datasets
        and of the licensed panels need a key of `min_tier`. A URL stays the same from edition to edition;
        with `edition` and an id in its query it names one that is kept, and so does every URL where the
        question does. Range, `If-Range` and HEAD are answered, so that a reader of Parquet fetches no more
        than it needs.
        """

    @asks("/v1/flags")
    def get_flags(
        self,
        *,
        country: str | None = None,
        ocid: str | None = None,
        buyer: str | None = None,
        supplier: str | None = None,
        as_of: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        all: bool = False,
    ) -> Answer[rows.FlagRow]:
        """Red flags of contracting processes, buyers and tenderers, as they could be raised on a day.

        The indicators are those of Cardinal, with its defaults. The population is that day's: every process
        of the country, compiled from its releases up to then. Prices are compared in the currency that most
        bids have. With `ocid`: every indicator of the process, `flagged` null and a `reason` where it
        cannot be computed; otherwise what is flagged. `buyer` and `supplier` keep the rows about that party
        and about its processes. A flag is a reason to look, and proves nothing. Ordered by country,
        indicator, subject_type and subject. The method is explained at `/methodology/signals-v1/red-flags`.
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
        tier gets the first rows with `truncated: true`, paid tiers everything. `order=statement` gives the
        documented line items first, newest period first and in their documented order, then all others; a
        cursor goes on in the order it was given in.
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
        in `/v1/series/{series}/matrix`. Figures of the same date differ in period_type, period_start,
        concept or unit: JSON always has these, CSV, Arrow and Excel only those that tell rows of one date
        apart. Ordered by date, then by these.
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

        An issuer is in from the day its first figure was public and never leaves, whether it was delisted
        or stopped reporting since: draw a backtest's universe from here, not from today's screen. The dates
        and `fact_count` are those of that day, and so are names, LEI and listings. `country` and `exchange`
        select by the country and the listings of that day. Ordered by country, those of none last, then
        service_id.
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

        Series mode, where `series` or `as_of` is given: the latest vintage of each value known on the day,
        ordered by series, series_type, frequency and country, then date descending. Otherwise annual mode:
        the values of the tables captured last, ordered by country (alpha-2), indicator, then year
        descending; no release date is evidenced for them, so none is known under an `as_of`, and the
        envelope's is null. A parameter of the other mode is a 400. An exchange rate is served as it is
        published, never inverted; where its source names no country, it is of the one whose currency it is
        quoted in (FX.EUR.ZAR of ZA, FX.USD.XOF of none). An annual indicator as known on a day is the
        series `WDI:<indicator>:<alpha-3 country>`; `series` with the indicator's code and `country` is the
        same. Of a series or indicator that is not there, the answer has no rows and names in `nearest`
        those that are close; of one that belongs to the other mode, `hint` says so.
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

        The same values that `/v1/screen` ranks, under the same rules for `as_of` and `basis`, ordered by
        metric. `omitted` counts the metrics that have none, by reason. `missing` names them, with the
        figures that a later filing restated or added where that is the reason. Each row's `methodology_ref`
        names its formula, which is explained at `/methodology/` and that name. For information only.
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

        A metric is that of `/v1/metrics` with `basis=as_known`, a line item the figure of the latest full
        year that `/v1/statements` shows, a series its latest observation. `missing` has the reason for each
        empty cell, `age_days` the days since the year or the observation ended. An issuer has rows from the
        day on which its first figure was public. Ordered by country, those of none last, then service_id
        and day; with `issuers` by service_id and day. Needs the starter tier or above.
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
        """One row, with the proof that its edition had it.

        `proof` has the hashes that lead from the row to the signed checkpoint of the log of editions, as
        `proof=true` adds them to other answers; `sankofa verify` checks them. With `since_size` it also
        proves that the log only grew since it had so many entries. A row that the edition does not have is
        a 404.
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

        Each measure is held against the floor its sources set: `PASS`, `FAIL`, or `UNMEASURED` if there is
        a floor and no measurement, which is never a pass. For age, rejects and restatements the floor is a
        maximum; for every other measure it is a minimum.
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

        A row for each vintage after the first, of any period and line item. `since` and `until` are days on
        which the new figure became public, both included. Ordered by available_at descending, service_id,
        period_end descending, line_item, concept, unit, period_start, then vintage.
        `/feeds/restatements.atom` has the newest rows as an Atom feed, with the same parameters, and
        `/feeds/company/{service_id}.atom` those of one organisation.
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
        restated or completed later is left out, not replaced, and `omitted` counts it; with
        `basis=as_known` each value is computed from the figures known that day, and no later event leaves
        one out. Rows are ordered by `rank`, the position by size in the whole result, ties by service_id.
        It is not a rating.
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
        kenya`), an indicator is found where that country has it. Under `as_of` it finds who and what was
        known on that day.
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

        Ordered by series, frequency and country. An annual indicator has a row for each country, frequency
        `annual`, dates at the ends of its first and last year, and no vintages: its tables evidence no day
        of release. With `q`, those whose key or name has every word, or one that begins with it.
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

        A cell is the value known on that release day, as `/v1/macro` gives it with `as_of`. Every release
        day known on `as_of` is a column, oldest first, whatever `from` and `to`. With `release` the columns
        are `available_at` and `value`: of the first release of each date, the latest, or the n-th. Ordered
        by date. CSV, Arrow and Excel have `date` and these columns only. The sample tier gets the first
        rows with `truncated: true`, paid tiers everything. `country` chooses where several series share the
        key.
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
        The latest vintage of that day counts as final. An annual indicator has no rows: its tables evidence
        no day of release; ask for the series `WDI:<indicator>:<alpha-3 country>`.
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
        changed nothing is not listed. An annual indicator has none: its tables evidence no day of release.
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

        Exactly one of `entity_id` and `country` is given. An organisation's `entity_id` selects its AF-FUND
        facts (the default), ordered as `/v1/fundamentals` orders them, or with AF-TENDER the contract
        awards it won, the newest release first, then by ocid and award. A country, by `country` and a
        `dataset`, has AF-TENDER facts (the values of its tenders, the newest release first, then by ocid)
        and AF-MACRO facts (the newest period first, then by measure), which its alpha-3 code as `entity_id`
        selects too. `as_of` keeps what was available by that day, and of that the latest vintage; annual
        macro has no evidenced release date and is left out under any `as_of`, so that an answer with such a
        value says null for its own. An amount that is not published, or zero, is no fact. Each winner of an
        award has its whole amount, known from the day of the release that told it, not from the day of the
        award. `entity_name` is the name of today under any `as_of`.
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

        Only months closed by `as_of`, computed only from releases dated by then. Ordered by month
        descending, then category. The method is explained at `/methodology/signals-v1/procurement-demand`.
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

        Every panel has rows of its own; its method, its columns and their order are explained at
        `/methodology/signals-v1/` and its key. `basis` is for the panels of issuers: fundamentals-factors,
        fundamentals-quality, fundamentals-revisions and issuer-persistence.
        """

    @asks("/v1/sources")
    def get_sources(
        self, *, edition: str | None = None, known_by: str | None = None
    ) -> Answer[rows.SourceRow]:
        """Publishers of the data, their licences and attributions.

        Every source that the edition has rows of, ordered by source_id. The first and last date are those
        of the data: period ends, releases, observations. `freshness_days` counts from the newest day of
        publication that the source evidences to the edition's last capture, and is null if it evidences
        none. A locked view has the sources that something was known of, with what was known, and counts to
        its day.
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

        Each is the reported figure that the metrics use, in one accounting standard and one currency per
        period. `alternatives` counts the others that `/v1/fundamentals` has for the line item and period.
        An item that the metrics compute from several figures, or leave out, has no row. Ordered by
        period_end descending, period_type, then by line item as in a statement. `shape=wide` gives one row
        per line item with a column for each period, named by its period_end, newest first, and a new row
        where the standard or the currency changes; full years where `period_type` is omitted. Without
        `limit` the sample tier gets the first figures with `truncated: true`, paid tiers everything.
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

        `service_id` is given where an identifier, or a name that only one organisation of the country has,
        leads to it; `match_method` says which, `match_score` how sure it is (`similar_name`: less than
        sure). Most releases first, then by name, role, country and identifier. Parties not established to
        be organisations are withheld; `org_evidence` says why a party is not.
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
        method: str | None = None,
        edition: str | None = None,
        known_by: str | None = None,
        proof: rows.Proof | None = None,
        all: bool = False,
    ) -> Answer[rows.TendersRow]:
        """Public tenders: OCDS releases, only from portals whose licences permit commercial redistribution.

        Newest release first, then by ocid and release id. A page ends with `next_cursor`, to be passed back
        verbatim with the same filters; null on the last page. Pages stay on the edition of the first one
        while it is kept, so that every release comes exactly once; then they go on in the current one.
        `ocid` gives one process. All filters apply to the row's own values; a row without one is left out.
        People are withheld: `withheld_parties` counts them.
        """

    @asks("/v1/usage")
    def get_usage(self, *, edition: str | None = None, known_by: str | None = None) -> Answer[rows.UsageRow]:
        """Usage and limits of the key, including this request.

        Limits hold per UTC minute and per UTC calendar month; `minute_reset_at` and `month_reset_at` say
        when the next begins. A key that replaced another is counted together with it. The answer is never
        cached.
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

    _ask = AsyncSession._asked
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
