"""The rows of a business that the last release makes and this state finishes; `check` runs it, with Django set up.

`make` runs in the folder of the release with its own test helpers, `finish` here, each against a provider of its own.
Both print one line of JSON. Everything goes through the services, so that seals, audit log and integrity checks hold.
"""

import itertools
import json
import sys
import time
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.operations.delivery import send
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals, bulk_release
from backoffice.reports.exports.runner import run_next_export
from backoffice.reports.models import ExportJob
from backoffice.webhooks.processing import process_due_deliveries
from tests import factories, stub_provider
from tests.operations import provider_list
from tests.operations.batches import payouts
from tests.operations.kinds.samples import SAMPLES
from tests.payments_gateway.vectors.make_vectors import FOLDER
from tests.recipients import registered
from tests.reports.export_requests import made, requested_export
from tests.stub_provider import StubProvider
from tests.sweeping import sweep_operations
from tests.webhooks.steps import SECRET, deliver, forged, status_delivery

OF_EACH = 3
SENT_KINDS = ("withdrawal", "transfer")
PREPARER, APPROVER, AUDITOR = "Tunde Bello", "Amara Okafor", "Ngozi Eze"
ADMINISTRATORS = ("Bisi Ojo", "Chidi Nwosu")
NOT_EXECUTED_ANSWER, UNREADABLE = (422, '{"message": "no"}'), (502, "bad gateway")
MATCHED_AFTER = timedelta(minutes=2)  # no transaction is matched with an unknown outcome sooner
# The longest time for the sweeper, on a slow machine with other work; it ends as soon as nothing is under way. A worker
# may send each release first (`jobs.WORKER_HEAD_START`).
MAX_SECONDS = 600.0
# The provider accepts each one-time code once.
_codes = itertools.count(1 if sys.argv[-1] == "make" else 500_000)


class Provider(StubProvider):
    """Executes every payment, each under an id of its own, and lists it as `status`."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self.prefix, self.listed = prefix, list[dict[str, object]]()
        self.status = "processing"
        self.answer_post = self.execute

    def execute(self) -> tuple[int, str]:
        sent = json.loads(self.posts[-1])
        number = f"{self.prefix}-{len(self.posts)}"
        kind = "transfer" if "receiverUsername" in self.posts[-1] else "withdrawal"
        self.lists(number, sent.get("amount"), type=kind)
        return 200, json.dumps({"data": {"transactionId": number}})

    def lists(self, number: str, amount: object, **members: object) -> None:
        entry = provider_list.record(
            number, self.status, amount=float(str(amount)), prevBalance=5_000_000, **members
        )
        self.listed.insert(0, entry)
        self.records = json.dumps(self.listed)

    def answer_get(self, path: str) -> tuple[int, str]:
        for entry in self.listed:
            entry["status"] = self.status
        self.records = json.dumps(self.listed)
        return super().answer_get(path)


def make() -> dict[str, Any]:
    """Operations in every state in which one can rest, with everything that belongs to them."""
    with stub_provider.serving(Provider("OLD")) as provider:
        _speak_to(provider)
        people = _people()
        preparer, approver = people[PREPARER], people[APPROVER]
        _governance(people)
        _ended(provider, preparer, approver)
        _batches(preparer, approver)
        _deliveries()
        provider.status = "processing"
        for _ in range(OF_EACH):
            _sent(_new(preparer), approver)  # processing
        provider.answer_post = lambda: UNREADABLE
        for _ in range(OF_EACH):
            _sent(_new(preparer), approver)  # unknown
        for _ in range(OF_EACH):
            _new(preparer)  # pending
            factories.approve(_new(preparer), approver)  # approved
            _release(factories.approve(_new(preparer), approver), approver)  # released, waits for its turn
        made(people[AUDITOR])
        requested_export(people[AUDITOR])
    return _counts()


def finish() -> dict[str, Any]:
    """Decide, send and confirm everything that the release left open."""
    with stub_provider.serving(Provider("NEW")) as provider:
        _speak_to(provider)
        approver = User.objects.get(full_name=APPROVER)
        for attempt in Attempt.objects.filter(closed_at__isnull=True):
            provider.lists(attempt.provider_transaction_id or f"FOUND-{attempt.pk}", attempt.operation.amount)
        provider.status = "fullfiled"
        for operation in Operation.objects.filter(status=Status.PENDING):
            factories.approve(operation, approver)
        until = time.monotonic() + MAX_SECONDS
        while _under_way().exists() and time.monotonic() < until:
            for operation in _to_send():
                _release(operation, approver)
            Attempt.objects.filter(closed_at__isnull=True).update(next_check_at=timezone.now())
            sweep_operations()
        with clock.use_clock(lambda: timezone.now() + MATCHED_AFTER):
            sweep_operations()
        process_due_deliveries()
        while run_next_export():
            pass
    return _counts()


def _to_send() -> QuerySet[Operation]:
    """Approved payments without a release, including the rows of batches that were just approved."""
    return Operation.objects.filter(status=Status.APPROVED, release__isnull=True, kind__in=SENT_KINDS)


def _under_way() -> QuerySet[Operation]:
    """What the sweeper can end; an unknown outcome is matched later."""
    return Operation.objects.filter(status__in=(Status.APPROVED, Status.PROCESSING))


def _speak_to(provider: StubProvider) -> None:
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = provider.url, provider.url_v4
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.WEBHOOK_SECRET, settings.WEBHOOK_KEYS = SECRET, str(FOLDER / "current.pub.pem")


def _people() -> dict[str, User]:
    roles = {PREPARER: Role.PREPARER, APPROVER: Role.APPROVER, AUDITOR: Role.AUDITOR}
    roles |= dict.fromkeys(ADMINISTRATORS, Role.ADMINISTRATOR)
    people = {name: factories.person(name, role) for name, role in roles.items()}
    factories.record_rights()
    return people


def _governance(people: dict[str, User]) -> None:
    """Two versions of the policies, and recipients that were approved, changed, proposed and rejected."""
    first, second = (people[name] for name in ADMINISTRATORS)
    factories.approve(
        factories.prepared_of_kind("approval_policy", SAMPLES["approval_policy"], first), second
    )
    for number in range(OF_EACH):
        account = registered.bank_account(f"90000000{number:02}", name=f"HOLDER {number}")
        registered.agreed(account, people[PREPARER], people[APPROVER])
    factories.prepared_of_kind("recipient", registered.address(), people[PREPARER])


def _new(preparer: User) -> Operation:
    """A pending withdrawal of an amount and an account of its own."""
    number = next(_codes)
    return factories.prepared(
        preparer,
        amount=Decimal(1000 + number),
        account_number=f"{number:010}",
        duplicate_reason="",
    )


def _release(operation: Operation, approver: User) -> Operation:
    return release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        otp=SecretStr(f"{next(_codes):06}"),
        second_factor_at=timezone.now(),
    )


def _sent(operation: Operation, approver: User) -> Operation:
    _release(factories.approve(operation, approver), approver)
    send.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


def _ended(provider: Provider, preparer: User, approver: User) -> None:
    decision: dict[str, Any] = {"actor": approver, "second_factor_at": timezone.now()}
    for _ in range(OF_EACH):
        one = _new(preparer)
        approvals.reject_operation(one.pk, digest=one.digest, reason="Not this month", **decision)
        approvals.cancel_operation(_new(preparer).pk, actor=preparer)
        factories.expire(_new(preparer))
        _sent(_new(preparer), approver)
    provider.answer_post, executes = (lambda: NOT_EXECUTED_ANSWER), provider.answer_post
    for _ in range(OF_EACH):
        _sent(_new(preparer), approver)  # failed
    provider.answer_post, provider.status = executes, "fullfiled"
    Attempt.objects.filter(closed_at__isnull=True).update(next_check_at=timezone.now())
    sweep_operations()


def _batches(preparer: User, approver: User) -> None:
    """An applied batch, of which some operations are released in bulk, and a batch that waits for approval."""
    applied = payouts.applied(preparer, approver, payouts.transfers(6))
    some = payouts.row_operations(applied)[:OF_EACH]
    bulk_release.start_bulk_release(uuid.uuid4(), some, actor=approver, second_factor_at=timezone.now())
    payouts.prepared(preparer, payouts.transfers(4, first=20, amount="500.00"))


def _deliveries() -> None:
    for body in (status_delivery("OLD-1"), status_delivery("OLD-2"), forged()):
        deliver(body)


def _counts() -> dict[str, Any]:
    operations, exports = (
        dict(rows.values_list(name).annotate(count=Count("pk")).order_by(name))
        for rows, name in ((Operation.objects, "status"), (ExportJob.objects, "state"))
    )
    return {"statuses": operations, "exports": exports}


if __name__ == "__main__":
    print(json.dumps({"make": make, "finish": finish}[sys.argv[-1]]()))
