"""Recovery codes: issued ten at a time, shown once, used once each."""

from django.db import transaction
from django.utils import timezone

from backoffice.accounts.models import AuthenticatorDevice, RecoveryCode, User
from backoffice.accounts.models.recovery import CODES_AT_A_TIME
from backoffice.audit.actions import Action
from backoffice.audit.services import record


@transaction.atomic
def issue_recovery_codes(user: User) -> list[str]:
    """Ten new codes; all earlier ones stop working. Only their hashes are stored: this is the one chance to
    show them, and the person has to confirm that they are kept before any other page opens.
    """
    codes = [RecoveryCode.draw() for _ in range(CODES_AT_A_TIME)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(
        RecoveryCode(user=user, digest=RecoveryCode.digests(code, user_id=user.pk)[0]) for code in codes
    )
    User.objects.filter(pk=user.pk).update(recovery_codes_kept_at=None)
    record(Action.RECOVERY_CODES_ISSUED, actor=user)
    return codes


@transaction.atomic
def confirm_codes_kept(user: User) -> None:
    """The person has stored the codes. Without codes there is nothing to confirm and nothing changes."""
    has_codes = RecoveryCode.objects.filter(user=user, used_at=None).exists()
    waiting = User.objects.filter(pk=user.pk, recovery_codes_kept_at=None)
    if has_codes and waiting.update(recovery_codes_kept_at=timezone.now()):
        record(Action.RECOVERY_CODES_KEPT, actor=user)


def use_recovery_code(device: AuthenticatorDevice, code: str) -> bool:
    """Use a code up, in the caller's transaction, who then calls `record_use`. A wrong one slows down the next
    attempt like a wrong code of the authenticator.
    """
    digests = RecoveryCode.digests(code, user_id=device.user_id)
    mine = RecoveryCode.objects.filter(user=device.user_id, digest__in=digests)
    if mine.filter(used_at=None).update(used_at=timezone.now()) != 1:
        device.charge_failure()
        return False
    device.forgive_failures()
    return True


def record_use(user: User) -> None:
    """Put the use of a code on record, once everything else of the transaction is written."""
    left = RecoveryCode.objects.filter(user=user, used_at=None).count()
    record(Action.RECOVERY_CODE_USED, actor=user, left=left)
