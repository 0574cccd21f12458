"""Asks an operation on behalf of a caller, with parameters as text, as REST reads and admits them.

Surfaces other than REST call this, so that all rows pass the same checks.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final

import msgspec

from sankofa.operations.contract import Answer, Call, Operation, operations
from sankofa.operations.locked import perform

decode_answer: Final = msgspec.json.Decoder(float_hook=Decimal).decode
"""Reads the body of an answer, every digit of a figure kept."""


@cache
def _operations() -> Mapping[str, Operation]:
    return {operation.name: operation for operation in operations()}


def operation_named(name: str) -> Operation:
    return _operations()[name]


async def ask(call: Call, name: str, given: Mapping[str, Any]) -> Answer:
    """Perform an operation with these parameters as text. Raises the problem that REST would answer with."""
    operation = operation_named(name)
    return await perform(operation, call, arguments_of(operation, given, call))


def arguments_of(operation: Operation, given: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """All arguments, read and admitted as REST reads and admits them (contract: KEY-7).

    Reads them as a tool does if REST has no such operation or parameter.
    """
    path = {name: text for name, text in given.items() if f"{{{name}}}" in operation.path}
    query = {name: text for name, text in given.items() if name not in path}
    if not operation.path or not query.keys() <= operation.query.keys():
        arguments = operation.read_tool(given, call.today)
    else:
        read = dict(operation.argument(name, as_text(value), call.today) for name, value in query.items())
        arguments = operation.complete(read, call.today, path)
    operation.admit(call.grant, arguments)
    return arguments


def as_text(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)
