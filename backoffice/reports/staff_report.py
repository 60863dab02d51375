"""Staff: who may sign in, and what their roles are."""

from collections.abc import Iterator
from operator import attrgetter

from django import forms
from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.reports.report import Column, Report, no_period


def people(_user: User, _form: forms.Form) -> QuerySet[User]:
    """Everybody who has or had an account."""
    return User.objects.order_by("full_name", "pk")


def rows(user: User, form: forms.Form) -> Iterator[User]:
    """Everybody, with their roles at hand."""
    return iter(people(user, form).prefetch_related("groups"))


def _roles(person: User) -> str:
    return "; ".join(sorted(group.name for group in person.groups.all()))


STAFF = Report(
    name="staff",
    title="Staff",
    about="Everybody with an account: their roles, and whether they may still sign in.",
    permissions=("accounts.view_user",),
    form=forms.Form,
    columns=(
        Column("name", "Who it is", attrgetter("full_name")),
        Column("email", "The address to sign in with", attrgetter("email")),
        Column("roles", "What they come to do", _roles),
        Column("is_active", "Whether they may sign in", attrgetter("is_active")),
        Column("time_zone", "In which they see times", attrgetter("time_zone")),
        Column("created_at", "Since when there is the account", attrgetter("created_at")),
        Column("signed_in_at", "The last time somebody signed in with it", attrgetter("last_login")),
    ),
    rows=rows,
    counted=people,
    period=no_period,
)
