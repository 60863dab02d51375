"""`manage.py resealsecrets`: after it has succeeded, keys behind the newest one may go."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backoffice.accounts.models import AuthenticatorDevice
from backoffice.core import vault


class Command(BaseCommand):
    """Seals every stored secret under the newest key: the seeds of authenticators.

    Tokens that wait for the worker are left alone: they live for 90 seconds at most. May be run again at any time.
    """

    help = "Seal every stored secret under the newest encryption key, so that older keys may be dropped."

    def handle(self, *_args: Any, **_options: Any) -> None:
        newest = vault.newest_key_id()
        devices = AuthenticatorDevice.objects.select_related("user").order_by("pk")
        older = [device for device in devices.iterator() if vault.key_id_of(device.sealed_seed) != newest]
        lost = [device for device in older if not _is_resealed(device)]
        self.stdout.write(f"Sealed {len(older) - len(lost)} secrets anew under the key {newest}.")
        if lost:
            people = ", ".join(sorted({device.user.email for device in lost}))
            raise CommandError(f"The key that sealed these is not configured. Drop no key yet: {people}")
        self.stdout.write(f"Nothing needs another key. Keys behind {newest} may go in two minutes.")


def _is_resealed(device: AuthenticatorDevice) -> bool:
    try:
        device.reseal()
    except vault.VaultError:
        return False
    return True
