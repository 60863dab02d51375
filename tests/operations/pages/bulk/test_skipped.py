"""What the confirmation of a bulk release skips: the same as a check of each operation alone."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.models.holds import HolderChange, LookAlike
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.pages.bulk.steps import expired, with_other_content

pytestmark = pytest.mark.django_db
SEND = "/operations/send/"


def skipped(client: Client, *operations: Operation) -> dict[str, str]:
    """The reason for each operation that the page skips."""
    page = client.get(SEND, {"operation": [one.reference for one in operations]})
    listed = {row.operation.reference: row.skip_reason for row in page.context["skipped"]}
    selection = page.context["selection"]
    assert set(listed) == {one.reference for one in selection.skipped}
    assert {one.reference for one in operations} - set(listed) == {
        one.reference for one in selection.operations
    }
    return listed


def look_alike(operation: Operation, **changes: Any) -> Operation:
    usual = {"transaction_id": "T-1", "record": {}, "found_at": timezone.now()}
    LookAlike.objects.create(operation=operation, **usual | changes)
    return operation


def holder_change(operation: Operation, **changes: Any) -> Operation:
    usual = {"approved_name": "ADA OBI", "name": "EVE OBI", "found_at": timezone.now()}
    HolderChange.objects.create(operation=operation, **usual | changes)
    return operation


def with_content(operation: Operation, **changes: Any) -> Operation:
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(**changes)
    return operation


def test_each_reason_to_skip_an_operation_is_given(
    as_approver: Client, preparer: User, approver: User
) -> None:
    late = expired(factories.approved(preparer, approver))
    similar = look_alike(factories.approved(preparer, approver))
    renamed = holder_change(factories.approved(preparer, approver))
    touched = with_other_content(factories.approved(preparer, approver))
    strange = with_content(factories.approved(preparer, approver), kind="lottery")
    restored = factories.approved(preparer, approver)
    factories.lost_attempt(factories.incident_of_restore(), restored)
    fine = factories.approved(preparer, approver)
    found = skipped(as_approver, late, similar, renamed, touched, strange, restored, fine)
    assert "has expired" in found.pop(late.reference)
    assert "T-1" in found.pop(similar.reference)
    assert "EVE OBI" in found.pop(renamed.reference)
    assert "not what you saw" in found.pop(touched.reference)
    assert found.pop(strange.reference)
    assert found.pop(restored.reference)
    assert found == {}


def test_what_a_person_has_compared_is_sent(as_approver: Client, preparer: User, approver: User) -> None:
    compared = {"reason": "Another one"}
    similar = look_alike(
        factories.approved(preparer, approver), declared_by=approver, declared_at=timezone.now(), **compared
    )
    renamed = holder_change(
        factories.approved(preparer, approver), confirmed_by=approver, confirmed_at=timezone.now(), **compared
    )
    assert skipped(as_approver, similar, renamed) == {}


def test_an_expired_release_is_no_reason(as_approver: Client, preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    release = factories.release(operation, approver).release
    assert skipped(as_approver, operation).keys() == {operation.reference}
    factories.change_release(release, expires_at=timezone.now() - timedelta(minutes=1))
    assert skipped(as_approver, operation) == {}


def test_who_is_restricted_sends_nothing(as_approver: Client, preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    factories.break_glass(approver)
    assert skipped(as_approver, operation).keys() == {operation.reference}
