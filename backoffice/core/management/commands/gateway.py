"""`manage.py gateway`: check the connection to the provider with read-only requests, or list the API calls."""

import logging
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from backoffice.core.credentials import KeyInUse, environment_key, key_in_use
from backoffice.core.gateway import client_configuration, provider_profile
from backoffice.core.logs import calls_logged_from
from payments_gateway import NotSentError
from payments_gateway.config import GatewayConfig
from payments_gateway.diagnostics import (
    DiagnosticOutcome,
    DiagnosticResult,
    SampleAccount,
    base_url_of,
    run_diagnostics,
)
from payments_gateway.operations import OPERATIONS, ApiOperation
from payments_gateway.profile.model import PROFILES, ProfileName, ProviderProfile
from payments_gateway.resources.extras import EXTRA_OPERATIONS

WIDTH = 120
_CALL_TIMEOUT = 10.0  # seconds for one request
_CLOCK_TOLERANCE = 5  # seconds; the Date header has whole seconds, plus latency
_FINDING_WIDTHS = (23, 22, 9)
_FIT_WIDTHS = (23,)
_UNCHECKED_WIDTHS = (26, 26)
_SHOWN_BY_WRITES = {
    "otp_required": "withdraw, transfer, keys",
    "service_username_member": "payments.create",
    "account_currencies": "accounts.create",
    "key_generate_path": "api_keys.generate",
    "key_invalidate_path": "api_keys.invalidate",
    "key_delete_path": "api_keys.delete",
}
"""Fields of the profile in which the named profiles differ and which no read shows -> the calls that they concern."""
_OPERATION_WIDTHS = (24, 8, 29, 6, 15, 15)


class Command(BaseCommand):
    """Needs only the configuration, and a database for the key in use."""

    help = "Check the connection to the provider with read-only requests, or list the client's API calls."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        check = actions.add_parser("check", help="send every read-only request once and show the results")
        check.add_argument("--account-number", default="", help="with --bank-code: also resolve this account")
        check.add_argument("--bank-code", default="", help="with --account-number: its bank")
        actions.add_parser("operations", help="list the API calls: method, path, base address, effect")

    def handle(self, *args: object, **options: Any) -> None:
        if options["action"] == "operations":
            self._show(_rows_of_operations(), _OPERATION_WIDTHS)
        else:
            self._check(_account(options["account_number"], options["bank_code"]))

    def _check(self, account: SampleAccount | None) -> None:
        """Print each result as it arrives, then the clocks and the conclusion. CommandError if the setup is
        wrong.
        """
        key, key_text = _key()
        config = client_configuration(deadline=_CALL_TIMEOUT, key=key.secret)
        self.stdout.write(
            f"Environment {settings.ENVIRONMENT}. v2 at {config.base_url}, v4 at {config.base_url_v4}.\n"
            f"Provider profile: {settings.GATEWAY_PROFILE or 'specification'}.\n{key_text}\n\n"
        )
        self._show([("OPERATION", "STATUS", "TIME", "UNEXPECTED")], _FINDING_WIDTHS)
        findings = []
        with calls_logged_from(logging.CRITICAL):  # the table says the same
            for finding in run_diagnostics(config, account):
                self._show([_row(finding)], _FINDING_WIDTHS)
                findings.append(finding)
        self.stdout.write("")
        if fitting := list(_fitting_rows(findings)):
            self._show([*fitting, ("", "")], _FIT_WIDTHS)
        self._show(_unchecked_rows(config.profile), _UNCHECKED_WIDTHS)
        self.stdout.write("\n" + "\n".join(_clocks(findings, config)))
        problems = [*_misconfigurations(findings, config), *_wrong_profile(findings)]
        if problems:
            raise CommandError("\n".join(problems))
        self.stdout.write(_summary(findings))

    def _show(self, rows: Iterable[Sequence[str]], widths: Sequence[int]) -> None:
        for row in rows:
            self.stdout.write("\n".join(_lines(row, widths)))


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Align the columns; the last one wraps below itself."""
    *cells, last = row
    head = "".join(
        cell.ljust(width - 1)[: max(width - 1, len(cell))] + " "
        for cell, width in zip(cells, widths, strict=True)
    )
    wrapped = textwrap.wrap(last, max(WIDTH - len(head), 30)) or [""]
    yield (head + wrapped[0]).rstrip()
    yield from (" " * len(head) + line for line in wrapped[1:])


def _key() -> tuple[KeyInUse, str]:
    """The key to use and its description: the key in use, or that of the environment if it cannot be read."""
    try:
        key = key_in_use()
    except NotSentError as exc:
        why = (
            "the database cannot be read"
            if isinstance(exc.__cause__, DatabaseError)
            else "it cannot be decrypted"
        )
        return (
            environment_key(),
            f"Uses the API key of the environment. Whether another one is in use is not known: {why}.",
        )
    return key, f"Uses the API key in use: {key.name}."


def _account(number: str, bank_code: str) -> SampleAccount | None:
    if bool(number) != bool(bank_code):
        raise CommandError("--account-number and --bank-code belong together. Nothing was requested.")
    return SampleAccount(number, bank_code) if number else None


def _row(finding: DiagnosticResult) -> tuple[str, ...]:
    status = finding.outcome.value + (f", HTTP {finding.status}" if finding.status else "")
    elapsed = (
        f"{finding.elapsed.total_seconds() * 1000:.0f} ms"
        if finding.outcome is not DiagnosticOutcome.NOT_CALLED
        else ""
    )
    return finding.operation.name, status, elapsed, "; ".join(finding.remarks) or "none"


def _fitting_rows(findings: Sequence[DiagnosticResult]) -> Iterator[tuple[str, ...]]:
    """Where the named profiles differ, those that the provider fits; then what follows from all of them."""
    compared = _compared(findings)
    if not compared:
        return
    yield "WHERE PROFILES DIFFER", "PROVIDER FITS"
    for name, fits in compared.items():
        yield name, ", ".join(fits) or "none of them: see the unexpected members above"
    if fitting := _fitting(findings):
        yield "all of these", ", ".join(fitting)
    else:
        counts = (f"{sum(name in fits for fits in compared.values())} {name}" for name in PROFILES)
        yield (
            "all of these",
            f"no profile alone ({', '.join(counts)}): name the closer one and override the rest",
        )


def _unchecked_rows(profile: ProviderProfile) -> Iterator[tuple[str, ...]]:
    """The fields of the profile in use that no read can verify, only a call that changes something."""
    yield "NOT CHECKED: WRITES ONLY", "FIELD OF THE PROFILE", "IN USE"
    for name, calls in _SHOWN_BY_WRITES.items():
        value = getattr(profile, name)
        yield calls, name, ", ".join(value) if isinstance(value, tuple) else str(value)


def _compared(findings: Sequence[DiagnosticResult]) -> dict[str, tuple[ProfileName, ...]]:
    """The profiles that fit, for each operation in which the profiles differ."""
    return {finding.operation.name: finding.fits for finding in findings if finding.fits is not None}


def _fitting(findings: Sequence[DiagnosticResult]) -> list[ProfileName]:
    """The profiles that fit everywhere."""
    compared = _compared(findings)
    return [name for name in PROFILES if compared and all(name in fits for fits in compared.values())]


def _clocks(findings: Sequence[DiagnosticResult], config: GatewayConfig) -> Iterator[str]:
    """One line for each base address that reported its time."""
    skews = {
        base_url_of(finding.operation, config): finding.skew
        for finding in findings
        if finding.skew is not None
    }
    for base, skew in skews.items():
        seconds = int(skew.total_seconds())
        if abs(seconds) <= _CLOCK_TOLERANCE:
            yield f"Clock of {base}: correct."
        else:
            offset_text = "ahead of" if seconds > 0 else "behind"
            yield f"Clock of {base}: {abs(seconds)} s {offset_text} ours. One-time codes may be rejected."


def _misconfigurations(findings: Sequence[DiagnosticResult], config: GatewayConfig) -> Iterator[str]:
    """What is wrong in the configuration, one sentence for each base address and reason."""
    reasons = {
        (base_url_of(finding.operation, config), finding.outcome): finding.remarks[0]
        for finding in reversed(findings)
        if finding.is_misconfigured
    }
    for (base, outcome), remark in reversed(reasons.items()):
        problem = (
            "cannot be reached"
            if outcome is DiagnosticOutcome.UNREACHABLE
            else "does not accept our credentials"
        )
        yield f"{base} {problem}: {remark}"
    for base, results in _results_by_base_url(findings, config).items():
        if any(finding.fits for finding in results):
            continue  # the right provider, perhaps under the wrong profile
        if {finding.status for finding in results} == {404}:
            yield f"{base} returned HTTP 404 for every request: the address is probably wrong."
        elif not any(
            finding.outcome is DiagnosticOutcome.ANSWERED or finding.is_misconfigured for finding in results
        ):
            yield f"{base} gave no usable response: address and credentials could not be confirmed."


def _wrong_profile(findings: Sequence[DiagnosticResult]) -> Iterator[str]:
    """What to configure instead, if a named profile is in use and only another one fits. A file is not judged."""
    in_use, fitting = settings.GATEWAY_PROFILE or "specification", _fitting(findings)
    if fitting and in_use in PROFILES and in_use not in fitting:
        yield (
            f"The provider fits the profile {' or '.join(fitting)}, not {in_use}. "
            f"Set COUNTERSIGN_GATEWAY_PROFILE={fitting[0]}."
        )


def _results_by_base_url(
    findings: Sequence[DiagnosticResult], config: GatewayConfig
) -> dict[str, list[DiagnosticResult]]:
    """The results by base address, without operations that were not called."""
    results: dict[str, list[DiagnosticResult]] = {}
    for finding in findings:
        if finding.outcome is not DiagnosticOutcome.NOT_CALLED:
            results.setdefault(base_url_of(finding.operation, config), []).append(finding)
    return results


def _summary(findings: Sequence[DiagnosticResult]) -> str:
    counted = {
        outcome: sum(finding.outcome is outcome for finding in findings) for outcome in DiagnosticOutcome
    }
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in counted.items() if count)
    advice = " Some responses are unusable: check whether the provider profile can map their fields."
    return f"{counts}. Addresses and credentials work.{advice if counted[DiagnosticOutcome.UNUSABLE] else ''}"


def _rows_of_operations() -> Iterator[tuple[str, ...]]:
    yield "CLIENT METHOD", "METHOD", "PATH", "BASE", "EFFECT", "CODE", "KIND OF OPERATION"
    yield from map(_row_of, OPERATIONS)
    yield from map(
        _row_of,
        (EXTRA_OPERATIONS[name] for name in EXTRA_OPERATIONS if name in provider_profile().capabilities),
    )


def _row_of(operation: ApiOperation) -> tuple[str, ...]:
    return (
        operation.name,
        operation.method,
        operation.path_in(provider_profile()),
        operation.endpoint_in(provider_profile()).name[:2].lower(),
        operation.effect.value,
        "one-time code" if operation.needs_otp else "",
        operation.kind,
    )
