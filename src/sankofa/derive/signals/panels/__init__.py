"""One file for each panel; it is found by being here."""
