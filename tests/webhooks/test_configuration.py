"""What a deployment may configure, and what `manage.py check` says of the rest."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django import Settings

from backoffice.webhooks import configuration
from tests.payments_gateway.vectors.make_vectors import FOLDER
from tests.webhooks.conftest import UseKeys
from tests.webhooks.steps import SECRET


def messages_of(check: Callable[[], Iterable[CheckMessage]]) -> list[str]:
    """The ids of what a check says."""
    return [str(message.id) for message in check()]


@pytest.mark.parametrize("secret", ["", SECRET, "A-Za-z0-9_-" * 3])
def test_a_secret_of_32_characters_or_an_empty_one_is_accepted(settings: Settings, secret: str) -> None:
    settings.WEBHOOK_SECRET = secret
    assert messages_of(configuration.secret_cannot_be_guessed) == []
    assert configuration.is_on() == bool(secret)


@pytest.mark.parametrize("secret", ["short", "x" * 31, "x" * 31 + "/", "x" * 40 + " ", "é" * 40])
def test_a_short_or_url_unsafe_secret_is_refused(settings: Settings, secret: str) -> None:
    settings.WEBHOOK_SECRET = secret
    assert messages_of(configuration.secret_cannot_be_guessed) == ["webhooks.E001"]
    assert not configuration.is_on()
    assert not configuration.is_secret(secret)


def test_one_or_two_keys_are_accepted(use_keys: UseKeys) -> None:
    use_keys("current")
    assert len(configuration.public_keys()) == 1
    use_keys("current", "previous")
    assert len({key.fingerprint for key in configuration.public_keys()}) == 2
    assert messages_of(configuration.keys_can_be_read) == []


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((), "contains 0 public keys"),
        (("current", "previous", "stranger"), "contains 3 public keys"),
        (((FOLDER / "current.pem").read_text(),), "private key"),
        (("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",), "damaged"),
    ],
    ids=["none", "three", "private", "damaged"],
)
def test_unusable_keys_are_reported_with_the_reason(
    use_keys: UseKeys, keys: tuple[str, ...], words: str
) -> None:
    use_keys(*keys)
    (error,) = configuration.keys_can_be_read()
    assert (error.id, words in error.msg) == ("webhooks.E002", True)


def test_a_missing_file_is_reported(settings: Settings, tmp_path: Path) -> None:
    settings.WEBHOOK_KEYS = str(tmp_path / "gone.pem")
    (error,) = configuration.keys_can_be_read()
    assert "gone.pem cannot be read: the file or its folder does not exist." in error.msg


@pytest.mark.django_db
def test_webhook_errors_do_not_prevent_startup(settings: Settings, tmp_path: Path) -> None:
    settings.WEBHOOK_SECRET, settings.WEBHOOK_KEYS = "short", str(tmp_path / "gone.pem")
    call_command("check")
    with pytest.raises(SystemCheckError, match=r"(?s)webhooks\.E00[12].*webhooks\.E00[12]"):
        call_command("check", deploy=True)


def test_a_receiver_without_keys_is_a_deployment_warning(settings: Settings, use_keys: UseKeys) -> None:
    assert messages_of(configuration.deliveries_can_be_verified) == []
    settings.WEBHOOK_SECRET = SECRET
    assert messages_of(configuration.deliveries_can_be_verified) == ["webhooks.W001"]
    use_keys("current")
    assert messages_of(configuration.deliveries_can_be_verified) == []
