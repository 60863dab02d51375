"""Services that lock the head of the audit log and other rows take them in one order, so none ends as a deadlock.

As in `tests.accounts.test_deadlocks`: one side of each pair runs in a thread, up to where it waits for the other side.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.operations.delivery import restore_check, send
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.models.otp import UsedOtp
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.workflow.approvals import approve_and_release_operation
from tests import factories
from tests.accounts.test_deadlocks import SECONDS, beside, wait_until_blocked
from tests.backups import backup
from tests.operations.provider_list import NAMELESS, shows
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def shown(operation: Operation, actor: User, otp: str) -> dict[str, Any]:
    """What the page submits."""
    confirmed = {"second_factor_at": timezone.now(), "otp": SecretStr(otp)}
    return {"actor": actor, "digest": operation.digest, **confirmed}


def test_sending_does_not_deadlock_with_approving_and_sending(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    approved = factories.approved(preparer, approver)
    pending = factories.prepared(preparer)
    past = timezone.now() - timedelta(minutes=5)
    UsedOtp.objects.create(hash="0" * 64, reference="W-1", valid_until=past)
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            record(Action.SESSIONS_ENDED, actor=approver)
            code = shown(approved, approver, "111111")
            sent = thread.submit(beside(lambda: release_operation(approved.pk, **code)))
            wait_until_blocked(sent)
            approve_and_release_operation(pending.pk, **shown(pending, approver, "222222"))
        sent.result(timeout=SECONDS)
    assert Release.objects.count() == 2
    assert not UsedOtp.objects.filter(valid_until=past).exists()


def test_acknowledging_does_not_deadlock_with_a_further_incident(preparer: User, administrator: User) -> None:
    operation = factories.prepared(preparer)

    def found(number: int) -> Incident:
        evidence = {"faults": [f"fault {number}"]}
        return incidents.raise_incident(operation, kind=IncidentKind.ALTERED_RECORD, evidence=evidence)

    first = found(1)
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            record(Action.SESSIONS_ENDED, actor=preparer)
            acknowledge = partial(incidents.acknowledge_incident, first.pk, actor=administrator, note="Seen")
            acknowledged = thread.submit(beside(acknowledge))
            wait_until_blocked(acknowledged)
            assert found(2).further_to == first
        assert acknowledged.result(timeout=SECONDS).acknowledged_by == administrator


def test_a_restored_database_does_not_deadlock_with_an_order_that_is_continued(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    restore_check.compare_with_journals()
    shows(provider)
    provider.answer_post = lambda: NAMELESS
    sent = factories.release(factories.approved(preparer, approver), approver)
    waiting = factories.bulk_release(approver, factories.approved(preparer, approver))
    BulkRelease.objects.update(is_pending=True)
    before = backup()
    send.send_operation(sent.pk)
    before.restore()
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            BulkRelease.objects.select_for_update(no_key=True).get(pk=waiting.pk)
            compared = thread.submit(beside(restore_check.compare_with_journals))
            wait_until_blocked(compared)
            record(Action.BULK_RELEASE_CONFIRMED, actor=approver, target=waiting)
        compared.result(timeout=SECONDS)
    assert Incident.objects.get().kind == IncidentKind.DATABASE_RESTORED
    assert not BulkRelease.objects.get().is_pending
