"""The merchant's own settings: verification (KYC), and the callback URL of its webhooks.

For the control API: `kyc()` and `set_kyc(True | False)`, an option that the next start or reset switches on again.
For the webhooks: `callback_url()`.
"""

from payments_gateway.sandbox.merchant.models import Profile


def kyc() -> bool:
    """Whether the merchant has completed KYC, which opening a bank account demands."""
    return Profile.objects.get().kyc


def set_kyc(completed: bool) -> None:
    """Let the merchant have completed KYC, or not."""
    Profile.objects.update(kyc=completed)


def callback_url() -> str:
    """Where webhooks go; empty when no address was ever set. One small lookup."""
    return Profile.objects.get().callback_url


def set_callback_url(url: str) -> None:
    """Send webhooks to this address from now on."""
    Profile.objects.update(callback_url=url)
