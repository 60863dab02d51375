"""Staff, their sessions, and what proves that it is them."""

from backoffice.accounts.models.authenticator import AuthenticatorDevice
from backoffice.accounts.models.recovery import RecoveryCode
from backoffice.accounts.models.session import StaffSession
from backoffice.accounts.models.user import Theme, User

__all__ = ["AuthenticatorDevice", "RecoveryCode", "StaffSession", "Theme", "User"]
