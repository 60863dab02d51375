from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backoffice.audit.checkpoints import UnreadableCheckpointError, parse_checkpoint, public_keys
from backoffice.core.management.command_errors import reason_of
from backoffice.retention.archive_file import Archive, InvalidArchiveError, verify_archive


class Command(BaseCommand):
    """Verifies archives of evidence without the database: exit code 0, or 1 and what is wrong."""

    help = "Verify archives of evidence, and that each continues the one before."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="in the order of their time")
        parser.add_argument(
            "--public-key",
            action="append",
            default=[],
            metavar="ID:BASE64",
            help="a key as `verify_audit` prints it; default: those of COUNTERSIGN_AUDIT_CHECKPOINT_KEYS",
        )
        parser.add_argument(
            "--against", type=Path, metavar="FILE", help="also compare with the checkpoints in this file"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        keys = _public_keys(options["public_key"]) or public_keys()
        checkpoints = _checkpoints(options["against"], keys) if options["against"] else {}
        previous, agree = None, 0
        for path in options["files"]:
            try:
                archive = verify_archive(path, keys, checkpoints)
            except (InvalidArchiveError, OSError) as exc:
                raise CommandError(f"{path}: {reason_of(exc)}") from exc
            _check_continues(path, archive, previous)
            compared = _compared(path, archive, checkpoints)
            agree += compared
            header, trailer = archive.header, archive.trailer
            self.stdout.write(
                f"{path}: intact. {header['since']} to {header['until']}, entries {header['first']:,} to "
                f"{trailer['last']:,}, {sum(trailer['counts'].values()):,} rows, signed with {trailer['key']}"
                + (f", {compared:,} checkpoints agree" if options["against"] else "")
            )
            previous = archive
        if options["against"] and not agree:
            raise CommandError(
                f"{options['against']}: no checkpoint could be compared. Is its key given or configured, and does it "
                "have checkpoints of the time of these archives?"
            )


def _public_keys(texts: Iterable[str]) -> dict[str, str]:
    malformed = [text for text in texts if ":" not in text]
    if malformed:
        raise CommandError(f"{malformed[0]!r} is no public key: write ID:BASE64, as `verify_audit` prints it")
    return dict(text.split(":", 1) for text in texts)


def _checkpoints(path: Path, keys: Mapping[str, str]) -> dict[int, list[str]]:
    """The hashes of the checkpoints of a file, by position: more than one if the log was rewritten and signed again."""
    found: dict[int, list[str]] = {}
    try:
        for line in path.read_bytes().splitlines():
            try:
                checkpoint = parse_checkpoint(line, keys)
            except UnreadableCheckpointError:
                continue
            if not checkpoint.is_authentic_by(keys):
                raise CommandError(
                    f"{path}: the signature of the checkpoint of entry {checkpoint.position:,} is invalid"
                )
            found.setdefault(checkpoint.position, []).append(checkpoint.hash)
    except OSError as exc:
        raise CommandError(f"{path}: {reason_of(exc)}") from exc
    return found


def _compared(path: Path, archive: Archive, checkpoints: dict[int, list[str]]) -> int:
    for position, hash_ in archive.heads.items():
        if any(other != hash_ for other in checkpoints[position]):
            raise CommandError(f"{path}: entry {position:,} contradicts its checkpoint")
    return sum(len(checkpoints[position]) for position in archive.heads)


def _check_continues(path: Path, archive: Archive, previous: Archive | None) -> None:
    if previous is None:
        return
    end: Iterable[object] = (previous.trailer["last"] + 1, previous.trailer["hash"])
    if tuple(end) != (archive.header["first"], archive.header["previous_hash"]):
        raise CommandError(f"{path}: it does not continue the archive before it")
