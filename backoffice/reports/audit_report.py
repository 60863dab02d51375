"""Audit log: the entries with their hashes, so that a reader can verify them without us."""

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.audit.forms import EntryFilterForm
from backoffice.audit.models import Entry
from backoffice.audit.selectors import entries
from backoffice.reports.report import Column, StoredReport, chosen_period


def query(_user: User, form: EntryFilterForm) -> QuerySet[Entry]:
    """The entries that match the filters."""
    return entries(**form.cleaned_data)


AUDIT_LOG = StoredReport(
    name="audit-log",
    title="Audit log",
    about="Who did what, to what, when and from where, with the hash of every entry.",
    permissions=("audit.view_entry",),
    form=EntryFilterForm,
    columns=(
        Column("position", "Its place in the chain", "position"),
        Column("at", "When it happened", "at"),
        Column("actor", "Who did it, by the name of then", "actor_label"),
        Column("actor_id", "Which account that is", "actor_id"),
        Column("action", "What was done", "action"),
        Column("target_type", "What kind of thing it was done to", "target_type"),
        Column("target_id", "Which one, by its id", "target_id"),
        Column("target", "Which one, by its name of then", "target_label"),
        Column("address", "The network address it came from", "address"),
        Column("request_id", "The request or job", "request_id"),
        Column("detail", "What was said with it, as JSON", "detail"),
        Column("version", "How its hash is worked out", "version"),
        Column("previous_hash", "The hash of the entry before", "previous_hash"),
        Column("hash", "Its own hash", "hash"),
    ),
    query=query,
    order=("-position",),
    period=chosen_period,
)
