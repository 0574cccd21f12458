"""Inline XBRL: what is looked at before a report is opened, and the process that opens it."""
