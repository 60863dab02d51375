"""Bank accounts kept under a name, for the whole team. Nothing here pays anybody or allows anybody to."""

from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.operations.errors import SavedAccountError
from backoffice.operations.kinds import content_of
from backoffice.operations.known_accounts import is_savable
from backoffice.operations.models import Operation, SavedAccount

AT_MOST = 500


@transaction.atomic
def save_account(operation_id: UUID, *, actor: User, name: str) -> SavedAccount:
    """Keep the account that an operation pays, with its holder as the bank named it to that operation.

    Raises SavedAccountError if the operation vouches for no account, if the name or the account is kept already, or if
    as many are as may be; UnreadableContentError; Operation.DoesNotExist.
    """
    operation = Operation.objects.get(pk=operation_id)
    if not is_savable(operation):
        raise SavedAccountError("This operation pays no bank account, or came to nothing. Nothing was saved.")
    if SavedAccount.objects.count() >= AT_MOST:
        raise SavedAccountError(f"{AT_MOST} accounts are saved already. Delete one before you save another.")
    payload = content_of(operation)[1]
    saved = SavedAccount(
        name=name,
        beneficiary_key=payload.account_holder.key,
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
    """Call it something else. Raises SavedAccountError if the name is taken; SavedAccount.DoesNotExist."""
    saved = SavedAccount.objects.select_for_update().get(pk=pk)
    before, saved.name = saved.name, name
    _store(saved)
    audit.record(Action.ACCOUNT_RENAMED, actor=actor, target=saved, before=before)
    return saved


@transaction.atomic
def delete_account(pk: int, *, actor: User) -> None:
    """Forget it; nothing happens if it is gone. Operations to the account stay as they are."""
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
        kept = SavedAccount.objects.exclude(pk=saved.pk).filter(beneficiary_key=saved.beneficiary_key).first()
        if kept is not None:
            raise SavedAccountError(f"This account is saved already, as “{kept.name}”.") from exc
        raise SavedAccountError(f"An account is called “{saved.name}” already. Choose another name.") from exc
