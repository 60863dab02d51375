"""The bank does not name the holder of an account: what it says, and how the account is paid nevertheless."""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger import accounts as ledger
from backoffice.operations import errors
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.kinds.withdrawal import WithdrawalPayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow.approvals import ApproverConfirmation, BulkOutcome, SelectedOperation
from payments_gateway import NotSentError
from tests import factories, stub_provider
from tests.cached_reads import forget_reads
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import do, show, status_of, text_of
from tests.recipients import registered
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db

ADDRESS = "/operations/prepare/withdrawal/"
UNKNOWN_NUMBER = "0123450000"  # the sandbox has no account of this number
OTHER_NUMBER = "0123450001"
STATED = {
    "unchecked_confirmed": "on",
    "unchecked_reason": "Paid in March, contract 118",
    "unchecked_for": f"bank:044:{UNKNOWN_NUMBER}",
}
FOR_OTHER = {**STATED, "unchecked_for": f"bank:044:{OTHER_NUMBER}"}
UNCHECKED = {
    "account_name": "Ada Obi",
    "typed_name": "Ada Obi",
    "name_not_checked": {"code": "refused", "reason": "Could not resolve account name"},
    "unchecked_reason": "Paid in March, contract 118",
}


@pytest.fixture
def unchecked(preparer: User) -> Operation:
    return factories.prepared_to_another_account(preparer, **UNCHECKED)


REFUSAL = {"success": False, "message": "Could not resolve account name"}


@pytest.fixture
def refusing(settings: Settings) -> Iterator[stub_provider.StubProvider]:
    """A provider that refuses to check accounts."""
    with stub_provider.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.answer_post = lambda: (422, json.dumps(REFUSAL))
        yield stub


def filled_in(**changes: str) -> dict[str, str]:
    values = {
        "submission": str(uuid.uuid4()),
        "currency": "NGN",
        "amount": "250000.00",
        "bank_code": "044",
        "account_number": UNKNOWN_NUMBER,
        "typed_name": "Ada Obi",
        "memo": "week 46",
    }
    return {**values, **changes}


def review(client: Client, **changes: str) -> Any:
    return client.post(ADDRESS, {**filled_in(**changes), "step": "review"})


def prepare(client: Client, **changes: str) -> Operation:
    values = filled_in(**changes)
    digest = client.post(ADDRESS, {**values, "step": "review"}).context["digest"]
    client.post(ADDRESS, {**values, "digest": digest, "step": "prepare"})
    return Operation.objects.get(pk=values["submission"])


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (
            422,
            json.dumps(REFUSAL),
            "refused",
            "The provider refused to check this account: Could not resolve",
        ),
        (
            200,
            json.dumps(REFUSAL),
            "refused",
            "The provider refused to check this account: Could not resolve",
        ),
        (401, json.dumps(REFUSAL), "credentials", "The provider refuses the API key."),
        (500, "oops", "provider_error", "The provider responded with an error (HTTP 500)."),
        (404, "<html>no</html>", "provider_error", "The provider responded with an error (HTTP 404)."),
        (200, "<html>no</html>", "unreadable", "The provider responded with HTTP 200"),
        (200, '{"data": {}}', "unreadable", "a response that cannot be read"),
    ],
)
def test_a_failed_check_says_what_failed_and_loses_nothing(
    as_preparer: Client, settings: Settings, status: int, body: str, code: str, message: str
) -> None:
    with stub_provider.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.answer_post = lambda: (status, body)
        answer = review(as_preparer)
        form = answer.context["form"]
        stated = review(as_preparer, **STATED)
    assert answer.status_code == 422
    assert message in " ".join(form.errors["account_number"])
    assert "reached" not in " ".join(form.errors["account_number"])
    assert form["typed_name"].value() == "Ada Obi"
    assert stated.context["form"].payload().name_not_checked["code"] == code


def test_too_many_requests_are_no_cause_to_use_an_unchecked_name(
    as_preparer: Client, settings: Settings
) -> None:
    """Whoever checks often enough would get around the check."""
    with stub_provider.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.answer_post = lambda: (429, json.dumps(REFUSAL))
        answer = review(as_preparer, **STATED)
    assert answer.status_code == 422
    assert "The provider accepts no more requests for now" in text_of(answer)
    assert 'name="unchecked_reason"' not in text_of(answer)


def test_a_request_that_could_not_be_made_is_not_said_to_be_an_unreachable_provider() -> None:
    error = NotSentError.of("The request contains text that cannot be sent. Nothing was sent.")
    assert ledger.unresolved_cause(error)["code"] == "unreadable"
    assert "contains text that cannot be sent" in ledger.unresolved_text(error)


def test_an_unreachable_provider_is_said_to_be_unreachable(as_preparer: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    answer = review(as_preparer)
    assert "Account not checked. The provider cannot be reached." in text_of(answer)
    assert review(as_preparer, **STATED).context["form"].payload().name_not_checked == {"code": "not_reached"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, "account_number"),
        ({"unchecked_confirmed": "on"}, "unchecked_reason"),
        ({"unchecked_confirmed": "on", "unchecked_reason": "  "}, "unchecked_reason"),
        ({"unchecked_reason": "Paid in March"}, "unchecked_confirmed"),
    ],
)
@pytest.mark.usefixtures("refusing")
def test_an_unchecked_name_needs_the_statement_and_its_reason(
    as_preparer: Client, changes: dict[str, str], field: str
) -> None:
    answer = review(as_preparer, **changes, unchecked_for=STATED["unchecked_for"])
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert 'name="unchecked_reason"' in text_of(answer)


@pytest.mark.parametrize("about", ["", FOR_OTHER["unchecked_for"], f"bank:058:{UNKNOWN_NUMBER}"])
@pytest.mark.usefixtures("refusing")
def test_a_statement_about_another_account_must_be_confirmed_again(as_preparer: Client, about: str) -> None:
    stated = {**STATED, "unchecked_for": about}
    answer = review(as_preparer, **stated)
    assert answer.status_code == 422
    form, html = answer.context["form"], text_of(answer)
    assert "The confirmation and reason below were given for another account." in " ".join(
        form.errors["unchecked_confirmed"]
    )
    assert (form["unchecked_confirmed"].value(), form["unchecked_reason"].value()) == (
        False,
        STATED["unchecked_reason"],
    )
    assert f'name="unchecked_for" value="{STATED["unchecked_for"]}"' in html
    typed = text_of(as_preparer.post(f"{ADDRESS}check/", filled_in(**stated)))
    assert "The confirmation and reason below were given for another account." in typed
    assert " checked" not in typed.partition('name="unchecked_confirmed"')[2].partition(">")[0]
    assert f'name="unchecked_for" value="{STATED["unchecked_for"]}"' in typed
    kept = {"unchecked_reason": STATED["unchecked_reason"], "unchecked_for": STATED["unchecked_for"]}
    assert "Confirm that the name is used" in text_of(review(as_preparer, **kept))


def test_an_account_that_the_bank_does_not_find_is_refused_whatever_is_stated(
    as_preparer: Client, sandbox: SandboxProcess
) -> None:
    answer = review(as_preparer, **STATED)
    assert answer.status_code == 422
    (problem,) = answer.context["form"].errors["account_number"]
    assert problem.startswith("The bank did not find this account: there is no account")
    assert problem.endswith("Check the account number and the bank. Nothing was prepared.")
    assert 'name="unchecked_reason"' not in text_of(answer)
    typed = text_of(as_preparer.post(f"{ADDRESS}check/", filled_in(**STATED)))
    assert "The bank did not find this account" in typed
    assert 'name="unchecked_reason"' not in typed


ALTERNATING = [(502, "oops"), (503, "oops"), (200, "<html>no</html>"), (401, json.dumps(REFUSAL))]


@pytest.mark.parametrize("at_review", ALTERNATING)
@pytest.mark.parametrize("then", ALTERNATING)
def test_a_failure_that_changes_after_the_review_does_not_ask_for_another_review(
    as_preparer: Client,
    refusing: stub_provider.StubProvider,
    at_review: tuple[int, str],
    then: tuple[int, str],
) -> None:
    values = filled_in(**STATED)
    refusing.answer_post = lambda: at_review
    reviewed = as_preparer.post(ADDRESS, {**values, "step": "review"})
    refusing.answer_post = lambda: then
    as_preparer.post(ADDRESS, {**values, "digest": reviewed.context["digest"], "step": "prepare"})
    operation = Operation.objects.get()
    assert operation.payload["name_not_checked"] == reviewed.context["form"].not_checked


def test_a_refusal_after_the_review_is_reviewed_again(
    as_preparer: Client, refusing: stub_provider.StubProvider
) -> None:
    values = filled_in(**STATED)
    refusing.answer_post = lambda: (502, "oops")
    digest = as_preparer.post(ADDRESS, {**values, "step": "review"}).context["digest"]
    refusing.answer_post = lambda: (422, json.dumps(REFUSAL))
    answer = as_preparer.post(ADDRESS, {**values, "digest": digest, "step": "prepare"})
    assert "the details changed after your review" in text_of(answer)
    assert "The provider refused to check this account: Could not resolve" in text_of(answer)
    refusing.answer_post = lambda: (404, json.dumps(REFUSAL))
    digest = answer.context["digest"]
    answer = as_preparer.post(ADDRESS, {**values, "digest": digest, "step": "prepare"})
    assert "The bank did not find this account" in " ".join(answer.context["form"].errors["account_number"])
    assert not Operation.objects.exists()


def test_the_cause_is_no_difference_between_two_operations(preparer: User) -> None:
    content = SAMPLES["withdrawal"].model_copy(update=UNCHECKED)
    other = content.model_copy(update={"name_not_checked": {"code": "not_reached"}})
    assert content.identity() == other.identity()
    assert content.stored() != other.stored()


@pytest.mark.usefixtures("refusing")
def test_an_unchecked_name_is_prepared_and_marked_for_the_approver(
    as_preparer: Client, as_approver: Client
) -> None:
    operation = prepare(as_preparer, **STATED)
    payload: WithdrawalPayload = read_content(operation)[1]
    assert (payload.account_name, payload.unchecked_reason) == ("Ada Obi", STATED["unchecked_reason"])
    assert payload.name_not_checked == {"code": "refused", "reason": "Could not resolve account name"}
    assert operation.sentence == "Withdraw NGN 250,000.00 to Ada Obi (name not checked), Access Bank ••0000"
    assert operation.recipient_detail == "Access Bank ••0000, name not checked"
    html = text_of(show(as_approver, operation))
    assert "Name not checked. The provider refused to check this account: Could not resolve" in html
    asked = r"The bank was last asked for the name when this was prepared, \d\d? \w+ \d{4}, \d\d:\d\d, and did not"
    assert re.search(asked, html)
    assert STATED["unchecked_reason"] in html
    assert 'name="acknowledged"' in html


def test_the_statement_is_ignored_if_the_bank_names_the_holder(
    as_preparer: Client, sandbox: SandboxProcess
) -> None:
    answer = review(as_preparer, account_number="0123456789", **STATED)
    assert "Give the reason for the mismatch" in text_of(answer)
    stated = review(as_preparer, account_number="0123456789", name_reason="Married name", **STATED)
    payload = stated.context["form"].payload()
    assert (payload.name_not_checked, payload.unchecked_reason) == ({}, "")
    assert payload.account_name != "Ada Obi"


def test_the_check_while_typing_offers_the_statement(
    as_preparer: Client, refusing: stub_provider.StubProvider
) -> None:
    html = text_of(as_preparer.post(f"{ADDRESS}check/", filled_in()))
    assert "The provider refused to check this account" in html
    assert 'name="unchecked_confirmed"' in html
    stated = text_of(as_preparer.post(f"{ADDRESS}check/", filled_in(**STATED)))
    assert "Name not checked. The provider refused to check this account" in stated
    assert STATED["unchecked_reason"] in stated
    refusing.answer_post = lambda: (200, '{"data": {"accountname": "ADA OBI"}}')
    checked = text_of(as_preparer.post(f"{ADDRESS}check/", filled_in()))
    assert "unchecked_confirmed" not in checked


def test_an_outdated_saved_name_is_a_warning_too(
    as_preparer: Client, preparer: User, settings: Settings, sandbox: SandboxProcess
) -> None:
    registered.suggested(preparer)
    forget_reads()
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    typed = {"account_number": "0123456789", "typed_name": "Somebody Else", "amount": "999"}
    answer = review(as_preparer, **typed, **{**STATED, "unchecked_for": "bank:044:0123456789"})
    warning = "This recipient is saved as ADA CHIDINMA OBI, but Somebody Else was entered."
    assert warning in answer.context["cautions"]


def test_an_unchecked_name_is_approved_only_with_the_confirmation(
    unchecked: Operation, approver: User
) -> None:
    decision: dict[str, Any] = {"actor": approver, "digest": unchecked.digest}
    with pytest.raises(errors.AcknowledgementMissingError):
        approvals.approve_operation(unchecked.pk, second_factor_at=timezone.now(), **decision)
    assert status_of(unchecked) == "pending"
    approvals.approve_operation(
        unchecked.pk,
        second_factor_at=timezone.now(),
        confirmation=ApproverConfirmation(acknowledged=True),
        **decision,
    )
    assert status_of(unchecked) == "approved"
    assert Entry.objects.get(action=Action.OPERATION_APPROVED).detail["warning_confirmed"] is True


def test_an_unchecked_name_is_not_approved_and_sent_without_the_confirmation(
    unchecked: Operation, approver: User
) -> None:
    with pytest.raises(errors.AcknowledgementMissingError):
        approvals.approve_and_release_operation(
            unchecked.pk, actor=approver, digest=unchecked.digest, second_factor_at=timezone.now()
        )
    assert status_of(unchecked) == "pending"


def test_the_page_asks_for_the_confirmation(as_approver: Client, unchecked: Operation) -> None:
    refused = do(as_approver, unchecked, "approve", comment="Seen")
    assert refused.status_code == 422
    assert "Confirm this before you approve. Nothing was done." in text_of(refused)
    assert 'value="Seen"' in text_of(refused)
    assert do(as_approver, unchecked, "approve", acknowledged="on").status_code == 302
    assert status_of(unchecked) == "approved"


def test_an_unchecked_name_is_refused_in_bulk_with_the_reason(
    unchecked: Operation, preparer: User, approver: User
) -> None:
    other = factories.prepared_to_another_account(preparer)
    choices = [SelectedOperation(one, one.digest) for one in (unchecked, other)]
    results = approvals.approve_operations(choices, actor=approver, second_factor_at=timezone.now())
    assert [result.result for result in results] == [BulkOutcome.REFUSED, BulkOutcome.DONE]
    assert results[0].text.startswith("A warning must be confirmed")


def test_a_payment_with_an_unchecked_name_is_marked_and_confirmed_too(preparer: User, approver: User) -> None:
    content = SAMPLES["payment"].model_copy(update=UNCHECKED)
    operation = factories.prepared_of_kind("payment", content, preparer)
    assert operation.sentence.endswith("payout to Ada Obi, Access Bank ••6789, name not checked")
    with pytest.raises(errors.AcknowledgementMissingError):
        approvals.approve_operation(
            operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now()
        )


STORED_BEFORE: dict[str, Any] = {
    "duplicate_reason": "",
    "bank_code": "044",
    "bank": "Access Bank",
    "account_number": "0123456789",
    "account_name": "ADA CHIDINMA OBI",
    "typed_name": "Ada Chidinma Obi",
    "name_reason": "",
    "saved_name": "",
}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("withdrawal", {"currency": "NGN", "amount": "250000.00", "memo": ""}),
        (
            "payment",
            {
                "business_id": "b5f1c2d94a7e4f0ba1c83d56",
                "reference": "CS-7D0C1E2F3A4B5C6D7E8F",
                "incoming_currency": "USDT",
                "incoming_amount": "100.000000",
                "outgoing_currency": "NGN",
                "outgoing_amount": None,
                "customer_email": "customer@example.com",
                "rate_key": "",
                "payment_type": "bank",
                "service_username": "",
                "country": "NG",
            },
        ),
    ],
)
def test_content_stored_before_names_could_be_unchecked_reads_and_has_the_same_digest(
    kind: str, more: dict[str, Any]
) -> None:
    stored = {**STORED_BEFORE, **more}
    _, payload = read_content(Operation(kind=kind, payload=stored))
    assert payload.stored() == stored
    assert payload == SAMPLES[kind]


def test_a_name_that_was_not_checked_is_part_of_the_digest(unchecked: Operation) -> None:
    assert {"name_not_checked", "unchecked_reason"} <= unchecked.payload.keys()
    unchecked.payload.pop("name_not_checked")
    assert unchecked.current_digest() != unchecked.digest
