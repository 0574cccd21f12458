"""Parts of a page of docs/reference."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

_NOTICE: Final = "<!-- Written by tools/reference.py (make docs). Change the code, not this page. -->"


def code_lines(texts: Iterable[str]) -> str:
    return "<br>".join(map(code, texts))


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(header), "|".join("---" for _ in header)]
    for row in rows:
        lines.append(" | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row))
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


def page(title: str, *parts: str) -> str:
    return "\n\n".join((f"{_NOTICE}\n# {title}", *filter(None, parts))) + "\n"


def member_row(name: str, schema: dict[str, Any]) -> tuple[str, str, str]:
    return code(name), schema_text(schema), schema.get("description", "")


def schema_text(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        return code(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(schema_text(part) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(map(code, schema["enum"]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {schema_text(schema['items'])}"
    words = [schema.get("format", kind) if kind == "string" else kind]
    words += [f"matching {code(schema['pattern'])}"] if "pattern" in schema else []
    words += [f"at most {schema['maxLength']} characters"] if "maxLength" in schema else []
    words += [f"at least {schema['minimum']}"] if "minimum" in schema else []
    words += [f"at most {schema['maximum']}"] if "maximum" in schema else []
    return ", ".join(words)


def default_text(default: object) -> str:
    unset = default is None or default in ("", msgspec.NODEFAULT) or "UNSET" in str(default)
    return "" if unset else code(str(default))
