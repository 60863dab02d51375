"""Forms that do not belong to the session: refused, and on record where somebody is signed in."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import StaffSession, User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry

pytestmark = pytest.mark.django_db


@pytest.fixture
def strict() -> Client:
    """A browser as the product sees it: every form needs the token of its session."""
    return Client(enforce_csrf_checks=True)


def test_a_form_without_its_token_does_nothing_and_is_recorded(
    strict: Client, maker: User, sign_in: Callable[[Client, User], Client]
) -> None:
    address = reverse("accounts:end_other_sessions")
    answer = sign_in(strict, maker).post(address)
    assert answer.status_code == 403
    assert "This form is out of date" in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"
    entry = Entry.objects.get()
    assert (entry.action, entry.actor, entry.target_label) == (Action.ACCESS_REFUSED, maker, address)
    assert "CSRF" in entry.detail["reason"]
    assert StaffSession.objects.filter(user=maker).exists()


def test_a_stranger_cannot_fill_the_log_with_forged_forms(strict: Client) -> None:
    answer = strict.post(reverse("accounts:sign_in"), {"email": "ada@countersign.example"})
    assert answer.status_code == 403
    assert "This form is out of date" in answer.content.decode()
    assert not Entry.objects.exists()
