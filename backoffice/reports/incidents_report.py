"""Incidents: what contradicted the record, and what people found."""

from django import forms
from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.operations.health import incidents
from backoffice.operations.oversight import Incident, IncidentKind
from backoffice.operations.permissions import VIEW
from backoffice.reports.report import Column, StoredReport, labelled, no_period


def query(_user: User, _form: forms.Form) -> QuerySet[Incident]:
    """Every incident."""
    return incidents()


INCIDENTS = StoredReport(
    name="incidents",
    title="Incidents",
    about="What contradicted the record, of an operation or of nobody's movement, and what people found.",
    permissions=(VIEW,),
    form=forms.Form,
    columns=(
        Column("at", "When it was noticed", "at"),
        Column("operation", "The operation that it is about", "operation__reference"),
        Column(
            "transaction", "The service's transaction that is no operation's", "transaction__transaction_id"
        ),
        Column("what", "What contradicted the record", labelled("kind", IncidentKind)),
        Column("evidence", "What was seen, as JSON", "evidence"),
        Column("noted_at", "When somebody took note", "seen_at"),
        Column("noted_by", "Who took note", "seen_by__full_name"),
        Column("note", "What was found", "note"),
        Column("incident", "The number of this incident", "pk"),
        Column("further_to", "The number of the incident whose evidence it continues", "further_to__pk"),
    ),
    query=query,
    order=("-at", "-id"),
    period=no_period,
)
