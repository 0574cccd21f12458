"""Writes the message catalogues of the pages: every message in the templates and the code of the pages.

`python tools/catalogues.py` adds new messages to src/sankofa/web/locale/*.po and removes unused ones;
`--check` reports missing ones and changes nothing. Translate the empty ones by hand.
"""

import io
import re
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parent.parent
WEB = ROOT / "src" / "sankofa" / "web"
LOCALE = WEB / "locale"
SERIES = ROOT / "tools" / "series_names.txt"
"""The names of series and indicators that have a message, as their publishers write them."""
LANGUAGES = ("fr", "pt", "ar", "sw")
OTHERS = (
    # Said by a variable: counts of the first page, groups of the documentation, windows of a quota.
    *("Organisations", "Reported figures", "Macro values", "Tender releases"),
    *(
        "Tutorial",
        "How-to guides",
        "Reference",
        "Methods",
        "Explanation",
        "Decisions",
        "minute",
        "day",
        "month",
    ),
    # Subjects of the catalogue of macro data, and what became of a row.
    *("Output and income", "Prices and money", "Trade and payments", "Debt and government", "People"),
    *("Others", "added", "changed", "removed"),
)
_TEXT = re.compile(r'(?:\.text|\btext)\(\s*"((?:[^"\\]|\\.)*)"')


def messages() -> list[str]:
    texts = {*OTHERS, *SERIES.read_text(encoding="utf-8").splitlines()}
    for template in sorted((WEB / "templates").glob("*.html")):
        content = io.BytesIO(template.read_bytes())
        for _, message, _, _ in extract("jinja2.ext:babel_extract", content, keywords={"_": None}):
            texts.add(message if isinstance(message, str) else message[0])
    for module in sorted(WEB.rglob("*.py")):
        texts.update(_TEXT.findall(module.read_text(encoding="utf-8")))
    from sankofa.derive.metrics.contract import metrics
    from sankofa.derive.signals.contract import panels
    from sankofa.model import errors
    from sankofa.web.languages import CODES, LABELS, UNITS
    from sankofa.web.pages.home import HEADLINES

    texts.update(HEADLINES.values())
    texts.update(metric.summary for metric in metrics())
    texts.update(panel.summary for panel in panels().values())

    texts.update(LABELS.values(), UNITS, CODES)
    texts.update(problem.title for problem in errors.Problem.__subclasses__())
    return sorted(texts)


def main() -> int:
    texts = messages()
    failed = False
    for language in LANGUAGES:
        path = LOCALE / f"{language}.po"
        translated: dict[str, str] = {}
        if path.exists():
            with path.open("rb") as stream:
                translated = {str(m.id): str(m.string) for m in read_po(stream, locale=language) if m.id}
        missing = [message for message in texts if not translated.get(message)]
        unused = sorted(translated.keys() - set(texts))
        if "--check" in sys.argv:
            for message in missing:
                sys.stdout.write(f"{language}: shown in English, not translated yet: {message}\n")
            for message in unused:
                sys.stdout.write(f"{language}: no longer used: {message}\n")
            failed = failed or bool(unused)
            continue
        catalogue = Catalog(locale=language, charset="utf-8", fuzzy=False, header_comment="")
        for message in texts:
            catalogue.add(message, translated.get(message, ""))
        buffer = io.BytesIO()
        write_po(buffer, catalogue, width=110, omit_header=True, sort_output=True)
        path.write_bytes(buffer.getvalue())
        sys.stdout.write(f"{language}: {len(texts)} messages, {len(missing)} to translate\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
