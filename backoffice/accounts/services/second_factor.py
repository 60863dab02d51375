"""The second factor: a code of the authenticator, or a recovery code in its place."""

import re
from datetime import datetime

from django.db import transaction

from backoffice.accounts import policy
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import AuthenticatorDevice
from backoffice.accounts.services.recovery import use_recovery_code
from backoffice.audit.actions import Action
from backoffice.audit.services import record


def second_factor_at(request: StaffRequest) -> datetime | None:
    """When the second factor was last given in this session; None before that."""
    return request.session.second_factor_at


def has_fresh_second_factor(request: StaffRequest) -> bool:
    """True if the second factor was given in this session within `SECOND_FACTOR_FRESH`, five minutes."""
    return policy.is_fresh(second_factor_at(request))


@transaction.atomic(durable=True)
def confirm_second_factor(request: StaffRequest, code: str) -> bool:
    """Accept a code of the person's authenticator, or a recovery code, and note it in the session.

    Either counts once. False if it is wrong, used, or came too soon after a wrong one; that is audited. The
    transaction is the outermost one, so that a refusal is never rolled back with something else.
    """
    device = AuthenticatorDevice.objects.select_for_update().filter(user=request.user, confirmed=True).first()
    if device is None:
        return False
    completes_sign_in = request.session.authenticator is None
    if not _accepts(device, code, request):
        return _refuse(request, device)
    request.session.confirm_second_factor(device)
    record(
        Action.SIGN_IN_COMPLETED if completes_sign_in else Action.SECOND_FACTOR_CONFIRMED, actor=request.user
    )
    return True


def _accepts(device: AuthenticatorDevice, code: str, request: StaffRequest) -> bool:
    written = re.sub(r"[\s-]", "", code)
    if re.fullmatch(r"[0-9]{6}", written):
        return device.verify_token(written)
    return device.wait() is None and use_recovery_code(request.user, device, written)


def _refuse(request: StaffRequest, device: AuthenticatorDevice) -> bool:
    reason = "too soon after a wrong code" if device.wait() else "wrong or used code"
    record(Action.SECOND_FACTOR_REFUSED, actor=request.user, reason=reason)
    return False
