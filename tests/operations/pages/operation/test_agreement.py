"""Messages, timeline, attempts and receipt agree with the state of the operation."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone, translation
from django.utils.html import strip_tags

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.delivery import send
from backoffice.operations.errors import WrongStatusError
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import ResponseCode, coded
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.refusals.sentences import sentence
from backoffice.operations.states import Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import do, put, show, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
RELEASED = "Released for sending. This page updates automatically."


def words_of(html: str) -> str:
    return " ".join(strip_tags(html).split())


def main_of(client: Client, operation: Operation, part: str = "") -> str:
    return words_of(text_of(show(client, operation, part)).partition("<main")[2])


def test_a_message_about_an_earlier_state_is_not_shown(as_approver: Client, operation: Operation) -> None:
    do(as_approver, operation, "approve-and-send", otp="123456")
    put(operation, "sending", "failed")
    html = text_of(show(as_approver, operation))
    assert RELEASED not in html
    assert 'class="note good"' not in html


def test_a_message_about_the_present_state_is_shown_once(as_approver: Client, operation: Operation) -> None:
    do(as_approver, operation, "approve-and-send", otp="123456")
    assert f'<p class="note info">{RELEASED}</p>' in text_of(show(as_approver, operation))
    assert RELEASED not in text_of(show(as_approver, operation))


def test_a_message_goes_with_the_state_that_polling_replaces(
    as_approver: Client, operation: Operation
) -> None:
    do(as_approver, operation, "approve")
    html = text_of(show(as_approver, operation))
    assert html.index('id="operation"') < html.index("Approved. It is not sent until")


def test_no_message_is_green_beside_a_red_status(as_approver: Client, operation: Operation) -> None:
    do(as_approver, operation, "reject", reason="Wrong invoice")
    shown = text_of(show(as_approver, operation))
    assert '<p class="note info">Rejected. Nothing was sent.' in shown


@pytest.mark.parametrize(
    ("action", "values"),
    [("reject", {"reason": " "}), ("approve-and-send", {"otp": " "})],
)
def test_what_a_form_refused_is_audited_and_not_in_the_timeline(
    as_approver: Client, operation: Operation, action: str, values: dict[str, str]
) -> None:
    assert do(as_approver, operation, action, **values).status_code == 422
    assert Entry.objects.filter(action="operation.action_refused").exists()
    assert "was refused an action" not in main_of(as_approver, operation)


def test_what_the_services_refused_is_in_the_timeline(as_approver: Client, operation: Operation) -> None:
    as_approver.post(f"/operations/{operation.pk}/approve/", {"digest": "0" * 64})
    assert "Amara Okafor was refused an action on this operation" in main_of(as_approver, operation)


@pytest.mark.parametrize(("person", "is_linked"), [("auditor", True), ("approver", False)])
def test_the_audit_entries_are_linked_for_whoever_may_read_them(
    sign_in: SignIn,
    operation: Operation,
    request: pytest.FixtureRequest,
    person: str,
    is_linked: bool,
) -> None:
    client = sign_in(Client(), request.getfixturevalue(person))
    address = f"/settings/audit/?about={operation.reference}"
    assert (f'href="{address}"' in text_of(show(client, operation))) is is_linked
    if is_linked:
        assert operation.sentence in text_of(client.get(address))


def test_a_refused_status_is_named_in_the_readers_language() -> None:
    refused = WrongStatusError(Refusal.STATUS_CHANGED, status="cancelled")
    assert str(refused).startswith("The status is “Cancelled” now.")
    with translation.override("fr"):
        assert str(Status.CANCELLED.label) != "Cancelled"
        assert f"«\u00a0{Status.CANCELLED.label}\u00a0»" in sentence(refused.refusal)


def test_before_the_first_attempt_the_page_says_what_has_to_happen(
    as_approver: Client, operation: Operation
) -> None:
    assert "Attempts Nothing was sent. It can be sent after it is approved." in main_of(
        as_approver, operation
    )
    do(as_approver, operation, "approve")
    assert "Nothing has been sent yet. It is sent only when someone chooses “Send”." in main_of(
        as_approver, operation
    )


def test_an_unreachable_provider_is_named_with_the_next_step(
    as_approver: Client, provider: StubProvider, released: Operation
) -> None:
    provider.records = "nonsense"
    send.send_operation(released.pk)
    shown = main_of(as_approver, released)
    assert "Attempts Nothing has been sent yet. The provider&#x27;s data could not be read. " in shown
    assert "Countersign keeps trying until " in shown


@pytest.mark.parametrize(
    ("statuses", "outcome", "next_step"),
    [
        ([], "not_sent", "Nothing was executed. Choose “Send” again and enter a new one-time code."),
        ([], "otp_rejected", "Nothing was executed. Choose “Send” again and enter a new one-time code."),
        (["cancelled"], "not_sent", "Next step Nothing was executed."),
        (["sending", "failed"], "rejected", "Correct the cause, then prepare it again."),
        (["sending", "failed"], "failed", "Prepare it again if it must still be done."),
        (["sending"], "open", "Wait for the response. Do not repeat the operation."),
        (["sending", "unknown"], "checked", "Countersign checks the provider's records again: "),
        (["sending", "unknown", "review"], "given up", "Automatic checks have stopped. View the evidence"),
    ],
)
def test_each_attempt_says_the_next_step(
    as_approver: Client, operation: Operation, statuses: list[str], outcome: str, next_step: str
) -> None:
    now = timezone.now()
    special: dict[str, dict[str, Any]] = {
        "open": {},
        "checked": {"checks": 1, "next_check_at": now + timedelta(minutes=1)},
        "given up": {"checks": 8},
    }
    changes = special.get(outcome, {"outcome": outcome, "closed_at": now})
    error = coded(ResponseCode.ERROR, error="The bank is closed.")
    factories.attempt(operation, responses=[error], **changes)
    put(operation, "approved", *statuses)
    shown = main_of(as_approver, operation).replace("&#x27;", "'")
    assert next_step in shown
    assert "The bank is closed." in shown


def test_a_receipt_names_amounts_people_transaction_code_and_audit_entries(
    as_preparer: Client, preparer: User, approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    factories.attempt(
        operation,
        outcome="succeeded",
        closed_at=timezone.now(),
        balance="NGN",
        fee="50",
        provider_transaction_id="TXN-77",
    )
    put(operation, "sending", "succeeded")
    shown = main_of(as_preparer, operation, "receipt/")
    newest = Entry.objects.order_by("position").last()
    assert newest
    for text in (
        f"Receipt {operation.reference}",
        operation.sentence,
        "0123456789 · Access Bank (044)",
        "Fee NGN 50.00 Total debit NGN 250,050.00",
        "Provider's transaction TXN-77",
        f"Verification code {operation.verification_code}",
        "Tunde Bello prepared this operation",
        "Amara Okafor approved this operation",
        f"Hash of entry {newest.position} {newest.hash}",
    ):
        assert text in shown.replace("&#x27;", "'")
    assert "not proof of payment" not in shown


def test_the_sheet_of_a_created_off_ramp_payment_is_no_receipt(as_preparer: Client, preparer: User) -> None:
    """The provider only created it: whether its customer pays, and anything is paid out, is not known."""
    payment = factories.prepared_of_kind("payment", SAMPLES["payment"], preparer)
    put(payment, "approved", "sending", "succeeded")
    assert "Print record" in main_of(as_preparer, payment)
    shown = main_of(as_preparer, payment, "receipt/")
    assert f"Record {payment.reference}" in shown
    assert "This is not proof of payment." in shown
    assert "Receipt" not in shown


def test_a_record_of_what_did_not_succeed_is_no_proof_of_payment(
    as_preparer: Client, operation: Operation
) -> None:
    shown = main_of(as_preparer, operation, "receipt/")
    assert f"Record {operation.reference}" in shown
    assert "Pending This is not proof of payment." in shown
