"""The approver types the end of the address, and reads what is odd about it."""

from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations import errors, policy
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests.operations.kinds.wallet_transfers.steps import (
    EVM,
    KIND,
    TRON,
    of,
    prepared,
    released,
    review,
    sign,
)
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def paid(preparer: User, approver: User, provider: StubProvider, **changes: Any) -> Operation:
    """A wallet transfer that the provider has accepted."""
    operation = released(preparer, approver, **changes)
    send.send_operation(operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.PROCESSING
    return operation


def test_the_approver_types_the_end_of_the_address(preparer: User, approver: User) -> None:
    operation = prepared(preparer)
    for typed in ("", "gjLj6T", "jLj6t", "TR7NHq", TRON):
        with pytest.raises(errors.ConfirmationWrongError):
            sign(operation, approver, typed)
    assert sign(operation, approver, " gjLj6t ").status == Status.APPROVED


def test_the_page_requires_the_end_of_the_address(as_approver: Client, preparer: User) -> None:
    operation = prepared(preparer)
    assert (
        "Last 6 characters of the address" in as_approver.get(operation.get_absolute_url()).content.decode()
    )
    refused = as_approver.post(
        f"{operation.get_absolute_url()}approve/", {"digest": operation.digest, "confirmation": "gjLj6x"}
    )
    assert refused.status_code == 422
    assert Operation.objects.get().status == Status.PENDING


def test_a_wallet_transfer_cannot_be_approved_in_bulk(preparer: User) -> None:
    with pytest.raises(errors.NotInBulkError):
        policy.check_may_approve_in_bulk(prepared(preparer), alike=())


def test_a_lookalike_of_a_paid_address_is_shown(
    as_preparer: Client, preparer: User, approver: User, provider: StubProvider
) -> None:
    known = "0xabc1112223334445556667778889990001112def"
    poison = "0xabc9992223334445556667778889990001112def"
    before = paid(preparer, approver, provider, network="ERC20", address=known)
    html = review(as_preparer, network="ERC20", address=poison).content.decode()
    assert f"paid in {before.reference}" in html
    assert "0xabc[111]222333" in html
    assert "0xabc[999]222333" in html


def test_dissimilar_addresses_are_not_shown(preparer: User, approver: User, provider: StubProvider) -> None:
    paid(preparer, approver, provider)
    cautions = KIND.cautions(of(network="ERC20", address=EVM))
    assert [caution for caution in cautions if "Similar to" in caution] == []


def test_an_address_without_a_checksum_is_warned_of() -> None:
    (form,) = KIND.cautions(of(network="ERC20", address=EVM.lower()))
    assert "no checksum" in form
    (network,) = KIND.cautions(of(network="Lightning", address="lnbc1"))
    assert "Not checked" in network
    (wrong,) = KIND.cautions(of(address="TR7"))
    assert "Not a valid address" in wrong


def test_the_warnings_take_one_query(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        KIND.cautions(of())
