"""What the sqlite3 module raises for a file that is damaged, full or in use."""

import sqlite3
from typing import Final

SQLITE_FAILURES: Final = (sqlite3.Error, UnicodeDecodeError)
"""SQLite names what is wrong: where the damage is in a name, Python cannot read its message."""
