"""Which key a request carries."""

import pytest

from sankofa.access.keys import presented_key
from sankofa.model.errors import Unauthorized


def test_the_key_is_in_either_header() -> None:
    assert presented_key(["k"], []) == "k"
    assert presented_key([], ["Bearer k"]) == "k"
    assert presented_key([], ["bEARER   k "]) == "k"
    assert presented_key(["k"], ["Basic xyz"]) == "k"


@pytest.mark.parametrize(
    ("keys", "authorizations"),
    [
        ([], []),
        ([], ["k"]),
        ([], ["Basic k"]),
        ([], ["Bearer"]),
        (["k", "k"], []),
        (["k"], ["Bearer k"]),
        ([], ["Bearer k", "Bearer k"]),
        (["k"], ["Basic a", "Basic b"]),
    ],
)
def test_none_or_more_than_one_is_unauthorized(keys: list[str], authorizations: list[str]) -> None:
    with pytest.raises(Unauthorized):
        presented_key(keys, authorizations)
