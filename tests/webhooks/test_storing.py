"""Each delivery is kept once, with what it is worth by the keys of the day; what is worth nothing is bounded."""

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.models import Count
from django.utils import timezone
from pytest_django import Settings

from backoffice.webhooks import processing, storing
from backoffice.webhooks.models import Delivery, DeliveryTestKey, DeliveryVerification
from backoffice.webhooks.processing import PROCESS_TASK, Arrival, receive_delivery
from backoffice.webhooks.storing import GroupCommit
from payments_gateway.webhooks import self_signed_webhook
from tests.core.test_background import messages
from tests.payments_gateway.vectors.make_vectors import FOLDER, RECORD, delivery, signed, written
from tests.webhooks.conftest import UseKeys
from tests.webhooks.steps import deliver, forged, only_delivery, status_delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver")]
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"  # of base64


def enqueued() -> int:
    """How often a task was enqueued."""
    return sum(message["headers"]["task"] == PROCESS_TASK for message in messages(""))


def test_a_hundred_concurrent_copies_are_stored_once() -> None:
    body = status_delivery()

    def receive(_: int) -> DeliveryVerification:
        try:
            return receive_delivery(body)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(receive, range(100)))

    assert verdicts == [DeliveryVerification.VALID] * 100
    assert (only_delivery().received_count, only_delivery().check_due_at is None) == (100, False)


def test_a_repeat_is_counted_with_its_time_and_changes_nothing_else() -> None:
    body = status_delivery()
    receive_delivery(body)
    first = Delivery.objects.values().get()
    receive_delivery(body)
    again = Delivery.objects.values().get()
    assert again["last_at"] > first["last_at"]
    assert again == {**first, "last_at": again["last_at"], "received_count": 2}


def reformatted(body: bytes) -> list[bytes]:
    """The same data and signature, written in other ways that somebody who has them can think of."""
    signature = json.loads(body)["signature"].encode()
    assert signature.endswith(b"==")  # so its last digit has four bits that no byte needs
    spelled = signature[:-3] + _DIGITS[_DIGITS.index(signature[-3]) + 1 :][:1] + b"=="
    return [
        body + b" ",
        body.replace(b'"event":', b'"event" :'),
        body.replace(b'"data"', rb'"d\u0061ta"'),
        body.replace(b'"event"', b'"further":1,"event"'),
        body.replace(b"Transaction updated", b"Deposit"),
        body.replace(signature, spelled),
        body.replace(signature, rb"\u00%02x" % signature[0] + signature[1:]),
    ]


def test_the_same_data_in_another_body_is_a_repeat() -> None:
    body = status_delivery()
    receive_delivery(body)
    Delivery.objects.update(check_due_at=None)
    first = Delivery.objects.values().get()
    clothes = reformatted(body)
    assert len({body, *clothes}) == 8
    for other in clothes:
        assert receive_delivery(other) == DeliveryVerification.VALID
    again = Delivery.objects.values().get()
    assert again == {**first, "last_at": again["last_at"], "received_count": 8}


def test_the_same_body_signed_again_is_another_delivery() -> None:
    for _ in range(2):
        receive_delivery(status_delivery())
    assert Delivery.objects.filter(check_due_at__isnull=False).count() == 2


def test_the_first_valid_body_is_kept(use_keys: UseKeys) -> None:
    body = status_delivery("T-7")
    use_keys("previous")
    receive_delivery(body.replace(b"Transaction updated", b"Deposit"))
    use_keys("current")
    receive_delivery(body)
    receive_delivery(body + b" ")
    stored = only_delivery()
    assert (stored.event, stored.transaction_id, bytes(stored.body)) == ("Transaction updated", "T-7", body)
    assert (stored.digest, stored.received_count) == (hashlib.sha256(body).hexdigest(), 3)


def test_the_headers_and_the_answer_are_those_of_the_stored_body(use_keys: UseKeys) -> None:
    body = status_delivery("T-7", updated_at="2026-11-20T10:00:00Z")
    use_keys("previous")
    receive_delivery(body, Arrival({"X-Try": "1"}))
    assert (only_delivery().headers, only_delivery().response_status) == ({"X-Try": "1"}, 400)
    use_keys("current")
    receive_delivery(body, Arrival({"X-Try": "2"}))
    receive_delivery(body, Arrival({"X-Try": "3"}))
    assert (only_delivery().headers, only_delivery().response_status) == ({"X-Try": "2"}, 200)
    assert only_delivery().event_at is not None


def test_a_replay_after_a_month_triggers_no_check() -> None:
    body = status_delivery()
    receive_delivery(body)
    Delivery.objects.update(check_due_at=None, received_at=timezone.now() - timedelta(days=31))
    receive_delivery(body)
    assert (only_delivery().check_due_at, only_delivery().received_count) == (None, 2)


def test_new_deliveries_enqueue_one_job_a_second_and_all_trigger_a_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processing, "monotonic", lambda: 100.0)
    before = enqueued()
    for number in range(5):
        receive_delivery(status_delivery(f"T-{number}"))
    assert (enqueued() - before, Delivery.objects.filter(check_due_at__isnull=False).count()) == (1, 5)
    monkeypatch.setattr(processing, "monotonic", lambda: 101.0)
    receive_delivery(status_delivery("T-6"))
    assert enqueued() - before == 2


def test_invalid_deliveries_are_limited_to_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing, "MAX_INVALID_KEPT", 3)
    receive_delivery(status_delivery())
    for number in range(8):
        receive_delivery(b"not a delivery %d" % number)
    stored = [bytes(body) for body in Delivery.objects.order_by("pk").values_list("body", flat=True)]
    assert stored[1:] == [b"not a delivery 5", b"not a delivery 6", b"not a delivery 7"]
    assert Delivery.objects.filter(verdict=DeliveryVerification.VALID).count() == 1


def test_a_flood_from_one_source_displaces_only_its_own_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing, "MAX_INVALID_KEPT", 10)
    monkeypatch.setattr(processing, "MAX_INVALID_KEPT_OF_SOURCE", 6)

    def receive(source: str, number: int) -> None:
        for one in range(number):
            receive_delivery(f"not a delivery {one} of {source}".encode(), Arrival(source=source))

    def kept() -> dict[str, int]:
        rows = Delivery.objects.values_list("source").annotate(number=Count("pk"))
        return dict(rows)

    receive("192.0.2.1", 2)
    receive("203.0.113.9", 100)
    assert kept() == {"192.0.2.1": 2, "203.0.113.9": 6}
    receive("198.51.100.7", 100)
    assert kept()["192.0.2.1"] == 2
    assert sum(kept().values()) == 10


def test_the_source_of_a_delivery_is_stored() -> None:
    deliver(b"no delivery", REMOTE_ADDR="2001:db8::7")
    assert Delivery.objects.get().source == "2001:db8::/64"


def test_invalid_deliveries_and_tests_do_not_displace_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing, "MAX_INVALID_KEPT", 2)
    monkeypatch.setattr(processing, "MAX_TESTS_KEPT", 2)

    def kept() -> list[tuple[str, int]]:
        rows = Delivery.objects.values_list("verdict").annotate(number=Count("pk"))
        return sorted((verdict, number) for verdict, number in rows)

    def receive_tests(number: int) -> list[bytes]:
        bodies = []
        for _ in range(number):
            test = self_signed_webhook(processing.TEST_EVENT, {"testId": str(uuid4())})
            defaults = {"public_pem": test.public_pem, "made_at": timezone.now()}
            DeliveryTestKey.objects.update_or_create(pk=1, defaults=defaults)
            assert receive_delivery(test.body) == DeliveryVerification.TEST
            bodies.append(test.body)
        return bodies

    first = receive_tests(1)
    for number in range(5):
        receive_delivery(b"not a delivery %d" % number)
    assert kept() == [("malformed", 2), ("test", 1)]
    assert bytes(Delivery.objects.get(verdict="test").body) == first[0]
    newest = receive_tests(4)[-2:]
    assert kept() == [("malformed", 2), ("test", 2)]
    tests = Delivery.objects.filter(verdict="test").order_by("pk").values_list("body", flat=True)
    assert [bytes(body) for body in tests] == newest


def test_the_previous_release_can_store_deliveries_in_this_schema() -> None:
    receive_delivery(status_delivery())
    old_columns = (
        "identity, digest, received_at, last_at, received_count, verdict, error, key, event, transaction_id, "
        "reference, body, valid_at, check_due_at, checked_at"
    )
    values = old_columns.replace("identity", "'another'", 1)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO webhooks_delivery ({old_columns}) SELECT {values} FROM webhooks_delivery"  # noqa: S608
        )
    stored = Delivery.objects.get(identity="another")
    assert (stored.headers, stored.started, stored.response_status) == ({}, [], None)


def test_both_keys_are_valid_during_a_key_change(use_keys: UseKeys) -> None:
    use_keys("current", "previous")
    old = delivery(signature=signed(RECORD, "previous"))
    assert [receive_delivery(old), receive_delivery(status_delivery())] == [DeliveryVerification.VALID] * 2
    assert Delivery.objects.values("key").distinct().count() == 2


def test_a_key_no_longer_in_force_is_refused(use_keys: UseKeys) -> None:
    use_keys("previous")
    assert receive_delivery(status_delivery()) == DeliveryVerification.INVALID


def test_a_refused_delivery_is_accepted_again_once_the_new_key_is_configured(use_keys: UseKeys) -> None:
    body = status_delivery("T-7")
    use_keys("previous")
    receive_delivery(body)
    assert only_delivery().check_due_at is None
    use_keys("current")
    assert receive_delivery(body) == DeliveryVerification.VALID
    stored = only_delivery()
    assert (stored.verdict, stored.received_count, stored.transaction_id, stored.problem) == (
        "valid",
        2,
        "T-7",
        "",
    )
    assert stored.check_due_at is not None


def test_a_valid_delivery_stays_valid_after_its_key_is_removed(use_keys: UseKeys) -> None:
    body = status_delivery()
    receive_delivery(body)
    use_keys("previous")
    assert receive_delivery(body) == DeliveryVerification.INVALID
    assert (only_delivery().verdict, only_delivery().received_count) == ("valid", 2)


def test_new_keys_in_the_file_are_used_without_a_restart(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "keys.pem"
    settings.WEBHOOK_KEYS = str(file)
    file.write_text((FOLDER / "previous.pub.pem").read_text())
    assert receive_delivery(status_delivery("T-1")) == DeliveryVerification.INVALID
    file.write_text((FOLDER / "current.pub.pem").read_text() + "\n")
    assert receive_delivery(status_delivery("T-2")) == DeliveryVerification.VALID


@pytest.mark.parametrize("keys", ["", "/nowhere/keys.pem"])
def test_without_keys_every_delivery_is_stored_and_triggers_nothing(
    settings: Settings, use_keys: UseKeys, keys: str
) -> None:
    settings.WEBHOOK_KEYS = keys
    body = status_delivery()
    assert receive_delivery(body) == DeliveryVerification.UNVERIFIED
    assert only_delivery().check_due_at is None
    use_keys("current")
    assert receive_delivery(body) == DeliveryVerification.VALID
    assert (only_delivery().received_count, only_delivery().check_due_at is None) == (2, False)


def test_a_payment_is_identified_by_its_reference() -> None:
    data = b'{"reference":"INV-77","state":"created"}'
    receive_delivery(delivery(data, event=b"payment CREATED"))
    assert (only_delivery().reference, only_delivery().transaction_id) == ("INV-77", "")


def test_an_unknown_event_kind_is_stored_by_name() -> None:
    receive_delivery(delivery(b'{"lottery":"ticket"}', event=b"Bonus"))
    assert (only_delivery().event, only_delivery().verdict) == ("Bonus", "valid")


def test_forged_deliveries_trigger_no_check() -> None:
    for body in (forged(), written(RECORD, b""), b"nonsense"):
        receive_delivery(body)
    assert set(Delivery.objects.values_list("verdict", flat=True)) == {"invalid", "unsigned", "malformed"}
    assert not Delivery.objects.filter(check_due_at__isnull=False).exists()


def received_together(bodies: list[bytes]) -> list[DeliveryVerification]:
    """The results of these, all received at the same time."""

    def receive(body: bytes) -> DeliveryVerification:
        try:
            return receive_delivery(body)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(receive, bodies))


def test_deliveries_that_arrive_together_are_each_stored_once_with_their_own_content() -> None:
    bodies = [status_delivery(f"T-{number}") for number in range(40)]
    together = [body for body in bodies for _ in range(3)] + [forged()]
    verdicts = received_together(together)
    assert verdicts == [DeliveryVerification.VALID] * 120 + [DeliveryVerification.INVALID]
    stored = Delivery.objects.filter(verdict=DeliveryVerification.VALID)
    assert {one.transaction_id: bytes(one.body) for one in stored} == {
        f"T-{number}": body for number, body in enumerate(bodies)
    }
    assert set(stored.values_list("received_count", flat=True)) == {3}
    assert not stored.filter(check_due_at=None).exists()


def test_a_delivery_within_a_transaction_of_the_caller_takes_no_other_with_it() -> None:
    def receive_and_roll_back() -> None:
        with transaction.atomic():
            receive_delivery(status_delivery("T-rolled-back"))
            others = [status_delivery(f"T-{number}") for number in range(4)]
            if connection.vendor == "postgresql":  # SQLite has one writer at a time
                received_together(others)
            transaction.set_rollback(True)

    receive_and_roll_back()
    assert not Delivery.objects.filter(transaction_id="T-rolled-back").exists()
    assert Delivery.objects.count() == (4 if connection.vendor == "postgresql" else 0)


def test_a_delivery_within_a_transaction_of_the_caller_is_in_no_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that writes a group would commit it, whatever becomes of the transaction."""
    grouped: list[str] = []

    def write(deliveries: Sequence[Delivery]) -> list[storing.Stored]:
        grouped.extend(one.transaction_id for one in deliveries)
        return [storing.Stored(1, is_check_due=True) for _ in deliveries]

    by_identity = GroupCommit(write, key=lambda one: one.identity, limit=1, writers=1)
    monkeypatch.setattr(storing, "_together", by_identity)
    with transaction.atomic():
        receive_delivery(status_delivery("T-1"))
    assert (grouped, Delivery.objects.count()) == ([], 1)
    receive_delivery(status_delivery("T-2"))
    assert grouped == ["T-2"]


def test_a_lost_connection_is_opened_again() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connection that could be lost")
    receive_delivery(status_delivery("T-1"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [[backend]] = cursor.fetchall()
    in_another_thread(lambda: _terminate(backend))
    assert receive_delivery(status_delivery("T-2")) == DeliveryVerification.VALID
    assert set(Delivery.objects.values_list("transaction_id", flat=True)) == {"T-1", "T-2"}


def in_another_thread(work: Callable[[], None]) -> None:
    """Do this in a thread with a connection of its own."""

    def alone() -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(alone).result()


def _terminate(backend: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])
