"""Webhook deliveries: what the service, or somebody else, sent to our address, and what it was worth."""

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.reports.report import Column, StoredReport, chosen_period, within
from backoffice.webhooks.forms import DeliveriesForm
from backoffice.webhooks.models import Delivery
from backoffice.webhooks.permissions import VIEW
from backoffice.webhooks.selectors import NEWEST_FIRST, deliveries


def query(_user: User, form: DeliveriesForm) -> QuerySet[Delivery]:
    """The deliveries that first came within the chosen days, of one verdict or event where one is chosen."""
    verdict, event = form.cleaned_data["verdict"], form.cleaned_data["event"]
    found = deliveries().filter(**within("received_at", form))
    if verdict:
        found = found.filter(verdict=verdict)
    return found.filter(event__iexact=event) if event else found


DELIVERIES = StoredReport(
    name="webhook-deliveries",
    title="Webhook deliveries",
    about="What arrived at the address for webhooks, with what its signature says and how often it came.",
    permissions=VIEW,
    form=DeliveriesForm,
    columns=(
        Column("received_at", "When it came first", "received_at"),
        Column("last_at", "When it came last", "last_at"),
        Column("times", "How often it came", "times"),
        Column("verdict", "What its signature says", "verdict"),
        Column("problem", "Why it is not valid", "problem"),
        Column("event", "The kind of event that it names", "event"),
        Column("transaction_id", "The service's transaction that it names", "transaction_id"),
        Column("reference", "The merchant's reference that it names", "reference"),
        Column("looked_at", "When the service was last read because of it", "looked_at"),
        Column("key", "The fingerprint of the key that signed it", "key"),
        Column("digest", "The SHA-256 of its body", "digest"),
    ),
    query=query,
    order=NEWEST_FIRST,
    period=chosen_period,
)
