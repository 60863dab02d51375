"""Looks for one text in everything at once, so that it stays quick however much there is.

References, account numbers and the service's ids are found by an index, wherever they are. Words are looked for among
the newest operations only; the filter of the list looks through all of them. The service is not asked: its
transactions are those of the mirror, and the merchant's own accounts those that it told lately.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Count, Max, Q, Subquery, Value
from django.db.models.functions import Coalesce

from backoffice.accounts.models import User
from backoffice.ledger.chosen import NEWEST_FIRST as NEWEST_TRANSACTIONS
from backoffice.ledger.chosen import Chosen, is_indexed
from backoffice.ledger.finding import OwnAccount, own_accounts_told
from backoffice.ledger.listing import transaction_page
from backoffice.ledger.mirrored import Transaction
from backoffice.ledger.walking import TooWideError
from backoffice.operations.mentions import as_account, as_reference, named_by, saying
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.selectors import NEWEST_FIRST, visible_operations
from backoffice.operations.states import Status

Row = TypeVar("Row")

EACH = 10
NEWEST = 5_000
_ACCOUNT = re.compile(r"[0-9]{8,}|(?=.*[0-9])[0-9a-z]{20,}")  # the number of one, or an address
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Hits(Generic[Row]):
    """The newest of what was found, and whether there is more."""

    rows: list[Row]
    has_more: bool


@dataclass(frozen=True)
class Beneficiary:
    """Somebody who was paid: what it is called, how often, when the last of it was prepared, and one operation's
    reference to find the others by."""

    name: str
    detail: str
    reference: str
    times: int
    last: datetime


@dataclass(frozen=True)
class Found:
    """What was found of each sort. `transactions` are attempts of ours."""

    operations: Hits[Operation]
    transactions: Hits[Attempt]
    beneficiaries: Hits[Beneficiary]
    own_accounts: Hits[OwnAccount]
    people: Hits[User]

    def __bool__(self) -> bool:
        money = (self.operations, self.transactions, self.beneficiaries)
        return any(hits.rows for hits in (*money, self.own_accounts, self.people))


def everywhere(user: User, text: str) -> Found:
    """At most ten of each sort, out of what this person may see."""
    may_see_accounts = user.has_perm("ledger.view_balance")
    return Found(
        operations=_operations(user, text),
        transactions=_transactions(user, text),
        beneficiaries=_beneficiaries(user, text),
        own_accounts=_hits(own_accounts_told(text, as_account(text)) if may_see_accounts else []),
        people=_people(user, text),
    )


def transactions_of_the_service(user: User, text: str) -> Hits[Transaction]:
    """The service's own records by the whole id, a part of a name, or a part of the business id: the newest ten.

    Apart from the rest, because it costs as much as all of that together.
    """
    if not is_indexed(text) or not user.has_perm("ledger.view_transaction"):
        return Hits([], has_more=False)
    try:
        page = transaction_page(Chosen(text=text), order=NEWEST_TRANSACTIONS, cursor=None, size=EACH)
    except TooWideError:
        return Hits([], has_more=True)
    return Hits(page.rows, has_more=page.next_cursor is not None)


def operation_named(found: Found, text: str) -> Operation | None:
    """The operation whose reference the text is, in whatever case and with or without its hyphen."""
    reference = as_reference(text)
    return next((row for row in found.operations.rows if row.reference == reference), None)


def in_the_list(found: Found, text: str) -> str:
    """The filter, as in an address, by which the list finds all of it and not only the newest; empty if there is none.

    An account is named by an operation that pays it, because addresses of pages stand in logs.
    """
    account = as_account(text)
    paying = [row.reference for row in found.operations.rows if row.beneficiary_account == account]
    return urlencode({"beneficiary_of": paying[0]}) if paying else listed_under(text)


def listed_under(text: str) -> str:
    """The text as a filter in an address; empty where it may be the number of an account."""
    return "" if _ACCOUNT.fullmatch(as_account(text)) else urlencode({"text": text})


def _operations(user: User, text: str) -> Hits[Operation]:
    visible = visible_operations(user).order_by(*NEWEST_FIRST)
    named = visible.filter(named_by(text))[: EACH + 1]
    said = visible.filter(_is_among_the_newest(), saying(text))[: EACH + 1]
    return _hits(list(dict.fromkeys([*named, *said])))


def _transactions(user: User, text: str) -> Hits[Attempt]:
    """What the service's id leads to: one attempt at most, for the id is unique."""
    found = Attempt.objects.filter(service_transaction_id=text, operation__in=visible_operations(user))
    return _hits(list(found.select_related("operation")))


def _beneficiaries(user: User, text: str) -> Hits[Beneficiary]:
    """Who was paid, the one paid last first."""
    recent = Q(counterparty__icontains=text) & _is_among_the_newest()
    paid = visible_operations(user).filter(
        Q(beneficiary_account=as_account(text)) | recent,
        status=Status.SUCCEEDED,
        beneficiary_key__isnull=False,
    )
    groups = (
        paid.order_by()
        .values("beneficiary_key")
        .annotate(
            name=Max("counterparty"),
            detail=Max("counterparty_detail"),
            paid_by=Max("reference"),
            times=Count("pk"),
            last=Max("prepared_at"),
        )
        .order_by("-last", "beneficiary_key")
        .values_list("name", "detail", "paid_by", "times", "last")
    )
    return _hits([Beneficiary(*values) for values in groups[: EACH + 1]])


def _people(user: User, text: str) -> Hits[User]:
    """Colleagues, for those who may see them."""
    if not user.has_perm("accounts.view_user"):
        return Hits([], has_more=False)
    found = User.objects.filter(Q(full_name__icontains=text) | Q(email__icontains=text))
    return _hits(list(found.prefetch_related("groups")[: EACH + 1]))


def _hits(rows: list[Row]) -> Hits[Row]:
    return Hits(rows[:EACH], has_more=len(rows) > EACH)


def _is_among_the_newest() -> Q:
    """Prepared at the time of the `NEWEST`th newest operation or later: a range of the index, whatever the filter."""
    newest = Operation.objects.order_by(*NEWEST_FIRST).values("prepared_at")
    return Q(prepared_at__gte=Coalesce(Subquery(newest[NEWEST - 1 : NEWEST]), Value(_LONG_AGO)))
