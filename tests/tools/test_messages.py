"""The catalogues of messages: what is collected, and what fails the check."""

import io
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import read_po

from tools import messages


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, with one module and one template."""
    monkeypatch.setattr(messages, "ROOT", tmp_path)
    monkeypatch.setattr(messages, "LOCALE", tmp_path / "locale")
    (tmp_path / "templates").mkdir()
    (tmp_path / "backoffice").mkdir()
    (tmp_path / "backoffice" / "forms.py").write_text(
        'label = _("Amount")\nrows = ngettext("{n} row", "{n} rows", n)\nmay = pgettext("month", "May")\n'
        "note = f\"{gettext('Not sent.')} {reason}\"\n"
    )
    (tmp_path / "templates" / "page.html").write_text(
        '{% load i18n %}<h1 title="{% translate "It\'s" %}">{% blocktranslate trimmed with name=user.name %}\n'
        "  Hello {{ name }}\n{% endblocktranslate %}</h1>\n"
        "{% blocktranslate count n=total %}{{ n }} key{% plural %}{{ n }} keys{% endblocktranslate %}\n"
    )
    return tmp_path


def test_texts_of_modules_and_templates_are_collected(project: Path) -> None:
    found = {(message.context, message.id) for message in messages.extracted() if message.id}
    assert found == {
        (None, "Amount"),
        (None, "Not sent."),
        (None, ("{n} row", "{n} rows")),
        ("month", "May"),
        (None, "It's"),
        (None, "Hello %(name)s"),
        (None, ("%(n)s key", "%(n)s keys")),
    }


def test_an_update_keeps_translations_and_drops_texts_no_longer_used(project: Path) -> None:
    messages._update("fr")
    catalogue = project / "locale/fr/LC_MESSAGES/django.po"
    written = catalogue.read_text().replace('msgid "Amount"\nmsgstr ""', 'msgid "Amount"\nmsgstr "Montant"')
    catalogue.write_text(f'{written}\nmsgid "Gone"\nmsgstr "Disparu"\n')
    messages._update("fr")
    assert 'msgstr "Montant"' in catalogue.read_text()
    assert "Disparu" not in catalogue.read_text()


def test_an_update_without_a_change_writes_the_same_bytes(project: Path) -> None:
    messages._update("fr")
    files = [project / f"locale/fr/LC_MESSAGES/django.{suffix}" for suffix in ("po", "mo")]
    before = [file.read_bytes() for file in files]
    messages._update("fr")
    assert [file.read_bytes() for file in files] == before


def test_the_check_finds_a_catalogue_that_lacks_a_text_of_the_sources(project: Path) -> None:
    messages._update("fr")
    assert not [fault for fault in messages._check("fr") if "stale" in fault]
    (project / "backoffice" / "forms.py").write_text('label = _("Currency")\n')
    assert "fr: stale, run `make messages`" in messages._check("fr")


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('msgid "Amount"\nmsgstr "Montant"', None),
        ('msgid "Amount"\nmsgstr ""', "no translation"),
        ('#, fuzzy\nmsgid "Amount"\nmsgstr "Montant"', "doubtful"),
        ('msgid "{n} rows"\nmsgstr "{n} lignes"', None),
        ('msgid "{n} rows"\nmsgstr "lignes"', "a placeholder is missing"),
        ('msgid "{n} rows"\nmsgstr "{m} lignes"', "a placeholder that the text lacks"),
        ('msgid "Hello %(name)s"\nmsgstr "Bonjour"', "a placeholder is missing"),
        ('msgid "Why: “now”?"\nmsgstr "Pourquoi\u00a0: «\u00a0maintenant\u00a0»\u00a0?"', None),
        ('msgid "Reason:"\nmsgstr "Motif :"', "no-break space"),
        ('msgid "“Send”"\nmsgstr "« Envoyer\u00a0»"', "no-break space"),
        ('msgid "{n} row"\nmsgid_plural "{n} rows"\nmsgstr[0] "une ligne"\nmsgstr[1] "{n} lignes"', None),
        ('msgid "{n} row"\nmsgid_plural "{n} rows"\nmsgstr[0] "{n} ligne"\nmsgstr[1] ""', "no translation"),
    ],
)
def test_the_check_finds_missing_doubtful_and_broken_translations(entry: str, fault: str | None) -> None:
    catalog: Catalog = read_po(io.BytesIO(entry.encode()), locale="fr")
    found = list(messages.faults(catalog))
    assert len(found) == (fault is not None)
    assert all((fault or "") in one for one in found)
