"""Continuity: where the balance before a transaction is not the one that the transaction before it left."""

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.ledger.books.continuity import NEWEST_FIRST, chosen_breaks
from backoffice.ledger.forms import BooksForm
from backoffice.ledger.mirror.state import read_up_to
from backoffice.ledger.mirrored import Break
from backoffice.reports.report import Column, StoredReport, chosen_period


def query(_user: User, form: BooksForm) -> QuerySet[Break]:
    """The breaks that the page lists."""
    return chosen_breaks(form.cleaned_data["currency"], *form.moments)


CONTINUITY = StoredReport(
    name="continuity",
    title="Continuity",
    about="Every place where a balance does not follow from the transaction before it.",
    permissions=("ledger.view_transaction",),
    form=BooksForm,
    columns=(
        Column("at", "When the second of the two transactions began", "at"),
        Column("currency", "The balance that is broken", "currency"),
        Column("kind", "What is known of it: gap, vanished, changed, fee or unmoved", "kind"),
        Column("expected", "What the first transaction left", "expected"),
        Column("found", "What the second one began with", "found"),
        Column("difference", "How far the two are apart, without a sign", "difference"),
        Column("direction", "Whether so much came in or went out that no transaction tells of", "direction"),
        Column("transaction_before", "The service's id of the first", "before__transaction_id"),
        Column("transaction_after", "The service's id of the second", "after__transaction_id"),
        Column("noticed_at", "When it was seen first", "noticed_at"),
    ),
    query=query,
    order=NEWEST_FIRST,
    period=chosen_period,
    told_up_to=read_up_to,
)
