"""A language in which every translated text is in brackets and longer, so that a test sees what is not translated."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

from babel.messages import Catalog
from django.test import override_settings
from django.utils.translation import trans_real

from tools import messages

CODE = "eo"  # a language that Django knows and Countersign does not have
OPEN, CLOSE = "⟦", "⟧"
_KEPT = re.compile(r"%\(\w+\)[sd]|%%|\{\w*\}|<[^>]*>|&\w+;")
_ACCENTED = str.maketrans("aeiouyAEIOUYcnsz", "áéíóúýÁÉÍÓÚÝçñšž")
_ATTRIBUTES = ("aria-label", "title", "placeholder", "alt", "data-label")
_NOT_TEXT = frozenset({"script", "style", "code", "time", "kbd", "svg"})
_WITHOUT_END = frozenset({"input", "br", "img", "meta", "link", "hr", "path", "rect", "polyline"})


def pseudo(text: str) -> str:
    """The text with accents and a third longer, by words that break, in brackets; placeholders and tags are kept."""
    parts = re.split(f"({_KEPT.pattern})", text)
    accented = "".join(part if _KEPT.fullmatch(part) else part.translate(_ACCENTED) for part in parts if part)
    more = " ".join(re.findall(".{1,8}", "~" * (len(text) // 3)))
    return f"{OPEN}{accented}{more}{CLOSE}"


def write_catalogue(folder: Path) -> None:
    """Write the catalogue of the language, with every text of the sources, into this folder of languages."""
    catalog = Catalog(locale=CODE)
    for message in messages.extracted():
        if message.id:
            forms = message.id if isinstance(message.id, tuple) else (message.id,)
            translated = tuple(pseudo(str(form)) for form in forms)
            is_plural = isinstance(message.id, tuple)
            catalog.add(message.id, translated if is_plural else translated[0], context=message.context)
    target = folder / CODE / "LC_MESSAGES" / "django.mo"
    target.parent.mkdir(parents=True)
    target.write_bytes(messages.as_mo(catalog))


@contextmanager
def pseudo_language(folder: Path) -> Iterator[None]:
    """Makes the language available in this process."""
    write_catalogue(folder)
    with override_settings(LOCALE_PATHS=[folder], LANGUAGES=[("en", "English"), (CODE, "Pseudo")]):
        trans_real._translations = {}  # type: ignore[attr-defined]
        try:
            yield
        finally:
            trans_real._translations = {}  # type: ignore[attr-defined]


class _Texts(HTMLParser):
    """Every visible text of a page, and every text that a screen reader says."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        skipped = (
            tag in _NOT_TEXT
            or values.get("translate") == "no"
            or "mono" in (values.get("class") or "").split()
        )
        if tag not in _WITHOUT_END:
            self.open.append((tag, skipped))
        self.found += [values[name] or "" for name in _ATTRIBUTES if name in values]

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not any(skipped for _, skipped in self.open):
            self.found.append(data)


def untranslated(html: str, allowed: re.Pattern[str]) -> list[str]:
    """The words of a page outside the brackets, but for what is allowed, such as names and currencies."""
    parser, depth, outside = _Texts(), 0, []
    parser.feed(html)
    for text in parser.found:
        rest = ""
        for letter in text:
            depth += (letter == OPEN) - (letter == CLOSE)
            rest += letter if depth == 0 and letter != CLOSE else " "
        words = allowed.sub(" ", rest)
        if re.search(r"[A-Za-z]{2,}", words):
            outside.append(" ".join(words.split()))
    return outside
