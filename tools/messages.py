"""Collect the texts of the screens into the message catalogues, and compile these.

`python -m tools.messages` updates `locale/<language>/LC_MESSAGES/django.po` from the sources and compiles it;
`--check` changes nothing and fails if a catalogue is stale, or if a text lacks a translation, has a doubtful one, one
with other placeholders, or one in French without the no-break spaces that its punctuation needs. Babel writes the
files, so GNU gettext is not needed.
"""

import argparse
import ast
import io
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeGuard

from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from tools.processes import ROOT

LOCALE = ROOT / "locale"
LANGUAGES = ("fr",)
"""The languages besides English, whose texts are the keys of every catalogue."""

_NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)
"""In the header of every compiled catalogue, so that the same texts always compile to the same bytes."""

_SOURCES = ("backoffice", "payments_gateway", "templates")
_FUNCTIONS = {"_", "gettext_noop"} | {
    f"{name}{lazy}" for name in ("gettext", "ngettext", "pgettext", "npgettext") for lazy in ("", "_lazy")
}
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|\{\w*\}")

_BREAKABLE = re.compile(r" [:;?!»]|« ")
"""In French: an ordinary space where a line could break before the mark, instead of a no-break space."""

_STRING = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CALL = re.compile(rf"(?:\w*gettext|\b_)\({_STRING}(?:,\s*{_STRING})*(?:,\s*count)?\)")
"""A call in what Django makes of a template, whose other text is no Python."""


def extracted() -> Catalog:
    """Every text marked for translation, with the files that contain it."""
    found = Catalog(charset="utf-8")
    for path in _sources():
        source = path.read_text()
        if path.suffix == ".html":
            source = "\n".join(_CALL.findall(templatize(source)))
        for call in filter(_is_marked, ast.walk(ast.parse(source))):
            _add(found, call, path.relative_to(ROOT))
    return found


def _sources() -> Iterator[Path]:
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".html"} and "migrations" not in path.parts:
                yield path


def _is_marked(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and _function(node) in _FUNCTIONS


def _function(call: ast.Call) -> str:
    return str(getattr(call.func, "id", "") or getattr(call.func, "attr", ""))


def _add(catalog: Catalog, call: ast.Call, path: Path) -> None:
    arguments = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    values = [value for value in arguments if isinstance(value, str)]
    context = values.pop(0) if "pgettext" in _function(call) and values else None
    plural = "ngettext" in _function(call) or "npgettext" in _function(call)
    if values and values[0]:
        catalog.add(tuple(values[:2]) if plural else values[0], context=context, locations=[(str(path), 0)])


def updated(language: str) -> Catalog:
    """The catalogue with the texts of today. Translations are kept; texts no longer used are dropped."""
    path = _po_file(language)
    catalog = (
        read_po(io.BytesIO(path.read_bytes()), locale=language) if path.exists() else Catalog(locale=language)
    )
    catalog.update(extracted(), no_fuzzy_matching=True)
    catalog.obsolete.clear()
    catalog.creation_date = catalog.revision_date = _NO_DATE
    return catalog


def as_po(catalog: Catalog) -> bytes:
    """The catalogue as a file that changes only if a text does: in the order of the texts, without dates and lines."""
    written = io.BytesIO()
    write_po(written, catalog, omit_header=True, sort_output=True, include_lineno=False, width=100)
    header = f'msgid ""\nmsgstr ""\n"Language: {catalog.locale}\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n'
    return f'{header}"Plural-Forms: {catalog.plural_forms}\\n"\n\n'.encode() + written.getvalue()


def as_mo(catalog: Catalog) -> bytes:
    written = io.BytesIO()
    write_mo(written, catalog)
    return written.getvalue()


def faults(catalog: Catalog) -> Iterator[str]:
    """What is wrong with a catalogue's translations, a line each."""
    for message in catalog:
        if not message.id:
            continue
        first = _forms(message.id)[0]
        if message.fuzzy:
            yield f"{catalog.locale}: doubtful translation of {first!r}"
        elif not all(_forms(message.string)):
            yield f"{catalog.locale}: no translation of {first!r}"
        elif any(_placeholders(form) - _placeholders(*_forms(message.id)) for form in _forms(message.string)):
            yield f"{catalog.locale}: a placeholder that the text lacks, in the translation of {first!r}"
        elif _placeholders(_forms(message.id)[-1]) - _placeholders(_forms(message.string)[-1]):
            yield f"{catalog.locale}: a placeholder is missing in the translation of {first!r}"
        elif catalog.locale_identifier == "fr" and any(map(_BREAKABLE.search, _forms(message.string))):
            yield f"fr: a no-break space is missing beside a colon, mark or quote, in the translation of {first!r}"


def _forms(value: str | Sequence[str] | None) -> tuple[str, ...]:
    return (value or "",) if isinstance(value, str | None) else tuple(value)


def _placeholders(*texts: str) -> set[str]:
    return {found for text in texts for found in _PLACEHOLDER.findall(text)}


def _po_file(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def _update(language: str) -> None:
    catalog, path = updated(language), _po_file(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_po(catalog))
    path.with_suffix(".mo").write_bytes(as_mo(catalog))
    missing = list(faults(catalog))
    print(f"{path.relative_to(ROOT)}: {len(catalog)} texts, {len(missing)} to translate or mend")


def _check(language: str) -> list[str]:
    catalog, path = updated(language), _po_file(language)
    stale = not path.exists() or path.read_bytes() != as_po(catalog)
    stale = stale or path.with_suffix(".mo").read_bytes() != as_mo(catalog)
    return [*([f"{language}: stale, run `make messages`"] if stale else []), *faults(catalog)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a catalogue is not complete"
    )
    if not parser.parse_args().check:
        for language in LANGUAGES:
            _update(language)
        return 0
    found = [fault for language in LANGUAGES for fault in _check(language)]
    print("\n".join(found) or "Every text has a translation.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
