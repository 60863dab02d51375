"""Choosing several operations in the list, and what the confirmation shows of them."""

import gzip
import re
from decimal import Decimal

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow.approvals import BULK_LIMIT
from tests import factories
from tests.operations.conftest import SignIn
from tests.operations.kinds.samples import SAMPLES
from tests.operations.pages.bulk.steps import (
    APPROVE,
    LIMIT,
    REJECT,
    confirm,
    expired,
    obstacles,
    with_other_content,
)
from tests.operations.steps import status_of, text_of, unreadable
from tests.policies.versions import levels, proposed

pytestmark = pytest.mark.django_db


def test_operations_that_wait_for_approval_or_for_sending_can_be_selected(
    as_approver: Client, preparer: User, approver: User
) -> None:
    pending, approved = (
        factories.prepared_to_another_account(preparer),
        factories.approved(preparer, approver),
    )
    html = text_of(as_approver.get("/operations/?tab=waiting"))
    assert re.findall(r'name="operation" value="([^"]+)"', html) == [
        approved.reference,
        pending.reference,
    ]
    assert 'formaction="/operations/reject/"' in html


def test_what_is_approved_one_by_one_cannot_be_selected(
    as_approver: Client, preparer: User, operation: Operation
) -> None:
    alone = factories.prepared_of_kind("recipient", SAMPLES["recipient"], preparer)
    html = text_of(as_approver.get("/operations/?tab=waiting"))
    assert alone.reference in html
    assert re.findall(r'name="operation" value="([^"]+)"', html) == [operation.reference]


def test_without_anything_to_select_there_are_no_checkboxes(as_approver: Client, preparer: User) -> None:
    factories.prepared_of_kind("recipient", SAMPLES["recipient"], preparer)
    html = text_of(as_approver.get("/operations/?tab=waiting"))
    assert "Select all" not in html
    assert "Approve selected" not in html


def test_who_has_no_action_for_several_selects_nothing(
    sign_in: SignIn, administrator: User, second_administrator: User
) -> None:
    waiting = proposed(administrator, levels((1, {})))
    html = text_of(sign_in(Client(), second_administrator).get("/operations/?tab=waiting"))
    assert waiting.reference in html
    assert 'type="checkbox" name="operation"' not in html
    assert "Select all" not in html
    assert "You confirm the list on the next page." not in html


def test_a_confirmation_of_nothing_says_what_to_do(as_approver: Client, preparer: User) -> None:
    two = factories.prepared_to_another_account(preparer, amount=LIMIT + 1)
    late = expired(factories.prepared_to_another_account(preparer))
    for address, operations, title in [
        (APPROVE, [two], "These must be approved one by one"),
        (APPROVE, [two, late], "Nothing to approve"),
        (REJECT, [late], "Nothing to reject"),
    ]:
        html = text_of(confirm(as_approver, address, *operations))
        assert f"<h1>{title}</h1>" in html
        assert "0 operations" not in html
        assert "then confirm" not in html


@pytest.mark.parametrize("tab", ["open", "done"])
def test_other_tabs_have_no_selection(as_approver: Client, operation: Operation, tab: str) -> None:
    assert 'name="operation"' not in text_of(as_approver.get(f"/operations/?tab={tab}"))


@pytest.mark.parametrize("address", [APPROVE, REJECT])
def test_the_confirmation_shows_count_totals_and_each_verification_code(
    as_approver: Client, preparer: User, address: str
) -> None:
    naira = [
        factories.prepared_to_another_account(preparer, amount=Decimal(amount))
        for amount in ("250000.10", "3")
    ]
    dollars = factories.prepared_to_another_account(preparer, currency="USD", amount=Decimal("99.95"))
    answer = confirm(as_approver, address, *naira, dollars)
    assert answer.status_code == 200
    assert answer.context["totals"] == [("NGN", Decimal("250003.10")), ("USD", Decimal("99.95"))]
    html = text_of(answer)
    assert "250,003.10" in html
    for operation in (*naira, dollars):
        assert operation.sentence in html
        assert operation.verification_code in html
        assert f"{operation.reference}:{operation.digest}" in html
        assert status_of(operation) == "pending"


@pytest.mark.parametrize("address", [APPROVE, REJECT])
def test_operations_without_a_debit_are_totalled_separately(
    as_approver: Client, preparer: User, address: str
) -> None:
    payment = factories.prepared_of_kind("payment", SAMPLES["payment"], preparer)
    dollars = [
        factories.prepared_to_another_account(preparer, currency="USD", amount=Decimal(amount))
        for amount in ("5", "6")
    ]
    answer = confirm(as_approver, address, payment, *dollars)
    assert answer.context["totals"] == [("USD", Decimal(11))]
    assert answer.context["not_debited"] == [("USDT", Decimal(100))]
    assert "USDT off-ramp payments" in text_of(answer)


def test_the_confirmation_lists_skipped_operations_with_the_reason(
    as_approver: Client, preparer: User, approver: User, second_approver: User
) -> None:
    approver.groups.add(*preparer.groups.all())
    own = factories.prepared_to_another_account(approver)
    late = expired(factories.prepared_to_another_account(preparer))
    two = factories.prepared_to_another_account(preparer, amount=LIMIT + 1)
    signed = factories.approve(factories.prepared_to_another_account(preparer, amount=LIMIT + 2), approver)
    gone = factories.approved(preparer, second_approver)
    complete = factories.approved(preparer, approver)
    strange = unreadable(preparer)
    touched = with_other_content(factories.prepared_to_another_account(preparer))
    answer = confirm(as_approver, APPROVE, own, late, two, signed, gone, complete, strange, touched)
    found = obstacles(answer)
    assert "You prepared this operation" in found[own.reference]
    assert "has expired" in found[late.reference]
    assert "Two approvals are required" in found[two.reference]
    assert "You have already approved this operation" in found[signed.reference]
    assert "status is “Approved” now" in found[gone.reference]
    assert "status is “Approved” now" in found[complete.reference]
    assert "not what you saw" in found[strange.reference]
    assert "not what you saw" in found[touched.reference]
    assert answer.context["included"] == []
    assert 'type="hidden" name="operation"' not in text_of(answer)


@pytest.mark.parametrize("given", [[], [f"W-{number:06d}" for number in range(BULK_LIMIT + 1)]])
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_empty_or_too_large_selection_redirects_to_the_list(
    as_approver: Client, method: str, given: list[str]
) -> None:
    answer = getattr(as_approver, method)(APPROVE, {"operation": given}, follow=True)
    assert answer.redirect_chain == [("/operations/?tab=waiting", 302)]
    assert f"Select 1 to {BULK_LIMIT} operations. Nothing was changed." in text_of(answer)


def test_missing_operations_are_counted(as_approver: Client, preparer: User) -> None:
    operation = factories.prepared_to_another_account(preparer)
    answer = as_approver.get(APPROVE, {"operation": [operation.reference, "W-NOBODY", "'; DROP"]})
    assert "2 selected operations were not found" in text_of(answer)
    posted = as_approver.post(
        APPROVE, {"operation": [f"{operation.reference}:{operation.digest}", "W-NOBODY:abc"]}
    )
    assert "1 selected operation was not found" in text_of(posted)
    assert status_of(operation) == "approved"


def test_confirming_fifty_takes_eight_queries_and_fourteen_kilobytes(
    as_approver: Client, preparer: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    operations = [factories.prepared_to_another_account(preparer) for _ in range(BULK_LIMIT)]
    with django_assert_max_num_queries(8):
        answer = confirm(as_approver, APPROVE, *operations)
    assert len(answer.context["included"]) == BULK_LIMIT
    assert len(gzip.compress(answer.content)) <= 14 * 1024
