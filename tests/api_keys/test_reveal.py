"""A new key is shown once, to the person who had it sent, with a fresh second factor, and is gone afterwards."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import requests
from django.conf import settings as product_settings
from django.test import Client
from django.utils import timezone, translation
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.api_keys import reveal
from backoffice.api_keys.reveal import SecretGoneError, StaleSecondFactorError
from backoffice.api_keys.rotation import abandon_rotation, start_rotation
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.secret import Secret
from tests import factories
from tests.api_keys import steps
from tests.api_keys.steps import text_of
from tests.operations.steps import code_of, let_second_factor_age
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]


def address_of(operation: Operation) -> str:
    return f"/settings/api-keys/secret/{operation.pk}/"


def kept(operation: Operation) -> str:
    return Secret.objects.get(operation=operation).decrypted()


def recorded(action: Action) -> list[Any]:
    return list(Entry.objects.filter(action=action).values_list("actor__full_name", flat=True))


def test_the_secret_is_shown_once_and_then_deleted(
    as_approver: Client, created: Operation, relaxed: SandboxProcess
) -> None:
    key = kept(created)
    asked = as_approver.get(address_of(created))
    assert key not in text_of(asked)
    shown = as_approver.post(address_of(created))
    assert f'data-copy="{key}"' in text_of(shown)
    assert "no-store" in shown["Cache-Control"]
    headers = {**relaxed.headers, "X-Api-Key": key}
    assert requests.get(f"{relaxed.url}/balance", headers=headers, timeout=30).status_code == 200
    assert not Secret.objects.exists()
    again = as_approver.post(address_of(created))
    assert (again.status_code, key in text_of(again)) == (410, False)
    assert recorded(Action.SECRET_REVEALED) == ["Amara Okafor"]


def test_the_operation_stores_only_the_short_hash(as_approver: Client, created: Operation) -> None:
    key = kept(created)
    as_approver.post(address_of(created))
    page = text_of(as_approver.get(f"/operations/{created.pk}/"))
    assert created.attempts.get().result["short_hash"] in page  # type: ignore[index]
    assert key not in page
    assert "View key" not in page


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_reveal_by_anyone_else_is_refused_and_audited(
    as_administrator: Client, created: Operation, method: str
) -> None:
    key = kept(created)
    refused = getattr(as_administrator, method)(address_of(created))
    assert (refused.status_code, key in text_of(refused)) == (403, False)
    assert recorded(Action.SECRET_REFUSED) == ["Zainab Musa"]
    assert kept(created) == key


def test_a_reveal_by_another_approver_is_refused(sign_in: SignIn, created: Operation) -> None:
    other = factories.person("Chidi Nwosu", Role.APPROVER, Role.ADMINISTRATOR)
    assert sign_in(Client(), other).post(address_of(created)).status_code == 403


def test_a_reveal_needs_a_fresh_second_factor(
    as_approver: Client, approver: User, created: Operation
) -> None:
    key = kept(created)
    let_second_factor_age(as_approver)
    assert 'name="code"' in text_of(as_approver.get(address_of(created)))
    for typed in ({}, {"code": "000000"}):
        refused = as_approver.post(address_of(created), typed)
        assert (refused.status_code, key in text_of(refused)) == (422, False)
    assert kept(created) == key


def test_the_secret_is_shown_after_the_second_factor_is_renewed(
    as_approver: Client, approver: User, created: Operation
) -> None:
    key = kept(created)
    let_second_factor_age(as_approver)
    assert key in text_of(as_approver.post(address_of(created), {"code": code_of(approver)}))


def test_the_service_also_requires_a_fresh_second_factor(approver: User, created: Operation) -> None:
    for stale in (None, timezone.now() - timedelta(minutes=6)):
        with pytest.raises(StaleSecondFactorError):
            reveal.reveal_secret(created.pk, actor=approver, second_factor_at=stale)
    assert Secret.objects.exists()
    assert Entry.objects.filter(action=Action.SECRET_REFUSED).count() == 2


def test_a_refusal_is_recorded_in_english_whatever_the_actor_reads(
    approver: User, created: Operation
) -> None:
    with translation.override("fr"), pytest.raises(StaleSecondFactorError) as refused:
        reveal.reveal_secret(created.pk, actor=approver, second_factor_at=None)
    recorded_reason = Entry.objects.get(action=Action.SECRET_REFUSED).detail["reason"]
    assert recorded_reason.startswith("Your last authenticator code is more than five minutes old.")
    assert str(refused.value) != recorded_reason


def test_one_of_two_concurrent_reveals_succeeds(approver: User, created: Operation) -> None:
    now = timezone.now()
    assert reveal.reveal_secret(created.pk, actor=approver, second_factor_at=now).get_secret_value()
    with pytest.raises(SecretGoneError):
        reveal.reveal_secret(created.pk, actor=approver, second_factor_at=now)


def test_a_key_of_an_open_rotation_cannot_be_revealed(
    as_administrator: Client,
    as_approver: Client,
    approver: User,
    administrator: User,
    relaxed: SandboxProcess,
) -> None:
    rotation = start_rotation(actor=administrator)
    typed = {**steps.NAMED, "rotation": str(rotation.pk)}
    made = steps.approve_and_send(
        steps.prepare(as_administrator, "api_key_create", **typed), approver, relaxed
    )
    refused = as_approver.post(address_of(made))
    assert (refused.status_code, kept(made) in text_of(refused)) == (409, False)
    abandon_rotation(rotation.pk, actor=administrator)
    key = kept(made)
    assert key in text_of(as_approver.post(address_of(made)))


def test_a_key_that_cannot_be_decrypted_is_reported(
    as_approver: Client, created: Operation, settings: Settings
) -> None:
    settings.ENCRYPTION_KEYS = [f"other:{'B' * 43}="]
    refused = as_approver.post(address_of(created))
    assert refused.status_code == 409
    assert "encryption key" in text_of(refused)
    assert Secret.objects.exists()


def test_an_operation_that_created_no_key_has_no_secret_to_reveal(
    as_approver: Client, preparer: User
) -> None:
    assert as_approver.post(address_of(factories.prepared(preparer))).status_code == 410
    missing = as_approver.get("/settings/api-keys/secret/00000000-0000-4000-8000-000000000000/")
    assert missing.status_code == 410


def test_the_secret_is_encrypted_with_the_field_keys(created: Operation) -> None:
    secret = Secret.objects.get()
    assert secret.decrypted().encode() not in bytes(secret.encrypted_value)
    assert secret.encryption_key_id == product_settings.ENCRYPTION_KEYS[0].partition(":")[0]
