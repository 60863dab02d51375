"""What is decided on the page of an operation, and what is refused."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.lifecycle.pause import pause_payments
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.models.reason_codes import ResponseCode, coded, responses_sentence
from backoffice.operations.states import Status
from backoffice.operations.templatetags.operations import entry_text
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import code_of, do, let_second_factor_age, put, show, status_of, text_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]


def test_approving_sends_nothing(as_approver: Client, operation: Operation) -> None:
    answer = do(as_approver, operation, "approve", comment="Invoice seen")
    assert answer["Location"] == f"/operations/{operation.pk}/"
    assert status_of(operation) == Status.APPROVED
    assert not Release.objects.exists()
    assert "<q>Invoice seen</q>" in text_of(show(as_approver, operation))


def test_only_what_somebody_typed_is_a_quotation_in_the_timeline(
    as_approver: Client, operation: Operation
) -> None:
    do(as_approver, operation, "reject", reason="Wrong <account>")
    assert "<q>Wrong &lt;account&gt;</q>" in text_of(show(as_approver, operation))
    response = coded(ResponseCode.NOT_BEGUN)
    assert entry_text(Entry(detail={"response": response})) == responses_sentence([response])
    assert entry_text(Entry(detail={})) == ""


def test_approving_and_sending_passes_the_one_time_code_on(as_approver: Client, operation: Operation) -> None:
    do(as_approver, operation, "approve-and-send", otp="123456")
    assert Release.objects.get().operation == operation
    assert "Released for sending" in text_of(show(as_approver, operation))


def test_sending_without_a_one_time_code_does_nothing_and_keeps_the_comment(
    as_approver: Client, operation: Operation
) -> None:
    answer = do(as_approver, operation, "approve-and-send", otp="", comment="Invoice seen")
    assert answer.status_code == 422
    error = "Enter the provider&#x27;s one-time code. Nothing was approved and nothing was sent."
    assert error_beside(answer, "otp") == error
    assert 'value="Invoice seen"' in text_of(answer)
    assert status_of(operation) == Status.PENDING


@pytest.mark.parametrize("action", ["approve-and-send", "release"])
def test_a_used_one_time_code_is_reported_beside_its_field(
    as_approver: Client, operation: Operation, preparer: User, approver: User, action: str
) -> None:
    do(as_approver, factories.approved(preparer, approver), "release", otp="111111")
    if action == "release":
        factories.approve(operation, approver)
    answer = do(as_approver, operation, action, otp="111111")
    assert answer.status_code == 422
    assert "This one-time code was already entered for" in error_beside(answer, "otp")
    assert answer.context["refused"].non_field_errors() == []


def test_a_refused_form_does_not_ask_again_for_a_second_factor_that_it_has_confirmed(
    as_approver: Client, operation: Operation, preparer: User, approver: User
) -> None:
    do(as_approver, factories.approved(preparer, approver), "release", otp="111111")
    let_second_factor_age(as_approver)
    assert 'name="code"' in text_of(show(as_approver, operation))
    answer = do(as_approver, operation, "approve-and-send", otp="111111", code=code_of(approver))
    assert "already entered for" in error_beside(answer, "otp")
    assert 'id="id_code"' not in text_of(answer)


def test_a_wrong_confirmation_is_reported_beside_its_field(as_approver: Client, preparer: User) -> None:
    transfer = factories.prepared_of_kind("wallet_transfer", SAMPLES["wallet_transfer"], preparer)
    answer = do(as_approver, transfer, "approve", confirmation="0000")
    assert answer.status_code == 422
    assert error_beside(answer, "confirmation").startswith("What you typed does not match the content.")


def test_a_reason_that_is_not_in_the_code_stays_above_the_form(
    as_approver: Client, operation: Operation, administrator: User
) -> None:
    pause_payments(actor=administrator, reason="Audit")
    answer = do(as_approver, operation, "approve-and-send", otp="111111")
    [reason] = answer.context["refused"].non_field_errors()
    assert reason.startswith("Payments are paused.")
    assert "otp" not in answer.context["refused"].errors


def error_beside(answer: Any, field: str) -> str:
    return text_of(answer).partition(f'id="id_{field}_error">')[2].partition("</p>")[0]


def test_an_approved_operation_is_sent_with_a_one_time_code(
    as_approver: Client, operation: Operation
) -> None:
    do(as_approver, operation, "approve")
    refused = do(as_approver, operation, "release", otp=" ")
    assert refused.status_code == 422
    assert "Enter the provider&#x27;s one-time code. Nothing was sent." in text_of(refused)
    assert do(as_approver, operation, "release", otp="123456").status_code == 302
    assert Release.objects.get().operation == operation


def test_a_one_time_code_is_never_rendered(as_approver: Client, operation: Operation) -> None:
    refused = as_approver.post(
        f"/operations/{operation.pk}/approve-and-send/",
        {"digest": "other", "otp": "918273", "comment": "x"},
    )
    assert refused.status_code == 422
    assert "918273" not in text_of(refused)


def test_the_first_of_two_approvals_does_not_send(as_approver: Client, preparer: User) -> None:
    operation = factories.prepared(preparer, amount=Decimal("10000001"))
    assert "Approve and send" not in text_of(show(as_approver, operation))
    do(as_approver, operation, "approve")
    html = text_of(show(as_approver, operation))
    assert "Approved by you" in html
    assert "Amara Okafor; 1 more approval needed" in html
    assert status_of(operation) == Status.PENDING


def test_rejecting_closes_with_a_reason_shown_to_the_preparer(
    as_approver: Client, as_preparer: Client, operation: Operation
) -> None:
    do(as_approver, operation, "reject", reason="The invoice says 25,000.")
    html = text_of(show(as_preparer, operation))
    assert status_of(operation) == Status.REJECTED
    assert '<p class="note bad">The invoice says 25,000.</p>' in html
    assert f"/operations/prepare/withdrawal/?copy={operation.pk}" in html


def test_rejecting_needs_a_reason(as_approver: Client, operation: Operation) -> None:
    answer = do(as_approver, operation, "reject", reason="  ")
    assert answer.status_code == 422
    assert '<details class="fold danger" aria-keyshortcuts="r" open>' in text_of(answer)
    assert "Enter a reason" in text_of(answer)
    assert status_of(operation) == Status.PENDING


def test_a_stale_second_factor_requests_a_code_and_keeps_the_input(
    as_approver: Client, approver: User, operation: Operation
) -> None:
    let_second_factor_age(as_approver)
    answer = do(as_approver, operation, "approve", comment="Invoice seen")
    assert answer.status_code == 422
    assert 'name="code"' in text_of(answer)
    assert 'value="Invoice seen"' in text_of(answer)
    assert status_of(operation) == Status.PENDING
    do(as_approver, operation, "approve", code=code_of(approver))
    assert status_of(operation) == Status.APPROVED


def test_a_wrong_code_approves_nothing_and_is_audited(
    as_approver: Client, approver: User, operation: Operation
) -> None:
    let_second_factor_age(as_approver)
    wrong = f"{(int(code_of(approver)) + 500_000) % 1_000_000:06d}"
    answer = do(as_approver, operation, "approve", code=wrong)
    assert answer.status_code == 422
    assert "wrong or already used" in text_of(answer)
    assert wrong not in text_of(answer)
    assert status_of(operation) == Status.PENDING
    assert Entry.objects.filter(action=Action.SECOND_FACTOR_REFUSED, actor=approver).exists()


def test_a_code_is_not_consumed_by_an_incomplete_form(
    as_approver: Client, approver: User, operation: Operation
) -> None:
    let_second_factor_age(as_approver)
    code = code_of(approver)
    assert do(as_approver, operation, "reject", reason="", code=code).status_code == 422
    assert do(as_approver, operation, "reject", reason="Wrong invoice", code=code).status_code == 302


def test_a_decision_on_content_not_shown_is_refused(as_approver: Client, operation: Operation) -> None:
    answer = as_approver.post(f"/operations/{operation.pk}/approve/", {"digest": "0" * 64})
    assert answer.status_code == 422
    assert "not what you saw" in text_of(answer)
    assert f'name="digest" value="{operation.digest}"' in text_of(answer)
    assert status_of(operation) == Status.PENDING


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("approve", {}),
        ("approve-and-send", {"otp": "123456"}),
        ("reject", {"reason": "Too late"}),
        ("release", {"otp": "123456"}),
    ],
)
def test_a_decision_on_a_stale_page_shows_the_current_status(
    as_approver: Client, as_preparer: Client, operation: Operation, action: str, values: dict[str, str]
) -> None:
    do(as_preparer, operation, "cancel")
    answer = do(as_approver, operation, action, **values)
    assert answer.status_code == 422
    assert "The status is “Cancelled” now. Nothing was changed" in text_of(answer)
    assert Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).exists()


def test_cancelling_too_late_is_reported(
    as_preparer: Client, as_approver: Client, operation: Operation
) -> None:
    do(as_approver, operation, "reject", reason="Wrong invoice")
    answer = as_preparer.post(f"/operations/{operation.pk}/cancel/", follow=True)
    assert "The status is “Rejected” now" in text_of(answer)


def test_the_preparer_cannot_approve_with_a_forged_form(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    approver.groups.add(*preparer.groups.all())
    operation = factories.prepared(approver)
    client = sign_in(Client(), approver)
    assert ">Approve<" not in text_of(show(client, operation))
    answer = do(client, operation, "approve")
    assert answer.status_code == 422
    assert "You prepared this operation" in text_of(answer)
    assert status_of(operation) == Status.PENDING


@pytest.mark.parametrize("action", ["approve", "approve-and-send", "reject", "release"])
def test_a_decision_needs_the_permission(as_preparer: Client, operation: Operation, action: str) -> None:
    assert do(as_preparer, operation, action, reason="x", otp="1").status_code == 403
    assert status_of(operation) == Status.PENDING


def test_an_auditor_cannot_trigger_a_status_check(
    sign_in: SignIn, auditor: User, operation: Operation
) -> None:
    put(operation, "approved", "sending", "unknown")
    assert do(sign_in(Client(), auditor), operation, "check").status_code == 403


@pytest.mark.parametrize(
    ("action", "attempted", "fields"),
    [
        ("approve-and-send", "approve_and_release", "otp"),
        ("reject", "reject", "reason"),
    ],
)
def test_refusals_by_the_form_are_audited(
    as_approver: Client, approver: User, operation: Operation, action: str, attempted: str, fields: str
) -> None:
    assert do(as_approver, operation, action).status_code == 422
    entry = Entry.objects.get(action=Action.OPERATION_ACTION_REFUSED)
    assert (entry.actor, entry.target_id) == (approver, str(operation.pk))
    assert entry.detail["attempted"] == attempted
    assert entry.detail["refusal"]["code"] == "form_invalid"
    assert fields in entry.detail["refusal"]["fields"]


def test_sending_without_a_one_time_code_is_audited(as_approver: Client, operation: Operation) -> None:
    do(as_approver, operation, "approve")
    assert do(as_approver, operation, "release").status_code == 422
    assert Entry.objects.latest("position").detail["attempted"] == "release"


def test_a_status_check_of_a_closed_operation_is_not_audited_as_refused(
    as_preparer: Client, operation: Operation
) -> None:
    answer = as_preparer.post(f"/operations/{operation.pk}/check/", follow=True)
    assert answer.status_code == 200
    assert "Nothing to check. " in text_of(answer)
    assert not Entry.objects.filter(action=Action.ACCESS_REFUSED).exists()
