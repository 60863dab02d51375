"""The second factor: enrol an authenticator, check codes, recovery codes, and how long a code counts as
fresh.
"""

import re
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from backoffice.accounts.models import RECOVERY_CODE_COUNT, AuthenticatorDevice, RecoveryCode, User
from backoffice.accounts.sessions import StaffRequest, check_not_ended, delete_other_sessions
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core import clock

SECOND_FACTOR_FRESH = timedelta(minutes=5)
"""How long a second factor counts for actions that ask for a fresh one."""


class EnrolmentNotAllowedError(Exception):
    """Replacing an authenticator needs a fresh second factor, and an enrolment begun in this session."""

    def __init__(self) -> None:
        super().__init__(gettext("This setup is no longer valid. Nothing was changed. Start again."))


def is_second_factor_fresh(second_factor_at: datetime | None, *, now: datetime | None = None) -> bool:
    """Whether the second factor was given within the last five minutes, by the database's clock.

    A time in the future is not fresh: it would remain so for as long as the clock was ahead.
    """
    if second_factor_at is None:
        return False
    return timedelta(0) <= (now or clock.now()) - second_factor_at <= SECOND_FACTOR_FRESH


class EnrolmentNeedsLinkError(EnrolmentNotAllowedError):
    """Nothing in this session proves more than the password, and the person has no authenticator."""


def authenticator_of(user: User) -> AuthenticatorDevice | None:
    """The person's confirmed authenticator, if any."""
    return AuthenticatorDevice.objects.filter(user=user, confirmed=True).first()


def wait_before_next_code(user: User) -> timedelta | None:
    """How long the person's next code is refused after wrong ones; None if it is not."""
    device = authenticator_of(user)
    return device.wait() if device else None


def recovery_codes_left(user: User) -> int:
    """The number of unused recovery codes."""
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


@transaction.atomic
def issue_recovery_codes(user: User) -> list[str]:
    """Ten new codes; all earlier ones become invalid.

    Only their hashes are stored, so the codes must be shown now. The person has to confirm that they are
    stored before any other page opens.
    """
    codes = [RecoveryCode.generate() for _ in range(RECOVERY_CODE_COUNT)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(
        RecoveryCode(user=user, digest=RecoveryCode.digests(code, user_id=user.pk)[0]) for code in codes
    )
    User.objects.filter(pk=user.pk).update(recovery_codes_stored_at=None)
    record(Action.RECOVERY_CODES_ISSUED, actor=user)
    return codes


@transaction.atomic
def confirm_recovery_codes_stored(user: User) -> None:
    """Record that the person has stored the codes. Without codes nothing changes."""
    has_codes = RecoveryCode.objects.filter(user=user, used_at=None).exists()
    unconfirmed = User.objects.filter(pk=user.pk, recovery_codes_stored_at=None)
    if has_codes and unconfirmed.update(recovery_codes_stored_at=timezone.now()):
        record(Action.RECOVERY_CODES_STORED, actor=user)


def second_factor_at(request: StaffRequest) -> datetime | None:
    """When the second factor was last given in this session; None if never."""
    return request.session.second_factor_at


def has_fresh_second_factor(request: StaffRequest) -> bool:
    """Whether the second factor was given in this session within `SECOND_FACTOR_FRESH`."""
    return is_second_factor_fresh(second_factor_at(request), now=request.session.now)


@transaction.atomic(durable=True)
def confirm_second_factor(request: StaffRequest, code: str) -> bool:
    """Check a code of the authenticator or a recovery code, and record the second factor in the session.

    Either is accepted once. False if it is wrong, used, or too soon after a wrong one; that is audited. The
    transaction is durable, so that an outer rollback cannot undo a refusal.
    """
    device = authenticator_of(User.objects.get_locked(request.user.pk))
    check_not_ended(request)
    if device is None:
        return False
    completes_sign_in = request.session.authenticator is None
    normalized_code = re.sub(r"[\s-]", "", code)
    is_recovery_code = re.fullmatch(r"[0-9]{6}", normalized_code) is None
    accepts = _accepts_recovery_code if is_recovery_code else AuthenticatorDevice.verify_token
    if not accepts(device, normalized_code):
        return _record_refusal(request, device)
    request.session.confirm_second_factor(device)
    if is_recovery_code:
        unused_codes = recovery_codes_left(request.user)
        record(Action.RECOVERY_CODE_USED, actor=request.user, unused_codes=unused_codes)
    record(
        Action.SIGN_IN_COMPLETED if completes_sign_in else Action.SECOND_FACTOR_CONFIRMED, actor=request.user
    )
    return True


def _accepts_recovery_code(device: AuthenticatorDevice, code: str) -> bool:
    """Use up a recovery code. A wrong one delays the next attempt like a wrong code of the authenticator."""
    if device.wait() is not None:
        return False
    digests = RecoveryCode.digests(code, user_id=device.user_id)
    unused = RecoveryCode.objects.filter(user=device.user_id, digest__in=digests, used_at=None)
    if unused.update(used_at=timezone.now()) != 1:
        device.record_failure()
        return False
    device.clear_failures()
    return True


def _record_refusal(request: StaffRequest, device: AuthenticatorDevice) -> bool:
    reason = "too soon after a wrong code" if device.wait() else "wrong or used code"
    if not device.is_genuine:
        reason = "authenticator altered outside Countersign"
    record(Action.SECOND_FACTOR_REFUSED, actor=request.user, reason=reason)
    return False


_PENDING_KEY = "pending_authenticator"


@transaction.atomic
def begin_enrolment(request: StaffRequest) -> AuthenticatorDevice:
    """The authenticator that this session is enrolling; the same one on every load of the page.

    Its seed was generated in this session: one begun by another session is deleted, so that a seed seen there
    cannot be confirmed here. Raises EnrolmentNotAllowedError, or its subclass EnrolmentNeedsLinkError for a first
    authenticator in a session that no one-time link opened.
    """
    User.objects.get_locked(request.user.pk)
    _check_may_enrol(request)
    device = _pending_device(request)
    if device is None:
        AuthenticatorDevice.objects.filter(user=request.user, confirmed=False).delete()
        device = AuthenticatorDevice(user=request.user, confirmed=False)
        device.set_new_seed()
        device.save(force_insert=True)
        request.session[_PENDING_KEY] = str(device.pk)
    return device


@transaction.atomic(durable=True)
def finish_enrolment(request: StaffRequest, code: str) -> bool:
    """Confirm the new authenticator with its first code; it replaces the earlier one.

    All other sessions of the person end. False if the code is wrong, which is audited. Raises
    EnrolmentNotAllowedError if another enrolment was finished first or the second factor is no longer fresh.
    """
    user = User.objects.get_locked(pk=request.user.pk)
    _check_may_enrol(request)
    device = _pending_device(request)
    if device is None:
        raise EnrolmentNotAllowedError
    if not device.verify_token(code.replace(" ", "")):
        record(Action.SECOND_FACTOR_REFUSED, actor=user, reason="wrong code while setting up")
        return False
    request.session.pop(_PENDING_KEY)
    request.session.end_enrolment()
    _activate(request, device)
    record(Action.AUTHENTICATOR_ENROLLED, actor=user)
    return True


def _check_may_enrol(request: StaffRequest) -> None:
    """A replacement needs a fresh second factor, the first authenticator a session that a one-time link opened.

    The password does not suffice: whoever can delete the authenticator's row would need nothing else.
    """
    check_not_ended(request)
    if authenticator_of(request.user) is not None:
        if not is_second_factor_fresh(request.session.second_factor_at):
            raise EnrolmentNotAllowedError
    elif not request.session.allows_enrolment:
        raise EnrolmentNeedsLinkError


def _pending_device(request: StaffRequest) -> AuthenticatorDevice | None:
    """The authenticator that this session is enrolling."""
    claimed = request.session.get(_PENDING_KEY)
    return AuthenticatorDevice.objects.filter(user=request.user, confirmed=False, pk=claimed).first()


def _activate(request: StaffRequest, device: AuthenticatorDevice) -> None:
    request.session.forget_second_factor()  # otherwise deleting the authenticator would end this session
    request.session.confirm_second_factor(device)
    delete_other_sessions(request)
    AuthenticatorDevice.objects.filter(user=request.user, confirmed=True).delete()
    AuthenticatorDevice.objects.filter(pk=device.pk).update(confirmed=True)
    device.confirmed = True
    User.objects.filter(pk=request.user.pk).update(recovery_codes_stored_at=None)
