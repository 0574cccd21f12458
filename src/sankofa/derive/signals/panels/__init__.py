"""One file for each panel; every module of this package is loaded."""
