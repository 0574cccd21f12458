"""The documentation as pages: the project's Markdown files, and texts generated from the code."""

import posixpath
import re
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

import sankofa
from sankofa.derive.cross_rates import methodology as cross_rates_methodology
from sankofa.derive.metrics.contract import methodology, metrics
from sankofa.derive.signals.contract import methodology as panel_methodology
from sankofa.derive.signals.contract import panels
from sankofa.model.catalogue_rows import METHODOLOGY as CROSS_RATES
from sankofa.model.limits import limit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TOP: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_SLUG: Final = re.compile(r"[^\w\- ]")
_SCHEME: Final = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_WORDS: Final = re.compile(r"\w+")
_EXCERPT: Final = 160
_LONGEST_PAGE: Final = 42_000
"""Maximum number of Markdown characters on a page; the HTML is up to twice as long."""
_COMMENT: Final = re.compile(r"^<!--.*?-->\s*", re.DOTALL | re.MULTILINE)
"""A note for writers."""
_SECOND_LEVEL: Final = re.compile(r"^(?=## )", re.MULTILINE)
_ANCHORED: Final = re.compile(r'href="(?:/docs/([^"#]+))?#([^"]+)"')
MOST_WORDS: Final = limit("words of a documentation search", 8, "different words", "400")
"""The maximum number of different words in one search."""
_MOST_FOUND: Final = 30


class Section(msgspec.Struct, frozen=True):
    """A heading and the text below it; searches return these."""

    address: str
    page: str
    heading: str
    text: str


class Document(msgspec.Struct, frozen=True):
    name: str
    """Its address below /docs/."""
    title: str
    pages: tuple[str, ...]
    """The pages as HTML. A long document has several, each below 100 kB with its frame."""
    firsts: tuple[str, ...]
    """The first heading on each page."""
    anchors: Mapping[str, int]
    """The page number (from 1) of each heading, by anchor."""
    sections: tuple[Section, ...]


def _folder() -> Path | None:
    """The folder of the files: beside the package in a checkout, inside it when installed."""
    package = Path(sankofa.__file__).parent
    for folder in (package / "documentation", package.parents[1]):
        if (folder / "docs").is_dir():
            return folder
    return None


@cache
def documents() -> Mapping[str, Document]:
    """Every page by its name."""
    pages: dict[str, Document] = {}
    folder = _folder()
    if folder is not None:
        files = [folder / name for name in _TOP if (folder / name).exists()]
        files += sorted((folder / "docs").rglob("*.md"))
        for file in files:
            relative = file.relative_to(folder).as_posix()
            name = _name(relative)
            pages[name] = _document(name, relative, file.read_text(encoding="utf-8"))
    methods = {metric.methodology_ref: methodology(metric) for metric in metrics()}
    methods |= {panel.methodology_ref: panel_methodology(panel) for panel in panels().values()}
    for reference, text in {**methods, CROSS_RATES: cross_rates_methodology()}.items():
        name = f"methodology/{reference}"
        pages[name] = _document(name, f"docs/{name}.md", text)
    return {name: _linked(document, pages) for name, document in pages.items()}


def _linked(document: Document, every: Mapping[str, Document]) -> Document:
    """The document, its links to headings of long documents completed with their page numbers."""

    def readdressed(link: re.Match[str]) -> str:
        target = every.get(link[1] or document.name)
        if target is None or len(target.pages) == 1:
            return link[0]
        number = target.anchors.get(link[2], 1)
        return f'href="{_address(target.name, number)}#{link[2]}"'

    return msgspec.structs.replace(
        document, pages=tuple(_ANCHORED.sub(readdressed, html) for html in document.pages)
    )


def _address(name: str, number: int) -> str:
    return f"/docs/{name}" + (f"?page={number}" if number > 1 else "")


@cache
def pictures() -> Mapping[str, bytes]:
    """The pictures of the documentation by name, as SVG or PNG."""
    folder = _folder()
    if folder is None:
        return {}
    shown = folder / "docs" / "pictures"
    return {
        file.name: file.read_bytes() for file in sorted(shown.glob("*.*")) if file.suffix in (".svg", ".png")
    }


def search(words: str) -> list[tuple[Section, str]]:
    """The sections with every word, best first, each with an excerpt. Raises ValueError.

    Reads all sections, which takes some milliseconds: call it in a thread.
    """
    distinct = list(dict.fromkeys(_WORDS.findall(words.lower())))
    if len(distinct) > MOST_WORDS:
        raise ValueError(f"expected at most {MOST_WORDS} different words, not {len(distinct)}")
    if not distinct:
        return []
    scored = []
    for heading, text, section in _lowered():
        if all(word in text or word in heading for word in distinct):
            score = sum(10 * (word in heading) + min(text.count(word), 5) for word in distinct)
            scored.append((-score, section.address, section))
    scored.sort(key=lambda entry: entry[:2])
    return [(section, _excerpt(section.text, distinct[0])) for _, _, section in scored[:_MOST_FOUND]]


@cache
def _lowered() -> list[tuple[str, str, Section]]:
    """Every section with its heading and its text in lower case."""
    return [
        (section.heading.lower(), section.text.lower(), section)
        for document in documents().values()
        for section in document.sections
    ]


def _excerpt(text: str, word: str) -> str:
    start = max(text.lower().find(word) - _EXCERPT // 3, 0)
    return ("…" if start else "") + text[start : start + _EXCERPT].strip() + "…"


def _name(relative: str) -> str:
    """`docs/decisions/tenders.md` as `decisions/tenders`, `README.md` as `readme`."""
    name = relative.removesuffix(".md")
    return name.removeprefix("docs/") if name.startswith("docs/") else name.lower()


def _document(name: str, relative: str, text: str) -> Document:
    pages, firsts, sections = [], [], []
    anchors: dict[str, int] = {}
    for number, part in enumerate(_parts(_COMMENT.sub("", text)), 1):
        tokens = _parser().parse(part)
        of_page = _prepare(tokens, _address(name, number), relative, anchors, number)
        firsts.append(of_page[0].heading)
        sections += of_page
        html = str(_parser().renderer.render(tokens, _parser().options, {}))
        pages.append(html.replace("</code>&lt;br&gt;<code>", "</code><br><code>"))
    title = sections[0].heading or name
    titled = tuple(msgspec.structs.replace(one, page=title, heading=one.heading or title) for one in sections)
    return Document(name, title, tuple(pages), tuple(firsts), anchors, titled)


def _parts(text: str) -> list[str]:
    """The text of each page. A text too long for one page is cut before second-level headings."""
    parts = [""]
    for section in _SECOND_LEVEL.split(text):
        if parts[-1] and len(parts[-1]) + len(section) > _LONGEST_PAGE:
            parts.append("")
        parts[-1] += section
    return parts


@cache
def _parser() -> "MarkdownIt":
    """HTML in a document is shown as text, but for line breaks between codes."""
    from markdown_it import MarkdownIt  # imported on the first page, so that the service starts faster

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def inline(text: str) -> str:
    """A line of Markdown, such as a description, as HTML."""
    return str(_parser().renderInline(text))


def _prepare(
    tokens: "list[Token]", address: str, relative: str, anchors: dict[str, int], number: int
) -> list[Section]:
    """Give headings their anchors and links their addresses, and cut the text into sections."""
    sections: list[Section] = []
    heading, anchor = "", ""
    text: list[str] = []
    empty_heading = False
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        token.attrs.pop("style", None)  # alignment of a column; no style is allowed within a page
        if token.type == "th_open":
            empty_heading = following is not None and not following.content
        if token.type in ("th_open", "th_close") and empty_heading:
            token.tag = "td"  # an empty heading tells a screen reader nothing
        if token.type == "heading_open" and following is not None:
            if heading or text:
                sections.append(Section(f"{address}#{anchor}", "", heading, " ".join(text)))
            heading, text = _plain(following), []
            anchor = _unique(_slug(heading), anchors)
            anchors[anchor] = number
            token.attrSet("id", anchor)
        elif token.type == "table_open":
            token.attrSet("tabindex", "0")
        elif token.type in ("fence", "code_block"):
            token.attrSet("tabindex", "0")
            text.append(token.content)
        elif token.type == "inline":
            text.append(_plain(token))
            for child in token.children or ():
                _readdress(child, relative)
    return [*sections, Section(f"{address}#{anchor}", "", heading, " ".join(text))]


def _plain(token: "Token") -> str:
    return "".join(child.content for child in token.children or () if child.type in ("text", "code_inline"))


def _slug(heading: str) -> str:
    return _SLUG.sub("", heading.lower()).replace(" ", "-") or "section"


def _unique(slug: str, used: Container[str]) -> str:
    name, number = slug, 1
    while name in used:
        name, number = f"{slug}-{number}", number + 1
    return name


def _readdress(token: "Token", relative: str) -> None:
    """Turns a link to a project file into a link to its page, or into text if there is no such page."""
    for attribute in ("href", "src"):
        target = token.attrs.get(attribute)
        if not isinstance(target, str) or _SCHEME.match(target) or target.startswith(("#", "/")):
            continue
        path, _, anchor = target.partition("#")
        joined = posixpath.normpath(posixpath.join("/", posixpath.dirname(relative), path))[1:]
        if attribute == "src" and "docs/pictures/" in joined:
            token.attrs["src"] = f"/docs/pictures/{joined.rpartition('/')[2]}"
        elif joined.endswith(".md") and (joined.startswith("docs/") or joined in _TOP):
            token.attrs["href"] = f"/docs/{_name(joined)}" + (f"#{anchor}" if anchor else "")
        else:
            token.attrs[attribute] = "/docs"


_GROUPS: Final = {
    "Tutorial": ("tutorial", "readme"),
    "How-to guides": ("how-to/", "contributing", "security"),
    "Reference": ("reference/", "contract", "changelog"),
    "Explanation": ("explanation/",),
    "Methods": ("methodology/",),
    "Decisions": ("decisions/",),
}
"""The beginnings of names in each part of the contents."""


def groups() -> list[tuple[str, list[Document]]]:
    """The pages in the order of the contents."""
    every = documents().items()
    return [(title, [one for name, one in every if name.startswith(own)]) for title, own in _GROUPS.items()]
