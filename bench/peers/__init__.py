"""The peers that answer the same questions: the bare server, Datasette and ROAPI."""
