"""OCDS releases: the fields that are stored, the parties that may be named, and a summary of each."""
