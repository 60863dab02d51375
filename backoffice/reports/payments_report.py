"""Payments: what was created here, and what the service told of each last."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.core.period import PeriodForm
from backoffice.operations.models import Operation
from backoffice.operations.payments import MadePayment, made_payment, payments_made
from backoffice.operations.selectors import NEWEST_FIRST
from backoffice.reports.report import Column, Report, chosen_period, in_batches, within


def made(user: User, form: PeriodForm) -> QuerySet[Operation]:
    """The payments prepared within the chosen days."""
    return payments_made(user).filter(**within("prepared_at", form))


def rows(user: User, form: PeriodForm) -> Iterator[MadePayment]:
    """The same, newest first. The service is not asked."""
    payments = map(made_payment, in_batches(made(user, form), order=NEWEST_FIRST))
    return (payment for payment in payments if payment is not None)


def _told(name: str) -> Callable[[MadePayment], str]:
    return lambda payment: payment.told.get(name, "")


PAYMENTS = Report(
    name="payments",
    title="Payments",
    about="Off-ramp payments created here, with state and amounts as the service last told them.",
    permissions=("operations.view_operation",),
    form=PeriodForm,
    columns=(
        Column("reference", "The operation that created it", attrgetter("operation.reference")),
        Column("prepared_at", "When that was prepared", attrgetter("operation.prepared_at")),
        Column("customer_email", "Who pays in", lambda payment: payment.operation.payload["customer_email"]),
        Column("paid_to", "Who is paid", attrgetter("operation.counterparty")),
        Column("paid_to_detail", "And where", attrgetter("operation.counterparty_detail")),
        Column("payment_id", "The service's id", _told("id")),
        Column("payment_reference", "The service's reference", _told("reference")),
        Column("state", "Where it stands, as told last", _told("state")),
        Column("address", "Where the customer pays in", _told("address")),
        Column("incoming_currency", "What the customer pays in", _told("incoming_currency")),
        Column("incoming_amount", "How much of it", _told("incoming_amount")),
        Column("confirmed_amount", "Arrived for certain", _told("confirmed_amount")),
        Column("unconfirmed_amount", "Seen, and not yet certain", _told("unconfirmed_amount")),
        Column("outgoing_currency", "What is paid out", _told("outgoing_currency")),
        Column("outgoing_amount", "How much of it", _told("outgoing_amount")),
        Column("rate", "At which it is converted", _told("rate")),
        Column("expires_at", "Until when the address is watched", attrgetter("expires_at")),
        Column("as_of", "When the service said all this", attrgetter("at")),
    ),
    rows=rows,
    counted=made,
    period=chosen_period,
)
