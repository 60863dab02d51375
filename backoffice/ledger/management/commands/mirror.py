"""Reads the service's whole list into the mirror, from where the last reading of it ended, and ends."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backoffice.core.context import calling
from backoffice.ledger import mirroring
from backoffice.ledger.books.checking import disagreements
from backoffice.ledger.books.reading import one_moment
from backoffice.ledger.mirror.rows import UnfitRecordError
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.mirror.totals import discrepancies
from backoffice.ledger.mirrored import Mirror
from payments_gateway import GatewayError

_WIDTH = 40
_TAKEN = 3  # the exit code where other processes read all the time


class Command(BaseCommand):
    """The sweeper and beat do the same by themselves; this shows how far it is, and may run beside them."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--full", action="store_true", help="begin again at the first page")
        what.add_argument(
            "--verify",
            action="store_true",
            help="read nothing, but hold the totals and the breaks of the balances against the rows",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with calling(request_id="mirror"):
            if options["verify"]:
                self._verify()
            else:
                self._load(again=options["full"])

    def _load(self, *, again: bool) -> None:
        bar = _Bar(self.stdout)
        try:
            if again:
                mirroring.begin_again()
            mirroring.load(bar.show)
        except mirroring.TakenError as exc:
            bar.end()
            raise CommandError(f"{exc} It goes on by itself.", returncode=_TAKEN) from exc
        except (GatewayError, UnfitRecordError) as exc:
            bar.end()
            raise CommandError(f"{exc} What was read is kept; run this again to go on.") from exc
        bar.end()
        state = mirror_state()
        self.stdout.write(f"{state.rows:,} transactions are here; the service counts {state.listed:,}.")

    def _verify(self) -> None:
        with one_moment():
            found = [*map(str, discrepancies()), *disagreements()]
        for difference in found:
            self.stdout.write(difference)
        if found:
            raise CommandError(f"{len(found)} totals or breaks differ from the rows")
        self.stdout.write("Every total and every break agrees with its rows.")


class _Bar:
    """One line that is written over on a terminal; elsewhere a line whenever another tenth is done."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._shown: object = None

    def show(self, mirror: Mirror) -> None:
        """How far the pass is."""
        if not mirror.pass_depth or not mirror.pass_pages:
            return
        share = min(1.0, mirror.pass_page / mirror.pass_pages)
        line = (
            f"{share:4.0%}  page {mirror.pass_page:,} of {mirror.pass_pages:,}, {mirror.rows:,} transactions"
        )
        if self._out.isatty():
            bar = "█" * int(share * _WIDTH)
            self._out.write(f"\r{bar:░<{_WIDTH}} {line}", ending="")
            self._out.flush()
        elif self._shown != int(share * 10):
            self._out.write(line)
        self._shown = int(share * 10)

    def end(self) -> None:
        """Leave the line on which the bar is."""
        if self._shown is not None and self._out.isatty():
            self._out.write("")
