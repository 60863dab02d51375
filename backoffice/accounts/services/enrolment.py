"""Setting up an authenticator, for the first time or in place of another."""

from django.db import transaction

from backoffice.accounts import policy, selectors
from backoffice.accounts.errors import EnrolmentNotAllowedError
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.services.sessions import delete_other_sessions
from backoffice.audit.actions import Action
from backoffice.audit.services import record

_PENDING_KEY = "pending_authenticator"


@transaction.atomic
def begin_enrolment(request: StaffRequest) -> AuthenticatorDevice:
    """The authenticator that this session is setting up; the same one however often the page is loaded.

    Its secret was drawn for this session: one that another session began is thrown away, so nobody who saw
    a secret earlier can wait for its owner to confirm it. Raises EnrolmentNotAllowedError.
    """
    User.objects.get_locked(request.user.pk)
    _check_may_enrol(request)
    device = _begun_by(request)
    if device is None:
        AuthenticatorDevice.objects.filter(user=request.user, confirmed=False).delete()
        device = AuthenticatorDevice(user=request.user, confirmed=False)
        device.set_new_seed()
        device.save(force_insert=True)
        request.session[_PENDING_KEY] = str(device.pk)
    return device


@transaction.atomic(durable=True)
def finish_enrolment(request: StaffRequest, code: str) -> bool:
    """Put the new authenticator into force with its first code, in place of an earlier one.

    All other sessions of the person end. False if the code is wrong, which is audited. Raises
    EnrolmentNotAllowedError if somebody else was faster or the second factor is no longer fresh.
    """
    user = User.objects.get_locked(pk=request.user.pk)
    _check_may_enrol(request)
    device = _begun_by(request)
    if device is None:
        raise EnrolmentNotAllowedError
    if not device.verify_token(code.replace(" ", "")):
        record(Action.SECOND_FACTOR_REFUSED, actor=user, reason="wrong code while setting up")
        return False
    request.session.pop(_PENDING_KEY)
    _put_into_force(request, device)
    record(Action.AUTHENTICATOR_ENROLLED, actor=user)
    return True


def _check_may_enrol(request: StaffRequest) -> None:
    has_authenticator = selectors.authenticator_of(request.user) is not None
    policy.check_may_enrol(request.session.second_factor_at, has_authenticator=has_authenticator)


def _begun_by(request: StaffRequest) -> AuthenticatorDevice | None:
    """The authenticator that this session, and no other, is setting up."""
    claimed = request.session.get(_PENDING_KEY)
    return AuthenticatorDevice.objects.filter(user=request.user, confirmed=False, pk=claimed).first()


def _put_into_force(request: StaffRequest, device: AuthenticatorDevice) -> None:
    request.session.forget_second_factor()  # or the session would go with the authenticator that vouched for it
    request.session.confirm_second_factor(device)
    delete_other_sessions(request)
    AuthenticatorDevice.objects.filter(user=request.user, confirmed=True).delete()
    AuthenticatorDevice.objects.filter(pk=device.pk).update(confirmed=True)
    device.confirmed = True
    User.objects.filter(pk=request.user.pk).update(recovery_codes_kept_at=None)
