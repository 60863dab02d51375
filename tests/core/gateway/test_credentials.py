"""The API key in use: where it comes from, who sees a switch and when, and that nothing goes out with another key."""

import base64
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as product_settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, connection
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.break_glass import ShellCommand
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import credentials, logs
from backoffice.core.encryption import DecryptionError
from backoffice.core.gateway import gateway, gateway_for_key
from backoffice.core.models import GatewayKey
from payments_gateway import CredentialsError, NotSentError
from tests import stub_provider
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[3]
FIRST, SECOND = "key-of-the-environment-1", "key-switched-to-000002"
_SHOW = """
import sys, django
django.setup()
from django.conf import settings
from backoffice.core import credentials
settings.GATEWAY_API_KEY = sys.argv[1]
print(credentials.key_in_use().name, flush=True)
sys.stdin.readline()
import time
deadline = time.monotonic() + 120
while credentials.key_in_use().name != "second" and time.monotonic() < deadline:
    time.sleep(0.05)
print(credentials.key_in_use().name, flush=True)
"""


@pytest.fixture(autouse=True)
def environment(settings: Settings) -> None:
    settings.GATEWAY_API_KEY = FIRST


@pytest.fixture
def provider(settings: Settings) -> Iterator[StubProvider]:
    with stub_provider.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub


def switched_to(key: str = SECOND, name: str = "second") -> GatewayKey:
    row = GatewayKey(
        name=name, short_hash=credentials.probable_short_hash(SecretStr(key)), made_by=uuid.uuid4()
    )
    row.encrypt(key)
    credentials.switch_to_key(row)
    return row


def in_use() -> str:
    return credentials.key_in_use().secret.get_secret_value()


def test_the_key_from_the_environment_is_used_first() -> None:
    assert in_use() == FIRST
    assert credentials.key_in_use().pk is None
    assert not GatewayKey.objects.exists()


def test_clients_created_before_and_after_a_switch_use_different_keys(provider: StubProvider) -> None:
    gateway().balances.list()
    switched_to()
    gateway().balances.list()
    assert provider.keys_shown == [FIRST, SECOND]


def test_another_process_sees_the_switch_without_a_restart() -> None:
    command = [sys.executable, "-c", _SHOW, FIRST]
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings_of_subprocess",
        "COUNTERSIGN_TEST_DATABASE_NAME": str(connection.settings_dict["NAME"]),
    }
    other = subprocess.Popen(
        command, env=_with(environment), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline().strip() == "Key configured at installation"
    switched_to()
    output, _ = other.communicate("go on\n", timeout=180)
    assert output.strip() == "second"


def test_another_thread_sees_the_switch_at_once() -> None:
    in_use()
    switched_to()
    seen: list[str] = []

    def read_credentials() -> None:
        seen.append(in_use())
        connection.close()

    thread = threading.Thread(target=read_credentials)
    thread.start()
    thread.join()
    assert seen == [SECOND]


class Stopwatch:
    """The clock by which a process remembers, stopped; a test puts it on."""

    def __init__(self) -> None:
        self.shows = time.monotonic()

    def __call__(self) -> float:
        return self.shows


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    credentials.clear_key_cache()
    in_use()  # so that the connection is there: to open one may take its time by this clock
    stopped = Stopwatch()
    monkeypatch.setattr(time, "monotonic", stopped)
    credentials.clear_key_cache()
    return stopped


def test_the_key_is_read_at_most_once_a_second(
    stopwatch: Stopwatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    credentials.clear_key_cache()
    with django_assert_num_queries(1):
        for _ in range(50):
            in_use()


def test_a_switch_by_another_process_is_seen_after_a_second(stopwatch: Stopwatch) -> None:
    in_use()
    row = GatewayKey(name="second", state="in_use", since=timezone.now())
    row.encrypt(SECOND)
    row.save()
    assert in_use() == FIRST
    stopwatch.shows += 1
    assert in_use() == SECOND


def test_a_call_fails_without_sending_if_the_key_table_cannot_be_read(provider: StubProvider) -> None:
    switched_to()
    with connection.schema_editor() as editor:
        editor.alter_db_table(GatewayKey, "core_gatewaykey", "core_elsewhere")
    try:
        credentials.clear_key_cache()
        with pytest.raises(NotSentError, match="cannot be read from the database"):
            gateway().balances.list()
    finally:
        with connection.schema_editor() as editor:
            editor.alter_db_table(GatewayKey, "core_elsewhere", "core_gatewaykey")
    assert provider.keys_shown == []


def test_a_key_that_cannot_be_decrypted_is_not_replaced_by_another(
    provider: StubProvider, settings: Settings
) -> None:
    switched_to()
    settings.ENCRYPTION_KEYS = [f"other:{base64.b64encode(b'x' * 32).decode()}"]
    with pytest.raises(NotSentError, match="encryption key"):
        gateway().balances.list()
    assert provider.keys_shown == []


def test_the_previous_key_is_stored_encrypted() -> None:
    switched_to()
    [former] = credentials.former_keys()
    assert (former.decrypted(), former.short_hash) == (
        FIRST,
        credentials.probable_short_hash(SecretStr(FIRST)),
    )
    switched_to("key-number-000000003", "third")
    assert {row.decrypted() for row in credentials.former_keys()} == {FIRST, SECOND}
    known = credentials.stored_key(credentials.probable_short_hash(SecretStr(SECOND)))
    assert known is not None
    assert known.get_secret_value() == SECOND


def test_a_key_is_bound_to_its_row_by_encryption() -> None:
    row = switched_to()
    assert SECOND.encode() not in bytes(row.encrypted_key)
    other = GatewayKey(encrypted_key=row.encrypted_key)
    with pytest.raises(DecryptionError):
        other.decrypted()


def test_stored_keys_survive_rotation_of_the_encryption_keys(settings: Settings) -> None:
    switched_to()
    newest = f"next:{base64.b64encode(b'n' * 32).decode()}"
    settings.ENCRYPTION_KEYS = [newest, *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets", stdout=StringIO())
    settings.ENCRYPTION_KEYS = [newest]
    credentials.clear_key_cache()
    assert in_use() == SECOND
    assert [row.decrypted() for row in credentials.former_keys()] == [FIRST]


def test_the_database_allows_one_key_in_use() -> None:
    switched_to()
    second = GatewayKey(name="third", state="in_use", since=timezone.now())
    second.encrypt("key-number-000000003")
    with pytest.raises(IntegrityError):
        second.save()


def test_calls_and_key_refusals_are_counted_after_a_switch(provider: StubProvider) -> None:
    row = switched_to()
    gateway().balances.list()
    provider.answer_post = lambda: (401, '{"message": "X-Api-Key is not valid"}')
    with pytest.raises(CredentialsError):
        gateway().api_keys.delete("0a1b2c3d")
    row.refresh_from_db()
    assert (row.calls, row.refused) == (2, 1)
    assert row.last_refused_at is not None
    credentials.stop_counting_calls()
    gateway().balances.list()
    row.refresh_from_db()
    assert row.calls == 2


def test_a_key_can_be_tested_without_activation(provider: StubProvider) -> None:
    with gateway_for_key(SecretStr(SECOND), deadline=5) as client:
        client.balances.list()
    assert provider.keys_shown == [SECOND]
    assert in_use() == FIRST


def test_a_used_key_is_redacted_in_logs() -> None:
    switched_to()
    in_use()
    assert SECOND not in logs.redact_secrets(f"It was {SECOND} all along")


def test_returning_to_the_environments_key_is_audited() -> None:
    switched_to()
    out = StringIO()
    with pytest.raises(CommandError, match="A reason is required"):
        call_command("use_environment_key", "--reason", " ")
    call_command("use_environment_key", "--reason", "The key was lost", stdout=out)
    assert "now use the key of the environment" in out.getvalue()
    assert in_use() == FIRST
    entry = Entry.objects.get(action=Action.KEY_SWITCHED)
    assert entry.detail == ShellCommand("The key was lost").origin
    call_command("use_environment_key", "--reason", "Again", stdout=out)
    assert "Nothing was changed" in out.getvalue()
    assert Entry.objects.filter(action=Action.KEY_SWITCHED).count() == 1


def _with(changes: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **changes, "COUNTERSIGN_DATA_DIR": str(product_settings.DATA_DIR)}


def test_a_switch_back_keeps_a_concurrent_reencryption() -> None:
    first, _ = switched_to("key-that-came-back-0003", "third"), switched_to()
    read_before = GatewayKey.objects.get(pk=first.pk)
    GatewayKey.objects.get(pk=first.pk).reencrypt()
    reencrypted = bytes(GatewayKey.objects.get(pk=first.pk).encrypted_key)
    credentials.switch_to_key(read_before)
    assert bytes(GatewayKey.objects.get(pk=first.pk).encrypted_key) == reencrypted
    assert in_use() == "key-that-came-back-0003"
