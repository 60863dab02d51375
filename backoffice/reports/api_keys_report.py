"""API keys: the list as the service last gave it, by short hashes."""

from collections.abc import Iterator
from datetime import date
from operator import attrgetter

from django import forms

from backoffice.accounts.models import User
from backoffice.integration.selectors import KeyRow, key_rows
from backoffice.reports.report import Column, Period, Report


class ApiKeysForm(forms.Form):
    """There is nothing to choose: the list is short."""


def rows(_user: User, _form: ApiKeysForm) -> Iterator[KeyRow]:
    """The keys in the order of the service's list."""
    return iter(key_rows())


def period(_form: ApiKeysForm, _today: date) -> Period:
    """The list as it stands."""
    return Period()


API_KEYS: Report[KeyRow, ApiKeysForm] = Report(
    name="api-keys",
    title="API keys",
    about="Every API key by its short hash, with what it may and when it ends, as the service last listed it.",
    permission="operations.view_operation",
    form=ApiKeysForm,
    columns=(
        Column("short_hash", attrgetter("short_hash")),
        Column("name", attrgetter("name")),
        Column("scope", attrgetter("scope")),
        Column("expires_at", attrgetter("expires_at")),
        Column("state", attrgetter("state")),
        Column("in_use", attrgetter("is_in_use")),
        Column("as_of", attrgetter("as_of")),
    ),
    rows=rows,
    period=period,
)
