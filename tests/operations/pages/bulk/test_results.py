"""Approving and rejecting several operations: each on its own, each with its line."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import JSONField, Value
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.errors import AlteredRecordError
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Operation, content_digest
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.kinds.samples import SAMPLES
from tests.operations.pages.bulk.steps import APPROVE, LIMIT, REJECT, confirm, expired, obstacles, send
from tests.operations.steps import code_of, let_second_factor_age, status_of, text_of

pytestmark = pytest.mark.django_db


def lines(answer: Any) -> dict[str, str]:
    """The result in words by reference."""
    return {line.operation.reference: line.text for line in answer.context["lines"]}


def test_operations_that_need_two_approvals_can_be_rejected_in_bulk(
    as_approver: Client, preparer: User, approver: User
) -> None:
    two = factories.prepared_to_another_account(preparer, amount=LIMIT + 1)
    assert obstacles(confirm(as_approver, REJECT, two)) == {}
    send(as_approver, REJECT, two, reason="Not ours")
    assert status_of(two) == "rejected"


def test_each_operation_is_approved_separately_and_not_sent(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operations = [factories.prepared_to_another_account(preparer) for _ in range(3)]
    answer = send(as_approver, APPROVE, *operations, comment="Compared with the invoices")
    assert answer.status_code == 200
    assert set(lines(answer)) == {operation.reference for operation in operations}
    for operation in operations:
        assert status_of(operation) == "approved"
        signed = Approval.objects.get(operation=operation)
        assert (signed.approver, signed.digest) == (approver, operation.digest)
        assert signed.comment == "Compared with the invoices"
        entry = Entry.objects.get(target_id=str(operation.pk), action=Action.OPERATION_APPROVED)
        assert entry.actor_id == approver.pk
        assert not operation.attempts.exists()
        assert not hasattr(Operation.objects.get(pk=operation.pk), "release")


def test_each_operation_is_rejected_with_the_reason(as_approver: Client, preparer: User) -> None:
    operations = [factories.prepared_to_another_account(preparer) for _ in range(2)]
    answer = send(as_approver, REJECT, *operations, reason="The invoices are withdrawn")
    assert "2 of 2 rejected" in text_of(answer)
    for operation in operations:
        assert status_of(operation) == "rejected"
        assert Operation.objects.get(pk=operation.pk).reason == "The invoices are withdrawn"


def test_a_failed_decision_is_reported_and_does_not_stop_the_others(
    as_approver: Client, preparer: User, approver: User
) -> None:
    first, late, cancelled, last = [factories.prepared_to_another_account(preparer) for _ in range(4)]
    two = factories.prepared_to_another_account(preparer, amount=LIMIT + 1)
    expired(late)
    approvals.cancel_operation(cancelled.pk, actor=preparer)
    answer = send(as_approver, APPROVE, first, late, two, cancelled, last)
    result = lines(answer)
    assert "2 of 5 approved" in text_of(answer)
    assert "has expired" in result[late.reference]
    assert "status is “Cancelled” now" in result[cancelled.reference]
    assert "Two approvals are required" in result[two.reference]
    assert [status_of(one) for one in (first, late, two, cancelled, last)] == [
        "approved",
        "pending",
        "pending",
        "cancelled",
        "approved",
    ]
    refused = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED, actor=approver)
    assert {entry.target_id for entry in refused} == {str(one.pk) for one in (late, two, cancelled)}


@pytest.mark.parametrize("levels", [[], 5, [{"needed": 0}], [{"needed": 1, "of": {"people": ["x"]}}]])
def test_altered_levels_are_refused_as_on_the_own_page_and_do_not_stop_the_others(
    as_approver: Client, preparer: User, approver: User, levels: object
) -> None:
    altered, other = [factories.prepared_to_another_account(preparer) for _ in range(2)]
    with lifted(connection):
        Operation.objects.filter(pk=altered.pk).update(levels=Value(levels, JSONField()))
    seal_wrong = "was altered or inserted outside Countersign: a seal is missing or wrong. Nothing was done."
    assert seal_wrong in obstacles(confirm(as_approver, APPROVE, altered, other))[altered.reference]
    assert not Incident.objects.exists()
    result = lines(send(as_approver, APPROVE, altered, other))
    assert seal_wrong in result[altered.reference]
    assert "Approved" in result[other.reference]
    assert [status_of(one) for one in (altered, other)] == ["pending", "approved"]
    assert not Approval.objects.filter(operation=altered).exists()
    assert Incident.objects.get().kind == IncidentKind.ALTERED_RECORD
    refused = Entry.objects.get(action=Action.OPERATION_ACTION_REFUSED, actor=approver)
    assert (refused.target_id, refused.detail["refusal"]) == (str(altered.pk), {"code": "seal_invalid"})
    with pytest.raises(AlteredRecordError) as alone:
        approvals.approve_operation(
            altered.pk, actor=approver, digest=altered.digest, second_factor_at=timezone.now()
        )
    assert str(alone.value) == result[altered.reference]


def test_content_of_a_later_release_is_not_called_altered(as_approver: Client, preparer: User) -> None:
    operation = factories.prepared_to_another_account(preparer)
    later = {**operation.payload, "added_later": "x"}
    operation.payload, operation.digest = later, content_digest(operation.pk, operation.kind, later)
    operation.make_seal()
    with lifted(connection):
        operation.save(update_fields=["payload", "digest", "seal"])
        Entry.objects.update(detail={**Entry.objects.get().detail, "digest": operation.digest})
    result = lines(send(as_approver, APPROVE, operation))[operation.reference]
    assert result.startswith("This version of Countersign cannot read the content.")
    assert not Incident.objects.exists()


def test_only_the_content_shown_is_approved(as_approver: Client, preparer: User) -> None:
    operation = factories.prepared_to_another_account(preparer)
    answer = as_approver.post(APPROVE, {"operation": [f"{operation.reference}:{'0' * 64}"]})
    assert "not what you saw" in lines(answer)[operation.reference]
    assert status_of(operation) == "pending"


def test_a_row_without_a_digest_is_not_approved(as_approver: Client, operation: Operation) -> None:
    as_approver.post(APPROVE, {"operation": [operation.reference]})
    assert status_of(operation) == "pending"


def test_an_own_operation_is_refused_even_if_the_form_names_it(
    sign_in: Callable[[Client, User], Client], preparer: User, approver: User
) -> None:
    approver.groups.add(*preparer.groups.all())
    own = factories.prepared_to_another_account(approver)
    answer = send(sign_in(Client(), approver), APPROVE, own)
    assert "another person must approve" in lines(answer)[own.reference]
    assert status_of(own) == "pending"


@pytest.mark.parametrize(
    ("address", "typed", "status"), [(APPROVE, {}, "approved"), (REJECT, {"reason": "No"}, "rejected")]
)
def test_resubmitting_the_form_shows_the_same_result(
    as_approver: Client, preparer: User, address: str, typed: dict[str, str], status: str
) -> None:
    operations = [factories.prepared_to_another_account(preparer) for _ in range(2)]
    send(as_approver, address, *operations, **typed)
    entries = Entry.objects.count()
    again = send(as_approver, address, *operations, **typed)
    assert all("You had already " in text for text in lines(again).values())
    assert "You had already approved or rejected 2 operations." in text_of(again)
    assert [status_of(operation) for operation in operations] == [status, status]
    assert Approval.objects.count() == (2 if status == "approved" else 0)
    assert Entry.objects.count() == entries


def test_a_rejection_by_another_user_is_not_shown_as_own(
    as_approver: Client, operation: Operation, second_approver: User
) -> None:
    approvals.reject_operation(
        operation.pk,
        actor=second_approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        reason="No",
    )
    assert (
        "status is “Rejected” now"
        in lines(send(as_approver, REJECT, operation, reason="No"))[operation.reference]
    )


def test_one_fresh_second_factor_covers_all_selected_operations(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operations = [factories.prepared_to_another_account(preparer) for _ in range(3)]
    let_second_factor_age(as_approver)
    assert 'name="code"' in text_of(confirm(as_approver, APPROVE, *operations))
    without = send(as_approver, APPROVE, *operations)
    assert without.status_code == 422
    assert "Nothing was done" in text_of(without)
    assert {status_of(operation) for operation in operations} == {"pending"}
    send(as_approver, APPROVE, *operations, code=code_of(approver))
    assert {status_of(operation) for operation in operations} == {"approved"}


def test_rejecting_needs_a_reason_and_keeps_the_selection(as_approver: Client, operation: Operation) -> None:
    answer = send(as_approver, REJECT, operation, reason="  ")
    assert answer.status_code == 422
    assert "Enter a reason" in text_of(answer)
    assert f"{operation.reference}:{operation.digest}" in text_of(answer)
    assert status_of(operation) == "pending"


@pytest.mark.parametrize("address", [APPROVE, REJECT])
@pytest.mark.parametrize("role", ["preparer", "auditor", "outsider"])
def test_bulk_decisions_need_the_permission_to_approve(
    sign_in: Callable[[Client, User], Client],
    request: pytest.FixtureRequest,
    operation: Operation,
    role: str,
    address: str,
) -> None:
    client = sign_in(Client(), request.getfixturevalue(role))
    assert confirm(client, address, operation).status_code == 403
    assert send(client, address, operation, reason="x").status_code == 403
    assert status_of(operation) == "pending"


def test_kinds_approved_individually_are_refused_in_bulk(
    as_approver: Client, preparer: User, administrator: User
) -> None:
    differs = factories.prepared_to_another_account(
        preparer, typed_name="Adaobi Traders", name_reason="Trades under it"
    )
    again = factories.prepared_to_another_account(preparer, duplicate_reason="Second delivery")
    keys = [name for name in KINDS if name.startswith("api_key_")]
    changes = [factories.prepared_of_kind(name, SAMPLES[name], administrator) for name in keys]
    alone = [differs, again, *changes]
    found = obstacles(confirm(as_approver, APPROVE, *alone))
    assert "The page of the operation shows a warning" in found[differs.reference]
    assert "Possible duplicate" in found[again.reference]
    assert len(keys) == 4
    assert all("one by one" in found[change.reference] for change in changes)
    refused = lines(send(as_approver, APPROVE, *alone))
    assert refused == found
    assert {status_of(operation) for operation in alone} == {"pending"}
    assert obstacles(confirm(as_approver, REJECT, *alone)) == {}


def test_a_payment_to_a_bank_shows_a_changed_recipient(
    as_approver: Client, preparer: User, administrator: User
) -> None:
    changes = {"account_name": "OTHER NAME", "typed_name": "Ada Obi", "name_reason": "Married since"}
    payment = factories.prepared_of_kind("payment", SAMPLES["payment"].model_copy(update=changes), preparer)
    assert (
        "The page of the operation shows a warning"
        in obstacles(confirm(as_approver, APPROVE, payment))[payment.reference]
    )
    assert "The name at the bank is OTHER NAME" in text_of(as_approver.get(f"/operations/{payment.pk}/"))
