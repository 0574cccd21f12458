"""What Schemathesis checks besides its own checks, and what it cannot know."""

from typing import Any

import schemathesis

UNLISTED = {400, 405, 414, 431}
"""What any endpoint may answer under `default`: a request that is no question of ours at all."""


@schemathesis.check
def status_is_listed_or_a_plain_refusal(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """`default` would let any status pass `status_code_conformance`; section 4 lists them one by one."""
    if response.request.method != "GET":
        return
    listed = {int(status) for status in case.operation.responses.status_codes if status.isdigit()}
    assert response.status_code in listed | UNLISTED, (
        f"{response.status_code} is not among {sorted(listed)} of {case.operation.label}"
    )


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Leaves out what only prose can rule out: a schema says nothing of two parameters together."""
    query = case.query or {}
    if case.path == "/v1/crosswalk" and query.get("id_type") == "ticker":
        exchange, colon, ticker = "".join(str(query.get("id_value")).split()).partition(":")
        return bool(exchange and colon and ticker)
    if case.path == "/v1/shared/facts":
        return _is_one_question(query)
    return True


def _is_one_question(query: dict[str, Any]) -> bool:
    """Whether one entity or country is asked about, and a dataset that it has."""
    entity, country, dataset = (query.get(name) for name in ("entity_id", "country", "dataset"))
    if (entity is None) == (country is None):
        return False
    if country is not None:
        return dataset in ("AF-TENDER", "AF-MACRO")
    return dataset != "AF-MACRO" if str(entity).startswith("DC") else dataset in (None, "AF-MACRO")


@schemathesis.hook
def before_add_examples(context: schemathesis.HookContext, examples: list[schemathesis.Case[Any]]) -> None:
    """The examples of the parameters make one question together, but for those of another mode."""
    for case in examples:
        if case.path == "/v1/shared/facts" and case.query:
            case.query.pop("country", None)
