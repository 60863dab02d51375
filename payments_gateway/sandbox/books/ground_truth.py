"""What the provider executed since the seed: the reference against which tests and the console compare.

Names are those of the API; amounts are text with all decimals of the currency.
"""

from django.db.models import F, QuerySet, Sum

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.amounts import amount_text
from payments_gateway.sandbox.books.movements import CONVERSION, SENT, TRANSFER, WITHDRAWAL
from payments_gateway.sandbox.books.settlement import OrderRow, order_of
from payments_gateway.sandbox.models import (
    Payment,
    SandboxState,
    Transaction,
    Transfer,
    WalletTransfer,
    Withdrawal,
)

_KINDS = {WITHDRAWAL: "withdrawal", TRANSFER: "transfer", SENT: "wallet_transfer", CONVERSION: "conversion"}


def debits() -> list[dict[str, str]]:
    """Every debit of the merchant since the seed, oldest first.

    Each has `kind` (as in `payments_gateway.operations`), `transactionId`, `currency`, `amount`, `fee`, the
    destination (a withdrawal: accountNumber, accountName, bank, bankCode; a transfer: receiverUsername, memo;
    a wallet transfer: network, address, walletType, memo; a conversion: nothing), `status` and `receivedAt`.
    """
    return [_debit(record) for record in _debit_records().order_by("id")]


def debit_totals() -> dict[str, str]:
    """The sum of these debits by currency, including fees."""
    totals = _debit_records().order_by().values("currency").annotate(total=Sum(F("amount") + F("fee")))
    return {row["currency"]: amount_text(row["total"], row["currency"]) for row in totals}


def payments() -> list[dict[str, str]]:
    """Every payment, oldest first: its id, reference, state, amounts and payout destination."""
    return [_payment(payment) for payment in Payment.objects.order_by("id")]


def _debit_records() -> QuerySet[Transaction]:
    last_seeded_id = SandboxState.objects.get().last_seeded_id
    return Transaction.objects.filter(id__gt=last_seeded_id, incoming=False).select_related(
        "withdrawal", "transfer", "wallet_transfer"
    )


def _debit(record: Transaction) -> dict[str, str]:
    return {
        "kind": _KINDS[record.type],
        "transactionId": record.transaction_id,
        "currency": record.currency,
        "amount": amount_text(record.amount, record.currency),
        "fee": amount_text(record.fee, record.currency),
        **_destination(order_of(record)),
        "status": record.status,
        "receivedAt": clock.iso_timestamp(record.created_at),
    }


def _destination(order: OrderRow | None) -> dict[str, str]:
    match order:
        case Withdrawal():
            return {
                "accountNumber": order.account_number,
                "accountName": order.account_name,
                "bank": order.bank,
                "bankCode": order.bank_code,
            }
        case Transfer():
            return {"receiverUsername": order.receiver, "memo": order.memo}
        case WalletTransfer():
            return {
                "network": order.network,
                "address": order.address,
                "walletType": order.wallet_type,
                "memo": order.memo,
            }
        case None:
            return {}


def _payment(payment: Payment) -> dict[str, str]:
    return {
        "_id": payment.payment_id,
        "reference": payment.reference,
        "state": payment.state,
        "incomingCurrency": payment.incoming_currency,
        "incomingAmount": amount_text(payment.incoming_amount, payment.incoming_currency),
        "confirmedAmount": amount_text(payment.confirmed_amount, payment.incoming_currency),
        "unconfirmedAmount": amount_text(payment.unconfirmed_amount, payment.incoming_currency),
        "outgoingCurrency": payment.outgoing_currency,
        "outgoingAmount": amount_text(payment.outgoing_amount, payment.outgoing_currency),
        "address": payment.address,
        "account": payment.destination,
        "expTime": clock.iso_timestamp(payment.expires_at),
        "receivedAt": clock.iso_timestamp(payment.created_at),
    }
