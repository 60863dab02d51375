"""The second factor: a code of the authenticator, or a recovery code in its place."""

import re
from datetime import datetime

from django.db import transaction

from backoffice.accounts import policy, selectors
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.services.recovery import record_use, use_recovery_code
from backoffice.audit.actions import Action
from backoffice.audit.services import record


def second_factor_at(request: StaffRequest) -> datetime | None:
    """When the second factor was last given in this session; None before that."""
    return request.session.second_factor_at


def has_fresh_second_factor(request: StaffRequest) -> bool:
    """True if the second factor was given in this session within `SECOND_FACTOR_FRESH`, five minutes."""
    return policy.is_fresh(second_factor_at(request), now=request.session.now)


@transaction.atomic(durable=True)
def confirm_second_factor(request: StaffRequest, code: str) -> bool:
    """Accept a code of the person's authenticator, or a recovery code, and note it in the session.

    Either counts once. False if it is wrong, used, or came too soon after a wrong one; that is audited. The
    transaction is the outermost one, so that a refusal is never rolled back with something else.
    """
    device = selectors.authenticator_of(User.objects.get_locked(request.user.pk))
    if device is None:
        return False
    completes_sign_in = request.session.authenticator is None
    written = re.sub(r"[\s-]", "", code)
    is_recovery_code = re.fullmatch(r"[0-9]{6}", written) is None
    accepts = _accepts_recovery_code if is_recovery_code else AuthenticatorDevice.verify_token
    if not accepts(device, written):
        return _refuse(request, device)
    request.session.confirm_second_factor(device)
    if is_recovery_code:
        record_use(request.user)
    record(
        Action.SIGN_IN_COMPLETED if completes_sign_in else Action.SECOND_FACTOR_CONFIRMED, actor=request.user
    )
    return True


def _accepts_recovery_code(device: AuthenticatorDevice, written: str) -> bool:
    return device.wait() is None and use_recovery_code(device, written)


def _refuse(request: StaffRequest, device: AuthenticatorDevice) -> bool:
    reason = "too soon after a wrong code" if device.wait() else "wrong or used code"
    record(Action.SECOND_FACTOR_REFUSED, actor=request.user, reason=reason)
    return False
