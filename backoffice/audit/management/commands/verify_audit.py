from typing import Any

from django.core.management.base import BaseCommand

from backoffice.audit.verification import verify_chain


class Command(BaseCommand):
    """Verifies the audit log: exit code 0 and the number of entries, or 1 and the first broken entry."""

    help = "Verify the hash chain of the audit log and report the first broken entry, if any."

    def handle(self, **_options: Any) -> None:
        verdict = verify_chain()
        if not verdict.is_intact:
            self.stderr.write(str(verdict))
            raise SystemExit(1)
        self.stdout.write(str(verdict))
        self.stdout.write(f"newest entry {verdict.verified:,}, hash {verdict.newest_hash}")
