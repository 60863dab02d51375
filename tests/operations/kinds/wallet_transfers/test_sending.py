"""The request, every end of it, and how it is matched in the list."""

import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.delivery import release, send
from backoffice.operations.kinds.wallet_transfer import RETYPED_CHARACTERS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.outcome.confirmation import listing_delay
from backoffice.operations.states import Status
from payments_gateway import TransactionRecord
from payments_gateway.profile.model import PROFILES
from tests import factories
from tests.operations.kinds.wallet_transfers.steps import (
    ADDRESS,
    EVM,
    FILLED_IN,
    KIND,
    TRON,
    of,
    prepared,
    released,
    review,
    sign,
)
from tests.operations.steps import let_pass
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

BITCOIN = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"


def test_the_request_is_exactly_the_approved_content(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    send.send_operation(released(preparer, approver, wallet_type="main").pk)
    assert provider.changes == ["POST /v2/wallet/transfer"]
    assert '"amount": 150.250000' in provider.posts[0]
    assert json.loads(provider.posts[0], parse_float=Decimal) == {
        "network": "TRC20",
        "currency": "USDT",
        "address": TRON,
        "amount": Decimal("150.25"),
        "walletType": "main",
        "memo": "invoice 88",
    }


def test_another_cryptocurrency_is_sent_once_two_people_have_approved(
    preparer: User, approver: User, second_approver: User, provider: StubProvider
) -> None:
    operation = prepared(
        preparer, currency="USDC", amount=Decimal("0.5"), network="ERC20", address=EVM, memo=""
    )
    factories.approve(operation, approver)
    assert Operation.objects.get().status == Status.PENDING
    factories.approve(operation, second_approver)
    factories.release(operation, approver)
    provider.answer_post = lambda: (
        200,
        '{"data": {"transferDetail": {"transactionId": "T-9", "status": "fullfiled"}}}',
    )
    send.send_operation(operation.pk)
    assert json.loads(provider.posts[0], parse_float=Decimal) == {
        "network": "ERC20",
        "currency": "USDC",
        "address": EVM,
        "amount": Decimal("0.5"),
    }
    assert Attempt.objects.get().balance == "USDC"


@pytest.fixture
def provider_in_profile(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> SandboxProcess:
    """The simulated provider in the profile of this parameter, and the product with the same."""
    names = {"specification": "sandbox_process", "published": "published_process"}
    process: SandboxProcess = request.getfixturevalue(names[request.param])
    process.reset()
    (tmp_path / "profile.toml").write_text('capabilities = ["wallet_config", "minimums"]')
    settings.GATEWAY_PROFILE = "published" if request.param == "published" else str(tmp_path / "profile.toml")
    settings.GATEWAY_URL = process.url
    settings.GATEWAY_URL_V4 = process.url.replace("/v2", "/v4")
    settings.GATEWAY_API_KEY, settings.GATEWAY_API_USER = process.api_key, process.api_user
    return process


@pytest.mark.parametrize("provider_in_profile", PROFILES, indirect=True)
@pytest.mark.parametrize(
    "typed",
    [
        {"currency": "USDC", "network": "POLYGON", "address": EVM, "amount": "12.5"},
        {"currency": "BTC", "network": "BTC", "address": BITCOIN, "amount": "0.00012345"},
    ],
    ids=["USDC", "BTC"],
)
def test_another_cryptocurrency_is_sent_and_confirmed_at_the_provider(
    as_preparer: Client,
    approver: User,
    second_approver: User,
    provider_in_profile: SandboxProcess,
    typed: dict[str, str],
) -> None:
    """GET /balance, which the pre-flight check reads, has no such currency and refuses it as a filter."""
    provider_in_profile.deposit(typed["currency"], "20")
    reviewed = review(as_preparer, **typed, submission=str(uuid.uuid4())).context
    form = {"submission": str(reviewed["submission"]), "digest": reviewed["digest"], "step": "prepare"}
    assert as_preparer.post(ADDRESS, {**FILLED_IN, **typed, **form}).status_code == 302
    operation = Operation.objects.get()
    for person in (approver, second_approver):
        sign(operation, person, typed["address"][-RETYPED_CHARACTERS:])
    factories.release(operation, approver)
    send.send_operation(operation.pk)
    provider_in_profile.settle("fullfiled")
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED
    (order,) = provider_in_profile.ledger()["orders"]
    assert all(order[name] == typed[name] for name in ("currency", "network", "address"))
    assert Decimal(order["amount"]) == Decimal(typed["amount"])
    attempt = Attempt.objects.get()
    assert (attempt.fee, attempt.provider_transaction_id) == (Decimal(order["fee"]), order["transactionId"])
    left = provider_in_profile.balance(typed["currency"])
    assert left == 20 - Decimal(order["amount"]) - Decimal(order["fee"])


def test_empty_fields_are_not_sent(preparer: User, approver: User, provider: StubProvider) -> None:
    send.send_operation(released(preparer, approver, memo="").pk)
    assert set(json.loads(provider.posts[0])) == {"network", "currency", "address", "amount"}


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (
            200,
            '{"data": {"transferDetail": {"transactionId": "T-9", "status": "processing"}}}',
            Status.PROCESSING,
        ),
        (200, '{"data": {}}', Status.PROCESSING),
        (400, '{"message": "address is not valid"}', Status.FAILED),
        (401, '{"message": "invalid api key"}', Status.FAILED),
        (404, '{"message": "no such wallet"}', Status.FAILED),
        (422, '{"message": "insufficient funds"}', Status.FAILED),
        (409, '{"message": "conflict"}', Status.UNKNOWN),
        (500, '{"message": "internal error"}', Status.UNKNOWN),
        (200, "<html>", Status.UNKNOWN),
    ],
)
def test_every_response_leads_to_a_status(
    preparer: User, approver: User, provider: StubProvider, status: int, body: str, ends: Status
) -> None:
    operation = released(preparer, approver)
    provider.answer_post = lambda: (status, body)
    send.send_operation(operation.pk)
    assert Operation.objects.get().status == ends


def test_an_unknown_outcome_is_matched_in_the_list(
    preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    sandbox.fault("wallets.transfer", "drop", when="after_execution")
    operation = released(preparer, approver)
    send.send_operation(operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    sandbox.settle("fullfiled")
    let_pass(listing_delay())
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED
    assert Attempt.objects.get().provider_transaction_id


@pytest.mark.parametrize(
    ("changes", "is_ours"),
    [
        ({}, True),
        ({"username": ""}, True),
        ({"username": TRON}, True),
        ({"username": "countersign-demo"}, True),
        ({"username": EVM}, False),
        ({"address": TRON, "username": ""}, True),
        ({"address": EVM, "username": ""}, False),
        ({"type": "withdrawal"}, False),
        ({"currency": "USD"}, False),
        ({"amount": Decimal("150.26")}, False),
    ],
)
def test_a_wallet_transfer_is_matched_by_type_currency_amount_and_address(
    changes: dict[str, Any], is_ours: bool
) -> None:
    fields = {"transactionId": "T-1", "type": "sent", "currency": "USDT", "amount": Decimal("150.25")}
    record = TransactionRecord.model_validate({**fields, **changes})
    assert KIND.is_match(of(), record) is is_ours  # type: ignore[union-attr]


def test_addresses_of_case_insensitive_networks_match_in_any_case() -> None:
    fields = {
        "transactionId": "T-1",
        "type": "sent",
        "currency": "USDT",
        "amount": 5,
        "username": EVM.lower(),
    }
    record = TransactionRecord.model_validate(fields)
    assert KIND.is_match(of(network="ERC20", address=EVM, amount=Decimal(5)), record)  # type: ignore[union-attr]
    assert KIND.recipient(of(address=EVM)).key == KIND.recipient(of(address=EVM.lower())).key


def test_two_people_send_crypto_at_the_provider(
    preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    before = sandbox.balance("USDT")
    operation = prepared(preparer)
    operation = sign(operation, approver, "gjLj6t")
    release.release_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now(), otp=None
    )
    send.send_operation(operation.pk)
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED
    taken = before - sandbox.balance("USDT")
    attempt = Attempt.objects.get()
    assert attempt.fee is not None
    assert taken == of().amount + attempt.fee
