"""A history with an operation in each status."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.roles import Role
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations import unknown_outcomes
from tests.operations.delegations import leave
from tests.operations.monitoring.violations import CHECKPOINT_DESTINATION
from tests.operations.provider_list import NAMED, OTP_REJECTED, REFUSED, record, sent, shows
from tests.policies.versions import group
from tests.stub_provider import StubProvider


@pytest.fixture(autouse=True)
def checkpoint_destination(settings: Settings) -> None:
    """One that nothing is delivered to."""
    settings.AUDIT_CHECKPOINT_DESTINATIONS = [CHECKPOINT_DESTINATION]


@pytest.fixture
def provider(provider: StubProvider) -> StubProvider:
    """One whose list has an old withdrawal only."""
    shows(provider)
    return provider


@pytest.fixture
def history(
    provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> dict[str, Operation]:
    """One operation in each status, each brought there by the services."""
    made = {
        "pending": factories.prepared(preparer),
        "half signed": factories.prepared(preparer, amount=20_000_000),
        "approved": factories.approved(preparer, approver),
        "rejected": factories.prepared(preparer),
        "cancelled": factories.approved(preparer, approver),
        "expired": factories.prepared(preparer),
        "returned": sent(provider, preparer, approver, OTP_REJECTED),
        "failed": sent(provider, preparer, approver, REFUSED),
        "succeeded": sent(provider, preparer, approver, NAMED),
        "processing": sent(provider, preparer, approver, (200, '{"data": {"transactionId": "T-2"}}')),
    }
    factories.approve(made["half signed"], approver)
    approvals.reject_operation(
        made["rejected"].pk,
        actor=approver,
        digest=made["rejected"].digest,
        second_factor_at=timezone.now(),
        reason="No",
    )
    approvals.cancel_operation(made["cancelled"].pk, actor=preparer)
    Operation.objects.filter(pk=made["expired"].pk).update(expires_at=timezone.now())
    approvals.expire_operation(made["expired"].pk)
    shows(provider, record("T-1"))
    confirmation.confirm_operation(made["succeeded"].pk)
    made["sent twice"] = _sent_after_a_refused_one_time_code(provider, preparer, approver)
    made["resolved"] = _settled_by_two(provider, preparer, approver, second_approver)
    made["unknown"] = sent(provider, preparer, approver, (502, "bad gateway"), account_number="0000000001")
    administrator = factories.person("Zainab Musa", Role.ADMINISTRATOR)
    _agreed_on_a_leave(approver, second_approver, administrator, group("Treasury", approver, second_approver))
    factories.record_rights()
    made["released"] = factories.release(factories.approved(preparer, approver), approver)
    return {name: Operation.objects.get(pk=each.pk) for name, each in made.items()}


def _agreed_on_a_leave(person: User, stand_in: User, administrator: User, treasury: StaffGroup) -> None:
    proposed = factories.prepared_of_kind("delegation", leave(person, stand_in, treasury), person)
    factories.approve(proposed, administrator)


def _sent_after_a_refused_one_time_code(provider: StubProvider, preparer: User, approver: User) -> Operation:
    operation = sent(provider, preparer, approver, OTP_REJECTED)
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-3"}}')
    factories.release(operation, approver)
    send.send_operation(operation.pk)
    shows(provider, record("T-3"), record("T-1"))
    return confirmation.confirm_operation(operation.pk)


def _settled_by_two(provider: StubProvider, preparer: User, approver: User, other: User) -> Operation:
    operation = sent(provider, preparer, approver, (502, "bad gateway"), account_number="0000000002")
    Attempt.objects.filter(operation=operation).update(started_at=timezone.now() - timedelta(hours=25))
    confirmation.confirm_operation(operation.pk)
    return unknown_outcomes.resolved(operation, approver, other, "not_executed")
