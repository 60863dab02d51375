"""An authenticator of the provider, and how its secret gets into Countersign."""

import uuid

from backoffice.accounts.models import User
from backoffice.operations.kinds.otp_secret import OtpSecretPayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import TotpSecret, otp_secret_in_use
from backoffice.operations.workflow import prepare
from tests import factories

AUTHENTICATOR = TotpSecret(b"12345678901234567890")  # of RFC 6238, appendix B


def prepared(person: User, secret: TotpSecret = AUTHENTICATOR) -> Operation:
    """A pending operation that stores this secret instead of the present one."""
    in_use = otp_secret_in_use()
    payload = OtpSecretPayload(
        fingerprint=secret.fingerprint(),
        algorithm=secret.algorithm,
        digits=secret.digits,
        period=secret.period,
        replaces=in_use.fingerprint if in_use else "",
    )
    return prepare.prepare_operation(
        uuid.uuid4(), actor=person, kind="otp_secret", payload=payload, otp_secret=secret
    )


def stored(person: User, approver: User, secret: TotpSecret = AUTHENTICATOR) -> Operation:
    """The same, approved by a second person: the secret is in use."""
    return factories.approve(prepared(person, secret), approver)
