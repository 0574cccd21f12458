"""A contracting process compiled from its releases, by OCDS 1.1.5 without extensions.

A release's values replace earlier ones; objects in a list are identified by `id`; null removes a value. A
null amount replaces the feeds' zero, so it changes nothing. Each value has the release that set it;
repeating a value does not set it again.
"""

from typing import Annotated, Any, Final, NamedTuple

import msgspec

from sankofa.model.rows import doc, instant, one_of

Json = Any
Path = tuple[str, ...]

_OMITTED: Final = frozenset({"id", "date", "tag"})
_PARTIES: Final = (
    "parties", "buyer", "tender/procuringEntity", "tender/tenderers", "awards/suppliers",
    "contracts/implementation/transactions/payer", "contracts/implementation/transactions/payee",
)  # fmt: skip
_AMENDED: Final = ("tender", "awards", "contracts")
_WHOLE: Final = frozenset(
    tuple(path.split("/"))
    for path in (
        "parties/roles",
        "tender/additionalProcurementCategories",
        "tender/submissionMethod",
        "relatedProcesses/relationship",
        "contracts/relatedProcesses/relationship",
        *(f"{party}/additionalIdentifiers" for party in _PARTIES),
        *(f"{part}/items/additionalClassifications" for part in _AMENDED),
        *(f"{part}/{name}/changes" for part in _AMENDED for name in ("amendments", "amendment")),
    )
)
"""Lists that a later release replaces as a whole, by the schema of OCDS 1.1.5."""
_FOLLOWED: Final = {
    ("tender", "value", "amount"): "amount",
    ("awards", "value", "amount"): "amount",
    ("contracts", "value", "amount"): "amount",
    ("tender", "tenderPeriod", "endDate"): "deadline",
    ("tender", "status"): "status",
    ("awards", "status"): "status",
    ("contracts", "status"): "status",
}
_FOLLOWED_NAMES: Final = frozenset(fields[-1] for fields in _FOLLOWED)
_NEVER: Final = object()
_Items = dict[tuple[Path, object], tuple[dict[str, Json], str]]
"""The objects in lists by the path of the list and their id, each with its JSON pointer."""


class _Item(str):
    """A step of a path to an object in a list. It compares as the text of its id."""

    __slots__ = ("identifier", "original")

    def __new__(cls, identifier: object, original: object) -> "_Item":
        step = super().__new__(cls, str(identifier))
        step.identifier = identifier
        step.original = original
        return step

    identifier: object
    original: object


class SetBy(msgspec.Struct, frozen=True):
    """The release that set a value."""

    release_id: Annotated[str, doc("Identifier of the release within its process.")]
    release_date: Annotated[str, instant("Its date, an instant in UTC.")]


class ContractChange(msgspec.Struct, frozen=True):
    """A value that a release replaced."""

    field: Annotated[str, one_of(("amount", "deadline", "status", "supplier"), "What changed.")]
    path: Annotated[str, doc("JSON pointer into `release`.")]
    old: Annotated[Any, doc("Value before: an amount, a text, or the names of suppliers; null if none.")]
    new: Annotated[Any, doc("Value set by the release; null if it removed the value.")]
    release_id: Annotated[str, doc("Release that changed it.")]
    release_date: Annotated[str, instant("Its date, an instant in UTC.")]


class CompiledRelease(NamedTuple):
    """A process on a day."""

    release: dict[str, Json]
    set_by: dict[str, SetBy]
    """By JSON pointer into the release."""
    changes: list[ContractChange]


class Process:
    """The releases of a process, added oldest first."""

    def __init__(self) -> None:
        self._values: dict[Path, Json] = {}
        self._set_by: dict[Path, SetBy] = {}
        self._latest: dict[str, Json] = {}
        """By field, its value in the last release that had it; an equal value is skipped."""
        self._unnamed: set[Path] = set()
        """Lists with objects without an id, and their parents: each such object counts as a new one."""
        self._unnamed_count = 0
        self._had: set[Path] = set()
        self._suppliers: dict[Path, dict[_Item, str | None]] = {}
        self._supplier_names: dict[Path, list[str]] = {}
        self._changes: list[tuple[str, Path, Json, Json, SetBy]] = []
        self._head: dict[str, tuple[Json, SetBy]] = {}

    def add(self, release: dict[str, Json], by: SetBy) -> None:
        """The next release. Its `date` is as published."""
        named: dict[Path, Json] = {}
        self._flatten(release, self._latest, (), (), named)
        self._latest.update(release)
        named.pop(("ocid",), None)
        ocid, released = release.get("ocid"), release.get("date")
        first = self._head["ocid"][1] if "ocid" in self._head else by
        self._head = {
            "ocid": (ocid, first), "id": (f"{ocid}-{released}", by), "date": (released, by),
            "tag": (["compiled"], by),
        }  # fmt: skip
        awards: dict[Path, None] = {}
        for path, value in named.items():
            old = self._values.get(path, _NEVER)
            self._values[path] = value
            if old is _NEVER or old != value:
                self._set_by[path] = by
                self._follow(path, old, value, by, awards)
        for award in awards:
            self._follow_suppliers(award, by)

    def _flatten(
        self, value: dict[str, Json], known_before: Json, path: Path, rule: Path, named: dict[Path, Json]
    ) -> None:
        """The values of an object by path, without those seen before."""
        for key, inner in value.items():
            at, within = (*path, key), (*rule, key)
            if not path and key in _OMITTED:
                continue
            if within in _WHOLE or not _has_parts(inner):
                if inner is not None or key != "amount":
                    named[at] = inner
            elif inner:
                before = known_before.get(key) if type(known_before) is dict else None
                if before == inner and within not in self._unnamed:
                    continue
                if type(inner) is dict:
                    self._flatten(inner, before, at, within, named)
                else:
                    self._flatten_list(inner, before if type(before) is list else [], at, within, named)

    def _flatten_list(
        self, items: list[Json], before: list[Json], path: Path, rule: Path, named: dict[Path, Json]
    ) -> None:
        known = {str(one["id"]): one for one in before if type(one) is dict and "id" in one}
        ids = [str(one["id"]) for one in items if "id" in one]
        if len(known) != len(before) or len(set(ids)) != len(ids):  # one value would hide the other
            known = {}
        for item in items:
            if "id" in item:
                step = _Item(item["id"], item["id"])
                earlier = known.get(step)
                if earlier == item and rule not in self._unnamed:
                    continue
            else:
                self._unnamed_count += 1
                step, earlier = _Item(f"\0{self._unnamed_count}", None), None
                self._unnamed.update(rule[:n] for n in range(1, len(rule) + 1))
            self._flatten(item, earlier, (*path, step), rule, named)

    def _follow(self, path: Path, old: Json, new: Json, by: SetBy, awards: dict[Path, None]) -> None:
        if path[-1] not in _FOLLOWED_NAMES and not (path[0] == "awards" and "suppliers" in path):
            return
        fields = tuple(part for part in path if type(part) is not _Item)
        if field := _FOLLOWED.get(fields):
            if path in self._had:
                self._changes.append((field, path, None if old is _NEVER else old, new, by))
            if new is not None:
                self._had.add(path)
        elif fields[:2] == ("awards", "suppliers") and len(path) > 3 and type(path[3]) is _Item:
            suppliers = self._suppliers.setdefault(path[:2], {})
            suppliers.setdefault(path[3], None)
            if fields[2:] == ("name",):
                suppliers[path[3]] = new
            awards[path[:2]] = None

    def _follow_suppliers(self, award: Path, by: SetBy) -> None:
        names = [
            name or self._values.get(("parties", supplier, "name"))
            for supplier, name in self._suppliers[award].items()
        ]
        served = list(dict.fromkeys(name for name in names if name))
        before = self._supplier_names.get(award)
        if before and before != served:
            self._changes.append(("supplier", (*award, "suppliers"), before, served, by))
        self._supplier_names[award] = served

    def compiled(self, *, evidence: bool = True) -> CompiledRelease:
        """`evidence`: with `set_by` and `changes`, which take most of the time."""
        release: dict[str, Json] = {name: value for name, (value, _) in self._head.items()}
        set_by = {f"/{name}": by for name, (_, by) in self._head.items()}
        items: _Items = {}
        for path, value in self._values.items():
            pointer = _put(release, items, path, value, points=evidence)
            if evidence and pointer is not None and value is not None:
                set_by[pointer] = self._set_by[path]
        if not evidence:
            return CompiledRelease(release, {}, [])
        pointers = {tuple(map(str, (*of, own))): pointer for (of, own), (_, pointer) in items.items()}
        changes = [
            ContractChange(field, _pointer(pointers, path), old, new, by.release_id, by.release_date)
            for field, path, old, new, by in self._changes
        ]
        return CompiledRelease(release, set_by, changes)


def _has_parts(value: Json) -> bool:
    """Whether it is an object or a list of objects; any other list is one value."""
    return type(value) is dict or (type(value) is list and all(type(one) is dict for one in value))


def _put(
    release: dict[str, Json],
    items: _Items,
    path: Path,
    value: Json,
    *,
    points: bool,
) -> str | None:
    """Puts a value at its path. Returns its pointer if `points`; None if another value blocks the path."""
    node: Json = release
    pointer = ""
    for end, part in enumerate(path, 1):
        if type(part) is _Item:
            key = path[: end - 1], part.identifier
            if key not in items:
                if type(node) is not list:
                    return None
                items[key] = (
                    {} if part.original is None else {"id": part.original},
                    f"{pointer}/{len(node)}",
                )
                node.append(items[key][0])
            node, pointer = items[key]
            continue
        if type(node) is not dict:
            return None
        if points:
            pointer += _step(part)
        if part in node:
            node = node[part]
        elif end < len(path):
            node[part] = [] if type(path[end]) is _Item else {}
            node = node[part]
        elif value is not None:
            node[part] = value
    return pointer


def _pointer(pointers: dict[tuple[str, ...], str], path: Path) -> str:
    """The JSON pointer of a path; `pointers` are those of the objects in lists, by path as text."""
    pointer = ""
    for end, part in enumerate(path, 1):
        if isinstance(part, _Item):
            pointer = pointers[tuple(map(str, path[:end]))]
        else:
            pointer += _step(part)
    return pointer


def _step(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")
