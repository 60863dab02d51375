"""An operation whose response was lost, and the steps that resolve it."""

import uuid
from datetime import timedelta
from typing import Any

from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Status
from backoffice.operations.workflow import prepare
from tests import factories
from tests.operations import provider_list
from tests.operations.provider_list import shows
from tests.operations.steps import put
from tests.stub_provider import StubProvider


def record(transaction_id: str, status: str = "fullfiled", **changes: object) -> dict[str, object]:
    """A withdrawal in the provider's list that found the balance as the provider reports it."""
    return provider_list.record(transaction_id, status, **{"prevBalance": 5000000, **changes})


def lost(provider: StubProvider, preparer: User, approver: User, **changes: Any) -> Operation:
    """A withdrawal that was sent and whose answer cannot be read: unknown."""
    shows(provider)
    provider.answer_post = lambda: (502, "bad gateway")
    operation = factories.release(factories.approved(preparer, approver, **changes), approver)
    send.send_operation(operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    return operation


def in_review(operation: Operation) -> Operation:
    """The same in review, past its execution deadline."""
    Attempt.objects.filter(operation=operation).update(
        started_at=timezone.now() - timedelta(hours=25), next_check_at=None
    )
    return put(operation, Status.REVIEW)


def resolution_form(
    operation: Operation,
    choice: str,
    transaction_id: str = "",
    reason: str = "I asked the bank",
    meaning: str = "",
) -> Any:
    """The form of a resolution, filled in."""
    values = {
        "operation": str(operation.pk),
        "choice": choice,
        "transaction_id": transaction_id,
        "meaning": meaning,
        "reason": reason,
    }
    return KINDS["resolution"].form_type(values)


def proposed(
    operation: Operation, person: User, choice: str, transaction_id: str = "", meaning: str = ""
) -> Operation:
    """A resolution that waits for its second person."""
    form = resolution_form(operation, choice, transaction_id, meaning=meaning)
    assert form.is_valid(), form.errors
    return prepare.prepare_operation(uuid.uuid4(), actor=person, kind="resolution", payload=form.payload())


def resolved(
    operation: Operation,
    person: User,
    other: User,
    choice: str,
    transaction_id: str = "",
    meaning: str = "",
) -> Operation:
    """The operation after two people have signed what became of it."""
    factories.approve(proposed(operation, person, choice, transaction_id, meaning), other)
    operation.refresh_from_db()
    return operation
