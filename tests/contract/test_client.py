"""The client's requests, made from random valid input, as the document has them; and answers that it accepts."""

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from payments_gateway import GatewayConfig, GatewayError, PaymentsGateway
from payments_gateway.profile.model import PROFILES, ProfileName
from payments_gateway.resources.accounts import AccountRequest
from payments_gateway.resources.api_keys import KeyRequest
from payments_gateway.resources.balances import Conversion, Transfer, Withdrawal
from payments_gateway.resources.extras import EXTRA_OPERATIONS
from payments_gateway.resources.payments import PaymentRequest
from payments_gateway.resources.wallets import WalletTransfer
from tests.contract.calls import CALLS, calls
from tests.contract.case_counts import CASES, SEED
from tests.contract.exchange import Request, check_answer, check_request, operation_of
from tests.contract.openapi_document import described, differing
from tests.contract.recorder import Recorder
from tests.payments_gateway.stub import Stub, answer
from tests.sandbox_process import SandboxProcess


def config(address: str, profile: ProfileName = "specification") -> GatewayConfig:
    return GatewayConfig(
        base_url=f"{address}/v2",
        base_url_v4=f"{address}/v4",
        api_key=SecretStr(SandboxProcess.api_key),
        api_user=SandboxProcess.api_user,
        profile=PROFILES[profile].overridden({"capabilities": list(EXTRA_OPERATIONS)}),
        tries=1,
    )


@pytest.fixture(scope="module")
def refusing() -> Iterator[Stub]:
    """A provider that hears everything and refuses it, so that each call is one request."""
    with Stub(answer(400, {"message": "not today"})) as stub:
        yield stub


def test_every_operation_of_the_document_has_a_client_call() -> None:
    assert set(CALLS) == set(described())


@pytest.mark.parametrize(
    ("profile", "name"),
    [*(("specification", name) for name in CALLS), *(("published", name) for name in differing())],
)
@seed(SEED)
@settings(max_examples=CASES, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_client_request_conforms_to_the_document(
    profile: ProfileName, name: str, refusing: Stub, data: st.DataObject
) -> None:
    call = data.draw(calls(profile)[name])
    refusing.requests.clear()
    with (
        PaymentsGateway(config(refusing.url.removesuffix("/v2"), profile)) as client,
        pytest.raises(GatewayError),
    ):
        call(client)
    (sent,) = refusing.requests
    request = Request(
        sent.method, sent.target, {name.lower(): value for name, value in sent.headers}, sent.body
    )
    assert operation_of(request, profile) == name
    check_request(request, profile)


TRON, BITCOIN = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
WALLET_TRANSFERS = (
    WalletTransfer(network="TRC20", currency="USDT", address=TRON, amount="25.5"),
    WalletTransfer(network="BTC", currency="BTC", address=BITCOIN, amount="0.00012345"),
)
ACCOUNT = {
    "account_number": "0123456789",
    "account_name": "Kelechi Eze",
    "bank": "Access Bank",
    "bank_code": "044",
}


def accepted(client: PaymentsGateway, provider: SandboxProcess) -> None:
    """Every operation once, each with what the provider accepts; with codes only where its profile demands them."""
    code = SecretStr(provider.totp()) if provider.profile == "specification" else None
    assert [each.currency for each in client.balances.list()] == ["NGN", "USD", "USDT"]
    assert [each.currency for each in client.balances.list("USDT")] == ["USDT"]
    client.balances.convert(Conversion(from_currency="NGN", to_currency="USD", amount="200000"))
    receipt = client.balances.withdraw(Withdrawal(**ACCOUNT, currency="NGN", amount="1500.25"), otp=code)
    client.balances.transfer(Transfer(receiver_username="kelechi", currency="NGN", amount="5"), otp=code)
    client.wallets.get()
    provider.deposit("BTC", "1")
    for transfer in WALLET_TRANSFERS:
        client.wallets.transfer(transfer)
    payment_of = partial(
        PaymentRequest,
        business_id="b5f1c2d94a7e4f0ba1c83d56",
        incoming_currency="USDT",
        outgoing_currency="NGN",
        customer_email="ada@example.com",
        incoming_amount="25",
    )
    client.payments.create(payment_of(payment_type="profile", service_username="kelechi"))
    payment = client.payments.create(payment_of(payment_type="bank", country="NG", **ACCOUNT))
    holder = client.banks.resolve(account_number="0123456789", bank_code="044")
    assert (holder.account_name != "", holder.bank_code, holder.bank_name) == (True, "044", "Access Bank")
    client.callbacks.set_url("http://127.0.0.1:9/hook")
    client.callbacks.url()
    currency = PROFILES[provider.profile].account_currencies[-1]
    client.accounts.create(AccountRequest(account_name="Ada Obi", currency=currency))
    assert client.accounts.list()[0].assets[0].currency == currency
    client.api_keys.create(otp=code, otp_type="totp")
    made = client.api_keys.generate(KeyRequest(name="reports", scope="G", expires_in_days=9), otp=code)
    client.api_keys.scopes()
    client.api_keys.invalidate(made.key)
    ended = next(each for each in client.api_keys.list() if each.name == "reports")
    client.api_keys.delete(ended.short_hash)
    accepted_lists(client)
    client.extras.transaction(str(receipt.transaction_id))
    client.extras.payment(str(payment.id))


def accepted_lists(client: PaymentsGateway) -> None:
    """The reads of lists, the optional ones each with what the provider has."""
    client.transactions.page()
    client.transactions.summary(duration="one week")
    assert client.extras.banks()
    assert client.extras.rates()
    assert {"NGN", "USDT"} <= {each.code for each in client.extras.currencies()}
    assert {each.currency for each in client.extras.minimums()} == {"NGN", "USD", "USDT", "USDC", "BTC"}
    options = {option.currency: option.networks for option in client.extras.wallet_config()}
    assert list(options) == ["USDT", "USDC", "BTC"]
    assert "TRC20" in options["USDT"]


@pytest.mark.parametrize("profile", PROFILES)
def test_recorded_exchanges_conform_to_the_document(
    profile: ProfileName, request: pytest.FixtureRequest
) -> None:
    provider = request.getfixturevalue({"specification": "provider", "published": "published"}[profile])
    with Recorder(provider.address) as recorder, PaymentsGateway(config(recorder.address, profile)) as client:
        accepted(client, provider)
    for sent, found in recorder.exchanges:
        check_request(sent, profile)
        check_answer(sent, found, profile)
        assert found.status == 200
    assert {operation_of(sent, profile) for sent, _ in recorder.exchanges} == set(described())
