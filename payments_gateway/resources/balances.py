"""Balances: list, withdraw, transfer, convert."""

from collections.abc import Iterator
from functools import partial

from pydantic import SecretStr

from payments_gateway.money import UnreadableError
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.responses import ParsedResponse, first_text, transfer_detail
from payments_gateway.schemas.balances import (
    Balance,
    Conversion,
    Transfer,
    TransferDetail,
    Withdrawal,
    WithdrawalReceipt,
)
from payments_gateway.transport import Resource, require_otp


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
    )


def _parse_transfer_detail(profile: ProviderProfile, response: ParsedResponse) -> TransferDetail:
    found = transfer_detail(response)
    detail = TransferDetail.model_validate(found | {"raw": response.data})
    return detail.model_copy(update={"status": profile.status(detail.status)})


def _parse_balances(profile: ProviderProfile, response: ParsedResponse) -> list[Balance]:
    name = next((name for name in profile.balances_members if name in response.data), None)
    if name is None:
        raise UnreadableError("it holds no balances")
    return [Balance.model_validate(entry) for entry in _balance_entries(response.data[name], profile)]


def _balance_entries(found: object, profile: ProviderProfile) -> Iterator[dict[str, object]]:
    """Yield the balances from a list, a map by currency, or a single object."""
    names = profile.balance_currency_members
    match found:
        case [*entries]:
            for entry in entries:
                yield from _balance_entries(entry, profile)
        case dict() if any(name in found for name in names):
            yield {"toCurrency": next(found[name] for name in names if name in found), **found}
        case dict() if all(isinstance(entry, dict) for entry in found.values()):
            for code, entry in found.items():
                yield {"toCurrency": code, **entry}
        case _:
            raise UnreadableError("its balances have an unknown shape")
