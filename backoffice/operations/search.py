"""Looks for one text in everything at once, so that it stays quick however much there is.

References, account numbers and the service's ids are found by an index, wherever they are. Words are looked for among
the newest operations only; the filter of the list looks through all of them.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from django.db.models import Count, Max, Q, Subquery, Value
from django.db.models.functions import Coalesce

from backoffice.accounts.models import User
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.selectors import NEWEST_FIRST, visible_operations
from backoffice.operations.states import Status

Row = TypeVar("Row")

EACH = 10
NEWEST = 5_000
_LETTERS = "0-9A-HJKMNP-TV-Z"
_BEGINNING = re.compile(rf"[A-Z]-[{_LETTERS}]{{2,6}}")
_WITHOUT_HYPHEN = re.compile(rf"([A-Z])([{_LETTERS}]{{6}})")
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Hits(Generic[Row]):
    """The newest of what was found, and whether there is more."""

    rows: list[Row]
    has_more: bool


@dataclass(frozen=True)
class Beneficiary:
    """Somebody who was paid: what it is called, how often, and when the last of it was prepared."""

    name: str
    detail: str
    account: str
    times: int
    last: datetime


@dataclass(frozen=True)
class Found:
    """What was found of each sort."""

    operations: Hits[Operation]
    transactions: Hits[Attempt]
    beneficiaries: Hits[Beneficiary]
    people: Hits[User]

    def __bool__(self) -> bool:
        return any(
            hits.rows for hits in (self.operations, self.transactions, self.beneficiaries, self.people)
        )


def everywhere(user: User, text: str) -> Found:
    """At most ten of each sort, out of what this person may see."""
    return Found(
        operations=_operations(user, text),
        transactions=_transactions(user, text),
        beneficiaries=_beneficiaries(user, text),
        people=_people(user, text),
    )


def operation_named(found: Found, text: str) -> Operation | None:
    """The operation whose reference the text is, in whatever case and with or without its hyphen."""
    reference = _as_reference(text)
    return next((row for row in found.operations.rows if row.reference == reference), None)


def _operations(user: User, text: str) -> Hits[Operation]:
    visible = visible_operations(user).order_by(*NEWEST_FIRST)
    named = visible.filter(_is_named(text))[: EACH + 1]
    saying = visible.filter(_is_among_the_newest(), _says(text))[: EACH + 1]
    return _hits(list(dict.fromkeys([*named, *saying])))


def _transactions(user: User, text: str) -> Hits[Attempt]:
    """What the service's id leads to: one attempt at most, for the id is unique."""
    found = Attempt.objects.filter(service_transaction_id=text, operation__in=visible_operations(user))
    return _hits(list(found.select_related("operation")))


def _beneficiaries(user: User, text: str) -> Hits[Beneficiary]:
    """Who was paid, the one paid last first."""
    recent = Q(counterparty__icontains=text) & _is_among_the_newest()
    paid = visible_operations(user).filter(
        Q(beneficiary_account=_as_account(text)) | recent,
        status=Status.SUCCEEDED,
        beneficiary_key__isnull=False,
    )
    groups = (
        paid.order_by()
        .values("beneficiary_key")
        .annotate(
            name=Max("counterparty"),
            detail=Max("counterparty_detail"),
            account=Max("beneficiary_account"),
            times=Count("pk"),
            last=Max("prepared_at"),
        )
        .order_by("-last", "beneficiary_key")
        .values_list("name", "detail", "account", "times", "last")
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


def _is_named(text: str) -> Q:
    """By the account that is paid, or the beginning of the reference.

    The beginning is a range: both engines read it from the index. No letter of a reference is behind Z, in the order of
    any language.
    """
    named, reference = Q(beneficiary_account=_as_account(text)), _as_reference(text)
    if reference:
        named |= Q(reference__gte=reference, reference__lte=reference.ljust(12, "Z"))
    return named


def _says(text: str) -> Q:
    return (
        Q(counterparty__icontains=text) | Q(counterparty_detail__icontains=text) | Q(sentence__icontains=text)
    )


def _is_among_the_newest() -> Q:
    """Prepared at the time of the `NEWEST`th newest operation or later: a range of the index, whatever the filter."""
    newest = Operation.objects.order_by(*NEWEST_FIRST).values("prepared_at")
    return Q(prepared_at__gte=Coalesce(Subquery(newest[NEWEST - 1 : NEWEST]), Value(_LONG_AGO)))


def _as_reference(text: str) -> str:
    """The reference, or at least three characters of its beginning; empty if the text is none."""
    written = text.upper()
    if whole := _WITHOUT_HYPHEN.fullmatch(written):
        return "-".join(whole.groups())
    return written if _BEGINNING.fullmatch(written) else ""


def _as_account(text: str) -> str:
    """Account numbers are often written in groups."""
    return re.sub(r"[\s-]", "", text).lower() if re.fullmatch(r"[\d\s-]+", text) else text.lower()
