"""Approval policies of batches: their total and each row decide, and their rows are held like everything else."""

import pytest
from django.db import connection
from django.test import Client

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.governance.policy_replay import Change, replay
from backoffice.operations import errors
from backoffice.operations.approval import progress
from backoffice.operations.batches import creation
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.states import Status
from backoffice.policies.models import PolicyVersion
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.policies.versions import NGN, document, group, levels, of_group, of_people, put_in_effect
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_total_each_row_and_the_number_of_rows_decide(preparer: User) -> None:
    put_in_effect(
        {"when": {"more_rows_than": 3}, "levels": [{"needed": 4}]},
        {
            "when": {"kinds": ["batch"], "currencies": NGN, "amount": {"above": 1000}},
            "levels": [{"needed": 3}],
        },
        {
            "when": {"kinds": ["transfer"], "currencies": NGN, "amount": {"above": 300, "up_to": 350}},
            "levels": [{"needed": 2}],
        },
    )
    batches = [
        payouts.prepared(preparer, payouts.transfers(4, amount="1.00")),
        payouts.prepared(preparer, payouts.transfers(3, amount="400.00")),
        payouts.prepared(preparer, payouts.transfers(2, amount="320.00")),
        payouts.prepared(preparer, payouts.transfers(2, amount="200.00")),
    ]
    assert [batch.approvals_needed for batch in batches] == [4, 3, 2, 1]


def test_a_rule_about_new_recipients_decides_a_batch_with_one(preparer: User, approver: User) -> None:
    put_in_effect({"when": {"recipient": "new", "kinds": ["transfer"]}, "levels": [{"needed": 2}]})
    assert payouts.prepared(preparer, payouts.transfers(2)).approvals_needed == 2


def test_totals_count_the_rows_of_a_batch_once(preparer: User, approver: User) -> None:
    total = {"window": "day", "of": "currency", "above": 1000}
    rules = [{"when": {"currencies": NGN, "total": total}, "levels": [{"needed": 2}]}]
    put_in_effect(*rules)
    batch = payouts.applied(preparer, approver, payouts.transfers(2, amount="400.00"))
    assert batch.approvals_needed == 1
    assert [one.change for one in replay(document(*rules), clock.now()).operations] == [Change.SAME]
    put_in_effect(*rules, {"levels": [{"needed": 1}]})
    row = payouts.row_operations(batch)[0]
    assert progress.approval_progress(row).is_complete
    waiting = payouts.prepared(preparer, payouts.transfers(3, amount="10.00"))
    assert waiting.approvals_needed == 1
    assert payouts.prepared(preparer, payouts.transfers(1, amount="180.00")).approvals_needed == 2


def test_rows_have_the_levels_of_their_batch(
    provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    treasury, directors = group("Treasury", approver), group("Directors", second_approver)
    put_in_effect(levels((1, of_group(treasury)), (1, of_group(directors))))
    batch = payouts.prepared(preparer, payouts.transfers(2))
    with pytest.raises(errors.NotInLevelError):
        payouts.approve(batch, second_approver)
    payouts.approve(batch, approver)
    payouts.approve(batch, second_approver)
    assert creation.create_operations(batch.pk)
    rows = payouts.row_operations(batch)
    assert [(row.policy_version, row.levels) for row in rows] == [(1, batch.levels)] * 2
    for row in rows:
        factories.release(row, approver)
        send.send_operation(row.pk)
    assert len(provider.posts) == 2
    assert inspect(full=False).violations.keys() <= {"altered_policy", "unrecorded_right"}


def test_a_policy_tightened_for_batches_holds_each_row_until_it_has_the_approvals(
    provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    """The row alone would not need them."""
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    row = factories.release(payouts.row_operations(batch)[0], second_approver)
    put_in_effect({"when": {"kinds": ["batch"]}, **levels((1, of_people(second_approver)))})
    send.send_operation(row.pk)
    assert (provider.posts, Release.objects.count()) == ([], 0)
    row = Operation.objects.get(pk=row.pk)
    assert row.status == Status.APPROVED
    factories.approve(row, second_approver)
    send.send_operation(factories.release(row, factories.person("Ngozi Eze", Role.APPROVER)).pk)
    assert len(provider.posts) == 1


@pytest.mark.parametrize("is_altered", [False, True])
def test_a_file_that_the_policies_refuse_is_not_offered_for_approval(
    as_preparer: Client, preparer: User, *, is_altered: bool
) -> None:
    file = payouts.checked(preparer, payouts.transfers(2))
    page = f"/operations/batches/files/{file.pk}/"
    assert ">Submit for approval<" in as_preparer.get(page).content.decode()
    put_in_effect({"when": {"kinds": ["batch"]}, "refuse": "Ask Treasury first"})
    if is_altered:
        with lifted(connection):
            PolicyVersion.objects.update(document={})
    html = as_preparer.get(page).content.decode()
    assert ">Submit for approval<" not in html
    assert "then submit for approval" not in html
    reason = "policies were altered" if is_altered else "Ask Treasury first"
    assert reason in html
    assert "The batch cannot be submitted." in html
    as_preparer.post(f"{page}submit/")
    assert not Operation.objects.exists()
