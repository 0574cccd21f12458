"""An operation: one typed function, and everything that the surfaces need to know about it.

The keyword parameters of the function are the parameters of the endpoint; their annotations say how each
is read; its docstring is the documentation.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date
from functools import cache
from typing import Any, Final, get_args, get_type_hints

import msgspec

import sankofa.operations
from sankofa.access.records import Cursors
from sankofa.access.tiers import Grant, Usage
from sankofa.edition.read.edition import Edition, Notice, Selection
from sankofa.model.errors import Absence, InvalidParameter, NotFound
from sankofa.model.provenance import EVERY_SOURCE
from sankofa.model.rows import Row
from sankofa.model.text import toml_table
from sankofa.operations import parameters
from sankofa.operations.parameter_types import JsonSchema, ParameterType
from sankofa.operations.parameters import ALL_BY_DEFAULT, Basis

NO_ROWS: Final = Selection((), 0, truncated=False)
_AGENTS: Final[dict[str, dict[str, Any]]] = toml_table("sankofa.operations", "agents")
MEMBERS: Final = toml_table("sankofa.operations", "members")
"""Schemas of members of the envelope, by name."""
NULLABLE_AS_OF: Final[Mapping[str, JsonSchema]] = {"as_of": MEMBERS["nullable_as_of"]}
"""The schema of `as_of` in the envelope where an answer may hold annual macro."""
BASIS: Final[dict[str, JsonSchema]] = {
    "basis": {
        "type": "string",
        "enum": list(get_args(Basis)),
        "description": "The figures that values are computed from: today's, or those known on `as_of`.",
    }
}
"""The schema of `basis` in the envelope."""


async def no_such_edition(edition_id: str) -> Edition:
    raise NotFound(f"edition: {edition_id} was never published here.")


class Call(msgspec.Struct, frozen=True):
    """One authenticated request: the edition that answers it, who sent it, and on which day."""

    edition: Edition
    grant: Grant
    today: date
    cursors: Cursors
    edition_for_cursor: Callable[[str], Awaitable[Edition]]
    """Opens the edition a cursor was issued on, by its id."""
    base_url: str = ""
    edition_to_compare: Callable[[str], Awaitable[Edition]] = no_such_edition
    """Opens any kept edition by its id, to compare two. Raises Gone or NotFound."""
    pinned: bool = False
    """Whether the request names its edition; links in the answer then name it too."""
    usage: Usage | None = None
    """The usage of the key after this request."""

    @property
    def lock(self) -> date | None:
        """The day that this request cannot see beyond, which is then its `today`; None outside of locked
        views (contract: LOCK-1)."""
        return self.edition.lock

    def basis(self, basis: Basis | None) -> Basis:
        """The basis of derived values: as asked, or `current`. A locked view has `as_known` only.

        Raises InvalidParameter for another one there.
        """
        if self.lock is None:
            return basis or "current"
        if basis == "current":
            raise InvalidParameter("basis", "`current` values depend on later days; this view has `as_known`")
        return "as_known"


class Answer(msgspec.Struct, frozen=True):
    """The rows of an answer, and the envelope members that only this operation has."""

    selection: Selection
    as_of: date | msgspec.UnsetType | None = msgspec.UNSET
    """The day applied. Sending it again gives the same rows. None if no day does; unset without as_of."""
    members: dict[str, object] = {}
    edition_id: str | None = None
    """The edition that answered, if a cursor led to an older one; otherwise empty."""
    shape: type[Row] | None = None
    """The type of the rows, where the operation has several."""
    dataset: str | None = None
    """The dataset of the rows, where it depends on the request; see `Operation.dataset`."""
    more_columns: tuple[str, ...] = ()
    """Figures that the rows have besides the fields of their type, by name."""
    tabular: tuple[str, ...] = ()
    """The only columns of CSV, Arrow and Excel, in order; all where empty."""
    terms: Notice | None = None
    """The `_license` text, where it is not that of the dataset."""

    absent: Absence | None = None
    """Why there are no rows."""


Perform = Callable[..., Awaitable[Answer]]
Check = Callable[[Grant, Mapping[str, Any]], None]
"""Refuses arguments that no edition could answer. Raises InvalidParameter, then UpgradeRequired."""


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
    extension: bool = False
    """Whether it goes beyond the core API."""
    all_by_default: bool = False
    """For `limit`: whether omitting it asks for everything."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """How an operation presents itself to an agent, who has a small window and reads nothing else.

    `agents.toml` has the `description` and `narrow_by` of most.
    """

    description: str = ""
    """The description of the tool; the summary and description of the endpoint where empty."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Arguments whose default differs from the endpoint's."""
    overflow: Mapping[str, object] = field(default_factory=dict)
    """Arguments used instead of None if not all rows fit, so that the most useful rows come first."""
    narrow_by: Sequence[str] = ()
    """The arguments that a hint names, as the tool calls them."""
    compact: Callable[[bytes], bytes] | None = None
    """Shortens a row that alone exceeds the size of an answer."""


@dataclass(slots=True, eq=False)
class Operation:
    """An endpoint, an OpenAPI entry and, where it has a tool, an MCP tool.

    A decorator of the function that performs it, which gives its name, its parameters and its documentation.
    """

    path: str
    """Empty if it is a tool only."""
    _: KW_ONLY
    row: type[Row]
    errors: tuple[int, ...] = (400, 401, 402, 429, 503)
    """The statuses that the agreed API lists for it (contract: SPEC-2, PAR-8); by default those of lists."""
    also: tuple[type[Row], ...] = ()
    """Other shapes its rows may have; all rows of one answer have the same."""
    tool: str | None = None
    tool_names: Mapping[str, str] = field(default_factory=dict)
    """The names of parameters on the MCP tool, where they differ: `from_date` for `from` if not given."""
    rows_under: str = "data"
    members: Mapping[str, JsonSchema] = field(default_factory=dict)
    """The schemas of envelope members that only this operation has."""
    dataset: str = EVERY_SOURCE
    """The dataset whose sources `_license` attributes: a sku, organisations, or every source."""
    extension: bool = False
    """Whether it goes beyond the core API."""
    extensions: tuple[str, ...] = ()
    """The parameters that do."""
    live: bool = False
    """Whether the answer changes between two publications: it is then never cached."""
    agent: AgentView = AgentView()
    """The differences of the tool from the endpoint."""
    check: Check | None = None
    """For rules about several arguments."""
    paid: bool = False
    """Whether the sample tier is refused."""
    sample_pages: bool = False
    """Whether the sample tier gets further pages: elsewhere the cap of one answer would be no cap."""
    not_by_day: str = ""
    """Why a locked view has no rows of it; empty if it can answer for a past day."""
    name: str = field(init=False)
    perform: Perform = field(init=False)
    summary: str = field(init=False)
    description: str = field(init=False)
    parameters: Mapping[str, Parameter] = field(init=False)
    query: Mapping[str, Parameter] = field(init=False)
    """The parameters that REST takes in the query."""
    defaults: Mapping[str, object] = field(init=False)

    def __call__(self, perform: Perform) -> Perform:
        self.name, self.perform = perform.__name__, perform
        self.summary, _, description = inspect.cleandoc(perform.__doc__ or "").partition("\n")
        self.description = description.strip()
        self.parameters = _parameters(perform, self.path, self.extensions)
        self.query = {p.name: p for p in self.parameters.values() if not p.in_path}
        if self.tool and not self.tool_names:
            self.tool_names = {name: f"{name}_date" for name in ("from", "to") if name in self.parameters}
        self.defaults = {p.argument: p.default for p in self.parameters.values() if not p.required}
        self.agent = replace(self.agent, **_AGENTS.get(self.tool or "", {}))
        _OPERATIONS[self.name] = self
        return perform

    def with_perform(self, perform: Perform) -> "Operation":
        other = copy(self)
        other.perform = perform
        return other

    def admit(self, grant: Grant, arguments: Mapping[str, Any]) -> None:
        """Refuses what no edition could answer, before an edition is opened (contract: KEY-7).

        Every surface calls it before `perform`. Raises InvalidParameter or UpgradeRequired.
        """
        if self.check is not None:
            self.check(grant, arguments)
        if self.paid:
            grant.requires_paid(self.path or self.tool or "")
        if not self.sample_pages and arguments.get("cursor") is not None:
            grant.requires_paid(f"cursor: walking {self.path or self.tool}")
        if arguments.get("limit") is not None:
            grant.rows(arguments["limit"])

    @property
    def statuses(self) -> tuple[int, ...]:
        """The statuses it can refuse with: those of any request that names an `edition`, and 402 where paid
        tiers have more."""
        has_pages = self.parameters.keys() & {"limit", "cursor"}
        paid = (402,) if 402 in self.errors or has_pages else ()
        return (400, 401, *paid, 404, 410, 414, 429, 431, 503)

    @property
    def shapes(self) -> tuple[type[Row], ...]:
        return self.row, *self.also

    def notice(self, answer: Answer, edition: Edition) -> Notice:
        """The `_license` text of an answer."""
        return answer.terms or edition.notice(self.dataset if answer.dataset is None else answer.dataset)

    def read(
        self,
        query: Mapping[str, Any],
        today: date,
        path: Mapping[str, Any] = {},
        defaults: Mapping[str, object] = {},
    ) -> dict[str, Any]:
        """All arguments: defaults, then those of a query, then those of a path.

        `path` takes the arguments of a tool call too, where the two are not told apart. Raises
        InvalidParameter or NotFound.
        """
        arguments = {**self.defaults, **defaults}
        for known, given in (self.query, query), (self.parameters, path):
            for name, text in given.items():
                if (parameter := known.get(name)) is None:
                    everywhere = (EDITION.name, KNOWN_BY.name, FORMAT.name) if given is query else ()
                    accepted = ", ".join((*known, *everywhere)) or "none"
                    raise InvalidParameter(printable(name), f"no such parameter; taken are: {accepted}")
                try:
                    arguments[parameter.argument] = parameter.kind.read(text, today)
                except ValueError as failure:
                    # A malformed id is a 400 where the agreed API lists one, else a 404 (contract: PAR-8).
                    if parameter.in_path and (self.extension or 400 not in self.errors):
                        raise NotFound("No record with that identifier.") from None
                    raise InvalidParameter(name, str(failure)) from None
        if len(arguments) < len(self.parameters):
            missing = next(p.name for p in self.parameters.values() if p.argument not in arguments)
            raise InvalidParameter(missing, "required")
        return arguments


def _of_every_endpoint(name: str, annotation: Any) -> Parameter:
    _, kind, description = get_args(annotation)
    return Parameter(name, name, kind, description, False, None, False, extension=True)


EDITION: Final = _of_every_endpoint("edition", parameters.Edition)
"""The query parameter that every endpoint takes: the edition that is to answer."""
KNOWN_BY: Final = _of_every_endpoint("known_by", parameters.KnownBy)
"""The query parameter that every endpoint takes: the instant whose edition is to answer."""
FORMAT: Final = _of_every_endpoint("format", parameters.Format)
"""The query parameter that every endpoint takes: the form of the answer."""

_OPERATIONS: dict[str, Operation] = {}
operation = Operation
"""Declares the function below it."""


@cache
def operations() -> tuple[Operation, ...]:
    """Every operation in order of its path: each module of this package may declare some."""
    for module in pkgutil.iter_modules(sankofa.operations.__path__):
        importlib.import_module(f"sankofa.operations.{module.name}")
    return tuple(sorted(_OPERATIONS.values(), key=lambda o: (o.path, o.name)))


def endpoints() -> tuple[Operation, ...]:
    """The operations that REST has."""
    return tuple(operation for operation in operations() if operation.path)


def _parameters(perform: Perform, path: str, extensions: tuple[str, ...]) -> dict[str, Parameter]:
    hints = get_type_hints(perform, include_extras=True)
    parameters = {}
    for name, signature in inspect.signature(perform).parameters.items():
        if signature.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        _, kind, description, *marks = get_args(hints[name])
        required = signature.default is inspect.Parameter.empty
        # a trailing underscore keeps the words of the API (`from`) out of Python's way
        public = name.rstrip("_")
        parameters[public] = Parameter(
            public,
            name,
            kind,
            description,
            required,
            None if required else signature.default,
            f"{{{public}}}" in path,
            public in extensions,
            ALL_BY_DEFAULT in marks,
        )
    return parameters


def printable(name: str) -> str:
    """A name sent by the client, made safe to repeat in an error."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in name[:64]) or "(empty)"
