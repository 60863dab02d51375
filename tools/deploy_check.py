"""`manage.py check --deploy` with the settings of a production deployment and throwaway secrets."""

import base64
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tools.processes import ROOT, clean_environment


def main() -> int:
    """Run Django's deployment checks; every warning is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        environment = clean_environment(production_environment(Path(folder)))
        command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode  # noqa: S603


def production_environment(folder: Path) -> dict[str, str]:
    """The variables of a production deployment with its data in this folder and throwaway secrets."""
    return {
        "COUNTERSIGN_ENVIRONMENT": "production",
        "COUNTERSIGN_SECRET_KEY": secrets.token_urlsafe(64),
        "COUNTERSIGN_ENCRYPTION_KEYS": f"first:{base64.b64encode(secrets.token_bytes(32)).decode()}",
        "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS": "https://log.example/checkpoints",
        "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS": f"first:{base64.b64encode(secrets.token_bytes(32)).decode()}",
        "COUNTERSIGN_DATABASE_URL": "postgres://countersign@db.example/countersign?sslmode=verify-full",
        "COUNTERSIGN_BROKER_URL": "rediss://broker.example/0",
        "COUNTERSIGN_DATA_DIR": str(folder),
        "COUNTERSIGN_ALLOWED_HOSTS": "countersign.example",
        "COUNTERSIGN_PUBLIC_URL": "https://countersign.example",
        "COUNTERSIGN_EMAIL_URL": "smtp+tls://countersign@mail.example:587",
        "COUNTERSIGN_WEBHOOK_SECRET": secrets.token_urlsafe(32),
        "COUNTERSIGN_WEBHOOK_KEYS": str(_public_key(folder)),
        "COUNTERSIGN_GATEWAY_URL": "https://service.example/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": "https://service.example/v4",
        "COUNTERSIGN_GATEWAY_API_KEY": "the-key",
        "COUNTERSIGN_GATEWAY_API_USER": "the-merchant",
    }


def _public_key(folder: Path) -> Path:
    """A file with a throwaway public key in place of the provider's."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048).public_key()
    file = folder / "webhook-keys.pem"
    file.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return file


if __name__ == "__main__":
    sys.exit(main())
