"""Balances: what the merchant has, and moving it."""

from collections.abc import Iterator
from functools import partial

from pydantic import SecretStr

from payments_gateway._answers import Reply, first_text
from payments_gateway._transport import Transport
from payments_gateway.dialect import Dialect
from payments_gateway.errors import NotSentError
from payments_gateway.money import UnreadableError
from payments_gateway.schemas import Balance, Withdrawal, WithdrawalReceipt


class Balances:
    """The operations under /balance."""

    def __init__(self, transport: Transport, dialect: Dialect) -> None:
        self._transport = transport
        self._dialect = dialect

    def list(self, currency: str | None = None) -> list[Balance]:
        """Return the balance of each currency, or of one (GET /balance).

        Empty when the service keeps no balance in the currency asked for.
        """
        query = {self._dialect.balance_currency_query: currency}
        balances = self._transport.read(
            "GET", "/balance", query=query, into=partial(_balances, self._dialect)
        )
        return [balance for balance in balances if currency in {None, balance.currency}]

    def withdraw(self, request: Withdrawal, *, token: SecretStr | None) -> WithdrawalReceipt:
        """Send fiat from the merchant's balance to a bank account (POST /balance/withdraw).

        Not repeatable: the service knows no idempotency key. Raises RejectedError when the service
        refused, NotSentError when nothing left this machine, OutcomeUnknownError otherwise.
        """
        if token is None and self._dialect.token_required:
            raise NotSentError("The service asks for a one-time token, and none was given. Nothing was sent.")
        body = request.wire(token, self._dialect)
        return self._transport.send_once(
            "POST", "/balance/withdraw", body, into=partial(_receipt, self._dialect)
        )


def _receipt(dialect: Dialect, reply: Reply) -> WithdrawalReceipt:
    return WithdrawalReceipt(
        transaction_id=first_text(reply.data, dialect.withdrawal_id_paths),
        status=dialect.status(first_text(reply.data, dialect.withdrawal_status_paths)),
        raw=reply.data,
    )


def _balances(dialect: Dialect, reply: Reply) -> list[Balance]:
    name = next((name for name in dialect.balances_members if name in reply.data), None)
    if name is None:
        raise UnreadableError("it holds no balances")
    return [Balance.model_validate(entry) for entry in _entries(reply.data[name], dialect)]


def _entries(found: object, dialect: Dialect) -> Iterator[dict[str, object]]:
    """Yield the balances out of a list, a map by currency, or a single one."""
    names = dialect.balance_currency_members
    match found:
        case [*entries]:
            for entry in entries:
                yield from _entries(entry, dialect)
        case dict() if any(name in found for name in names):
            yield {"toCurrency": next(found[name] for name in names if name in found), **found}
        case dict() if all(isinstance(entry, dict) for entry in found.values()):
            for code, entry in found.items():
                yield {"toCurrency": code, **entry}
        case _:
            raise UnreadableError("its balances have an unknown shape")
