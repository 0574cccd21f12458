"""Deprecation (contract: ERR-3): RFC 9745 and RFC 8594."""

from datetime import date, timedelta

import pytest

from sankofa.model.errors import SettingsError
from sankofa.rest.response import DEPRECATIONS, Deprecation, deprecation_headers

SINCE = date(2026, 1, 1)
KNOWN = ["/v1/macro"]
SUCCESSOR = "https://api.example/v2/macro"


def entry(days: int, successor: str = SUCCESSOR) -> dict[str, Deprecation]:
    return {"/v1/macro": Deprecation(SINCE, SINCE + timedelta(days=days), successor)}


def test_nothing_is_deprecated_at_present() -> None:
    assert not DEPRECATIONS
    assert deprecation_headers(DEPRECATIONS, KNOWN) == {}


def test_an_entry_tells_since_when_until_when_and_what_instead() -> None:
    assert deprecation_headers(entry(180), KNOWN) == {
        "/v1/macro": [
            (b"deprecation", b"@1767225600"),
            (b"sunset", b"Tue, 30 Jun 2026 00:00:00 GMT"),
            (b"link", b'<https://api.example/v2/macro>; rel="successor-version"'),
        ]
    }


@pytest.mark.rule("ERR-3")
@pytest.mark.parametrize("days", [179, 1, 0, -1])
def test_less_than_180_days_of_notice_is_refused(days: int) -> None:
    with pytest.raises(SettingsError, match="/v1/macro"):
        deprecation_headers(entry(days), KNOWN)


def test_an_entry_without_a_successor_is_refused() -> None:
    with pytest.raises(SettingsError, match="successor"):
        deprecation_headers(entry(365, successor=""), KNOWN)


def test_an_entry_for_a_path_that_no_endpoint_has_is_refused() -> None:
    with pytest.raises(SettingsError, match="/v1/macro"):
        deprecation_headers(entry(365), ["/v1/other"])
