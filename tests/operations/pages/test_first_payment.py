"""Whether a recipient was paid before: on the review, on the page of the operation, and before a bulk approval."""

import uuid
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.kinds.transfer import TransferPayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.selectors import first_payment_warning
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.kinds.wallet_transfers.steps import EVM, review
from tests.operations.pages.bulk.steps import APPROVE, confirm
from tests.operations.steps import put, show, text_of
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db

FIRST = "Recipient not paid before."
EXECUTED = ("approved", "sending", "succeeded")


def review_transfer(client: Client, username: str) -> Any:
    typed = {"receiver_username": username, "currency": "NGN", "amount": "100", "memo": ""}
    return client.post(
        "/operations/prepare/transfer/", {**typed, "submission": str(uuid.uuid4()), "step": "review"}
    )


@pytest.mark.parametrize(
    ("statuses", "is_first"),
    [
        ((), True),
        (("approved", "sending", "unknown"), True),
        (("approved", "sending", "failed"), True),
        (("rejected",), True),
        (EXECUTED, False),
    ],
)
def test_only_an_operation_that_succeeded_is_an_earlier_payment(
    as_approver: Client, preparer: User, statuses: tuple[str, ...], is_first: bool
) -> None:
    put(factories.prepared(preparer, amount=Decimal(7)), *statuses)
    operation = factories.prepared(preparer, account_name="A NEW NAME", typed_name="A new name")
    assert (FIRST in text_of(show(as_approver, operation))) == is_first
    assert bool(first_payment_warning(operation.recipient_key or "")) == is_first


def test_payments_in_progress_are_counted_beside_it(as_approver: Client, preparer: User) -> None:
    for amount, status in ((7, "unknown"), (8, "processing")):
        put(factories.prepared(preparer, amount=Decimal(amount)), "approved", "sending", status)
    put(factories.prepared(preparer, amount=Decimal(9)), "approved")
    put(factories.prepared_to_another_account(preparer), "approved", "sending", "unknown")
    operation = factories.prepared(preparer)
    assert f"{FIRST} Payments in progress: 2. Check the details" in text_of(show(as_approver, operation))
    assert first_payment_warning(operation.recipient_key or "") == f"{FIRST} Payments in progress: 2."
    answer = confirm(as_approver, APPROVE, factories.prepared_to_another_account(preparer))
    assert f"{FIRST}</b>" in text_of(answer)


def test_an_off_ramp_payment_that_was_created_is_no_earlier_payment(
    as_approver: Client, preparer: User
) -> None:
    """Whether its customer ever paid, so that anything was paid out, is not known."""
    put(factories.prepared_of_kind("payment", SAMPLES["payment"], preparer), *EXECUTED)
    operation = factories.prepared(preparer)
    warning = f"{FIRST} Off-ramp payments created, payout not known: 1."
    assert warning in text_of(show(as_approver, operation))
    assert first_payment_warning(operation.recipient_key or "") == warning


def test_the_bulk_approval_says_it_of_each_operation(as_approver: Client, preparer: User) -> None:
    put(factories.prepared_to_another_account(preparer, account_number="0000000001"), *EXECUTED)
    again = factories.prepared_to_another_account(preparer, account_number="0000000001", memo="again")
    new = factories.prepared_to_another_account(preparer)
    answer = confirm(as_approver, APPROVE, again, new)
    assert text_of(answer).count(FIRST) == 1
    rows = answer.context["included"]
    assert {row.operation.pk: row.first_payment for row in rows} == {again.pk: "", new.pk: FIRST}


def test_the_review_says_it_of_a_user_whatever_the_case(
    as_preparer: Client, preparer: User, sandbox: SandboxProcess
) -> None:
    assert FIRST in text_of(review_transfer(as_preparer, "Ngozi.Eze"))
    assert isinstance(SAMPLES["transfer"], TransferPayload)
    put(factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer), *EXECUTED)
    assert FIRST not in text_of(review_transfer(as_preparer, "Ngozi.Eze"))


def test_a_crypto_transfer_in_progress_is_no_earlier_payment(
    as_preparer: Client, as_approver: Client, preparer: User
) -> None:
    """Also for the same address on another network, written in other case."""
    earlier, current = (
        SAMPLES["wallet_transfer"].model_copy(
            update={"network": network, "address": address, "amount": Decimal(amount)}
        )
        for network, address, amount in (("ERC20", EVM.lower(), 7), ("BEP20", EVM, 8))
    )
    unpaid = factories.prepared_of_kind("wallet_transfer", earlier, preparer)
    operation = factories.prepared_of_kind("wallet_transfer", current, preparer)
    assert text_of(show(as_approver, operation)).count(f"{FIRST} Check the details") == 1
    put(unpaid, "approved", "sending", "processing")
    for html in (
        text_of(show(as_approver, operation)),
        text_of(review(as_preparer, network="ERC20", address=EVM, amount="9")),
    ):
        assert html.count(f"{FIRST} Payments in progress: 1. Check the details with the recipient.") == 1
    put(unpaid, "succeeded")
    for html in (
        text_of(show(as_approver, operation)),
        text_of(review(as_preparer, network="ERC20", address=EVM, amount="9")),
    ):
        assert FIRST not in html


def test_an_operation_that_pays_nobody_or_is_closed_does_not_say_it(
    as_approver: Client, preparer: User
) -> None:
    conversion = factories.prepared_of_kind("conversion", SAMPLES["conversion"], preparer)
    paid = put(factories.prepared(preparer), *EXECUTED)
    assert not any(FIRST in text_of(show(as_approver, one)) for one in (conversion, paid))
    assert Operation.objects.count() == 2
