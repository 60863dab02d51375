from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from backoffice.audit.checkpoints import Comparison, compare_with_log, public_keys, verify_everything
from backoffice.core.management.command_errors import reason_of


class Command(BaseCommand):
    """Verifies the audit log: exit code 0, or 1 and each fault; also 1 if a destination could not be read, or nothing
    in a given file could be compared. The last line says which of these it is.
    """

    help = "Verify the hash chain of the audit log, and compare it with its checkpoints at each destination."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--against",
            type=Path,
            metavar="FILE",
            help="also compare with the checkpoints in this file, such as the messages of a syslog server",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        found = verify_everything()
        of_file = _comparison_with(options["against"])
        comparisons = [*found.comparisons, *of_file]
        faults = [found.chain.fault, *(comparison.fault for comparison in comparisons)]
        if found.chain.is_intact:
            self.stdout.write(str(found.chain))
            self.stdout.write(f"newest entry {found.chain.verified:,}, hash {found.chain.newest_hash}")
        for comparison in comparisons:
            self.stdout.write(_sentence(comparison))
        for key_id, public_key in public_keys().items():
            self.stdout.write(f"public key {key_id}: {public_key}")
        empty = [one.address for one in of_file if not one.compared]
        for address in empty:
            self.stderr.write(f"{address}: no checkpoint could be compared. Is its key configured?")
        for fault in filter(None, faults):
            self.stderr.write(str(fault))
        if any(faults):
            raise CommandError("The audit log is not intact.")
        if empty or any(one.problem for one in comparisons):
            raise CommandError("Not every checkpoint could be compared.")
        self.stdout.write("The audit log is intact.")


def _comparison_with(file: Path | None) -> list[Comparison]:
    if file is None:
        return []
    try:
        with file.open("rb") as lines:
            return [compare_with_log(lines, str(file))]
    except (OSError, ImproperlyConfigured) as exc:
        raise CommandError(f"{file} cannot be compared: {reason_of(exc)}") from exc


def _sentence(comparison: Comparison) -> str:
    if comparison.problem:
        return f"{comparison.address}: not compared. {comparison.problem_sentence}"
    if not comparison.is_readable:
        return f"{comparison.address}: cannot be read back"
    unreadable = f", {comparison.unreadable:,} lines unreadable" if comparison.unreadable else ""
    return f"{comparison.address}: {comparison.compared:,} checkpoints compared{unreadable}"
