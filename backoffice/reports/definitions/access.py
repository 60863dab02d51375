"""Reports of access and audit: staff, API keys, webhook deliveries, audit log."""

from collections.abc import Iterator

from django import forms
from django.db.models import Case, QuerySet, TextField, Value, When
from django.db.models.functions import Concat

from backoffice.accounts.models import User
from backoffice.api_keys.key_list import KeyRow, key_rows
from backoffice.audit.models import Entry
from backoffice.audit.pages import EntryFilterForm, find_entries
from backoffice.reports.report import (
    Column,
    ComputedReport,
    StoredReport,
    period_lookups,
)
from backoffice.webhooks.deliveries import NEWEST_FIRST, VIEW_PERMISSIONS, DeliveryFilterForm, all_deliveries
from backoffice.webhooks.models import PROBLEMS, Delivery


def staff_query(_user: User, _form: forms.Form) -> QuerySet[User]:
    """Everyone who has or had an account."""
    return User.objects.order_by("full_name", "pk")


def staff_rows(user: User, form: forms.Form) -> Iterator[User]:
    """Everyone, with their roles prefetched."""
    return iter(staff_query(user, form).prefetch_related("groups"))


def _roles(person: User) -> str:
    return "; ".join(sorted(group.name for group in person.groups.all()))


STAFF = ComputedReport(
    name="staff",
    title="Staff",
    about="Everybody with an account: their roles, and whether they may still sign in.",
    permissions=("accounts.view_user",),
    form=forms.Form,
    columns=(
        Column("name", "Who it is", "full_name"),
        Column("email", "The address to sign in with", "email"),
        Column("roles", "What they come to do", _roles),
        Column("is_active", "Whether they may sign in", "is_active"),
        Column("time_zone", "In which they see times", "time_zone"),
        Column("created_at", "Since when there is the account", "created_at"),
        Column("signed_in_at", "The last time somebody signed in with it", "last_login"),
    ),
    rows=staff_rows,
    counted=staff_query,
)


def api_key_rows(_user: User, _form: forms.Form) -> Iterator[KeyRow]:
    """The keys in the order of the provider's list."""
    return iter(key_rows())


API_KEYS = ComputedReport(
    name="api-keys",
    title="API keys",
    about="Every API key by its short hash, with what it may and when it ends, as the service last listed it.",
    permissions=("operations.view_operation",),
    form=forms.Form,
    columns=(
        Column("short_hash", "The first characters of its hash", "short_hash"),
        Column("name", "What it is called", "name"),
        Column("scope", "What it may do", "scope"),
        Column("expires_at", "When it ends", "expires_at"),
        Column("state", "Whether it can be used", "state"),
        Column("in_use", "Whether this installation calls with it", "is_in_use"),
        Column("as_of", "When the service listed it", "as_of"),
    ),
    rows=api_key_rows,
)


def deliveries_query(_user: User, form: DeliveryFilterForm) -> QuerySet[Delivery]:
    """The deliveries first received within the chosen days, optionally of one verdict or event."""
    verdict, event = form.cleaned_data["verdict"], form.cleaned_data["event"]
    found = all_deliveries().filter(**period_lookups("received_at", form))
    if verdict:
        found = found.filter(verdict=verdict)
    return found.filter(event__iexact=event) if event else found


def _problem() -> Case:
    """`Delivery.problem` as a database expression."""
    parts = {verdict: sentence.partition("{error}") for verdict, sentence in PROBLEMS.items()}
    cases = [
        When(verdict=verdict, then=Concat(Value(before), "error", Value(after)))
        for verdict, (before, _, after) in parts.items()
    ]
    return Case(*cases, default=Value(""), output_field=TextField())


DELIVERIES = StoredReport(
    name="webhook-deliveries",
    title="Webhook deliveries",
    about="What arrived at the address for webhooks, with what its signature says and how often it came.",
    permissions=VIEW_PERMISSIONS,
    form=DeliveryFilterForm,
    columns=(
        Column("received_at", "When it came first", "received_at"),
        Column("last_at", "When it came last", "last_at"),
        Column("received_count", "How often it came", "received_count"),
        Column("verdict", "What its signature says", "verdict"),
        Column("problem", "Why it is not valid", _problem()),
        Column("event", "The kind of event that it names", "event"),
        Column("transaction_id", "The service's transaction that it names", "transaction_id"),
        Column("reference", "The merchant's reference that it names", "reference"),
        Column("checked_at", "When the service was last read because of it", "checked_at"),
        Column("key", "The fingerprint of the key that signed it", "key"),
        Column("digest", "The SHA-256 of its body", "digest"),
    ),
    query=deliveries_query,
    order=NEWEST_FIRST,
)


def audit_query(_user: User, form: EntryFilterForm) -> QuerySet[Entry]:
    return find_entries(**form.cleaned_data)


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
    query=audit_query,
    order=("-position",),
)
