"""Which key a request carries: the same rule on every surface (contract: KEY-1)."""

from collections.abc import Sequence

from sankofa.model.errors import Unauthorized

_BEARER = "bearer "


def presented_key(api_keys: Sequence[str], authorizations: Sequence[str]) -> str:
    """The key in `X-API-Key` or in `Authorization: Bearer`, given every value of both header fields.

    Raises Unauthorized where there is none, or more than one: which of them counts is not ours to guess.
    Another scheme than Bearer is somebody else's, a proxy's for example, and carries no key.
    """
    if len(api_keys) == 1 and not authorizations:  # nearly every request
        return api_keys[0]
    if len(authorizations) > 1:
        raise Unauthorized("Send exactly one Authorization header.")
    tokens = [text[len(_BEARER) :].strip(" ") for text in authorizations if text[:7].lower() == _BEARER]
    if len(api_keys) + len(tokens) > 1:
        raise Unauthorized("Send exactly one API key, in X-API-Key or as Authorization: Bearer.")
    for key in (*api_keys, *tokens):
        return key
    raise Unauthorized()
