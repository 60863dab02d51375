"""How the merchant begins: one key, nothing opened, no callback URL, KYC completed."""

from payments_gateway.sandbox.merchant import keys
from payments_gateway.sandbox.merchant.models import ApiKey, BankAccount, Profile
from payments_gateway.sandbox.merchant.scopes import Scope
from payments_gateway.sandbox.wire.credentials import API_KEY

_FIRST_KEY_NAME = "first key"


def prepare() -> None:
    """Make the merchant unless it is there, inside the caller's transaction; KYC is an option, so completed again."""
    if Profile.objects.update(kyc=True) == 0:
        restore()


def restore() -> None:
    """Set everything of the merchant back to its beginning, inside the caller's transaction."""
    for kind in (ApiKey, BankAccount, Profile):
        kind.objects.all().delete()
    Profile.objects.create()
    keys.keep(API_KEY, _FIRST_KEY_NAME, Scope.MASTER, None)
