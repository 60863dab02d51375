"""One search over operations, transactions, recipients, own accounts and people.

References, account numbers and transaction ids are found by an index, whatever their age. Words are searched
in the newest operations only. The provider is not read: its transactions come from the mirror.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Max, Q, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import format_count
from backoffice.core.web.forms import PageForm, SearchField
from backoffice.ledger.accounts import OwnAccount, search_own_accounts
from backoffice.ledger.models import Transaction
from backoffice.ledger.transactions.filters import NEWEST_FIRST as NEWEST_TRANSACTIONS
from backoffice.ledger.transactions.filters import TransactionFilter, is_searchable
from backoffice.ledger.transactions.listing import transaction_page
from backoffice.ledger.transactions.query_planner import FilterTooBroadError
from backoffice.operations import permissions
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.selectors import (
    IS_EXECUTED,
    NEWEST_FIRST,
    matches_reference_or_account,
    matches_words,
    normalise_account,
    parse_reference,
    visible_operations,
)

Row = TypeVar("Row")

SHOWN_PER_SECTION = 10
WORDS_SEARCHED_IN = 5_000
_ACCOUNT = re.compile(r"[0-9]{8,}|(?=.*[0-9])[0-9a-z]{20,}")  # an account number, or an address
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Hits(Generic[Row]):
    """The newest of what was found, and whether there is more."""

    rows: list[Row]
    has_more: bool


@dataclass(frozen=True)
class PaidRecipient:
    """A paid recipient: name, how often, when last, and one operation's reference to find the others by."""

    name: str
    detail: str
    reference: str
    times: int
    last: datetime


@dataclass(frozen=True)
class SearchResults:
    """The results by category. `attempts` are found by the id of their transaction."""

    operations: Hits[Operation]
    attempts: Hits[Attempt]
    recipients: Hits[PaidRecipient]
    own_accounts: Hits[OwnAccount]
    people: Hits[User]

    def __bool__(self) -> bool:
        money = (self.operations, self.attempts, self.recipients)
        return any(hits.rows for hits in (*money, self.own_accounts, self.people))


def search_everything(user: User, text: str) -> SearchResults:
    """At most ten of each category that this user may see."""
    may_see_accounts = user.has_perm("ledger.view_balance")
    return SearchResults(
        operations=_operations(user, text),
        attempts=_attempts_with_transaction(user, text),
        recipients=_paid_recipients(user, text),
        own_accounts=_hits(search_own_accounts(text, normalise_account(text)) if may_see_accounts else []),
        people=_people(user, text),
    )


def search_mirror(user: User, text: str) -> Hits[Transaction]:
    """The ten newest mirrored transactions with this id, part of a name, or part of the business id.

    A query of its own, since it costs as much as all the others together.
    """
    if not is_searchable(text) or not user.has_perm("ledger.view_transaction"):
        return Hits([], has_more=False)
    try:
        page = transaction_page(
            TransactionFilter(text=text), order=NEWEST_TRANSACTIONS, cursor=None, size=SHOWN_PER_SECTION
        )
    except FilterTooBroadError:
        return Hits([], has_more=True)
    return Hits(page.rows, has_more=page.next_cursor is not None)


def operation_with_reference(found: SearchResults, text: str) -> Operation | None:
    """The operation whose reference the text is, ignoring case and the hyphen."""
    reference = parse_reference(text)
    return next((row for row in found.operations.rows if row.reference == reference), None)


def list_query(found: SearchResults, text: str) -> str:
    """The query string that makes the list show all results and not only the newest; empty if there is none.

    An account is named by an operation that pays it, since URLs are logged.
    """
    account = normalise_account(text)
    paying = [row.reference for row in found.operations.rows if row.recipient_account == account]
    return urlencode({"same_recipient_as": paying[0]}) if paying else text_query(text)


def text_query(text: str) -> str:
    """The text as a filter in a URL; empty if it may be an account number."""
    return "" if _ACCOUNT.fullmatch(normalise_account(text)) else urlencode({"text": text})


def _operations(user: User, text: str) -> Hits[Operation]:
    visible = visible_operations(user).order_by(*NEWEST_FIRST)
    by_number = visible.filter(matches_reference_or_account(text))[: SHOWN_PER_SECTION + 1]
    by_text = visible.filter(_is_among_the_newest(), matches_words(text))[: SHOWN_PER_SECTION + 1]
    return _hits(list(dict.fromkeys([*by_number, *by_text])))


def _attempts_with_transaction(user: User, text: str) -> Hits[Attempt]:
    """The attempt with this transaction id: one at most, since the id is unique."""
    found = Attempt.objects.filter(provider_transaction_id=text, operation__in=visible_operations(user))
    return _hits(list(found.select_related("operation")))


def _paid_recipients(user: User, text: str) -> Hits[PaidRecipient]:
    """Recipients that were paid, the last paid first."""
    recent = Q(recipient__icontains=text) & _is_among_the_newest()
    paid = visible_operations(user).filter(
        Q(recipient_account=normalise_account(text)) | recent, IS_EXECUTED, recipient_key__isnull=False
    )
    groups = (
        paid.order_by()
        .values("recipient_key")
        .annotate(
            name=Max("recipient"),
            detail=Max("recipient_detail"),
            paid_by=Max("reference"),
            times=Count("pk"),
            last=Max("prepared_at"),
        )
        .order_by("-last", "recipient_key")
        .values_list("name", "detail", "paid_by", "times", "last")
    )
    return _hits([PaidRecipient(*values) for values in groups[: SHOWN_PER_SECTION + 1]])


def _people(user: User, text: str) -> Hits[User]:
    """Colleagues, for users who may see them."""
    if not user.has_perm("accounts.view_user"):
        return Hits([], has_more=False)
    found = User.objects.filter(Q(full_name__icontains=text) | Q(email__icontains=text))
    return _hits(list(found.prefetch_related("groups")[: SHOWN_PER_SECTION + 1]))


def _hits(rows: list[Row]) -> Hits[Row]:
    return Hits(rows[:SHOWN_PER_SECTION], has_more=len(rows) > SHOWN_PER_SECTION)


def _is_among_the_newest() -> Q:
    """Whether it is among the newest operations: a range of the index, whatever the filter."""
    newest = Operation.objects.order_by(*NEWEST_FIRST).values("prepared_at")
    return Q(
        prepared_at__gte=Coalesce(Subquery(newest[WORDS_SEARCHED_IN - 1 : WORDS_SEARCHED_IN]), Value(_EPOCH))
    )


class SearchForm(PageForm):
    """The text to search for."""

    q = SearchField(
        min_length=2,
        max_length=200,
        label=_("Search for"),
        widget=forms.TextInput(
            attrs={
                "type": "search",
                "placeholder": _("Reference, name, account number or transaction ID"),
                "autocomplete": "off",
            }
        ),
        error_messages={
            "required": _("Enter text to search for."),
            "min_length": _("Enter at least two characters. Nothing was searched."),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def search(request: StaffRequest) -> HttpResponse:
    """The results by category. A reference redirects to its operation; no text shows the form alone.

    A POST only reads: it keeps account numbers out of URLs, and so out of logs and histories.
    """
    if not request.POST.get("q"):
        return render(request, "operations/search.html", {"form": SearchForm()})
    form = SearchForm(request.POST)
    if not form.is_valid():
        return render(request, "operations/search.html", {"form": form}, status=422)
    text = form.cleaned_data["q"]
    if "transactions" in request.POST:
        return _mirror_results(request, form, text)
    found = search_everything(request.user, text)
    operation = operation_with_reference(found, text)
    if operation is not None:
        return redirect(operation)
    context = {
        "form": form,
        "text": text,
        "found": found,
        "more": list_query(found, text),
        "newest": format_count(WORDS_SEARCHED_IN),
    }
    return render(request, "operations/search.html", context)


def _mirror_results(request: StaffRequest, form: SearchForm, text: str) -> HttpResponse:
    """The results from the mirror: loaded by htmx below the others, or by a button without JavaScript."""
    listed = search_mirror(request.user, text)
    context = {"form": form, "text": text, "listed": listed, "more": text_query(text)}
    template = "operations/_search_transactions.html" if request.htmx else "operations/search.html"
    return render(request, template, context)
