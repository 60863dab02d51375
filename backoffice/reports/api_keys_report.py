"""API keys: the list as the service last gave it, by short hashes."""

from collections.abc import Iterator
from operator import attrgetter

from django import forms

from backoffice.accounts.models import User
from backoffice.integration.selectors import KeyRow, key_rows
from backoffice.reports.report import Column, Report, no_period


class ApiKeysForm(forms.Form):
    """There is nothing to choose: the list is short."""


def rows(_user: User, _form: ApiKeysForm) -> Iterator[KeyRow]:
    """The keys in the order of the service's list."""
    return iter(key_rows())


API_KEYS = Report(
    name="api-keys",
    title="API keys",
    about="Every API key by its short hash, with what it may and when it ends, as the service last listed it.",
    permissions=("operations.view_operation",),
    form=ApiKeysForm,
    columns=(
        Column("short_hash", "The first characters of its hash", attrgetter("short_hash")),
        Column("name", "What it is called", attrgetter("name")),
        Column("scope", "What it may do", attrgetter("scope")),
        Column("expires_at", "When it ends", attrgetter("expires_at")),
        Column("state", "Whether it can be used", attrgetter("state")),
        Column("in_use", "Whether this installation calls with it", attrgetter("is_in_use")),
        Column("as_of", "When the service listed it", attrgetter("as_of")),
    ),
    rows=rows,
    period=no_period,
)
