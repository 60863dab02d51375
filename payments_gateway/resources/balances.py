"""Balances: list, withdraw, transfer, convert (specification: Balance entry, Transfer detail)."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, model_validator

from payments_gateway.errors import InputError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import (
    Amount,
    Count,
    CurrencyCode,
    FormattedAmount,
    LenientAmount,
    LenientText,
    OptionalId,
    ReceiptModel,
    RequestModel,
    RequiredText,
    Storable,
    WireModel,
)
from payments_gateway.money import UnreadableError, check_amount, format_plain
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import OtpType
from payments_gateway.responses import (
    CONTRADICTION,
    ENTRY_NOT_AN_OBJECT,
    ParsedResponse,
    first_text,
    member_named,
    no_entries,
    rename_members,
    transfer_detail,
)
from payments_gateway.transport import Resource, require_otp

FiatCurrency = Literal["NGN", "USD"]
MEMO_MAX = 28


class Balance(WireModel):
    """The merchant's balance in one currency. A total, the count and the formatted amount are None if not reported."""

    currency: Annotated[CurrencyCode, Field(alias="toCurrency")]
    amount: Amount
    total_received: Annotated[Amount | None, Field(alias="totalRecieved")] = None
    total_sent: Annotated[Amount | None, Field(alias="totalSent")] = None
    transaction_count: Annotated[Count | None, Field(alias="txnCount")] = None
    formatted_amount: Annotated[FormattedAmount | None, Field(alias="formattedAmount")] = None


class Withdrawal(RequestModel):
    """A withdrawal of fiat from the merchant's balance to a bank account."""

    account_number: Annotated[RequiredText, Field(alias="accountNumber")]
    account_name: Annotated[RequiredText, Field(alias="accountName")]
    bank: RequiredText
    bank_code: Annotated[RequiredText, Field(alias="bankCode")]
    currency: FiatCurrency
    amount: Amount
    otp_type: Annotated[OtpType | None, Field(alias="otpType")] = None

    @model_validator(mode="after")
    def _amount_can_be_moved(self) -> Self:
        check_amount(self.amount, self.currency)
        return self

    def wire(self, otp: SecretStr | None, profile: ProviderProfile) -> dict[str, object]:
        """Return the body of POST /balance/withdraw: the amount as text, the one-time code still a secret.

        The OTP type defaults to that of the profile.
        """
        body: dict[str, object] = self.model_dump(by_alias=True, exclude={"otp_type", "amount"})
        body |= {
            "amount": format_plain(self.amount),
            profile.otp_type_member: self.otp_type or profile.otp_type,
        }
        return body if otp is None else body | {"token": otp}


class Conversion(RequestModel):
    """A conversion between NGN and USD. `amount` is the amount sold, in `from_currency`."""

    from_currency: Annotated[FiatCurrency, Field(alias="fromCurrency")]
    to_currency: Annotated[FiatCurrency, Field(alias="toCurrency")]
    amount: Amount

    @model_validator(mode="after")
    def _can_be_meant(self) -> Self:
        check_amount(self.amount, self.from_currency)
        if self.from_currency == self.to_currency:
            raise InputError(_("A conversion needs two different currencies."))
        return self

    def wire(self) -> dict[str, object]:
        """Return the body of POST /balance/convert: the amount as text."""
        body: dict[str, object] = self.model_dump(by_alias=True)
        return body | {"amount": format_plain(self.amount)}


class Transfer(RequestModel):
    """A transfer of fiat to another user of the provider. The memo has at most 28 characters."""

    receiver_username: Annotated[RequiredText, Field(alias="receiverUsername")]
    currency: FiatCurrency
    amount: Amount
    memo: Annotated[str, StringConstraints(max_length=MEMO_MAX), Storable] = ""
    otp_type: Annotated[OtpType | None, Field(alias="otpType")] = None

    @model_validator(mode="after")
    def _amount_can_be_moved(self) -> Self:
        check_amount(self.amount, self.currency)
        return self

    def wire(self, otp: SecretStr | None, profile: ProviderProfile) -> dict[str, object]:
        """Return the body of POST /balance/transfer: the amount as text, the one-time code still a secret.

        An empty memo is omitted; the OTP type defaults to that of the profile.
        """
        body: dict[str, object] = {
            "receiverUsername": self.receiver_username,
            profile.transfer_currency_member: self.currency,
            "amount": format_plain(self.amount),
            profile.otp_type_member: self.otp_type or profile.otp_type,
        }
        optional = {"memo": self.memo or None, "token": otp}
        return body | {name: value for name, value in optional.items() if value is not None}


class WithdrawalReceipt(WireModel):
    """The success response to a withdrawal. `raw` is its `data`, `provider_message` its message in one line.

    It often names no transaction (None) and no status (empty).
    """

    transaction_id: OptionalId
    status: str
    raw: dict[str, Any]
    provider_message: str = ""


class TransferDetail(ReceiptModel):
    """The success response to a conversion or to a transfer between users.

    `status` is fulfilled, processing, failed, or the provider's own word; `date` is the provider's text, not
    parsed.
    """

    transaction_id: Annotated[OptionalId, Field(alias="transactionId")] = None
    status: LenientText = ""
    date: LenientText = ""
    sender: LenientText = ""
    username: LenientText = ""
    from_currency: Annotated[LenientText, Field(alias="fromCurrency")] = ""
    to_currency: Annotated[LenientText, Field(alias="toCurrency")] = ""
    amount: LenientAmount = None
    receive_amount: Annotated[LenientAmount, Field(alias="receiveAmount")] = None
    sender_previous_balance: Annotated[LenientAmount, Field(alias="senderPrevbalance")] = None


class Balances(Resource):
    """The operations under /balance."""

    def list(self, currency: str | None = None) -> list[Balance]:
        """Return the balance of each currency, or of one: NGN, USD or USDT (GET /balance).

        Empty when the merchant has no balance in that currency. Changes nothing and is retried. Raises
        RejectedError, ReadFailedError. Specification: Endpoints, GET /balance; Balance entry.
        """
        query = {self._profile.balance_currency_query: currency}
        balances = self._transport.read(
            "GET", "/balance", query=query, into=partial(_parse_balances, self._profile)
        )
        return [balance for balance in balances if currency in {None, balance.currency}]

    def convert(self, request: Conversion) -> TransferDetail:
        """Convert the merchant's balance from one fiat currency into the other (POST /balance/convert).

        The amount is in `from_currency`, positive, with at most two decimals, and sent as text. The result
        includes the amount received, if the provider reports it. Takes no one-time code.

        Not repeatable: the API has no idempotency key. Raises RejectedError when the provider rejected the
        request, NotSentError when nothing was sent, OutcomeUnknownError otherwise. Specification: Endpoints,
        POST /balance/convert; Transfer detail.
        """
        into = partial(_parse_transfer_detail, self._profile)
        return self._transport.send_once("POST", "/balance/convert", request.wire(), into=into)

    def withdraw(self, request: Withdrawal, *, otp: SecretStr | None) -> WithdrawalReceipt:
        """Send fiat from the merchant's balance to a bank account (POST /balance/withdraw).

        The amount is sent as text. `otp` is the one-time code; it may be None only if the profile makes it
        optional. The response often names no transaction: the specification does not show its members.

        Not repeatable: the API has no idempotency key. Raises RejectedError when the provider rejected the
        request, NotSentError when nothing was sent, OutcomeUnknownError otherwise. Specification: Endpoints,
        POST /balance/withdraw; Authentication, 7.
        """
        require_otp(otp, self._profile)
        body = request.wire(otp, self._profile)
        into = partial(_parse_receipt, self._profile)
        return self._transport.send_once("POST", "/balance/withdraw", body, into=into)

    def transfer(self, request: Transfer, *, otp: SecretStr | None) -> TransferDetail:
        """Send fiat from the merchant's balance to another user of the provider (POST /balance/transfer).

        NGN or USD; the amount is sent as text; the memo has at most 28 characters. `otp` is the one-time
        code; it may be None only if the profile makes it optional.

        Not repeatable: the API has no idempotency key. Raises RejectedError when the provider rejected the
        request, NotSentError when nothing was sent, OutcomeUnknownError otherwise. Specification: Endpoints,
        POST /balance/transfer; Transfer detail; Limits; Authentication, 7.
        """
        require_otp(otp, self._profile)
        body = request.wire(otp, self._profile)
        into = partial(_parse_transfer_detail, self._profile)
        return self._transport.send_once("POST", "/balance/transfer", body, into=into)


def _parse_receipt(profile: ProviderProfile, response: ParsedResponse) -> WithdrawalReceipt:
    return WithdrawalReceipt(
        transaction_id=first_text(response.data, profile.withdrawal_id_paths),
        status=profile.status(first_text(response.data, profile.withdrawal_status_paths)),
        raw=response.data,
        provider_message=response.message,
    )


def _parse_transfer_detail(profile: ProviderProfile, response: ParsedResponse) -> TransferDetail:
    received = {"raw": response.data, "provider_message": response.message}
    detail = TransferDetail.model_validate(transfer_detail(response) | received)
    return detail.model_copy(update={"status": profile.status(detail.status)})


def _parse_balances(profile: ProviderProfile, response: ParsedResponse) -> list[Balance]:
    name = member_named(response.data, profile.balances_members)
    found = response.data[name]
    balances = [Balance.model_validate(entry) for entry in _balance_entries(name, found, profile)]
    if len({balance.currency for balance in balances}) < len(balances):
        raise UnreadableError(_("{member} has two balances in one currency"), member=name)
    return balances


def _balance_entries(name: str, found: object, profile: ProviderProfile) -> Iterator[dict[str, object]]:
    """Yield the balances from a list, a single object, or a map by currency."""
    match found:
        case list():
            for entry in found:
                yield _balance_entry(name, entry, profile)
        case dict() if any(member in found for member in (*profile.balance_currency_members, "amount")):
            yield _balance_entry(name, found, profile)
        case dict() if found and all(isinstance(entry, dict) for entry in found.values()):
            for code, entry in found.items():
                balance = {"toCurrency": code} | _balance_entry(name, entry, profile)
                if balance["toCurrency"] != code:
                    raise UnreadableError(CONTRADICTION, members=f"{code}, toCurrency")
                yield balance
        case _:
            raise no_entries(name, found)


def _balance_entry(name: str, entry: object, profile: ProviderProfile) -> dict[str, object]:
    if not isinstance(entry, dict):
        raise UnreadableError(ENTRY_NOT_AN_OBJECT, member=name)
    return rename_members(entry, {"toCurrency": profile.balance_currency_members})
