"""Run the integrity checks: one line per rule, exit status 1 if any is broken."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from backoffice.core.web.request_context import call_context
from backoffice.operations.monitoring.inspection import InspectionReport, inspect


class Command(BaseCommand):
    """Checks open, recently closed and some other operations; with `--full`, all of them."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--full",
            action="store_true",
            help="check all operations and the whole audit log, however long it takes",
        )
        parser.add_argument("--json", action="store_true", help="print one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        with call_context(request_id="check_integrity"):
            report = inspect(full=options["full"])
        self.stdout.write(_as_json(report) if options["json"] else _as_lines(report))
        if report.violations:
            raise SystemExit(1)


def _as_lines(report: InspectionReport) -> str:
    return "\n".join([*map(str, report.findings), f"took {report.took:.2f} s"])


def _as_json(report: InspectionReport) -> str:
    rules = {finding.check.name: finding.texts for finding in report.findings}
    return json.dumps({"took": round(report.took, 3), "violations": rules})
