"""Bank accounts to choose from: those saved under a name, and those that operations went to lately. Reads only."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.display import local_day
from backoffice.operations.kinds import KINDS, MoneyKind
from backoffice.operations.models import Operation, SavedAccount
from backoffice.operations.saved_accounts import BANK_PREFIX, account_in
from backoffice.operations.selectors import NEWEST_FIRST, visible_operations
from backoffice.operations.states import CAME_TO_NOTHING, Status

RECENT = timedelta(days=180)
RECENT_SHOWN, SAVED_SHOWN = 6, 20
_LOOKED_AT = 200  # of the newest operations; what went only to other accounts before them is no longer recent


@dataclass(frozen=True)
class KnownAccount:
    """An account that a form can be filled in with. `ref` names it in the form, so that its number need not."""

    ref: str
    name: str
    label: str
    beneficiary_key: str
    account_name: str

    @property
    def values(self) -> dict[str, str]:
        """What it fills in. The holder is the one known so far: if the bank names another one now, the form says so."""
        bank_code, account_number = account_in(self.beneficiary_key)
        return {
            "bank_code": bank_code,
            "account_number": account_number,
            "typed_name": self.account_name,
            "name_reason": "",
        }


@dataclass(frozen=True)
class KnownAccounts:
    """What there is to choose from. `has_more`: further saved accounts, which a text would find."""

    saved: list[KnownAccount]
    recent: list[KnownAccount]
    has_more: bool


def known_accounts(user: User, text: str = "") -> KnownAccounts:
    """Saved accounts by name, recent ones newest first, all with the text in them, a bounded number of each."""
    saved = [_saved(account) for account in _saved_with(text)[: SAVED_SHOWN + 1]]
    recent = [account for account in _recent_accounts(user) if text.casefold() in account.label.casefold()]
    return KnownAccounts(saved[:SAVED_SHOWN], recent[:RECENT_SHOWN], has_more=len(saved) > SAVED_SHOWN)


def known_account(user: User, ref: str) -> KnownAccount | None:
    """The account that a form names; None if it is not there (any more), or not for this person to see."""
    origin, _, pk = ref.partition("-")
    try:
        if origin == "saved":
            return _saved(SavedAccount.objects.get(pk=int(pk)))
        if origin == "operation":
            return _of_operation(_payouts(user).get(pk=UUID(pk)))
    except (ValueError, OverflowError, SavedAccount.DoesNotExist, Operation.DoesNotExist):
        pass
    return None


def is_savable(operation: Operation) -> bool:
    """Whether it pays a bank account and did not come to nothing, which is no recommendation for an account."""
    return (operation.beneficiary_key or "").startswith(
        BANK_PREFIX
    ) and operation.status not in CAME_TO_NOTHING


def with_saved_name(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The same, each saying as `saved_as` what the team calls the account that it pays."""
    saved = SavedAccount.objects.filter(beneficiary_key=OuterRef("beneficiary_key"))
    return operations.annotate(saved_as=Subquery(saved.values("name")[:1]))


def _saved_with(text: str) -> QuerySet[SavedAccount]:
    found = SavedAccount.objects.all()
    if not text:
        return found
    return found.filter(
        Q(name__icontains=text)
        | Q(account_name__icontains=text)
        | Q(bank__icontains=text)
        | Q(beneficiary_key__endswith=text)
    )


def _payouts(user: User) -> QuerySet[Operation]:
    """Operations of the last months to bank accounts, but for those that came to nothing."""
    found = visible_operations(user).select_related(None)
    since = timezone.now() - RECENT
    return found.filter(beneficiary_key__startswith=BANK_PREFIX, prepared_at__gte=since).exclude(
        status__in=CAME_TO_NOTHING
    )


def _recent_accounts(user: User) -> Iterator[KnownAccount]:
    """Each account once, as its newest operation has it."""
    newest: dict[str, Operation] = {}
    paid: dict[str, Operation] = {}
    for operation in _payouts(user).order_by(*NEWEST_FIRST).defer("payload", "sentence", "rule")[:_LOOKED_AT]:
        key = operation.beneficiary_key or ""
        newest.setdefault(key, operation)
        if operation.status == Status.SUCCEEDED and isinstance(KINDS.get(operation.kind), MoneyKind):
            paid.setdefault(key, operation)
    return (_of_operation(operation, paid=paid.get(key)) for key, operation in newest.items())


def _saved(account: SavedAccount) -> KnownAccount:
    return KnownAccount(
        ref=f"saved-{account.pk}",
        name=f"“{account.name}”",
        label=f"{account.name} · {account.account_name}, {account.masked}",
        beneficiary_key=account.beneficiary_key,
        account_name=account.account_name,
    )


def _of_operation(operation: Operation, paid: Operation | None = None) -> KnownAccount:
    told = f"last prepared on {local_day(operation.prepared_at)}"
    if paid is not None:
        told = f"last paid on {local_day(paid.closed_at or paid.prepared_at)}"
    return KnownAccount(
        ref=f"operation-{operation.pk}",
        name=operation.reference,
        label=f"{operation.counterparty}, {operation.counterparty_detail} · {told}",
        beneficiary_key=operation.beneficiary_key or "",
        account_name=operation.counterparty,
    )
