"""Log lines: text for people, JSON for machines. No key, query or address of a client is ever logged."""

import json
import logging
import sys
from datetime import UTC, datetime

from sankofa.settings import Settings


def configure(settings: Settings) -> None:
    """Log to stderr as the settings say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if settings.log_format == "json" else _Text())
    logger = logging.getLogger("sankofa")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(settings.log_level.upper())


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_when(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _when(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
