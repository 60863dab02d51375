"""Load the provider's whole transaction list into the mirror, or verify the mirror's totals and breaks."""

import logging
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backoffice.core.logs import calls_logged_from
from backoffice.core.web.request_context import call_context
from backoffice.ledger.mirror import sync
from backoffice.ledger.mirror.rows import UnstorableRecordError
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.mirror.totals import total_discrepancies
from backoffice.ledger.models import Mirror
from backoffice.ledger.statements.continuity import break_disagreements
from backoffice.ledger.transactions.sql import consistent_read
from payments_gateway import GatewayError

_BAR_WIDTH = 40
_EXIT_CODE_BUSY = 3  # exit code if other processes hold the sync lease all the time


class Command(BaseCommand):
    """Run the sync in the foreground with progress; may run beside the sweeper."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--full", action="store_true", help="restart the full pass at the first page")
        mode.add_argument(
            "--verify",
            action="store_true",
            help="only compare the totals and the continuity breaks with the stored rows",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with call_context(request_id="mirror"):
            if options["verify"]:
                self._verify()
            else:
                self._load(restart=options["full"])

    def _load(self, *, restart: bool) -> None:
        bar = _ProgressBar(self.stdout)
        try:
            if restart:
                sync.restart_full_pass()
            with calls_logged_from(logging.WARNING):  # a line for each page would tear the bar apart
                sync.load_all(bar.show)
        except sync.SyncBusyError as exc:
            bar.end()
            raise CommandError(
                f"{exc} It continues without this command.", returncode=_EXIT_CODE_BUSY
            ) from exc
        except (GatewayError, UnstorableRecordError) as exc:
            bar.end()
            raise CommandError(
                f"{exc} The pages read so far are stored. Run this command again to continue."
            ) from exc
        bar.end()
        state = mirror_state()
        self.stdout.write(
            f"{state.rows:,} transactions stored; the provider's transaction count is {state.provider_count:,}."
        )

    def _verify(self) -> None:
        with consistent_read():
            differences = [*map(str, total_discrepancies()), *break_disagreements()]
        for difference in differences:
            self.stdout.write(difference)
        if differences:
            raise CommandError(f"{len(differences)} totals or breaks differ from the rows")
        self.stdout.write("All totals and continuity breaks agree with the rows.")


class _ProgressBar:
    """A line that is overwritten on a terminal; elsewhere one line for every tenth of the work."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._shown: object = None

    def show(self, mirror: Mirror) -> None:
        """Show the progress of the full pass."""
        if not mirror.pass_depth or not mirror.pass_pages:
            return
        share = min(1.0, mirror.pass_page / mirror.pass_pages)
        line = (
            f"{share:4.0%}  page {mirror.pass_page:,} of {mirror.pass_pages:,}, {mirror.rows:,} transactions"
        )
        if self._out.isatty():
            bar = "█" * int(share * _BAR_WIDTH)
            self._out.write(f"\r{bar:░<{_BAR_WIDTH}} {line}", ending="")
            self._out.flush()
        elif self._shown != int(share * 10):
            self._out.write(line)
        self._shown = int(share * 10)

    def end(self) -> None:
        """End the line of the progress bar."""
        if self._shown is not None and self._out.isatty():
            self._out.write("")
