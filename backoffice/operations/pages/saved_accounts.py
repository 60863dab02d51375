"""Saved bank accounts: choose a saved or recent one when preparing; list, save, rename, delete."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core.web.formatting import local_day, quoted
from backoffice.core.web.pagination import keyset_page
from backoffice.operations import permissions
from backoffice.operations.errors import SavedAccountError
from backoffice.operations.kinds.base import MoneyKind
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.saved_items import BANK_PREFIX, SavedAccount, parse_bank_account_key
from backoffice.operations.selectors import NEWEST_FIRST, visible_operations
from backoffice.operations.states import NOT_EXECUTED, Status


class SavedAccountForm(forms.Form):
    """The team's name for a bank account."""

    name = forms.CharField(
        max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}), label=_("Recipient name")
    )


RECENT = timedelta(days=180)
RECENT_SHOWN, SAVED_SHOWN = 6, 20
_SEARCHED_OPERATIONS = 200  # the newest operations that are searched for recent accounts


@dataclass(frozen=True)
class AccountOption:
    """An account that a form can be filled in with. `ref` names it in the form instead of its number."""

    ref: str
    name: str
    label: str
    recipient_key: str
    account_name: str

    @property
    def values(self) -> dict[str, str]:
        """The values it fills in, with the last known holder; the form warns if the bank reports another."""
        bank_code, account_number = parse_bank_account_key(self.recipient_key)
        return {
            "bank_code": bank_code,
            "account_number": account_number,
            "typed_name": self.account_name,
            "name_reason": "",
            "unchecked_confirmed": "",
            "unchecked_reason": "",
        }


@dataclass(frozen=True)
class AccountOptions:
    """The accounts to choose from. `has_more`: further saved accounts, which a search text would find."""

    saved: list[AccountOption]
    recent: list[AccountOption]
    has_more: bool


def account_options(user: User, text: str = "") -> AccountOptions:
    """Saved accounts by name and recent ones newest first that contain the text, a limited number of each."""
    saved = [_saved_option(account) for account in _saved_with(text)[: SAVED_SHOWN + 1]]
    recent = [account for account in _recent_accounts(user) if text.casefold() in account.label.casefold()]
    return AccountOptions(saved[:SAVED_SHOWN], recent[:RECENT_SHOWN], has_more=len(saved) > SAVED_SHOWN)


def account_option(user: User, ref: str) -> AccountOption | None:
    """The account that a form names; None if it no longer exists or this user may not see it."""
    origin, _, pk = ref.partition("-")
    try:
        if origin == "saved":
            return _saved_option(SavedAccount.objects.get(pk=int(pk)))
        if origin == "operation":
            return _recent_option(_payouts(user).get(pk=UUID(pk)))
    except (ValueError, OverflowError, SavedAccount.DoesNotExist, Operation.DoesNotExist):
        pass
    return None


def is_savable(operation: Operation) -> bool:
    """Whether it pays a bank account with the bank's name, and was not rejected, cancelled, expired or failed."""
    is_to_bank = (operation.recipient_key or "").startswith(BANK_PREFIX)
    was_checked = not operation.payload.get("name_not_checked")
    return is_to_bank and was_checked and operation.status not in NOT_EXECUTED


def with_saved_name(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """The same, each with `saved_as`: the team's name for the account that it pays."""
    saved = SavedAccount.objects.filter(recipient_key=OuterRef("recipient_key"))
    return operations.annotate(saved_as=Subquery(saved.values("name")[:1]))


def _saved_with(text: str) -> QuerySet[SavedAccount]:
    found = SavedAccount.objects.all()
    if not text:
        return found
    return found.filter(
        Q(name__icontains=text)
        | Q(account_name__icontains=text)
        | Q(bank__icontains=text)
        | Q(recipient_key__endswith=text)
    )


def _payouts(user: User) -> QuerySet[Operation]:
    """Operations of the last months to bank accounts, except those that were not executed."""
    found = visible_operations(user).select_related(None)
    since = timezone.now() - RECENT
    return found.filter(recipient_key__startswith=BANK_PREFIX, prepared_at__gte=since).exclude(
        status__in=NOT_EXECUTED
    )


def _recent_accounts(user: User) -> Iterator[AccountOption]:
    """Each account once, as its newest operation has it."""
    newest: dict[str, Operation] = {}
    paid: dict[str, Operation] = {}
    for operation in (
        _payouts(user).order_by(*NEWEST_FIRST).defer("payload", "sentence", "rule")[:_SEARCHED_OPERATIONS]
    ):
        key = operation.recipient_key or ""
        newest.setdefault(key, operation)
        if operation.status == Status.SUCCEEDED and isinstance(KINDS.get(operation.kind), MoneyKind):
            paid.setdefault(key, operation)
    return (_recent_option(operation, paid=paid.get(key)) for key, operation in newest.items())


def _saved_option(account: SavedAccount) -> AccountOption:
    return AccountOption(
        ref=f"saved-{account.pk}",
        name=quoted(account.name),
        label=f"{account.name} · {account.account_name}, {account.masked}",
        recipient_key=account.recipient_key,
        account_name=account.account_name,
    )


def _recent_option(operation: Operation, paid: Operation | None = None) -> AccountOption:
    last_use = gettext("last prepared {date}").format(date=local_day(operation.prepared_at))
    if paid is not None:
        last_use = gettext("last paid {date}").format(date=local_day(paid.closed_at or paid.prepared_at))
    return AccountOption(
        ref=f"operation-{operation.pk}",
        name=operation.reference,
        label=f"{operation.recipient}, {operation.recipient_detail} · {last_use}",
        recipient_key=operation.recipient_key or "",
        account_name=operation.recipient,
    )


MAX_SAVED_ACCOUNTS = 500


@transaction.atomic
def save_account(operation_id: UUID, *, actor: User, name: str) -> SavedAccount:
    """Save the account that an operation pays, with its holder as the bank named it to that operation.

    Raises SavedAccountError if the operation has no account to save, if the name or the account is saved
    already, or if the limit is reached; ContentUnreadableError; Operation.DoesNotExist.
    """
    operation = Operation.objects.get(pk=operation_id)
    if not is_savable(operation):
        raise SavedAccountError(
            gettext(
                "Not saved: this operation pays no bank account, was not executed, or the bank did not confirm "
                "the name."
            )
        )
    if SavedAccount.objects.count() >= MAX_SAVED_ACCOUNTS:
        raise SavedAccountError(
            gettext(
                "Not saved: there are {n} saved recipients, the maximum. Delete one, then save again."
            ).format(n=MAX_SAVED_ACCOUNTS)
        )
    payload = read_content(operation)[1]
    saved = SavedAccount(
        name=name,
        recipient_key=payload.recipient.key,
        bank=payload.bank,
        account_name=payload.account_name,
        saved_by=actor,
        saved_at=timezone.now(),
    )
    _store(saved)
    audit.record(Action.ACCOUNT_SAVED, actor=actor, target=saved, operation=operation.reference)
    return saved


@transaction.atomic
def rename_account(pk: int, *, actor: User, name: str) -> SavedAccount:
    """Rename a saved account. Raises SavedAccountError if the name is taken; SavedAccount.DoesNotExist."""
    saved = SavedAccount.objects.select_for_update().get(pk=pk)
    before, saved.name = saved.name, name
    _store(saved)
    audit.record(Action.ACCOUNT_RENAMED, actor=actor, target=saved, before=before)
    return saved


@transaction.atomic
def delete_account(pk: int, *, actor: User) -> None:
    """Delete a saved account, if it exists. Operations to the account are not changed."""
    saved = SavedAccount.objects.select_for_update().filter(pk=pk).first()
    if saved is None:
        return
    SavedAccount.objects.filter(pk=pk).delete()
    audit.record(Action.ACCOUNT_DELETED, actor=actor, target=saved)


def _store(saved: SavedAccount) -> None:
    try:
        with transaction.atomic():
            saved.save()
    except IntegrityError as exc:
        existing = SavedAccount.objects.exclude(pk=saved.pk).filter(recipient_key=saved.recipient_key).first()
        if existing is not None:
            raise SavedAccountError(
                gettext("This bank account is already saved as “{name}”.").format(name=existing.name)
            ) from exc
        raise SavedAccountError(
            gettext("A recipient named “{name}” already exists. Enter another name.").format(name=saved.name)
        ) from exc


PER_PAGE = 25
NEWEST_SAVED_FIRST = ("-saved_at", "-id")


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def saved_accounts(request: StaffRequest) -> HttpResponse:
    """All saved accounts, the newest first."""
    saved = SavedAccount.objects.select_related("saved_by")
    page = keyset_page(saved, order=NEWEST_SAVED_FIRST, cursor=request.GET.get("cursor"), size=PER_PAGE)
    return render(request, "operations/saved_accounts.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PREPARE, raise_exception=True)
def saved_account(request: StaffRequest, pk: int) -> HttpResponse:
    """One saved account, to be renamed or deleted."""
    saved = get_object_or_404(SavedAccount.objects.select_related("saved_by"), pk=pk)
    if request.method != "POST":
        return _saved_account_page(request, saved, SavedAccountForm(initial={"name": saved.name}))
    form = SavedAccountForm(request.POST)
    if form.is_valid():
        try:
            rename_account(pk, actor=request.user, **form.cleaned_data)
        except SavedAccountError as exc:
            form.add_error("name", str(exc))
        except SavedAccount.DoesNotExist as exc:
            raise Http404("It was deleted at this very moment") from exc
        else:
            messages.success(request, gettext("Recipient renamed."))
            return redirect("operations:saved_accounts")
    return _saved_account_page(request, saved, form, status=422)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def saved_account_delete(request: StaffRequest, pk: int) -> HttpResponse:
    delete_account(pk, actor=request.user)
    messages.success(request, gettext("Recipient deleted. Existing operations do not change."))
    return redirect("operations:saved_accounts")


def _saved_account_page(
    request: StaffRequest, saved: SavedAccount, form: SavedAccountForm, *, status: int = 200
) -> HttpResponse:
    return render(request, "operations/saved_account.html", {"saved": saved, "form": form}, status=status)
