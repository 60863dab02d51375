"""Telling the merchant's callback URL what has changed in the books, in the transaction that changed it."""

from payments_gateway.sandbox.books.records import payment_record, transaction_record
from payments_gateway.sandbox.models import Payment, Transaction
from payments_gateway.sandbox.webhooks.outbox import announce


def transaction_changed(record: Transaction, **more: str) -> None:
    """A record was entered or its status changed; `more` are the optional members, such as `failureReason`."""
    announce("Transaction updated", {**transaction_record(record), **more})


def payment_created(payment: Payment) -> None:
    """A payment was accepted."""
    announce("Payment created", payment_record(payment))


def payment_changed(payment: Payment) -> None:
    """The state or the amounts of a payment changed."""
    announce("Payment updated", payment_record(payment))
