"""`manage.py reencrypt_secrets`: encrypt every stored secret with the newest key, so that older keys can be
removed.
"""

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from backoffice.core import encryption
from backoffice.core.encryption import EncryptedRow


class Command(BaseCommand):
    """Covers authenticator seeds, API keys, and secrets to be shown once.

    One-time codes of releases are skipped: they are stored for 90 seconds at most. Safe to repeat.
    """

    help = "Encrypt every stored secret with the newest encryption key, so that older keys can be removed."

    def handle(self, *_args: Any, **_options: Any) -> None:
        newest = encryption.newest_key_id()
        older = [row for row in _encrypted_rows() if row.encryption_key_id != newest]
        undecryptable = [row for row in older if not _is_reencrypted(row)]
        self.stdout.write(f"Encrypted {len(older) - len(undecryptable)} secrets with the key {newest}.")
        if undecryptable:
            owners = ", ".join(sorted({row.owner for row in undecryptable}))
            raise CommandError(
                f"Do not remove any key yet. No configured key can decrypt the secrets of: {owners}"
            )
        self.stdout.write(f"No secret needs an older key. Keys after {newest} can be removed in two minutes.")


def _encrypted_rows() -> list[EncryptedRow]:
    encrypted_models = [model for model in apps.get_models() if issubclass(model, EncryptedRow)]
    return [row for model in encrypted_models for row in model._default_manager.order_by("pk")]


def _is_reencrypted(row: EncryptedRow) -> bool:
    try:
        row.reencrypt()
    except encryption.DecryptionError:
        return False
    return True
