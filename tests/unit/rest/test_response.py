"""Deprecation (contract: ERR-3): RFC 9745 and RFC 8594."""

from datetime import date, timedelta

import pytest

from sankofa.model.errors import SettingsError
from sankofa.rest.response import Deprecation, deprecation_headers
from tests.every import every

SINCE = date(2026, 1, 1)
KNOWN = ["/v1/macro"]
SUCCESSOR = "https://api.example/v2/macro"


def entry(days: int, successor: str = SUCCESSOR) -> dict[str, Deprecation]:
    return {"/v1/macro": Deprecation(SINCE, SINCE + timedelta(days=days), successor)}


@pytest.mark.rule("ERR-3")
@every("days", [179, 1, 0, -1])
def test_less_than_180_days_of_notice_is_refused(days: int) -> None:
    with pytest.raises(SettingsError, match="/v1/macro"):
        deprecation_headers(entry(days), KNOWN)
