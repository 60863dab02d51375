"""The search itself: it would find every canary, wherever it was betrayed."""

import logging
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as product_settings
from django.db import transaction

from backoffice.accounts.models import AuthenticatorDevice
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from tests.core.secrets.canaries import Canaries, Sinks
from tests.core.secrets.steps import Reader

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_search_finds_a_canary_in_every_place(
    sinks: Sinks, as_approver: Reader, canaries: Canaries
) -> None:
    forms = {name: form.decode("latin-1") for name, form in canaries.forms()}
    text = " ".join(forms.values())
    plant(text, as_approver)
    expected = {
        "record of backoffice",
        "/operations/",
        "audit_entry.detail",
        "accounts_authenticatordevice.encrypted_seed",
        "inside of a session",
        "leak.txt",
    }
    leaks = sinks.leaks()
    Path(product_settings.DATA_DIR, "leak.txt").unlink()
    assert {(place, name) for place in expected for name in forms} <= leaks
    assert {name for place, name in leaks if place == "standard error"} == forms.keys() - {"API key"}


def plant(text: str, browser: Reader) -> None:
    """Betray it to everybody who listens."""
    logging.getLogger("backoffice").info("It was %s", text)
    browser.get("/operations/", {"text": text})
    with transaction.atomic():
        audit.record(Action.LOG_VERIFIED, actor=None, target="the audit log", fault=text)
    AuthenticatorDevice.objects.update(encrypted_seed=text.encode())
    session: Any = browser.session
    session["leak"] = text
    session.save()
    Path(product_settings.DATA_DIR, "leak.txt").write_text(text)
