"""The reference of an off-ramp payment: given by the preparer or generated, and of one payment only."""

import json
import threading
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.operations import errors, policy, seals
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import CLOSED, Outcome, Status
from backoffice.operations.workflow import prepare
from tests import factories
from tests.operations.kinds.payments.steps import ADDRESS, REFERENCE, SUBMISSION, of, post, sent
from tests.operations.steps import put, text_of
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

INVOICE = "INV-2026/118"


def prepared(preparer: User, reference: str, **changes: Any) -> Operation:
    changes = {"duplicate_reason": f"For {uuid.uuid4()}", **changes}
    return factories.prepared_of_kind("payment", of(reference=reference, **changes), preparer)


def test_a_given_reference_is_prepared_and_shown(as_preparer: Client, bank: dict[str, str]) -> None:
    answer = post(as_preparer, {**bank, "reference": f" {INVOICE} "})
    assert ("Our reference", INVOICE) in answer.context["facts"]
    digest = answer.context["digest"]
    post(as_preparer, {**bank, "reference": INVOICE}, "prepare", digest=digest)
    assert Operation.objects.get().payload["reference"] == INVOICE


def test_without_a_reference_one_is_generated(as_preparer: Client, bank: dict[str, str]) -> None:
    assert post(as_preparer, bank).context["form"].payload().reference == REFERENCE


@pytest.mark.parametrize("typed", ["Rechnung Nº 5", "-5", "x" * 61, "a\tb", "a;b"])
def test_a_reference_that_a_provider_may_change_is_refused(
    as_preparer: Client, bank: dict[str, str], typed: str
) -> None:
    answer = post(as_preparer, {**bank, "reference": typed})
    assert list(answer.context["form"].errors) == ["reference"]


def test_blanks_are_normalised_when_it_is_prepared(as_preparer: Client, bank: dict[str, str]) -> None:
    answer = post(as_preparer, {**bank, "reference": "  INV  2026   118 "})
    assert answer.context["form"].payload().reference == "INV 2026 118"


@pytest.mark.parametrize("echo", ["inv 2026 118", " INV  2026 118 ", ""])
def test_another_spelling_in_the_answer_is_the_same_reference(
    preparer: User, approver: User, provider: StubProvider, echo: str
) -> None:
    provider.answer_post = lambda: (200, json.dumps({"data": {"_id": "P-1", "reference": echo}}))
    assert sent(preparer, approver, of(reference="INV 2026 118")).status == Status.SUCCEEDED
    assert len(provider.posts) == 1


@pytest.mark.parametrize("echo", ["INV 2026 119", "INV2026 118", "INV-2026-118"])
def test_another_reference_in_the_answer_is_an_unknown_outcome(
    preparer: User, approver: User, provider: StubProvider, echo: str
) -> None:
    provider.answer_post = lambda: (200, json.dumps({"data": {"_id": "P-1", "reference": echo}}))
    assert sent(preparer, approver, of(reference="INV 2026 118")).status == Status.UNKNOWN
    assert len(provider.posts) == 1


def test_a_reference_is_looked_up_on_the_review_and_not_after_each_change(
    as_preparer: Client, preparer: User, bank: dict[str, str]
) -> None:
    """No index has the references, so all payments are read."""
    prepared(preparer, INVOICE)
    typed = {**bank, "reference": INVOICE, "submission": SUBMISSION}
    with CaptureQueriesContext(connection) as queries:
        answer = as_preparer.post(f"{ADDRESS}check/", typed)
    assert answer.status_code == 200
    assert not [
        query for query in queries if INVOICE in query["sql"] and "operations_operation" in query["sql"]
    ]
    assert "reference" not in answer.context["check"].errors
    assert "reference" in post(as_preparer, typed).context["form"].errors
    assert "reference" in post(as_preparer, typed, "prepare").context["form"].errors


def test_the_reference_is_part_of_what_is_approved(preparer: User) -> None:
    operation = prepared(preparer, INVOICE)
    operation.payload["reference"] = "INV-2026/119"
    with pytest.raises(errors.ContentChangedError):
        policy.check_content(operation, operation.digest)
    with pytest.raises(errors.AlteredRecordError):
        seals.check_record(operation, [], None)


def test_the_same_amount_again_needs_a_reason_under_another_reference_too(preparer: User) -> None:
    factories.prepared_of_kind("payment", of(reference=INVOICE), preparer)
    with pytest.raises(errors.DuplicatePaymentError):
        factories.prepared_of_kind("payment", of(reference="INV-2026/119"), preparer)


@pytest.mark.parametrize("typed", [INVOICE, INVOICE.lower()])
def test_a_reference_of_another_payment_is_reported_at_its_field(
    as_preparer: Client, preparer: User, bank: dict[str, str], typed: str
) -> None:
    other = prepared(preparer, INVOICE)
    answer = post(as_preparer, {**bank, "reference": typed})
    assert answer.status_code == 422
    problem = f"{other.reference} already has the reference “{typed}”. Nothing was prepared."
    assert problem in " ".join(answer.context["form"].errors["reference"])
    assert answer.context["form"]["reference"].value() == typed


def test_the_same_form_keeps_its_reference(preparer: User) -> None:
    content = of(reference=INVOICE)
    first = factories.prepared_of_kind("payment", content, preparer)
    again = prepare.prepare_operation(first.pk, actor=preparer, kind="payment", payload=content)
    assert again == first


@pytest.mark.parametrize(
    ("statuses", "outcome", "is_free"),
    [
        ((), None, False),
        (("approved", "sending", "unknown"), Outcome.OPEN, False),
        (("approved", "sending", "succeeded"), Outcome.SUCCEEDED, False),
        (("approved", "sending", "unknown", "failed"), Outcome.FAILED, False),
        (("rejected",), None, True),
        (("cancelled",), None, True),
        (("approved", "expired"), Outcome.NOT_SENT, True),
        (("approved", "sending", "failed"), Outcome.REJECTED, True),
    ],
)
def test_a_reference_is_free_again_only_if_nothing_can_arrive_under_it(
    preparer: User, statuses: tuple[str, ...], outcome: Outcome | None, is_free: bool
) -> None:
    operation = prepared(preparer, INVOICE)
    if outcome:
        closed = {} if outcome == Outcome.OPEN else {"closed_at": operation.prepared_at}
        factories.attempt(operation, outcome=outcome, **closed)
    put(operation, *statuses)
    other = {"account_number": "1112220031"}
    if is_free:
        assert prepared(preparer, INVOICE, **other).payload["reference"] == INVOICE
        return
    with pytest.raises(errors.ReferenceUsedError, match=operation.reference):
        prepared(preparer, INVOICE, **other)


def test_of_two_people_at_the_same_moment_one_gets_the_reference(preparer: User) -> None:
    barrier, refused = threading.Barrier(2), list[errors.OperationError]()

    def run(account: str) -> None:
        barrier.wait(120)
        try:
            prepared(preparer, INVOICE, account_number=account)
        except errors.ReferenceUsedError as exc:
            refused.append(exc)
        connection.close()

    threads = [threading.Thread(target=run, args=(account,)) for account in ("1112220031", "1112220032")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(refused) == Operation.objects.count() == 1


def test_the_given_reference_is_sent_and_found(
    as_preparer: Client, preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    operation = sent(preparer, approver, of(reference=INVOICE))
    assert operation.status in CLOSED
    assert operation.attempts.get(result__reference=INVOICE)
    prepared(preparer, "INV-2027/1", account_number="1112220031")
    found = as_preparer.get("/operations/", {"tab": "all", "text": "inv-2026"}).context["page"].rows
    assert [row.pk for row in found] == [operation.pk]
    assert text_of(as_preparer.post("/search/", {"q": INVOICE})).count(operation.reference)
    for report in ("operations", "payments"):
        answer: Any = as_preparer.get(reverse("reports:csv", args=[report]))
        table = b"".join(answer.streaming_content).decode()
        assert INVOICE in table
        assert ("INV-2027/1" in table) == (report == "operations")
