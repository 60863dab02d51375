"""`manage.py reencryptsecrets`: encrypt every stored secret with the newest key, so that older keys may be
removed.
"""

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from backoffice.core import encryption
from backoffice.core.encryption import EncryptedRow


class Command(BaseCommand):
    """Encrypts every stored secret with the newest key: authenticator seeds, API keys, secrets to be shown
    once.

    One-time codes that wait for the worker are skipped: they live for 90 seconds at most. Safe to repeat.
    """

    help = "Seal every stored secret under the newest encryption key, so that older keys may be dropped."

    def handle(self, *_args: Any, **_options: Any) -> None:
        newest = encryption.newest_key_id()
        older = [row for row in _encrypted_rows() if row.encryption_key_id != newest]
        lost = [row for row in older if not _is_reencrypted(row)]
        self.stdout.write(f"Sealed {len(older) - len(lost)} secrets anew under the key {newest}.")
        if lost:
            whose = ", ".join(sorted({row.owner for row in lost}))
            raise CommandError(f"The key that encrypted these is not configured. Drop no key yet: {whose}")
        self.stdout.write(f"Nothing needs another key. Keys behind {newest} may go in two minutes.")


def _encrypted_rows() -> list[EncryptedRow]:
    encrypted_models = [model for model in apps.get_models() if issubclass(model, EncryptedRow)]
    return [row for model in encrypted_models for row in model._default_manager.order_by("pk")]


def _is_reencrypted(row: EncryptedRow) -> bool:
    try:
        row.reencrypt()
    except encryption.DecryptionError:
        return False
    return True
