"""Payments: what was created here, and what the service told of each last."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from backoffice.accounts.models import User
from backoffice.core.period import PeriodForm, end_of, start_of
from backoffice.operations.payments import MadePayment, made_payment, payments_made
from backoffice.operations.selectors import NEWEST_FIRST
from backoffice.reports.report import Column, Report, chosen_period, in_batches


def rows(user: User, form: PeriodForm) -> Iterator[MadePayment]:
    """The payments prepared within the chosen days, newest first. The service is not asked."""
    since, until = form.cleaned_data["since"], form.cleaned_data["until"]
    within = {
        **({"prepared_at__gte": start_of(since)} if since else {}),
        **({"prepared_at__lt": end_of(until)} if until else {}),
    }
    made = map(made_payment, in_batches(payments_made(user).filter(**within), order=NEWEST_FIRST))
    return (payment for payment in made if payment is not None)


def _told(name: str) -> Callable[[MadePayment], str]:
    return lambda payment: payment.told.get(name, "")


PAYMENTS: Report[MadePayment, PeriodForm] = Report(
    name="payments",
    title="Payments",
    about="Off-ramp payments created here, with state and amounts as the service last told them.",
    permission="operations.view_operation",
    form=PeriodForm,
    columns=(
        Column("reference", attrgetter("operation.reference")),
        Column("prepared_at", attrgetter("operation.prepared_at")),
        Column("customer_email", lambda payment: payment.operation.payload["customer_email"]),
        Column("paid_to", attrgetter("operation.counterparty")),
        Column("paid_to_detail", attrgetter("operation.counterparty_detail")),
        Column("payment_id", _told("id")),
        Column("payment_reference", _told("reference")),
        Column("state", _told("state")),
        Column("address", _told("address")),
        Column("incoming_currency", _told("incoming_currency")),
        Column("incoming_amount", _told("incoming_amount")),
        Column("confirmed_amount", _told("confirmed_amount")),
        Column("unconfirmed_amount", _told("unconfirmed_amount")),
        Column("outgoing_currency", _told("outgoing_currency")),
        Column("outgoing_amount", _told("outgoing_amount")),
        Column("rate", _told("rate")),
        Column("expires_at", attrgetter("expires_at")),
        Column("as_of", attrgetter("at")),
    ),
    rows=rows,
    period=chosen_period,
)
