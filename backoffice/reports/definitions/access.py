"""Reports of access and audit: staff, their rights, recipients, API keys, webhook deliveries, audit log."""

from collections.abc import Callable, Iterator
from datetime import datetime
from operator import attrgetter

from django import forms
from django.db.models import Case, QuerySet, TextField, Value, When
from django.db.models.functions import Concat
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from backoffice.accounts.access_report import AccessRow, access_rows
from backoffice.accounts.models import AccessReview, User
from backoffice.api_keys.key_list import KeyRow, key_rows
from backoffice.audit.models import Entry
from backoffice.audit.pages import EntryFilterForm, find_entries
from backoffice.core.web.forms import PageForm
from backoffice.governance.pages.recipients import RecipientFilterForm
from backoffice.recipients.models import RecipientState, RecipientType, RecipientVersion
from backoffice.recipients.register import BY_NAME
from backoffice.reports.report import Column, ComputedReport, StoredReport, labelled
from backoffice.webhooks.deliveries import (
    NEWEST_FIRST,
    VIEW_PERMISSIONS,
    DeliveryFilterForm,
    all_deliveries,
    out_of_order,
)
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
    title=_("Team"),
    about=_("Everyone with an account: roles, status and last sign-in."),
    permissions=("accounts.view_user",),
    form=forms.Form,
    columns=(
        Column("name", _("Name"), "full_name"),
        Column("email", _("Email address"), "email"),
        Column("roles", _("Roles"), _roles),
        Column("is_active", _("Active"), "is_active"),
        Column("time_zone", _("Time zone"), "time_zone"),
        Column("created_at", _("Created at"), "created_at"),
        Column("signed_in_at", _("Last sign-in at"), "last_login"),
    ),
    rows=staff_rows,
    counted=staff_query,
)


def recipients_query(_user: User, form: RecipientFilterForm) -> QuerySet[RecipientVersion]:
    """The newest versions that match the filters."""
    return form.apply()


RECIPIENTS = StoredReport(
    name="recipients",
    title=_("Recipients"),
    about=_("The register of recipients: account, state, and who added and approved each."),
    permissions=("operations.view_operation",),
    form=RecipientFilterForm,
    columns=(
        Column("name", _("Name"), "name"),
        Column("alias", _("Alias"), "alias"),
        Column("type", _("Type"), labelled("type", RecipientType)),
        Column("account", _("Account"), "account"),
        Column("bank", _("Bank"), "bank"),
        Column("bank_code", _("Bank code"), "bank_code"),
        Column("network", _("Network"), "network"),
        Column("currency", _("Currency"), "currency"),
        Column("state", _("State"), labelled("state", RecipientState)),
        Column("version", _("Version"), "number"),
        Column("since", _("Since"), "since"),
        Column("proposed_by", _("Added by"), "proposed_by__full_name"),
        Column("approved_by", _("Approved by"), "approved_by__full_name"),
        Column("notes", _("Notes"), "notes"),
    ),
    query=recipients_query,
    order=BY_NAME,
)


class AccessRightsForm(PageForm):
    """The signed review to export, or the rights now."""

    review = forms.ModelChoiceField(
        label=_("Signed-off review"),
        queryset=AccessReview.objects.defer("rows"),
        to_field_name="operation",
        required=False,
        empty_label=_("Rights now"),
    )


def access_right_rows(_user: User, form: forms.Form) -> Iterator[AccessRow]:
    """The rows of the chosen review as signed off, or of all active people now."""
    review = form.cleaned_data["review"]
    return iter(access_rows() if review is None else [AccessRow(**row) for row in review.rows])


def _time_of(member: str) -> Callable[[AccessRow], datetime | None]:
    """A time of a right, which is text in UTC as in a review: files have it in the reader's time zone, as the page."""
    get = attrgetter(member)

    def value(row: AccessRow) -> datetime | None:
        return datetime.fromisoformat(get(row)) if get(row) else None

    return value


ACCESS_RIGHTS = ComputedReport(
    name="access-rights",
    title=_("Access rights"),
    about=_("Who may do what, since when and by whose approval: now, or as signed off in a review."),
    permissions=("accounts.view_user",),
    form=AccessRightsForm,
    columns=(
        Column("name", _("Name"), "name"),
        Column("email", _("Email address"), "email"),
        Column("kind", _("Kind"), "kind"),
        Column("right", _("Role, group, or person on leave"), "right"),
        Column("since", _("Since"), _time_of("since")),
        Column("until", _("Until"), _time_of("until")),
        Column("agreed_by", pgettext_lazy("right", "Prepared and approved by"), "agreed_by"),
    ),
    rows=access_right_rows,
)


def api_key_rows(_user: User, _form: forms.Form) -> Iterator[KeyRow]:
    """The keys in the order of the provider's list."""
    return iter(key_rows())


API_KEYS = ComputedReport(
    name="api-keys",
    title=_("API keys"),
    about=_("API keys by short hash, with permissions, expiry and status, as last reported."),
    permissions=("operations.view_operation",),
    form=forms.Form,
    columns=(
        Column("short_hash", _("Short hash"), "short_hash"),
        Column("name", _("Name"), "name"),
        Column("scope", _("Permissions"), "scope"),
        Column("expires_at", _("Expires at"), "expires_at"),
        Column("state", _("Status"), "state"),
        Column("in_use", _("Used by this installation"), "is_in_use"),
        Column("as_of", _("Reported at"), "as_of"),
    ),
    rows=api_key_rows,
)


def deliveries_query(_user: User, form: DeliveryFilterForm) -> QuerySet[Delivery]:
    """The deliveries that match the filters."""
    return form.apply(all_deliveries())


def _problem() -> Case:
    """`Delivery.problem` as a database expression."""
    parts = {verdict: str(sentence).partition("{error}") for verdict, sentence in PROBLEMS.items()}
    cases = [
        When(verdict=verdict, then=Concat(Value(before), "error", Value(after)))
        for verdict, (before, _error, after) in parts.items()
    ]
    return Case(*cases, default=Value(""), output_field=TextField())


DELIVERIES = StoredReport(
    name="webhook-deliveries",
    title=_("Webhook deliveries"),
    about=_("Webhooks received, with the result of the signature check."),
    permissions=VIEW_PERMISSIONS,
    form=DeliveryFilterForm,
    columns=(
        Column("received_at", _("First received at"), "received_at"),
        Column("last_at", _("Last received at"), "last_at"),
        Column("received_count", _("Deliveries"), "received_count"),
        Column("verdict", _("Signature"), "verdict"),
        Column("problem", _("Problem"), _problem),
        Column("event", _("Event"), "event"),
        Column("transaction_id", _("Transaction ID"), "transaction_id"),
        Column("reference", _("Our reference"), "reference"),
        Column("event_at", _("Time of the event"), "event_at"),
        Column("out_of_order", _("Out of order"), out_of_order),
        Column("response_status", _("Response status"), "response_status"),
        Column("response_ms", _("Response time (ms)"), "response_ms"),
        Column("checked_at", _("Status checked at"), "checked_at"),
        Column("key", _("Signing key"), "key"),
        Column("digest", _("SHA-256 of the body"), "digest"),
    ),
    query=deliveries_query,
    order=NEWEST_FIRST,
)


def audit_query(_user: User, form: EntryFilterForm) -> QuerySet[Entry]:
    return find_entries(**form.cleaned_data)


AUDIT_LOG = StoredReport(
    name="audit-log",
    title=_("Audit log"),
    about=_("Every recorded action: who, what, when and from where, with the hash of each entry."),
    permissions=("audit.view_entry",),
    form=EntryFilterForm,
    columns=(
        Column("position", _("Position"), "position"),
        Column("at", _("Time"), "at"),
        Column("actor", _("Actor"), "actor_label"),
        Column("actor_id", _("Actor ID"), "actor_id"),
        Column("action", _("Action"), "action"),
        Column("target_type", _("Object type"), "target_type"),
        Column("target_id", _("Object ID"), "target_id"),
        Column("target", _("Object"), "target_label"),
        Column("address", _("IP address"), "address"),
        Column("request_id", _("Request ID"), "request_id"),
        Column("detail", _("Details (JSON)"), "detail"),
        Column("version", _("Hash version"), "version"),
        Column("previous_hash", _("Previous hash"), "previous_hash"),
        Column("hash", _("Hash"), "hash"),
    ),
    query=audit_query,
    order=("-position",),
)
