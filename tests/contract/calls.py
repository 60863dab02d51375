"""Every method of the client with random valid input, by its operationId."""

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st
from pydantic import SecretStr

from payments_gateway import BANKS, PaymentsGateway
from payments_gateway.profile.model import PROFILES, ProfileName
from payments_gateway.resources.accounts import AccountRequest
from payments_gateway.resources.api_keys import KeyRequest
from payments_gateway.resources.balances import Conversion, Transfer, Withdrawal
from payments_gateway.resources.payments import PaymentRequest
from payments_gateway.resources.wallets import WalletTransfer

T = TypeVar("T")
Call = Callable[[PaymentsGateway], object]


def text(longest: int) -> st.SearchStrategy[str]:
    """Printable text as people write it, in any script."""
    characters = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
    return st.text(characters, min_size=1, max_size=longest)


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def amounts(places: int) -> st.SearchStrategy[str]:
    return st.decimals("0.01", "999999999999", places=places).map(str)


def made(kind: Callable[..., T], **members: st.SearchStrategy[Any]) -> st.SearchStrategy[T]:
    """Requests of a kind, with a value drawn for each member."""
    return st.fixed_dictionaries(members).map(lambda drawn: kind(**drawn))


fiat = st.sampled_from(["NGN", "USD"])
crypto = st.sampled_from(["USDT", "USDC", "BTC"])
tokens = text(16).map(SecretStr)
otp_types = optional(st.sampled_from(["otp", "totp"]))
account_numbers = st.from_regex("[0-9]{10}", fullmatch=True)
bank_codes = st.sampled_from(sorted(BANKS))
emails = st.from_regex(
    r"[a-z0-9]{1,20}([.+_-][a-z0-9]{1,10})?@[a-z0-9]{1,20}\.(com|ng|co\.uk)", fullmatch=True
)
identities = st.from_regex("[0-9a-f]{24}", fullmatch=True)
filters = {
    "currency": optional(fiat),
    "type": optional(st.sampled_from(["deposit", "sent", "internalTransfer"])),
    "duration": optional(st.sampled_from(["one day", "one week", "one month", "one year"])),
    "page": st.integers(1, 10**9 - 1),
    "per_page": st.integers(1, 500),
}


@st.composite
def payments(draw: st.DrawFn) -> PaymentRequest:
    """A payment of either type, with the members that its type demands and perhaps those of the other."""
    bank = {
        "country": text(60),
        "account_number": account_numbers,
        "account_name": text(120),
        "bank": text(120),
        "bank_code": bank_codes,
    }
    profile = {"service_username": text(60)}
    payment_type, demanded = draw(st.sampled_from([("bank", bank), ("profile", profile)]))
    both = {"incoming_amount": amounts(6), "outgoing_amount": amounts(2)}
    given_amounts = draw(st.sampled_from([["incoming_amount"], ["outgoing_amount"], list(both)]))
    return PaymentRequest(
        business_id=draw(text(120)),
        incoming_currency="USDT",
        outgoing_currency=draw(fiat),
        customer_email=draw(emails),
        payment_type=payment_type,
        reference=draw(optional(text(80))),
        rate_key=draw(optional(text(80))),
        **{name: draw(both[name]) for name in given_amounts},
        **{name: draw(strategy) for name, strategy in demanded.items()},
    )


withdrawals = made(
    Withdrawal,
    account_number=account_numbers,
    account_name=text(120),
    bank=text(120),
    bank_code=bank_codes,
    currency=fiat,
    amount=amounts(2),
    otp_type=otp_types,
)
transfers = made(
    Transfer,
    receiver_username=text(60),
    currency=fiat,
    amount=amounts(2),
    memo=st.just("") | text(28),
    otp_type=otp_types,
)
conversions = st.permutations(["NGN", "USD"]).flatmap(
    lambda pair: made(
        Conversion, from_currency=st.just(pair[0]), to_currency=st.just(pair[1]), amount=amounts(2)
    )
)
wallet_transfers = made(
    WalletTransfer,
    network=text(16),
    currency=crypto,
    address=text(128),
    amount=amounts(6),
    wallet_type=optional(text(40)),
    memo=st.just("") | text(120),
)
key_requests = made(
    KeyRequest,
    name=text(120),
    scope=st.sampled_from("MGWN"),
    replaces=optional(text(128).map(SecretStr)),
    expires_in_days=optional(st.integers(1, 3650)),
)
account_requests = made(
    AccountRequest, account_name=text(120), currency=fiat, preferred_account_name=optional(text(120))
)

CALLS: dict[str, st.SearchStrategy[Call]] = {
    "balances.list": optional(st.sampled_from(["NGN", "USD", "USDT"])).map(
        lambda currency: lambda client: client.balances.list(currency)
    ),
    "balances.convert": conversions.map(lambda request: lambda client: client.balances.convert(request)),
    "balances.withdraw": st.tuples(withdrawals, tokens).map(
        lambda pair: lambda client: client.balances.withdraw(pair[0], otp=pair[1])
    ),
    "balances.transfer": st.tuples(transfers, tokens).map(
        lambda pair: lambda client: client.balances.transfer(pair[0], otp=pair[1])
    ),
    "wallets.get": st.fixed_dictionaries(
        {"currency": optional(text(120)), "network": optional(text(16))}
    ).map(lambda query: lambda client: client.wallets.get(**query)),
    "wallets.transfer": wallet_transfers.map(lambda request: lambda client: client.wallets.transfer(request)),
    "payments.create": payments().map(lambda request: lambda client: client.payments.create(request)),
    "transactions.page": st.fixed_dictionaries(filters).map(
        lambda query: lambda client: client.transactions.page(**query)
    ),
    "transactions.summary": st.fixed_dictionaries(filters).map(
        lambda query: lambda client: client.transactions.summary(**query)
    ),
    "banks.resolve": st.tuples(account_numbers, bank_codes).map(
        lambda pair: lambda client: client.banks.resolve(account_number=pair[0], bank_code=pair[1])
    ),
    "api_keys.create": st.tuples(tokens, otp_types).map(
        lambda pair: lambda client: client.api_keys.create(otp=pair[0], otp_type=pair[1])
    ),
    "api_keys.generate": st.tuples(key_requests, tokens).map(
        lambda pair: lambda client: client.api_keys.generate(pair[0], otp=pair[1])
    ),
    "api_keys.list": st.just(lambda client: client.api_keys.list()),
    "api_keys.scopes": st.just(lambda client: client.api_keys.scopes()),
    "api_keys.invalidate": text(128).map(
        lambda key: lambda client: client.api_keys.invalidate(SecretStr(key))
    ),
    "api_keys.delete": st.from_regex("[0-9a-f]{8}", fullmatch=True).map(
        lambda short_hash: lambda client: client.api_keys.delete(short_hash)
    ),
    "callbacks.set_url": st.sampled_from(["https://example.com/hook", "http://localhost:9/?merchant=1"]).map(
        lambda url: lambda client: client.callbacks.set_url(url)
    ),
    "callbacks.url": st.just(lambda client: client.callbacks.url()),
    "accounts.create": account_requests.map(lambda request: lambda client: client.accounts.create(request)),
    "accounts.list": st.fixed_dictionaries(
        {
            "account_name": optional(text(120)),
            "page": optional(st.integers(1, 10**9 - 1)),
            "per_page": optional(st.integers(1, 100)),
        }
    ).map(lambda query: lambda client: client.accounts.list(**query)),
    "extras.banks": optional(text(60)).map(
        lambda country: lambda client: client.extras.banks(country=country)
    ),
    "extras.rates": st.just(lambda client: client.extras.rates()),
    "extras.currencies": st.just(lambda client: client.extras.currencies()),
    "extras.minimums": st.just(lambda client: client.extras.minimums()),
    "extras.wallet_config": st.just(lambda client: client.extras.wallet_config()),
    "extras.transaction": identities.map(lambda each: lambda client: client.extras.transaction(each)),
    "extras.payment": identities.map(lambda each: lambda client: client.extras.payment(each)),
}


def calls(profile: ProfileName) -> dict[str, st.SearchStrategy[Call]]:
    """The same with what a profile alone allows."""
    currencies = st.sampled_from(PROFILES[profile].account_currencies)
    requests = made(
        AccountRequest,
        account_name=text(120),
        currency=currencies,
        preferred_account_name=optional(text(120)),
    )
    opening = requests.map(lambda request: lambda client: client.accounts.create(request))
    return {**CALLS, "accounts.create": opening}
