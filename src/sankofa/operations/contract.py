"""What an operation is: one typed function, and what every surface needs to know of it.

The keyword parameters of the function are the parameters of the endpoint; their annotations say
how each is read; its docstring is the documentation.
"""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Final, get_args, get_type_hints

import msgspec

import sankofa.operations
from sankofa.access.cursors import Cursors
from sankofa.access.tiers import Grant
from sankofa.edition.read.edition import Edition, Notice, Selection
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.model.provenance import EVERY_SOURCE
from sankofa.model.rows import Row
from sankofa.operations.parameter_types import JsonSchema, ParameterType
from sankofa.operations.parameters import TOOL_ONLY, EditionParameter

NULLABLE_AS_OF: Final[Mapping[str, JsonSchema]] = {
    "as_of": {
        "type": ["string", "null"],
        "format": "date",
        "description": "The day applied: sent back, it gives the same rows. Null where annual values, which "
        "no day of release is evidenced for, are among them.",
    }
}
"""What the envelope says of `as_of` where an answer may hold annual macro."""


async def _none_kept(edition_id: str) -> Edition:
    raise NotFound(f"edition: {edition_id} was never published here.")


class Call(msgspec.Struct, frozen=True):
    """One authenticated question: to which edition, by whom, on which day."""

    edition: Edition
    grant: Grant
    today: date
    cursors: Cursors
    edition_for_cursor: Callable[[str], Awaitable[Edition]]
    """Another edition by its id, for a walk that began on it."""
    base_url: str = ""
    edition_to_compare: Callable[[str], Awaitable[Edition]] = _none_kept
    """Any kept edition by its id, for a question about two of them. Raises Gone or NotFound."""
    pinned: bool = False
    """Whether the question names its edition: then whatever its answer leads to is of that edition too."""

    def day_asked(self, as_of: date | None) -> date:
        """The day that a question is about: as it says, or today."""
        return as_of or self.today


class Answer(msgspec.Struct, frozen=True):
    """The rows of an answer, and the members its envelope has besides the common ones."""

    selection: Selection
    as_of: date | msgspec.UnsetType | None = msgspec.UNSET
    """The day that, sent back, gives the same rows; None where none does; unset where none is taken."""
    members: dict[str, object] = {}
    edition_id: str | None = None
    """Where it is not the edition that was asked."""
    shape: type[Row] | None = None
    """Which of its shapes the rows have, where the operation has several and there may be no row to tell."""
    dataset: str | None = None
    """Which dataset the rows are of, where that hangs on the question; see `Operation.dataset`."""


Perform = Callable[..., Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation."""

    name: str
    argument: str
    kind: ParameterType
    description: str
    required: bool
    default: object
    in_path: bool
    tool_only: bool


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An endpoint, an OpenAPI entry and, where it has a tool, an MCP tool."""

    name: str
    path: str
    perform: Perform
    parameters: Mapping[str, Parameter]
    row: type[Row]
    errors: tuple[int, ...]
    tool: str | None
    rows_under: str
    summary: str
    description: str
    tool_names: Mapping[str, str]
    members: Mapping[str, JsonSchema]
    """What its envelope has besides the common members, and what each is."""
    query: Mapping[str, Parameter]
    """The parameters that REST takes in the query."""
    defaults: Mapping[str, object]
    also: tuple[type[Row], ...] = ()
    """Other shapes its rows may have; all rows of one answer have the same."""

    dataset: str = EVERY_SOURCE
    """Whose sources `_license` names: those of a sku, of organisations, or all."""

    @property
    def shapes(self) -> tuple[type[Row], ...]:
        return self.row, *self.also

    def notice(self, answer: Answer, edition: Edition) -> Notice:
        """What `_license` says of an answer."""
        return edition.notice(self.dataset if answer.dataset is None else answer.dataset)

    def argument(self, name: str, text: str, today: date) -> tuple[str, Any]:
        """The argument that a parameter in a query stands for. Raises InvalidParameter."""
        return self._argument(name, text, self.query, today)

    def complete(self, given: Mapping[str, Any], today: date, path: Mapping[str, str] = {}) -> dict[str, Any]:
        """The arguments of the function, with those that a query gave. Raises InvalidParameter, NotFound."""
        arguments = {**self.defaults, **given}
        for name, text in path.items():
            parameter = self.parameters[name]
            try:
                arguments[parameter.argument] = parameter.kind.read(text, today)
            except ValueError as failure:
                if 400 not in self.errors:
                    raise NotFound("No record with that identifier.") from None
                raise InvalidParameter(name, str(failure)) from None
        return self._whole(arguments)

    def read_tool(self, given: Mapping[str, Any], today: date) -> dict[str, Any]:
        """The arguments of the function, from a tool call that names every parameter alike."""
        read = dict(self._argument(name, text, self.parameters, today) for name, text in given.items())
        return self._whole({**self.defaults, **read})

    def _argument(self, name: str, text: Any, known: Mapping[str, Parameter], today: date) -> tuple[str, Any]:
        parameter = known.get(name)
        if parameter is None:
            takes = ", ".join((*known, EDITION.name) if known is self.query else known) or "none"
            raise InvalidParameter(_shown(name), f"no such parameter; taken are: {takes}")
        try:
            return parameter.argument, parameter.kind.read(text, today)
        except ValueError as failure:
            if parameter.in_path and 400 not in self.errors:
                raise NotFound("No record with that identifier.") from None
            raise InvalidParameter(name, str(failure)) from None

    def _whole(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if len(arguments) < len(self.parameters):
            missing = next(p.name for p in self.parameters.values() if p.argument not in arguments)
            raise InvalidParameter(missing, "required")
        return arguments


EDITION: Final = Parameter(
    name="edition",
    argument="edition",
    kind=get_args(EditionParameter)[1],
    description=get_args(EditionParameter)[2],
    required=False,
    default=None,
    in_path=False,
    tool_only=False,
)
"""What every endpoint takes in its query besides: the edition that is to answer."""

_OPERATIONS: dict[str, Operation] = {}


def operation(
    path: str | None,
    *,
    row: type[Row],
    errors: tuple[int, ...],
    tool: str | None = None,
    rows_under: str = "data",
    tool_names: Mapping[str, str] | None = None,
    members: Mapping[str, JsonSchema] | None = None,
    also: tuple[type[Row], ...] = (),
    paid: bool = False,
    sample_walks: bool = False,
    dataset: str = EVERY_SOURCE,
) -> Callable[[Perform], Perform]:
    """Declare the function below as the operation at this path; None where it is a tool only.

    `errors` are the statuses section 4 of the specification lists for it; `tool_names` gives the
    name of a parameter on the MCP tool where it differs. A `paid` operation is a 402 on the sample tier,
    and so is a cursor, unless `sample_walks`: page by page, the cap of one answer would be no cap.
    `dataset` says whose sources `_license` names.
    """

    def declare(perform: Perform) -> Perform:
        summary, _, description = inspect.cleandoc(perform.__doc__ or "").partition("\n")
        parameters = _parameters(perform, path or "")
        _OPERATIONS[perform.__name__] = Operation(
            name=perform.__name__,
            path=path or "",
            perform=_tiered(perform, path or tool or "", paid=paid, sample_walks=sample_walks),
            parameters=parameters,
            row=row,
            errors=errors,
            tool=tool,
            rows_under=rows_under,
            summary=summary,
            description=description.strip(),
            tool_names=dict(tool_names or {}),
            members=dict(members or {}),
            query={p.name: p for p in parameters.values() if not (p.in_path or p.tool_only)},
            defaults={p.argument: p.default for p in parameters.values() if not p.required},
            also=also,
            dataset=dataset,
        )
        return perform

    return declare


def _tiered(perform: Perform, name: str, *, paid: bool, sample_walks: bool) -> Perform:
    """The function behind the check of the caller's tier, whichever surface calls it."""
    walked = "cursor" in inspect.signature(perform).parameters and not sample_walks
    if not paid and not walked:
        return perform

    @functools.wraps(perform)
    async def checked(call: Call, **arguments: Any) -> Answer:
        if paid:
            call.grant.requires_paid(name)
        elif arguments.get("cursor") is not None:
            call.grant.requires_paid(f"cursor: walking {name}")
        return await perform(call, **arguments)

    return checked


@cache
def operations() -> tuple[Operation, ...]:
    """Every operation in order of its path: each module of this package may declare some."""
    for module in pkgutil.iter_modules(sankofa.operations.__path__):
        importlib.import_module(f"sankofa.operations.{module.name}")
    return tuple(sorted(_OPERATIONS.values(), key=lambda o: (o.path, o.name)))


def endpoints() -> tuple[Operation, ...]:
    """The operations that REST has."""
    return tuple(operation for operation in operations() if operation.path)


def _parameters(perform: Perform, path: str) -> dict[str, Parameter]:
    hints = get_type_hints(perform, include_extras=True)
    parameters = {}
    for name, signature in inspect.signature(perform).parameters.items():
        if signature.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        _, kind, description, *marks = get_args(hints[name])
        required = signature.default is inspect.Parameter.empty
        # a trailing underscore keeps the specification's words (`from`) out of Python's way
        public = name.rstrip("_")
        parameters[public] = Parameter(
            public,
            name,
            kind,
            description,
            required,
            None if required else signature.default,
            f"{{{public}}}" in path,
            TOOL_ONLY in marks,
        )
    return parameters


def _shown(name: str) -> str:
    """A name the client made up, safe to repeat."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in name[:64]) or "(empty)"
