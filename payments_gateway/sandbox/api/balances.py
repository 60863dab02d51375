"""GET /balance, POST /balance/withdraw, /balance/transfer and /balance/convert."""

from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Literal

from django.http import HttpRequest, HttpResponse

from payments_gateway.money import CURRENCIES
from payments_gateway.profile.model import ProfileName
from payments_gateway.sandbox.amounts import amount_number, amount_text, minor_units
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.api.http import (
    OTP_TYPE_IF_ANY,
    AccountNumber,
    AmountText,
    ApiRequest,
    BankCode,
    Memo,
    PrintableText,
    TokenText,
    Username,
    envelope,
    json_response,
    read_body,
    read_query,
)
from payments_gateway.sandbox.books import ledger, orders
from payments_gateway.sandbox.books.records import transfer_detail
from payments_gateway.sandbox.models import Account, Transaction
from payments_gateway.sandbox.otp import one_time_code
from payments_gateway.sandbox.settings import PROFILE_NAME

_Fiat = Literal["NGN", "USD"]


class BalanceQuery(ApiRequest):
    """Query of GET /balance."""

    currency: Literal["NGN", "USD", "USDT"] | None = None


class WithdrawRequest(ApiRequest):
    """Body of POST /balance/withdraw."""

    account_number: AccountNumber
    account_name: PrintableText
    bank: PrintableText
    bank_code: BankCode
    currency: _Fiat
    amount: AmountText
    otp_type: Literal["otp", "totp"] | None = OTP_TYPE_IF_ANY
    token: TokenText | None = None


class TransferRequest(ApiRequest):
    """Body of POST /balance/transfer."""

    receiver_username: Username
    currency: _Fiat
    amount: AmountText
    otp_type: Literal["otp", "totp"] | None = None
    token: TokenText | None = None
    memo: Memo = ""


class ConvertRequest(ApiRequest):
    """Body of POST /balance/convert."""

    from_currency: _Fiat
    to_currency: _Fiat
    amount: AmountText


@api_view("GET")
def balance(request: HttpRequest) -> HttpResponse:
    """GET /balance: the merchant's balance in every currency of the specification, or in one of them."""
    query = read_query(request, BalanceQuery)
    accounts = ledger.merchant_accounts()
    currencies = [query.currency] if query.currency else list(CURRENCIES)
    entries = [balance_entry(accounts[currency]) for currency in currencies]
    return envelope("Balances retrieved", {"balances": _SHAPES[PROFILE_NAME](entries)})


def _published(entries: list[dict[str, object]]) -> object:
    """One balance, or a list; the totals are left out, as the published API may do."""
    shown = [{name: entry[name] for name in ("toCurrency", "amount")} for entry in entries]
    return shown[0] if len(shown) == 1 else shown


_SHAPES: Mapping[ProfileName, Callable[[list[dict[str, object]]], object]] = {
    "specification": list,
    "published": _published,
}


def balance_entry(account: Account) -> dict[str, object]:
    """A balance entry of the specification; `formattedAmount` is the amount truncated to two decimals."""
    amount = amount_number(account.balance, account.currency)
    return {
        "totalRecieved": amount_number(account.received, account.currency),
        "totalSent": amount_number(account.sent, account.currency),
        "txnCount": account.transactions,
        "toCurrency": account.currency,
        "amount": amount,
        "formattedAmount": amount.quantize(Decimal("0.01"), rounding=ROUND_DOWN).normalize(),
    }


@api_view("POST")
def withdraw(request: HttpRequest) -> HttpResponse:
    """POST /balance/withdraw. The specification leaves the members of `data` open; these are invented."""
    body = read_body(request, WithdrawRequest)
    record = orders.withdraw(
        orders.DestinationAccount(body.account_number, body.account_name, body.bank, body.bank_code),
        currency=body.currency,
        amount=minor_units(body.amount, body.currency),
        code=one_time_code(body.otp_type, body.token),
    )
    return json_response({"data": _receipt(record, body)})


def _receipt(record: Transaction, body: WithdrawRequest) -> dict[str, object]:
    return {
        "transactionId": record.transaction_id,
        "status": record.status,
        "currency": record.currency,
        "amount": amount_text(record.amount, record.currency),
        "fee": amount_text(record.fee, record.currency),
        "accountNumber": body.account_number,
        "accountName": body.account_name,
        "bank": body.bank,
        "date": record.created_at.date().isoformat(),
    }


@api_view("POST")
def transfer(request: HttpRequest) -> HttpResponse:
    """POST /balance/transfer: transfer fiat to another user of the provider."""
    body = read_body(request, TransferRequest)
    record = orders.transfer(
        body.receiver_username,
        currency=body.currency,
        amount=minor_units(body.amount, body.currency),
        memo=body.memo,
        code=one_time_code(body.otp_type, body.token),
    )
    return envelope("Transfer accepted", transfer_detail(record))


@api_view("POST")
def convert(request: HttpRequest) -> HttpResponse:
    """POST /balance/convert: convert between fiat currencies at the current rate."""
    body = read_body(request, ConvertRequest)
    amount = minor_units(body.amount, body.from_currency)
    given, received = orders.convert(body.from_currency, body.to_currency, amount=amount)
    return envelope("Converted", {"transferDetail": transfer_detail(given, received)})
