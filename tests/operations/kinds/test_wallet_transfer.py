"""Wallet transfers: the form, the address, the request, and every end."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations import errors, policy, services
from backoffice.operations.kinds import KINDS
from backoffice.operations.kinds.base import Code
from backoffice.operations.kinds.wallet_transfer import WalletTransferPayload
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.confirming import settles_after
from backoffice.operations.states import Status
from payments_gateway import TransactionRecord
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import let_pass
from tests.sandbox_process import SandboxProcess
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/operations/prepare/wallet_transfer/"
TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
EVM = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
BITCOIN = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
FILLED_IN = {
    "network": "TRC20",
    "currency": "USDT",
    "amount": "150.250000",
    "address": TRON,
    "wallet_type": "",
    "memo": "invoice 88",
}
KIND = KINDS["wallet_transfer"]


def of(**changes: Any) -> WalletTransferPayload:
    return SAMPLES["wallet_transfer"].model_copy(update=changes)  # type: ignore[return-value]


def prepared(maker: User, **changes: Any) -> Operation:
    return factories.of_kind("wallet_transfer", of(**changes), maker)


def released(maker: User, checker: User, **changes: Any) -> Operation:
    return factories.release(factories.countersigned(prepared(maker, **changes), checker), checker)


def paid(maker: User, checker: User, service: StubService, **changes: Any) -> Operation:
    """A wallet transfer that the service has accepted."""
    operation = released(maker, checker, **changes)
    services.send_operation(operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.PROCESSING
    return operation


def review(client: Client, **changes: str) -> Any:
    return client.post(ADDRESS, {**FILLED_IN, **changes, "step": "review"})


def test_the_review_shows_all_of_the_address_and_what_was_proven(
    as_maker: Client, service: StubService
) -> None:
    answer = review(as_maker)
    html = answer.content.decode()
    assert "<h1>Send USDT 150.250000 on TRC20 to TR7NHq…gjLj6t</h1>" in html
    assert f'data-copy="{TRON}"' in html
    assert "<span>TR7N</span><wbr><span>Hqje</span>" in html
    assert "the checksum fits" in html
    assert "Wallet transfers need one approver" in html


@pytest.mark.parametrize(
    ("network", "address"), [("ERC20", EVM), ("trc 20", TRON), ("BTC", BITCOIN), ("Lightning", "lnbc1")]
)
def test_addresses_of_every_network_pass(
    as_maker: Client, service: StubService, network: str, address: str
) -> None:
    assert review(as_maker, network=network, address=address).status_code == 200


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("network", "", "This field is required."),
        ("network", "TRC20\x00", "Null characters"),
        ("network", "a/b", "letters, digits and hyphens"),
        ("network", "x" * 17, "at most 16"),
        ("network", "ERC20", "0x and then 40 characters"),
        ("currency", "NGN", "NGN is not one of the available choices"),
        ("amount", "", "Enter an amount."),
        ("amount", "1e2", "digits and one point only"),
        ("amount", "0.0000001", "USDT has at most 6 decimals."),
        ("amount", "0", "greater than zero"),
        ("address", "", "This field is required."),
        ("address", TRON[:-1] + "u", "mistyped"),
        ("address", "0" + TRON[1:], "never occurs"),
        ("address", TRON[:20] + " " + TRON[20:], "no spaces"),
        ("address", EVM, "never occurs"),
        ("address", "x" * 129, "at most 128"),
        ("wallet_type", "x" * 41, "at most 40"),
        ("memo", "x" * 121, "at most 120"),
        ("memo", "a\x07b", "cannot be seen"),
    ],
)
def test_bad_input_is_said_beside_its_field_and_loses_nothing(
    as_maker: Client, service: StubService, field: str, typed: str, said: str
) -> None:
    answer = review(as_maker, **{field: typed})
    assert answer.status_code == 422
    form = answer.context["form"]
    beside = "address" if (field, typed) == ("network", "ERC20") else field
    assert said in " ".join(form.errors[beside])
    kept = {name: form[name].value() for name in FILLED_IN if name != field}
    assert kept == {name: value for name, value in FILLED_IN.items() if name != field}
    assert not Operation.objects.exists()


def test_the_request_is_exactly_what_was_countersigned(
    maker: User, checker: User, service: StubService
) -> None:
    services.send_operation(released(maker, checker, wallet_type="main").pk)
    assert service.changes == ["POST /v2/wallet/transfer"]
    assert '"amount": 150.250000' in service.posts[0]
    assert json.loads(service.posts[0], parse_float=Decimal) == {
        "network": "TRC20",
        "currency": "USDT",
        "address": TRON,
        "amount": Decimal("150.25"),
        "walletType": "main",
        "memo": "invoice 88",
    }


def test_what_is_not_given_is_not_sent(maker: User, checker: User, service: StubService) -> None:
    services.send_operation(released(maker, checker, memo="").pk)
    assert set(json.loads(service.posts[0])) == {"network", "currency", "address", "amount"}


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
def test_every_answer_leads_somewhere(
    maker: User, checker: User, service: StubService, status: int, body: str, ends: Status
) -> None:
    operation = released(maker, checker)
    service.answer_post = lambda: (status, body)
    services.send_operation(operation.pk)
    assert Operation.objects.get().status == ends


def test_an_unknown_one_is_recognised_in_the_list(
    maker: User, checker: User, sandbox: SandboxProcess
) -> None:
    sandbox.fault("wallets.transfer", "drop", when="after_execution")
    operation = released(maker, checker)
    services.send_operation(operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    sandbox.settle("fullfiled")
    let_pass(settles_after())
    assert services.confirm_operation(operation.pk).status == Status.SUCCEEDED
    assert Attempt.objects.get().service_transaction_id


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
def test_it_is_recognised_by_type_currency_amount_and_address(changes: dict[str, Any], is_ours: bool) -> None:
    told = {"transactionId": "T-1", "type": "sent", "currency": "USDT", "amount": Decimal("150.25")}
    record = TransactionRecord.model_validate({**told, **changes})
    assert KIND.recognises(of(), record) is is_ours  # type: ignore[union-attr]


def test_capitals_do_not_make_another_address_where_the_network_knows_none() -> None:
    told = {"transactionId": "T-1", "type": "sent", "currency": "USDT", "amount": 5, "username": EVM.lower()}
    record = TransactionRecord.model_validate(told)
    assert KIND.recognises(of(network="ERC20", address=EVM, amount=Decimal(5)), record)  # type: ignore[union-attr]
    assert KIND.counterparty(of(address=EVM)).key == KIND.counterparty(of(address=EVM.lower())).key


def test_whoever_countersigns_types_the_end_of_the_address(maker: User, checker: User) -> None:
    operation = prepared(maker)
    for typed in ("", "gjLj6T", "jLj6t", "TR7NHq", TRON):
        with pytest.raises(errors.ConfirmationWrongError):
            sign(operation, checker, typed)
    assert sign(operation, checker, " gjLj6t ").status == Status.APPROVED


def test_the_page_asks_for_the_end_of_the_address_and_takes_no_other(as_checker: Client, maker: User) -> None:
    operation = prepared(maker)
    assert "Last 6 characters of the address" in as_checker.get(operation.get_absolute_url()).content.decode()
    refused = as_checker.post(
        f"{operation.get_absolute_url()}approve/", {"digest": operation.digest, "confirmation": "gjLj6x"}
    )
    assert refused.status_code == 422
    assert Operation.objects.get().status == Status.PENDING


def test_it_cannot_be_countersigned_among_many(maker: User) -> None:
    with pytest.raises(errors.OneByOneError):
        policy.check_in_bulk(prepared(maker))


def test_the_first_time_is_said_until_the_address_was_paid(
    maker: User, checker: User, service: StubService
) -> None:
    assert any("First time" in caution for caution in KIND.cautions(of()))
    operation = prepared(maker)
    assert any("First time" in caution for caution in KIND.cautions(of()))
    services.cancel_operation(operation.pk, actor=maker)
    assert any("First time" in caution for caution in KIND.cautions(of()))
    paid(maker, checker, service)
    assert KIND.cautions(of()) == []


def test_a_failed_transfer_does_not_make_an_address_known(
    maker: User, checker: User, service: StubService
) -> None:
    service.answer_post = lambda: (400, '{"message": "no"}')
    services.send_operation(released(maker, checker).pk)
    assert any("First time" in caution for caution in KIND.cautions(of()))


def test_an_address_that_looks_like_one_paid_before_is_shown_beside_it(
    as_maker: Client, maker: User, checker: User, service: StubService
) -> None:
    known = "0xabc1112223334445556667778889990001112def"
    poison = "0xabc9992223334445556667778889990001112def"
    before = paid(maker, checker, service, network="ERC20", address=known)
    html = review(as_maker, network="ERC20", address=poison).content.decode()
    assert "First time" in html
    assert f"paid with {before.reference}" in html
    assert "0xabc[111]222333" in html
    assert "0xabc[999]222333" in html


def test_addresses_that_are_unlike_are_not_shown(maker: User, checker: User, service: StubService) -> None:
    paid(maker, checker, service)
    cautions = KIND.cautions(of(network="ERC20", address=EVM))
    assert [caution for caution in cautions if "Looks like" in caution] == []


def test_what_no_checksum_protects_is_said() -> None:
    (form, _) = KIND.cautions(of(network="ERC20", address=EVM.lower()))
    assert "carries no checksum" in form
    (network, _) = KIND.cautions(of(network="Lightning", address="lnbc1"))
    assert "nothing was checked" in network
    (wrong, _) = KIND.cautions(of(address="TR7"))
    assert "can be no address" in wrong


def test_the_warnings_take_two_queries(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):
        KIND.cautions(of())


def test_the_address_is_shown_in_groups_and_copied_exactly() -> None:
    value = dict(KIND.facts(of()))["To address"]
    assert isinstance(value, Code)
    assert value == TRON
    assert value.groups[0] == "TR7N"
    assert "".join(value.groups) == TRON


def test_two_people_send_crypto_against_the_service(
    maker: User, checker: User, sandbox: SandboxProcess
) -> None:
    before = sandbox.balance("USDT")
    operation = prepared(maker)
    operation = sign(operation, checker, "gjLj6t")
    services.release_operation(
        operation.pk, actor=checker, digest=operation.digest, second_factor_at=timezone.now(), token=None
    )
    services.send_operation(operation.pk)
    assert services.confirm_operation(operation.pk).status == Status.SUCCEEDED
    taken = before - sandbox.balance("USDT")
    attempt = Attempt.objects.get()
    assert attempt.fee is not None
    assert taken == of().amount + attempt.fee


def test_prepare_again_fills_the_form_with_the_same(as_maker: Client, maker: User) -> None:
    operation = prepared(maker)
    services.cancel_operation(operation.pk, actor=maker)
    form = as_maker.get(f"{ADDRESS}?copy={operation.pk}").context["form"]
    assert {name: str(form[name].value()) for name in FILLED_IN} == FILLED_IN


def sign(operation: Operation, checker: User, typed: str) -> Operation:
    return services.approve_operation(
        operation.pk,
        actor=checker,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        confirmation=typed,
    )
