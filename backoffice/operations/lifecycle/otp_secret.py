"""Keep the provider's authenticator secret with its operation, and put it into use with the last approval."""

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.otp_secret import OtpSecretPayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import OtpSecret, TotpSecret, otp_secret_in_use
from backoffice.operations.refusals.codes import Refusal


def keep_until_decided(operation: Operation, secret: TotpSecret) -> None:
    """Store the secret encrypted and bound to this operation, in the transaction that prepares it."""
    row = OtpSecret(operation=operation, fingerprint=secret.fingerprint(), since=clock.now())
    row.encrypt(secret.address())
    row.save(force_insert=True)


def apply_otp_secret(operation: Operation, payload: OtpSecretPayload, _actor: User) -> None:
    """Use the secret of this operation instead of the present one, or use none, in the transaction of the approval.

    Raises OperationError if another secret was put into use since it was prepared.
    """
    replaced = otp_secret_in_use()
    if (replaced.fingerprint if replaced else "") != payload.replaces:
        raise OperationError(Refusal.OTP_SECRET_CHANGED)
    if replaced is not None:
        replaced.delete()
    if not payload.fingerprint:
        return
    waiting = OtpSecret.objects.filter(
        operation=operation, state=OtpSecret.State.WAITING, fingerprint=payload.fingerprint
    )
    if waiting.update(state=OtpSecret.State.IN_USE, since=clock.now()) != 1:
        raise OperationError(Refusal.OTP_SECRET_GONE)
