"""`manage.py reencrypt_secrets`: encrypt every stored secret and renew every seal with the newest key, so that older
keys can be removed.
"""

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from backoffice.core import encryption
from backoffice.core.encryption import EncryptedRow, SealedRow


class Command(BaseCommand):
    """Covers authenticator seeds, API keys, and secrets to be shown once; and seals of operations,
    passwords, authenticators and one-time links.

    One-time codes of releases are skipped: they are stored for 90 seconds at most. A seal is renewed only if it
    is valid under its key, so an altered row is not made valid. Safe to repeat.
    """

    help = (
        "Encrypt every stored secret and renew every seal with the newest encryption key, so that older keys can "
        "be removed."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        newest = encryption.newest_key_id()
        older = [row for row in _encrypted_rows() if row.encryption_key_id != newest]
        undecryptable = [row for row in older if not _is_reencrypted(row)]
        self.stdout.write(f"Encrypted {len(older) - len(undecryptable)} secrets with the key {newest}.")
        invalid = self._renew_seals(newest)
        if undecryptable:
            owners = ", ".join(sorted({row.owner for row in undecryptable}))
            raise CommandError(
                f"Do not remove any key yet. No configured key can decrypt the secrets of: {owners}"
            )
        if invalid:
            raise CommandError(
                f"Do not remove any key yet. Not renewed, because the seal is wrong: {', '.join(invalid)}. These rows "
                "were altered outside Countersign, or sealed with a key that is no longer configured. See the runbook, "
                "Forged or altered records."
            )
        self.stdout.write(f"No secret needs an older key. Keys after {newest} can be removed in two minutes.")

    def _renew_seals(self, newest: str) -> list[str]:
        """Renew older seals, and return what the rows with an invalid one belong to."""
        sealed_models = [model for model in apps.get_models() if issubclass(model, SealedRow)]
        renewed, invalid = 0, set()
        for model in sealed_models:
            older = model._default_manager.exclude(seal__startswith=f"{newest}:").exclude(seal=None)
            for row in older.order_by("pk").iterator():
                if row.reseal():
                    renewed += 1
                else:
                    invalid.add(row.owner)
        self.stdout.write(f"Renewed {renewed} seals with the key {newest}.")
        return sorted(invalid)


def _encrypted_rows() -> list[EncryptedRow]:
    encrypted_models = [model for model in apps.get_models() if issubclass(model, EncryptedRow)]
    return [row for model in encrypted_models for row in model._default_manager.order_by("pk")]


def _is_reencrypted(row: EncryptedRow) -> bool:
    try:
        row.reencrypt()
    except encryption.DecryptionError:
        return False
    return True
