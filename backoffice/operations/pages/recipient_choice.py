"""Choose whom to pay when preparing: recipients of the register, and bank accounts that were paid recently."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.core.web.formatting import local_day, quoted
from backoffice.operations.allow_list import is_allow_listed
from backoffice.operations.kinds.base import MoneyKind
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.selectors import NEWEST_FIRST, visible_operations
from backoffice.operations.states import NOT_EXECUTED, Status
from backoffice.recipients.keys import BANK_PREFIX, parse_bank_account_key
from backoffice.recipients.models import RecipientState, RecipientType, RecipientVersion
from backoffice.recipients.register import newest_versions, usable_recipients

RECENT = timedelta(days=180)
RECENT_SHOWN, REGISTERED_SHOWN = 6, 20
_SEARCHED_OPERATIONS = 200  # the newest operations that are searched for recent accounts


_NO_STATEMENT = {"name_reason": "", "unchecked_confirmed": "", "unchecked_reason": ""}
_TYPE_OF_KIND = {"transfer": RecipientType.USER, "wallet_transfer": RecipientType.ADDRESS}


def type_paid_by(kind: str) -> RecipientType:
    """The type of recipients that the form of this kind can be filled in with."""
    return _TYPE_OF_KIND.get(kind, RecipientType.BANK)


@dataclass(frozen=True)
class RecipientOption:
    """A recipient that a form can be filled in with. `ref` names it in the form instead of its account.

    `values` is what it fills in, with the last known holder; the form warns if the bank reports another.
    """

    ref: str
    name: str
    label: str
    values: dict[str, str]


@dataclass(frozen=True)
class RecipientOptions:
    """The recipients to choose from. `has_more`: further ones in the register, which a search text would find."""

    registered: list[RecipientOption]
    recent: list[RecipientOption]
    has_more: bool


def recipient_options(user: User, kind: str, text: str = "") -> RecipientOptions:
    """Of the register by name and recent accounts newest first that contain the text, a limited number of each.

    A kind that pays approved recipients only offers no others.
    """
    found = usable_recipients(type_paid_by(kind), text)
    recent: list[RecipientOption] = []
    if is_allow_listed(kind):
        found = found.filter(state=RecipientState.APPROVED)
    elif type_paid_by(kind) == RecipientType.BANK:
        recent = [one for one in _recent_accounts(user) if text.casefold() in one.label.casefold()]
    registered = [_registered_option(version) for version in found[: REGISTERED_SHOWN + 1]]
    return RecipientOptions(
        registered[:REGISTERED_SHOWN], recent[:RECENT_SHOWN], has_more=len(registered) > REGISTERED_SHOWN
    )


def recipient_option(user: User, kind: str, ref: str) -> RecipientOption | None:
    """The recipient that a form names; None if it can no longer be chosen or this user may not see it."""
    origin, _, pk = ref.partition("-")
    try:
        if origin == "registered":
            return _registered_option(usable_recipients(type_paid_by(kind)).get(recipient=UUID(pk)))
        if origin == "operation" and type_paid_by(kind) == RecipientType.BANK:
            return _recent_option(_payments_to_banks(user).get(pk=UUID(pk)))
    except (ValueError, RecipientVersion.DoesNotExist, Operation.DoesNotExist):
        pass
    return None


def can_be_registered(operation: Operation) -> bool:
    """Whether it pays somebody, and was not rejected, cancelled, expired or failed."""
    return bool(operation.recipient_key) and operation.status not in NOT_EXECUTED


def with_registered_recipient(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The same, each with `registered_id` and `registered_as`: the recipient in the register whom it pays."""
    registered = newest_versions().filter(key=OuterRef("recipient_key"))
    return operations.annotate(
        registered_id=Subquery(registered.values("recipient")[:1]),
        registered_as=Subquery(registered.values("name")[:1]),
        registered_state=Subquery(registered.values("state")[:1]),
    )


def _payments_to_banks(user: User) -> QuerySet[Operation]:
    """Operations of the last months to bank accounts, except those that were not executed."""
    found = visible_operations(user).select_related(None)
    since = timezone.now() - RECENT
    return found.filter(recipient_key__startswith=BANK_PREFIX, prepared_at__gte=since).exclude(
        status__in=NOT_EXECUTED
    )


def _recent_accounts(user: User) -> Iterator[RecipientOption]:
    """Each account once, as its newest operation has it."""
    newest: dict[str, Operation] = {}
    paid: dict[str, Operation] = {}
    for operation in (
        _payments_to_banks(user)
        .order_by(*NEWEST_FIRST)
        .defer("payload", "sentence", "rule")[:_SEARCHED_OPERATIONS]
    ):
        key = operation.recipient_key or ""
        newest.setdefault(key, operation)
        if operation.status == Status.SUCCEEDED and isinstance(KINDS.get(operation.kind), MoneyKind):
            paid.setdefault(key, operation)
    return (_recent_option(operation, paid=paid.get(key)) for key, operation in newest.items())


def _registered_option(version: RecipientVersion) -> RecipientOption:
    label = str(version)
    if version.state == RecipientState.SUGGESTED:
        label = gettext("{recipient} · not approved").format(recipient=label)
    statement = _NO_STATEMENT if version.type == RecipientType.BANK else {}
    return RecipientOption(
        ref=f"registered-{version.recipient}",
        name=quoted(version.title),
        label=label,
        values={**version.values, **statement},
    )


def _recent_option(operation: Operation, paid: Operation | None = None) -> RecipientOption:
    bank_code, account_number = parse_bank_account_key(operation.recipient_key or "")
    last_use = gettext("last prepared {date}").format(date=local_day(operation.prepared_at))
    if paid is not None:
        last_use = gettext("last paid {date}").format(date=local_day(paid.closed_at or paid.prepared_at))
    return RecipientOption(
        ref=f"operation-{operation.pk}",
        name=operation.reference,
        label=f"{operation.recipient}, {operation.recipient_detail} · {last_use}",
        values={
            "bank_code": bank_code,
            "account_number": account_number,
            "typed_name": operation.recipient,
            **_NO_STATEMENT,
        },
    )
