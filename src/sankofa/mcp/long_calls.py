"""Calls longer than any valid one: rejected without decoding their arguments.

To read a megabyte of small objects takes the SDK tens of milliseconds, for which every other request waits.
Here the bytes are only scanned, and the SDK gets the call without its arguments.
"""

from typing import Final

import msgspec

from sankofa.mcp.refusals import ContentTooLarge
from sankofa.model.errors import BadRequest, InvalidParameter
from sankofa.model.limits import limit

LONGEST_CALL: Final = limit(
    "MCP call of a tool", 64 * 1024, "bytes", "400, naming the longest argument of a call"
)
"""Five times the longest question that any tool takes."""
_LONGEST_NAME: Final = 64


class _Params(msgspec.Struct, rename={"meta": "_meta"}, omit_defaults=True):
    name: str
    arguments: dict[str, msgspec.Raw] | None = None
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Call(msgspec.Struct):
    jsonrpc: msgspec.Raw
    id: msgspec.Raw
    method: str
    params: _Params


_read = msgspec.json.Decoder(_Call).decode


def without_arguments(body: bytes) -> tuple[bytes, InvalidParameter]:
    """The message for the SDK, and what is wrong with it.

    Raises ContentTooLarge for a message that is no call, BadRequest for what is none at all.
    """
    try:
        call = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BadRequest("Not a call of a tool, and too long for any other message.") from None
    if call.method != "tools/call" or not call.params.arguments:
        raise ContentTooLarge(f"A message of at most {LONGEST_CALL} bytes is accepted.")
    name, _ = max(
        call.params.arguments.items(), key=lambda argument: len(argument[0]) + len(bytes(argument[1]))
    )
    call.params.arguments = None
    label = (
        name if name.isascii() and name.isprintable() and 0 < len(name) <= _LONGEST_NAME else "(an argument)"
    )
    return msgspec.json.encode(call), InvalidParameter(label, "longer than anything a tool takes")
