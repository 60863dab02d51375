"""Incidents: what contradicted the record, and what people found."""

import json
from collections.abc import Iterator
from datetime import date
from operator import attrgetter

from django import forms

from backoffice.accounts.models import User
from backoffice.operations.health import incidents
from backoffice.operations.oversight import Incident
from backoffice.operations.permissions import VIEW
from backoffice.reports.report import Column, Period, Report, in_batches


def rows(_user: User, _form: forms.Form) -> Iterator[Incident]:
    """Every incident, newest first."""
    return in_batches(incidents(), order=("-at", "-id"))


def period(_form: forms.Form, _today: date) -> Period:
    """No days: all of them."""
    return Period()


def _evidence(incident: Incident) -> str:
    return json.dumps(incident.evidence, sort_keys=True, ensure_ascii=False)


INCIDENTS: Report[Incident, forms.Form] = Report(
    name="incidents",
    title="Incidents",
    about="What contradicted the record of an operation, the evidence, and what people found.",
    permission=VIEW,
    form=forms.Form,
    columns=(
        Column("at", attrgetter("at")),
        Column("operation", attrgetter("operation.reference")),
        Column("what", attrgetter("what")),
        Column("evidence", _evidence),
        Column("noted_at", attrgetter("seen_at")),
        Column("noted_by", lambda incident: str(incident.seen_by or "")),
        Column("note", attrgetter("note")),
        Column("incident", attrgetter("pk")),
        Column("further_to", attrgetter("further_to_id")),
    ),
    rows=rows,
    period=period,
)
