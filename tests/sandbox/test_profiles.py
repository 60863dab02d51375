"""The sandbox in each profile: what one accepts and the other refuses, and exactly one request for every write."""

from collections.abc import Callable, Iterator, Mapping

import pytest
import requests
from pydantic import SecretStr

from payments_gateway import (
    AccountRequest,
    Conversion,
    GatewayConfig,
    KeyRequest,
    OutcomeUnknownError,
    PaymentRequest,
    PaymentsGateway,
    Transfer,
    WalletTransfer,
    Withdrawal,
)
from payments_gateway.operations import OPERATIONS, CallEffect
from payments_gateway.profile.model import PROFILES, ProfileName
from tests.sandbox.conftest import ACCOUNT, PAYMENT
from tests.sandbox_process import SandboxProcess


@pytest.fixture
def processes(
    process: SandboxProcess, published_process: SandboxProcess
) -> Iterator[Mapping[ProfileName, SandboxProcess]]:
    """Both providers, in their seeded state."""
    both = {each.profile: each for each in (process, published_process)}
    for each in both.values():
        each.reset()
        each.options(token_reuse=True)
    yield both
    for each in both.values():
        each.reset()


def status(
    provider: SandboxProcess, method: str, path: str, body: object = None, *, bare: bool = False
) -> int:
    headers = {} if bare else provider.headers
    return requests.request(
        method, f"{provider.address}{path}", json=body, headers=headers, timeout=30
    ).status_code


_WITHDRAWAL = {**ACCOUNT, "currency": "NGN", "amount": "5.00"}
_PUBLISHED_PAYMENT = {
    ("coinprofileUsername" if name == "serviceUsername" else name): value for name, value in PAYMENT.items()
}
#: Method, path and body -> what each profile answers. Without a code where one is optional.
REQUESTS: list[tuple[str, str, object, int, int]] = [
    ("GET", "/v4/user/api-keys", None, 200, 404),
    ("GET", "/v4/user/apikeys", None, 404, 200),
    ("GET", "/v4/user/api-key/scopes", None, 200, 404),
    ("GET", "/v4/user/apikey-scope", None, 404, 200),
    ("POST", "/v4/user/apikey", {"keyname": "till", "scope": "G"}, 404, 200),
    ("POST", "/v4/user/api-key", {"keyname": "till", "scope": "G"}, 400, 404),
    ("POST", "/v4/user/api-key/invalidate", {"apikey": "00000000"}, 400, 404),
    ("POST", "/v4/user/invalidate-apikey", {"apikey": "00000000"}, 404, 400),
    ("DELETE", "/v4/user/api-key?apikeyHash=00000000", None, 400, 404),
    ("DELETE", "/v4/user/apikey?apikeyHash=00000000", None, 404, 400),
    ("POST", "/v2/payment", PAYMENT, 200, 400),
    ("POST", "/v2/payment", _PUBLISHED_PAYMENT, 400, 200),
    ("PUT", "/v4/account", {"accountName": "Ada", "currency": "USD"}, 200, 400),
    ("PUT", "/v4/account", {"accountName": "Ada", "currency": "KES"}, 400, 200),
    ("PUT", "/v4/account", {"accountName": "Ada", "currency": "NGN"}, 200, 200),
    ("POST", "/v2/auth/api-key", {}, 400, 200),
    ("POST", "/v2/auth/api-key", {"otpType": "totp"}, 400, 200),
    ("POST", "/v2/balance/withdraw", _WITHDRAWAL, 400, 200),
    ("POST", "/v2/balance/withdraw", {**_WITHDRAWAL, "otpType": "totp"}, 400, 200),
    ("POST", "/v2/balance/withdraw", {**_WITHDRAWAL, "otpType": "totp", "token": "x"}, 400, 400),
    (
        *("POST", "/v2/balance/transfer"),
        *({"receiverUsername": "kelechi", "currency": "NGN", "amount": "5"}, 400, 200),
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "specification", "published"), REQUESTS)
def test_each_profile_accepts_its_own_requests_and_refuses_the_other(
    processes: Mapping[ProfileName, SandboxProcess],
    method: str,
    path: str,
    body: object,
    specification: int,
    published: int,
) -> None:
    expected = {"specification": specification, "published": published}
    assert {name: status(each, method, path, body) for name, each in processes.items()} == expected


def test_an_unknown_user_of_a_payment_is_named_as_in_the_profile(
    processes: Mapping[ProfileName, SandboxProcess],
) -> None:
    requested: dict[ProfileName, dict[str, object]] = {
        "specification": {**PAYMENT, "serviceUsername": "nobody"},
        "published": {**_PUBLISHED_PAYMENT, "coinprofileUsername": "nobody"},
    }
    messages = {
        name: requests.post(
            f"{each.address}/v2/payment", json=requested[name], headers=each.headers, timeout=30
        ).json()["message"]
        for name, each in processes.items()
    }
    assert messages == {
        "specification": "serviceUsername is not a user of the provider",
        "published": "coinprofileUsername is not a user of the provider",
    }


@pytest.mark.parametrize(
    "path",
    [
        "bank/supported",
        "currency/rate",
        "currency/supported",
        "currency/minimum-allowed",
        "wallet/supported/config",
    ],
)
def test_the_published_lists_need_no_credentials(
    processes: Mapping[ProfileName, SandboxProcess], path: str
) -> None:
    assert {name: status(each, "GET", f"/v2/{path}", bare=True) for name, each in processes.items()} == {
        "specification": 401,
        "published": 200,
    }
    assert status(processes["published"], "GET", f"/v2/{path}") == 200
    assert status(processes["published"], "GET", "/v2/balance", bare=True) == 401


BANK = {
    "account_number": "0123456789",
    "account_name": "Kelechi Eze",
    "bank": "Access Bank",
    "bank_code": "044",
}
OTP = SecretStr("000000")
ADDRESS = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
#: Every call that is sent once.
WRITES: Mapping[str, Callable[[PaymentsGateway], object]] = {
    "balances.convert": lambda client: client.balances.convert(
        Conversion(from_currency="NGN", to_currency="USD", amount="200000")
    ),
    "balances.withdraw": lambda client: client.balances.withdraw(
        Withdrawal(**BANK, currency="NGN", amount="1500.25"), otp=OTP
    ),
    "balances.transfer": lambda client: client.balances.transfer(
        Transfer(receiver_username="kelechi", currency="NGN", amount="5"), otp=OTP
    ),
    "wallets.transfer": lambda client: client.wallets.transfer(
        WalletTransfer(network="TRC20", currency="USDT", address=ADDRESS, amount="25.5")
    ),
    "payments.create": lambda client: client.payments.create(
        PaymentRequest(
            business_id="b5f1c2d94a7e4f0ba1c83d56",
            incoming_currency="USDT",
            outgoing_currency="NGN",
            customer_email="ada@example.com",
            incoming_amount="25",
            payment_type="profile",
            service_username="kelechi",
        )
    ),
    "api_keys.create": lambda client: client.api_keys.create(otp=OTP),
    "callbacks.set_url": lambda client: client.callbacks.set_url("http://127.0.0.1:9/hook"),
    "accounts.create": lambda client: client.accounts.create(
        AccountRequest(account_name="Ada", currency="NGN")
    ),
    "api_keys.generate": lambda client: client.api_keys.generate(KeyRequest(name="till", scope="G"), otp=OTP),
    "api_keys.invalidate": lambda client: client.api_keys.invalidate(SecretStr("sandbox-nobody")),
    "api_keys.delete": lambda client: client.api_keys.delete("00000000"),
}
FAULTS: Mapping[str, dict[str, object]] = {
    "refused before": {"kind": "status", "status": 503, "when": "before_execution"},
    "lost before": {"kind": "drop", "when": "after_read"},
    "lost after": {"kind": "drop", "when": "after_execution"},
    "garbage after": {"kind": "garbage", "form": "html", "when": "after_execution"},
}


def test_every_call_that_is_sent_once_is_here() -> None:
    assert set(WRITES) == {each.name for each in OPERATIONS if each.effect is not CallEffect.READS}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", WRITES)
def test_whatever_becomes_of_a_write_it_is_exactly_one_request(
    processes: Mapping[ProfileName, SandboxProcess], name: str, profile: ProfileName
) -> None:
    provider = processes[profile]
    config = GatewayConfig(
        base_url=provider.url,
        base_url_v4=f"{provider.address}/v4",
        api_key=SecretStr(provider.api_key),
        api_user=provider.api_user,
        profile=PROFILES[profile],
    )
    with PaymentsGateway(config) as client:
        for fault in FAULTS.values():
            number = provider.fault(
                name,
                str(fault["kind"]),
                **{key: each for key, each in fault.items() if key != "kind"},
                times=100,
            )
            with pytest.raises(OutcomeUnknownError):
                WRITES[name](client)
            assert provider.hits(number) == 1, fault
            provider.clear_faults()
