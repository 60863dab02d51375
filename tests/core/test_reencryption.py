"""`manage.py reencrypt_secrets`: an old key may go once it has succeeded, and never before."""

import base64
import io

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db.models import BinaryField
from pytest_django import Settings

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.core.encryption import EncryptedRow

OLD, NEW = (
    f"{name}:{base64.b64encode(byte * 32).decode()}" for name, byte in (("2025", b"o"), ("2026", b"n"))
)


@pytest.fixture
def enrolled(settings: Settings, request: pytest.FixtureRequest) -> User:
    """Somebody whose authenticator was encrypted under the old key."""
    settings.ENCRYPTION_KEYS = [OLD]
    user: User = request.getfixturevalue("preparer")
    return user


def run_command() -> str:
    out = io.StringIO()
    call_command("reencrypt_secrets", stdout=out)
    return out.getvalue()


def secret_of(user: User) -> str:
    secret: str = AuthenticatorDevice.objects.get(user=user).secret_text()
    return secret


def test_the_old_key_is_not_needed_after_reencryption(settings: Settings, enrolled: User) -> None:
    secret = secret_of(enrolled)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert "Encrypted 1 secrets with the key 2026" in run_command()
    settings.ENCRYPTION_KEYS = [NEW]
    assert secret_of(enrolled) == secret


def test_reencryption_is_idempotent(settings: Settings, enrolled: User) -> None:
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    run_command()
    encrypted = bytes(AuthenticatorDevice.objects.get(user=enrolled).encrypted_seed)
    assert "Encrypted 0 secrets" in run_command()
    assert bytes(AuthenticatorDevice.objects.get(user=enrolled).encrypted_seed) == encrypted


def test_rows_that_cannot_be_reencrypted_are_named_and_the_key_must_stay(
    settings: Settings, enrolled: User, approver: User
) -> None:
    settings.ENCRYPTION_KEYS = [NEW]
    with pytest.raises(
        CommandError,
        match=rf"No configured key can decrypt the secrets of: {approver.email}, {enrolled.email}",
    ):
        run_command()


def test_a_row_changed_concurrently_keeps_its_change(settings: Settings, enrolled: User) -> None:
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    seen = AuthenticatorDevice.objects.get(user=enrolled)
    changed = AuthenticatorDevice.objects.get(user=enrolled)
    changed.set_new_seed()
    changed.save()
    seen.reencrypt()
    assert secret_of(enrolled) == changed.secret_text()


def test_the_command_covers_every_encrypted_column() -> None:
    columns = {
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, BinaryField)
    }
    known = {
        f"{model.__name__}.{model.ENCRYPTED_FIELD}"
        for model in apps.get_models()
        if issubclass(model, EncryptedRow)
    }
    plain = {
        "Transaction.digest",  # what identifies a row
        "Delivery.body",  # as it came, from whoever knows the address
        "PayoutFile.content",  # as it was uploaded; deleted with the file
    }
    short_lived = {
        "Release.encrypted_otp",
        "CachedReadRow.encrypted_value",
        "AnsweredForm.encrypted_page",
    }  # gone in 90 seconds; read again if lost; gone in an hour
    assert columns - short_lived - plain == known


def test_no_key_may_go_while_a_seal_is_wrong(settings: Settings, enrolled: User) -> None:
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    AuthenticatorDevice.objects.filter(user=enrolled).update(seal="2025:altered")
    output = io.StringIO()
    with pytest.raises(CommandError, match=r"any key yet\. Not renewed, because the seal is wrong"):
        call_command("reencrypt_secrets", stdout=output)
    assert "can be removed" not in output.getvalue()
