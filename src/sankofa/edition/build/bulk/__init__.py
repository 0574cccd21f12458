"""One file per group of tables that are published as Parquet (`build.tables`)."""
