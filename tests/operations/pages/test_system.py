"""The System page: the state of the installation for auditors and administrators, and no secret."""

import gzip
import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.checkpoints import deliver_checkpoints_due, public_keys
from backoffice.audit.log import record
from backoffice.audit.models import CheckpointDestination, LastVerification
from backoffice.audit.verification import ChainFault, FaultCode
from backoffice.operations.models.monitoring import Heartbeat, Inspection
from tests.append_only.triggers import lifted

pytestmark = pytest.mark.django_db
SYSTEM = reverse("operations:system")
SECRET_OF_KEYS = ("N" * 43 + "=", "O" * 43 + "=", "P" * 43 + "=")


@pytest.fixture
def reader(client: Client, auditor: User, sign_in: Callable[[Client, User], Client]) -> Client:
    return sign_in(client, auditor)


@pytest.fixture
def destination(tmp_path: Path, settings: Settings) -> str:
    address = f"file://{tmp_path}/checkpoints.jsonl"
    settings.AUDIT_CHECKPOINT_DESTINATIONS = [address]
    settings.AUDIT_CHECKPOINT_KEYS = [f"2027:{SECRET_OF_KEYS[0]}"]
    record(Action.OPERATION_PREPARED, actor=None, target="W-1")
    return address


def shown(reader: Client) -> str:
    """The words of the page, without its tags."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", reader.get(SYSTEM).content.decode())).split())


def test_it_shows_versions_and_the_newest_entry(reader: Client, settings: Settings) -> None:
    newest = record(Action.OPERATION_PREPARED, actor=None, target="W-1")
    text = shown(reader)
    assert f"Countersign {settings.VERSION} Django 5.2" in text
    assert f"Newest entry {newest.position} · less than 1 min Hash {newest.hash}" in text
    assert "Last verified Not yet" in text


@pytest.mark.parametrize("stored", ["infinity", "294276-01-01 00:00:00+00"])
def test_it_names_the_newest_entry_if_its_time_cannot_be_read(reader: Client, stored: str) -> None:
    LastVerification.objects.create(pk=1, at=timezone.now(), verified=2, newest_hash="0" * 64)
    position = record(Action.OPERATION_PREPARED, actor=None, target="W-1").position
    with lifted(connection), connection.cursor() as cursor:
        cursor.execute("UPDATE audit_entry SET at = %s WHERE position = %s", [stored, position])
    text = shown(reader)
    assert f"Newest entry {position} · Entry {position} of the audit log cannot be read. Hash" in text
    assert "2 entries" in text


def test_it_warns_if_the_head_is_not_stored_elsewhere(reader: Client) -> None:
    assert "anyone who can write to the database can rewrite the log unnoticed" in shown(reader)


def test_it_shows_how_the_delivery_of_checkpoints_goes(reader: Client, destination: str) -> None:
    assert f"{destination} Not delivered yet" in shown(reader)
    assert deliver_checkpoints_due() == 1
    position = CheckpointDestination.objects.get().position
    text = shown(reader)
    assert f"{destination} Delivered Entry {position} less than 1 min less than 1 min" in text
    assert f"Signed with the key 2027, public key {public_keys()['2027']}" in text
    assert "unnoticed" not in text


def test_it_shows_problems_and_contradictions(reader: Client, destination: str) -> None:
    CheckpointDestination.objects.create(
        address=destination,
        since=timezone.now(),
        problem={"code": "refused", "method": "POST", "status": 503},
        failed_at=timezone.now() - timedelta(minutes=7),
    )
    assert f"{destination} It responded to POST with status 503. 7 min Failing" in shown(reader)
    fault = ChainFault(3, FaultCode.BEFORE_CHECKPOINT, other=2, destination=destination).detail
    CheckpointDestination.objects.update(fault=fault)
    assert "entry 3: missing; the log ends at entry 2" in shown(reader)
    assert "Contradicts the log" in shown(reader)


def test_it_shows_the_last_verification(reader: Client) -> None:
    reader.post(reverse("audit:verify"))
    verified = LastVerification.objects.get().verified
    assert f" · {verified} entries" in shown(reader)
    LastVerification.objects.update(fault=ChainFault(3, FaultCode.CONTENT_CHANGED).detail)
    assert "The last verification found a fault: entry 3: content does not match its hash." in shown(reader)


def test_it_shows_integrity_checks_and_jobs(reader: Client) -> None:
    assert "The sweeper process has never run." in shown(reader)
    now = timezone.now()
    Inspection.objects.create(
        pk=1,
        at=now,
        violations={"database_rule_altered": {"count": 1, "references": ["trigger a.b is missing"]}},
    )
    Heartbeat.objects.create(job="send_due", at=now)
    Heartbeat.objects.create(job="sync_if_due", at=now - timedelta(minutes=6))
    text = shown(reader)
    assert "send_due less than 1 min sync_if_due 6 min" in text
    assert "This rule is violated by: trigger a.b is missing" in text
    html = reader.get(SYSTEM).content.decode()
    assert html.count('<dd class="bad">') == 1
    assert "?q=trigger" not in html


def test_it_shows_the_ids_of_keys_and_no_key(reader: Client, destination: str, settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [f"2028:{SECRET_OF_KEYS[1]}", f"2026:{SECRET_OF_KEYS[2]}"]
    settings.AUDIT_CHECKPOINT_TOKEN = "a-token-of-the-receiver"
    html = reader.get(SYSTEM).content.decode()
    assert "Encrypts 2028 Only decrypt 2026" in shown(reader)
    assert [secret for secret in (*SECRET_OF_KEYS, "a-token-of-the-receiver") if secret in html] == []


def test_it_stays_within_its_bytes_and_queries(
    reader: Client,
    destination: str,
    settings: Settings,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    now = timezone.now()
    settings.AUDIT_CHECKPOINT_DESTINATIONS = [f"{destination}{number}" for number in range(8)]
    for address in settings.AUDIT_CHECKPOINT_DESTINATIONS:
        CheckpointDestination.objects.create(address=address, since=now - timedelta(hours=2))
    Inspection.objects.create(pk=1, at=now)
    Heartbeat.objects.bulk_create([Heartbeat(job=f"job_{number}", at=now) for number in range(20)])
    with django_assert_max_num_queries(8):
        page = reader.get(SYSTEM)
    assert len(gzip.compress(page.content)) <= 14 * 1024


@pytest.mark.parametrize("mode", ["not_asked", "entered", "managed"])
def test_the_secret_can_be_stored_before_codes_are_made_from_it(
    sign_in: Callable[[Client, User], Client], administrator: User, settings: Settings, mode: str
) -> None:
    settings.OTP_MODE = mode
    page = sign_in(Client(), administrator).get(SYSTEM).content.decode()
    assert f'href="{reverse("operations:prepare", args=["otp_secret"])}">Change authenticator secret…' in page


OTP_SENTENCES = {
    "not_asked": "Not required: requests contain none",
    "entered": "Entered by the person who sends",
    "managed": "Generated by Countersign from the stored authenticator secret",
}


@pytest.mark.parametrize("mode", OTP_SENTENCES)
def test_the_page_says_how_one_time_codes_get_into_requests(
    reader: Client, settings: Settings, mode: str
) -> None:
    settings.OTP_MODE = mode
    html = shown(reader)
    assert [name for name, sentence in OTP_SENTENCES.items() if sentence in html] == [mode]


def test_an_auditor_is_not_offered_to_change_the_secret(reader: Client) -> None:
    assert "Change authenticator secret…" not in shown(reader)
