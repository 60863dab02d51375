"""The signed head of the log is kept elsewhere, and a log that was rewritten or cut off contradicts it."""

import base64
import json
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.audit import checkpoints
from backoffice.audit.actions import Action
from backoffice.audit.canonical import canonical_json
from backoffice.audit.checkpoints import (
    DeliveryStatus,
    check_configuration,
    contradictions,
    deliver_checkpoints_due,
    destination_states,
    files_are_on_another_volume,
    head_is_kept_elsewhere,
    overdue_destinations,
    parse_checkpoint,
    public_keys,
    sign,
    verify_log,
    verify_log_due,
)
from backoffice.audit.destinations import TIMEOUT
from backoffice.audit.log import record
from backoffice.audit.models import ChainHead, CheckpointDestination, Entry, LastVerification
from backoffice.audit.verification import verify_chain
from backoffice.core import background, clock
from tests.append_only.triggers import lifted
from tests.audit.conftest import KEYS
from tests.audit.receivers import http_receiver, syslog_receiver

pytestmark = pytest.mark.django_db


def append(number: int = 1) -> None:
    for _ in range(number):
        record(Action.OPERATION_PREPARED, actor=None, target="W-1")


def after(minutes: float) -> int:
    """Deliver what is due at this time from now."""
    with clock.use_clock(lambda: timezone.now() + timedelta(minutes=minutes)):
        return deliver_checkpoints_due()


def positions(file: Path) -> list[int]:
    return [json.loads(line)["position"] for line in file.read_text().splitlines()]


def rewrite(from_position: int) -> None:
    """Change an entry and recompute every hash after it, and the head: the chain is intact again."""
    with lifted(connection):
        previous = Entry.objects.get(position=from_position).previous_hash
        for entry in Entry.objects.filter(position__gte=from_position).order_by("position"):
            entry.target_label, entry.previous_hash = "W-2", previous
            previous = entry.hash = entry.digest()
            entry.save()
        ChainHead.objects.update(hash=previous)
    assert verify_chain().is_intact


def cut(after_position: int) -> None:
    """Remove the newest entries, and put the head back: the chain is intact again."""
    with lifted(connection):
        Entry.objects.filter(position__gt=after_position).delete()
        ChainHead.objects.update(
            position=after_position, hash=Entry.objects.get(position=after_position).hash
        )
    assert verify_chain().is_intact


# What a checkpoint is


def test_a_checkpoint_is_one_line_that_others_can_verify(checkpoint_file: Path) -> None:
    append(3)
    assert deliver_checkpoints_due() == 1

    members = json.loads(checkpoint_file.read_text())
    signature = base64.b64decode(members.pop("signature"))
    assert (members["version"], members["position"], members["key"]) == ("v1", 3, "2027")
    assert members["hash"] == Entry.objects.get(position=3).hash
    public_key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_keys()["2027"]))
    public_key.verify(signature, canonical_json(members))


@pytest.mark.parametrize("member", ["position", "hash", "at", "key", "signature"])
def test_a_changed_checkpoint_is_not_authentic(checkpoint_keys: None, member: str) -> None:
    members = json.loads(sign(3, "f" * 64, timezone.now()).line)
    assert parse_checkpoint(json.dumps(members).encode()).is_authentic
    other = {"position": 4, "hash": "e" * 64, "at": "2026", "key": "2026", "signature": "AAAA"}
    changed = parse_checkpoint(json.dumps({**members, member: other[member]}).encode())
    assert not changed.is_authentic


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"position": 1',
        b"{" * 100_000,
        b'{"version":"v1","position":true,"hash":"","at":"","key":"2027","signature":""}',
        b'{"version":"v1","position":1e3,"hash":"","at":"","key":"2027","signature":""}',
        b'{"version":"v1","position":99999999999999999999,"hash":"","at":"","key":"2027","signature":""}',
        b'{"version":"v1","position":1,"hash":[],"at":"","key":"2027","signature":""}',
        b'{"version":"v1","position":1,"hash":"","at":"","key":"of nobody","signature":""}',
        b'{"version":"v2","position":1,"hash":"","at":"","key":"2027","signature":""}',
    ],
)
def test_a_line_that_is_no_checkpoint_is_unreadable(checkpoint_keys: None, line: bytes) -> None:
    with pytest.raises(checkpoints.UnreadableCheckpointError):
        parse_checkpoint(line)


# When it is delivered


def test_the_head_is_delivered_every_minute_if_it_moved(checkpoint_file: Path) -> None:
    assert deliver_checkpoints_due() == 0
    assert not checkpoint_file.exists(), "the log is empty"
    append(2)
    assert [after(0), after(0.9), after(1.1), after(2.2)] == [0, 0, 1, 0]
    append(3)
    assert [after(2.3), after(3.3)] == [0, 1]
    assert positions(checkpoint_file) == [2, 5]
    row = CheckpointDestination.objects.get()
    assert (row.position, row.hash, row.problem) == (5, Entry.objects.get(position=5).hash, {})


def test_a_checkpoint_whose_answer_was_lost_is_not_delivered_twice(checkpoint_file: Path) -> None:
    append(2)
    assert deliver_checkpoints_due() == 1
    CheckpointDestination.objects.update(position=0, hash="0" * 64, delivered_at=None)
    assert after(1.1) == 1
    assert positions(checkpoint_file) == [2]
    assert overdue_destinations(timezone.now() + timedelta(days=1)) == []


def test_without_a_destination_nothing_is_done() -> None:
    append()
    assert deliver_checkpoints_due() == 0
    assert overdue_destinations(timezone.now() + timedelta(days=1)) == []
    assert contradictions() == []


def test_each_destination_gets_it_whatever_happens_to_the_others(
    tmp_path: Path, settings: Settings, checkpoint_keys: None, caplog: pytest.LogCaptureFixture
) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    with syslog_receiver(socket.SOCK_DGRAM) as (port, syslog), http_receiver() as receiver:
        settings.AUDIT_CHECKPOINT_DESTINATIONS = [
            f"file://{files[0]}",
            f"file://{tmp_path}/not mounted/x",
            f"syslog+udp://127.0.0.1:{port}",
            receiver.url,
            f"file://{files[1]}",
        ]
        append(2)
        assert deliver_checkpoints_due() == 4
        assert [positions(file) for file in files] == [[2], [2]]
        assert [parse_checkpoint(line).position for line in receiver.lines] == [2]
        assert parse_checkpoint(syslog.recv(65_536)).is_authentic
    assert [state.status for state in destination_states(timezone.now())] == [
        DeliveryStatus.DELIVERED,
        DeliveryStatus.FAILING,
        DeliveryStatus.DELIVERED,
        DeliveryStatus.DELIVERED,
        DeliveryStatus.DELIVERED,
    ]
    assert "It cannot be read back: the file or its folder does not exist." in caplog.text


def test_the_sweeper_does_not_wait_for_a_destination_when_it_stops(
    settings: Settings, checkpoint_keys: None
) -> None:
    append()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/checkpoints"
        settings.AUDIT_CHECKPOINT_DESTINATIONS = [address]
        stop = threading.Timer(0.2, background.stop_requested.set)
        stop.start()
        began = time.monotonic()
        try:
            assert deliver_checkpoints_due() == 0
        finally:
            stop.join()
            background.stop_requested.clear()
    assert time.monotonic() - began < TIMEOUT / 2
    assert destination_states(timezone.now())[0].problem == ""


def test_a_failing_destination_is_logged_once_and_tried_again(
    checkpoint_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append()
    checkpoint_file.mkdir()
    assert [after(0), after(2), after(4)] == [0, 0, 0]
    warnings = [
        one for one in caplog.records if one.name == checkpoints.__name__ and one.levelname == "WARNING"
    ]
    assert len(warnings) == 1
    [state] = destination_states(timezone.now())
    assert state.problem == "It cannot be read back: it is a folder."
    checkpoint_file.rmdir()
    assert after(6) == 1
    [state] = destination_states(timezone.now())
    assert (state.status, state.problem) == (DeliveryStatus.DELIVERED, "")


def test_a_destination_that_lacks_an_entry_for_an_hour_is_overdue(checkpoint_file: Path) -> None:
    now = timezone.now()
    address = f"file://{checkpoint_file}"
    append()
    assert deliver_checkpoints_due() == 1
    checkpoint_file.unlink()
    checkpoint_file.mkdir()
    assert overdue_destinations(now + timedelta(hours=9)) == [], "nothing is missing there"
    append()
    assert after(2) == 0
    assert overdue_destinations(now + timedelta(minutes=59)) == []
    assert [row.address for row in overdue_destinations(now + timedelta(minutes=61))] == [address]
    [state] = destination_states(now + timedelta(minutes=61))
    assert state.status == DeliveryStatus.OVERDUE


def test_a_new_destination_is_not_overdue_at_once(checkpoint_file: Path) -> None:
    append()
    with lifted(connection):
        Entry.objects.update(at=timezone.now() - timedelta(days=1))
    checkpoint_file.mkdir()
    assert deliver_checkpoints_due() == 0
    assert overdue_destinations(timezone.now() + timedelta(minutes=59)) == []
    assert overdue_destinations(timezone.now() + timedelta(minutes=61)) != []


# What is detected


Damage = Callable[[], None]
DAMAGE: dict[str, tuple[Damage, str]] = {
    "rewritten": (
        lambda: rewrite(3),
        "entry 4: missing, or its hash differs from the checkpoint at {}",
    ),
    "cut off": (lambda: cut(2), "entry 4: missing; the log ends at entry 2, before the checkpoint at {}"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_rewritten_or_cut_log_is_detected_within_a_minute(checkpoint_file: Path, damage: str) -> None:
    append(4)
    assert deliver_checkpoints_due() == 1
    act, sentence = DAMAGE[damage]
    act()
    before = checkpoint_file.read_bytes()

    assert after(1.1) == 0

    assert contradictions() == [sentence.format(f"file://{checkpoint_file}")]
    append(9)
    assert after(2.2) == 0
    assert checkpoint_file.read_bytes() == before, "a rewritten log gets no new signature"
    assert contradictions() != []
    [state] = destination_states(timezone.now())
    assert (state.status, state.fault) == (DeliveryStatus.CONTRADICTED, contradictions()[0])


@pytest.mark.parametrize("damage", DAMAGE)
def test_it_is_detected_by_an_address_that_can_be_read_back(
    settings: Settings, checkpoint_keys: None, damage: str
) -> None:
    act, sentence = DAMAGE[damage]
    with http_receiver() as receiver:
        settings.AUDIT_CHECKPOINT_DESTINATIONS = [receiver.url]
        append(4)
        assert deliver_checkpoints_due() == 1
        act()
        CheckpointDestination.objects.all().delete()  # by who rewrote the log
        assert after(1.1) == 0
        assert contradictions() == [sentence.format(receiver.url)]
        assert len(receiver.lines) == 1


@pytest.mark.parametrize("damage", DAMAGE)
def test_it_is_detected_by_what_a_syslog_server_got(
    settings: Settings, checkpoint_keys: None, damage: str
) -> None:
    act, sentence = DAMAGE[damage]
    with syslog_receiver(socket.SOCK_DGRAM) as (port, _):
        address = f"syslog+udp://127.0.0.1:{port}"
        settings.AUDIT_CHECKPOINT_DESTINATIONS = [address]
        append(4)
        assert deliver_checkpoints_due() == 1
        act()
        assert after(1.1) == 0
        assert contradictions() == [sentence.format(address)]
        assert str(verify_log(actor=None)) == sentence.format(address)


def test_an_address_that_fails_to_return_its_checkpoints_gets_no_new_one(
    settings: Settings, checkpoint_keys: None
) -> None:
    with http_receiver() as receiver:
        settings.AUDIT_CHECKPOINT_DESTINATIONS = [receiver.url]
        append()
        receiver.get_status = 500
        assert deliver_checkpoints_due() == 0
        assert receiver.lines == []
        receiver.get_status = 405
        assert after(1.1) == 1


def test_a_checkpoint_with_a_forged_signature_is_detected(checkpoint_file: Path) -> None:
    append(2)
    assert deliver_checkpoints_due() == 1
    line = json.loads(checkpoint_file.read_text())
    checkpoint_file.write_text(
        json.dumps({**line, "position": 1, "hash": Entry.objects.get(position=1).hash})
    )
    assert after(1.1) == 0
    assert contradictions() == [
        f"entry 1: the signature of its checkpoint at file://{checkpoint_file} is invalid"
    ]


@pytest.mark.parametrize("remains", [b"", b"not a checkpoint\n"])
def test_a_lost_checkpoint_is_detected(checkpoint_file: Path, remains: bytes) -> None:
    append(2)
    assert deliver_checkpoints_due() == 1
    checkpoint_file.write_bytes(remains)
    assert after(1.1) == 0
    assert contradictions() == [f"entry 2: its checkpoint is no longer at file://{checkpoint_file}"]


def test_checkpoints_of_an_earlier_key_remain_verifiable(checkpoint_file: Path, settings: Settings) -> None:
    settings.AUDIT_CHECKPOINT_KEYS = KEYS[1:]
    append()
    assert deliver_checkpoints_due() == 1
    settings.AUDIT_CHECKPOINT_KEYS = KEYS
    append()
    assert after(1.1) == 1
    assert [json.loads(line)["key"] for line in checkpoint_file.read_text().splitlines()] == ["2026", "2027"]
    assert verify_log(actor=None).compared == 2
    cut(1)
    assert "before the checkpoint" in str(verify_log(actor=None))


def test_a_replaced_key_is_told_apart_from_a_lost_checkpoint(
    checkpoint_file: Path, settings: Settings
) -> None:
    settings.AUDIT_CHECKPOINT_KEYS = KEYS[1:]
    append()
    assert deliver_checkpoints_due() == 1
    settings.AUDIT_CHECKPOINT_KEYS = KEYS[:1]
    append()
    assert after(1.1) == 0
    assert contradictions() == [
        f"entry 1: its checkpoint at file://{checkpoint_file} was signed with the key 2026, which is not "
        "configured: configure that key again"
    ]
    settings.AUDIT_CHECKPOINT_KEYS = KEYS
    assert verify_log(actor=None).is_intact
    assert contradictions() == []
    assert after(2.2) == 1


def test_an_old_key_can_be_removed_once_the_new_one_has_signed(
    checkpoint_file: Path, settings: Settings
) -> None:
    settings.AUDIT_CHECKPOINT_KEYS = KEYS[1:]
    append()
    assert deliver_checkpoints_due() == 1
    settings.AUDIT_CHECKPOINT_KEYS = KEYS
    append()
    assert after(1.1) == 1
    settings.AUDIT_CHECKPOINT_KEYS = KEYS[:1]
    assert verify_log(actor=None).is_intact
    append()
    assert after(2.2) == 1


# The verification of everything


@pytest.fixture
def long_file(checkpoint_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven checkpoints, read in several batches."""
    monkeypatch.setattr(checkpoints, "_COMPARED_AT_ONCE", 3)
    for number in range(7):
        append()
        assert after(number * 1.1) == 1
    return checkpoint_file


def test_verification_compares_every_checkpoint(long_file: Path) -> None:
    found = verify_log(actor=None)

    assert (found.is_intact, found.compared) == (True, 7)
    [comparison] = found.comparisons
    assert (comparison.newest, comparison.unreadable) == (7, 0)
    assert Entry.objects.latest("position").detail["checkpoints"] == 7


def test_verification_finds_an_old_checkpoint_and_the_alarm_lasts_until_one_finds_none(
    long_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backoffice.audit.destinations.NEWEST_BYTES", 600)  # two lines
    original = long_file.read_bytes()
    lines = original.splitlines()
    lines[1] = sign(2, "f" * 64, timezone.now()).line
    long_file.write_bytes(b"\n".join(lines) + b"\n")
    sentence = f"entry 2: missing, or its hash differs from the checkpoint at file://{long_file}"

    assert after(20) == 0
    assert contradictions() == [], "the newest ones agree"
    assert str(verify_log(actor=None)) == sentence
    assert after(22) == 1
    assert contradictions() == [sentence]

    long_file.write_bytes(original)
    assert verify_log(actor=None).is_intact is False, "the newest one is lost"
    append()
    CheckpointDestination.objects.update(position=7)
    assert verify_log(actor=None).is_intact
    assert contradictions() == []


def test_verification_counts_lines_that_cannot_be_read(checkpoint_file: Path) -> None:
    append()
    checkpoint_file.write_bytes(b'{"posi\n\n')
    assert deliver_checkpoints_due() == 1
    [comparison] = verify_log(actor=None).comparisons
    assert (comparison.compared, comparison.unreadable, comparison.fault) == (1, 1, None)


def test_a_destination_that_cannot_be_read_is_reported_and_keeps_its_fault(checkpoint_file: Path) -> None:
    append(2)
    assert deliver_checkpoints_due() == 1
    cut(1)
    assert after(1.1) == 0
    checkpoint_file.unlink()
    checkpoint_file.mkdir()
    found = verify_log(actor=None)
    assert found.comparisons[0].problem_sentence == "It cannot be read back: it is a folder."
    assert contradictions() != []


def test_the_log_is_verified_once_a_day(checkpoint_file: Path) -> None:
    append()
    now = timezone.now()
    due = []
    for hours in (0, 1, 23, 24.1):
        with clock.use_clock(lambda hours=hours: now + timedelta(hours=hours)):  # type: ignore[misc]
            due.append(verify_log_due())
    assert due == [1, 0, 0, 1]
    last = LastVerification.objects.get()
    assert (last.verified, last.fault) == (2, {})
    assert str(Entry.objects.latest("position")) == "Countersign verified the audit log"


def test_the_daily_verification_keeps_what_it_found(preparer: object) -> None:
    append(3)
    with lifted(connection):
        Entry.objects.filter(position=2).update(target_label="W-9")
    assert verify_log_due() == 1
    assert LastVerification.objects.get().fault["code"] == "content_changed"


def test_the_command_compares_with_a_copy_of_what_a_syslog_server_got(
    tmp_path: Path, checkpoint_keys: None, capsys: pytest.CaptureFixture[str]
) -> None:
    append(3)
    copy = tmp_path / "messages"
    header = b"2026-11-23T08:53:52Z host countersign 7 checkpoint - "
    copy.write_bytes(header + sign(3, Entry.objects.get(position=3).hash, timezone.now()).line + b"\n")

    call_command("verify_audit", against=copy)
    output = capsys.readouterr().out
    assert f"{copy}: 1 checkpoints compared\n" in output
    assert f"public key 2027: {public_keys()['2027']}\n" in output

    cut(2)
    with pytest.raises(CommandError, match="The audit log is not intact"):
        call_command("verify_audit", against=copy)
    assert (
        capsys.readouterr().err
        == f"entry 3: missing; the log ends at entry 2, before the checkpoint at {copy}\n"
    )


@pytest.mark.parametrize("content", [b"", b"of another program\n"])
def test_a_copy_without_a_checkpoint_that_can_be_compared_is_no_success(
    checkpoint_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """Such as one whose key is no longer configured: nothing contradicts the log, and nothing confirms it."""
    append(2)
    copy = tmp_path / "copy"
    copy.write_bytes(content)
    with pytest.raises(CommandError, match="Not every checkpoint could be compared"):
        call_command("verify_audit", against=copy)
    assert f"{copy}: no checkpoint could be compared" in capsys.readouterr().err


def test_a_destination_that_cannot_be_read_is_no_success(
    checkpoint_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(2)
    deliver_checkpoints_due()
    checkpoint_file.unlink()
    checkpoint_file.mkdir()
    with pytest.raises(CommandError, match="Not every checkpoint could be compared"):
        call_command("verify_audit")
    assert "not compared" in capsys.readouterr().out


# Configuration


def test_a_usable_configuration_is_accepted(settings: Settings, checkpoint_file: Path) -> None:
    check_configuration()
    settings.AUDIT_CHECKPOINT_DESTINATIONS = settings.AUDIT_CHECKPOINT_KEYS = []
    check_configuration()


@pytest.mark.parametrize(
    ("destinations", "keys", "message"),
    [
        (["file:///mnt/x"], [], "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS: at least one key"),
        (["file:///mnt/x"], ["2027:c2hvcnQ="], "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS: each key is"),
        ([], [KEYS[0], KEYS[0]], "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS: at least one key"),
        (["file:///mnt/x", "file:///mnt/x"], KEYS, "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS: an address"),
        (["mnt/x"], KEYS, "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS: each is"),
    ],
)
def test_a_wrong_configuration_is_refused(
    settings: Settings, destinations: list[str], keys: list[str], message: str
) -> None:
    settings.AUDIT_CHECKPOINT_DESTINATIONS, settings.AUDIT_CHECKPOINT_KEYS = destinations, keys
    with pytest.raises(ImproperlyConfigured, match=message) as refused:
        check_configuration()
    assert "c2hvcnQ" not in str(refused.value)


def test_the_deployment_check_warns_without_a_destination(settings: Settings, checkpoint_file: Path) -> None:
    assert list(head_is_kept_elsewhere()) == []
    settings.AUDIT_CHECKPOINT_DESTINATIONS = []
    assert [found.id for found in head_is_kept_elsewhere()] == ["audit.W001"]


def test_the_deployment_check_warns_of_a_file_in_the_data_folder(settings: Settings, tmp_path: Path) -> None:
    settings.ENVIRONMENT, settings.DATA_DIR = "production", tmp_path / "data"
    inside, beside = (
        f"file://{tmp_path}/data/more/../checkpoints",
        f"file://{tmp_path}/data-checkpoints/checkpoints",
    )
    settings.AUDIT_CHECKPOINT_DESTINATIONS = [inside, beside, "https://log.example/data/checkpoints"]
    [found] = files_are_on_another_volume()
    assert (found.id, inside in found.msg) == ("audit.W002", True)
    settings.ENVIRONMENT = "sandbox"
    assert list(files_are_on_another_volume()) == []
