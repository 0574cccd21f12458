"""An operation: one typed function, and everything that the surfaces need to know about it.

The keyword parameters of the function are the endpoint's parameters, their annotations say how to read each,
and the docstring is the documentation.
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
from sankofa.edition.format.columns import TableColumn
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
MEMBERS: Final[dict[str, JsonSchema]] = toml_table("sankofa.operations", "members")
"""Schemas of members of the envelope, by name."""
NULLABLE_AS_OF: Final = {"as_of": MEMBERS["nullable_as_of"]}
"""The schema of `as_of` in the envelope, for answers that may hold annual macro values."""
BASIS: Final = {"basis": MEMBERS["basis"]}


class Encoded(tuple[bytes | memoryview, ...]):
    """A member of the envelope that is JSON already, in slices to be joined."""


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
    """Whether the request names its edition. If so, links in the answer name it too."""
    usage: Usage | None = None
    """The key's usage, this request included."""
    as_columns: bool = False
    """Whether the answer becomes a table, so that an operation may give columns instead of rows."""

    @property
    def lock(self) -> date | None:
        """The last day that a locked view shows, which is its `today`; None outside one (contract:
        LOCK-1)."""
        return self.edition.lock

    def basis(self, basis: Basis | None) -> Basis:
        """The basis of derived values: the requested one, or `current`. A locked view allows `as_known` only.

        Raises InvalidParameter for `current` in a locked view.
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
    """The day applied; sending it back gives the same rows. None if no day does that; unset without as_of."""
    members: dict[str, object] = {}
    edition_id: str | None = None
    """The edition that answered, if the cursor belongs to an older one; otherwise empty."""
    shape: type[Row] | None = None
    """The type of the rows, if the operation has several."""
    dataset: str | None = None
    """The dataset of the rows, if it depends on the request; see `Operation.dataset`."""
    more_columns: tuple[str, ...] = ()
    """Names of further columns of figures, beyond the fields of the row type."""
    tabular: tuple[str, ...] = ()
    """Columns of CSV, Arrow and Excel, in order; empty for all."""
    terms: Notice | None = None
    """The `_license` text, if it is not the dataset's."""

    absent: Absence | None = None
    """Why there are no rows."""
    columns: Sequence[TableColumn] | None = None
    """The values of each column, as `read_columns` gives them, in place of the rows of the selection."""


Perform = Callable[..., Awaitable[Answer]]
Check = Callable[[Grant, Mapping[str, Any]], None]
"""Rejects arguments that no edition could answer. Raises InvalidParameter, then UpgradeRequired."""


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    argument: str
    kind: ParameterType
    description: str
    required: bool
    default: object
    in_path: bool
    extension: bool = False
    """Whether it is an extension of the core API."""
    all_by_default: bool = False
    """For `limit`: whether omitting it asks for everything."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """How an operation looks to an agent, which has a small context and reads nothing else.

    `agents.toml` has the `description` and `narrow_by` of most.
    """

    description: str = ""
    """The tool's description; if empty, the endpoint's summary and description."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Arguments whose default differs from the endpoint's."""
    overflow: Mapping[str, object] = field(default_factory=dict)
    """Replace an argument that is None when not all rows fit, so the most useful rows come first."""
    narrow_by: Sequence[str] = ()
    """Arguments that a hint suggests for a shorter answer, under the tool's names."""
    compact: Callable[[bytes], bytes] | None = None
    """Shortens a row that is larger than an answer may be."""


@dataclass(slots=True, eq=False)
class Operation:
    """An endpoint, an OpenAPI entry and, where it has a tool, an MCP tool.

    Use it as a decorator. The decorated function gives the name, the parameters and the documentation.
    """

    path: str
    """Empty if it is a tool only."""
    _: KW_ONLY
    row: type[Row]
    also: tuple[type[Row], ...] = ()
    """Other types that its rows may have; one answer has one type."""
    tool: str | None = None
    tool_names: Mapping[str, str] = field(default_factory=dict)
    """The names of parameters on the MCP tool, where they differ: `from_date` for `from` if not given."""
    rows_under: str = "data"
    members: Mapping[str, JsonSchema] = field(default_factory=dict)
    """The schemas of envelope members that only this operation has."""
    dataset: str = EVERY_SOURCE
    """The dataset whose sources `_license` attributes: a sku, organisations, or every source."""
    extension: bool = False
    """Whether it is an extension of the core API."""
    extensions: tuple[str, ...] = ()
    """Parameters that are extensions of the core API."""
    live: bool = False
    """Whether the answer can change between two publications, so that it is never cached."""
    agent: AgentView = AgentView()
    """How the tool differs from the endpoint."""
    check: Check | None = None
    """Checks rules about several arguments."""
    malformed_id_is_unknown: bool = False
    """Whether a malformed id in its path is a 404, because the agreed API lists no 400 (contract: PAR-8)."""
    some_rows_paid: bool = False
    """Whether some of its rows need a paid tier, although it has no pages."""
    paid: bool = False
    """Whether the endpoint refuses the sample tier."""
    sample_pages: bool = False
    """Whether the sample tier gets further pages. Elsewhere they would defeat the cap on rows."""
    not_by_day: str = ""
    """Why a locked view gets no rows; empty if the operation can answer for a past day."""
    name: str = field(init=False)
    perform: Perform = field(init=False)
    summary: str = field(init=False)
    description: str = field(init=False)
    parameters: Mapping[str, Parameter] = field(init=False)
    query: Mapping[str, Parameter] = field(init=False)
    """The parameters that REST takes in the query."""
    defaults: Mapping[str, object] = field(init=False)
    shapes: tuple[type[Row], ...] = field(init=False)

    def __call__(self, perform: Perform) -> Perform:
        self.name, self.perform = perform.__name__, perform
        self.shapes = self.row, *self.also
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
        """Rejects, before an edition is opened, what no edition could answer (contract: KEY-7).

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
        """The error statuses it can return, for a request with an `edition` and for the sample tier too."""
        has_pages = self.parameters.keys() & {"limit", "cursor"}
        paid = (402,) if self.some_rows_paid or has_pages else ()
        return (400, 401, *paid, 404, 410, 414, 429, 431, 503)

    def notice(self, answer: Answer, edition: Edition) -> Notice:
        return answer.terms or edition.notice(self.dataset if answer.dataset is None else answer.dataset)

    def read(
        self,
        query: Mapping[str, Any],
        today: date,
        path: Mapping[str, Any] = {},
        defaults: Mapping[str, object] = {},
    ) -> dict[str, Any]:
        """All arguments: defaults, then those of a query, then those of a path.

        `path` also takes the arguments of a tool call, which do not distinguish path from query. Raises
        InvalidParameter or NotFound.
        """
        arguments = {**self.defaults, **defaults}
        for known, sent in (self.query, query), (self.parameters, path):
            for name, text in sent.items():
                if (parameter := known.get(name)) is None:
                    everywhere = (EDITION.name, KNOWN_BY.name, FORMAT.name) if sent is query else ()
                    accepted = ", ".join((*known, *everywhere)) or "none"
                    raise InvalidParameter(printable(name), f"no such parameter; expected one of: {accepted}")
                try:
                    arguments[parameter.argument] = parameter.kind.read(text, today)
                except ValueError as failure:
                    if parameter.in_path and (self.extension or self.malformed_id_is_unknown):
                        raise NotFound("No record with that identifier.") from None
                    raise InvalidParameter(name, str(failure)) from None
        if len(arguments) < len(self.parameters):
            missing = next(p.name for p in self.parameters.values() if p.argument not in arguments)
            raise InvalidParameter(missing, "required")
        return arguments


def optional_parameter(name: str, kind: ParameterType, description: str) -> Parameter:
    """A query parameter that no function takes."""
    return Parameter(name, name, kind, description, False, None, False, extension=True)


EDITION: Final = optional_parameter("edition", *get_args(parameters.Edition)[1:])
KNOWN_BY: Final = optional_parameter("known_by", *get_args(parameters.KnownBy)[1:])
FORMAT: Final = optional_parameter("format", *get_args(parameters.Format)[1:])

_OPERATIONS: dict[str, Operation] = {}
operation = Operation
"""Declares the function below it."""


@cache
def operations() -> tuple[Operation, ...]:
    """Every operation of every module in this package, ordered by path."""
    for module in pkgutil.iter_modules(sankofa.operations.__path__):
        importlib.import_module(f"sankofa.operations.{module.name}")
    return tuple(sorted(_OPERATIONS.values(), key=lambda o: (o.path, o.name)))


def endpoints() -> tuple[Operation, ...]:
    return tuple(operation for operation in operations() if operation.path)


def _parameters(perform: Perform, path: str, extensions: tuple[str, ...]) -> dict[str, Parameter]:
    hints = get_type_hints(perform, include_extras=True)
    parameters = {}
    for name, signature in inspect.signature(perform).parameters.items():
        if signature.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        _, kind, description, *marks = get_args(hints[name])
        required = signature.default is inspect.Parameter.empty
        # a trailing underscore, because `from` is a keyword of Python
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
    """A client's text, made safe to repeat in an error."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in name[:64]) or "(empty)"
