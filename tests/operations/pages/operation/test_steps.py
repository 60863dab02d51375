"""The steps of an operation that was never sent: none of them says that it was approved or is to be sent."""

import re

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import put, show

pytestmark = pytest.mark.django_db


def steps_of(client: Client, operation: Operation) -> list[tuple[str, str, bool]]:
    """The state and label of each step, and whether it has a note."""
    html = show(client, operation).content.decode()
    found = re.findall(r'<li class="(done|now|todo|stopped|ended)"[^>]*>([^<]+)<small>([^<]*)</small>', html)
    return [(state, label, bool(note)) for state, label, note in found]


@pytest.mark.parametrize(
    ("status", "state"), [("rejected", "stopped"), ("expired", "ended"), ("cancelled", "ended")]
)
def test_what_ended_before_its_approval_was_not_approved_and_is_not_sent(
    as_approver: Client, operation: Operation, status: str, state: str
) -> None:
    assert steps_of(as_approver, put(operation, status)) == [
        ("done", "Prepared", True),
        (state, status.capitalize(), True),
        ("todo", "Not sent", False),
        ("todo", "Confirmed", False),
    ]


def test_what_was_cancelled_after_its_approval_is_not_sent(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    approvals.cancel_operation(operation.pk, actor=preparer)
    assert steps_of(as_approver, operation) == [
        ("done", "Prepared", True),
        ("done", "Approved", True),
        ("ended", "Cancelled", True),
        ("todo", "Not sent", False),
    ]


def test_what_is_never_sent_is_not_applied_once_it_ended(as_approver: Client, preparer: User) -> None:
    operation = factories.prepared_of_kind("resume", SAMPLES["resume"], preparer)
    assert steps_of(as_approver, put(operation, "rejected")) == [
        ("done", "Prepared", True),
        ("stopped", "Rejected", True),
        ("todo", "Applied", True),
    ]
