"""OCDS releases: what of a release is kept, which of its parties may be named, and what it says in short."""
