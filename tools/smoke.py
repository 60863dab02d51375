"""`make smoke`: prepare, approve and send one withdrawal over HTTP with two people, on a stack of its own."""

import csv
import io
import json
import re
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import requests

from tools.browser import BrowserError, HttpBrowser
from tools.processes import Stack, StackError, temporary_stack

AMOUNT = Decimal("123456.78")
CONFIRM_TIMEOUT = 60.0
WITHDRAWAL = {
    "currency": "NGN",
    "amount": str(AMOUNT),
    "bank_code": "044",
    "account_number": "0123456712",
    "name_reason": "Smoke test",
    "memo": "Smoke test",
}


def main() -> int:
    """Print one line of JSON; 0 only if there was exactly one debit of the right amount, and every check
    passed.
    """
    began = time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="countersign-smoke-") as folder,
            temporary_stack(Path(folder)) as stack,
        ):
            observations = run(stack)
    except (StackError, BrowserError) as exc:
        print(json.dumps({"status": "error", "problem": str(exc)}))
        return 1
    observations["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps(observations))
    return 0 if is_passed(observations) else 1


def run(stack: Stack) -> dict[str, Any]:
    """Prepare, approve and send one withdrawal; return what its page, the CSV, the provider and the audit log show."""
    with HttpBrowser(stack.web) as preparer, HttpBrowser(stack.web) as approver:
        preparer.sign_in("Tunde Bello")
        operation = prepare(preparer)
        approver.sign_in("Amara Okafor")
        otp = stack.one_time_code()
        approver.submit(approver.get(operation), "/approve-and-send/", otp=otp)
        status = wait_until_closed(approver, operation)
        rows = list(
            csv.DictReader(io.StringIO(approver.get("/reports/operations.csv").content.decode("utf-8-sig")))
        )
    [row] = [row for row in rows if Decimal(row["Amount"] or 0) == AMOUNT]
    return {
        "status": status if status == row["Status"] else f"{status} on the page, {row['Status']} in the CSV",
        **provider_debits(requests.get(f"{stack.sandbox}/_sandbox/ledger", timeout=10).json()),
        "approvals": len(names(row["Approved by"])),
        "audit_entries": verified_entries(stack),
        "csv_rows": len(rows),
    }


def prepare(browser: HttpBrowser, amount: Decimal = AMOUNT) -> str:
    """Prepare the withdrawal through its review page; returns the path of the operation.

    Raises BrowserError, also for a second one of the same amount, because it does not confirm the duplicate.
    """
    form = browser.get("/operations/prepare/withdrawal/")
    review = browser.submit(
        form,
        "/prepare/withdrawal/",
        **WITHDRAWAL | {"amount": str(amount)},
        typed_name="Somebody Else",
        step="review",
    )
    page = browser.submit(review, "/prepare/withdrawal/", step="prepare")
    return "/" + page.url.split("/", 3)[3]


def wait_until_closed(browser: HttpBrowser, operation: str) -> str:
    """The status on the operation's page once it is closed, or the last status seen."""
    status, deadline = "", time.monotonic() + CONFIRM_TIMEOUT
    while status not in {"succeeded", "failed"} and time.monotonic() < deadline:
        time.sleep(0.3)
        shown = re.search(r'class="badge ([a-z]+)"', browser.get(operation).text)
        status = shown[1] if shown else ""
    return status


def provider_debits(ledger: dict[str, Any]) -> dict[str, Any]:
    """What the provider withdrew to our account: how often the right amount, and the total before fees."""
    account = WITHDRAWAL["account_number"]
    debits = [Decimal(row["amount"]) for row in ledger["withdrawals"] if row["accountNumber"] == account]
    return {"debits_at_provider": debits.count(AMOUNT), "debited": str(sum(debits, Decimal(0)))}


def names(cell: str) -> list[str]:
    """The people listed in one cell of a report; empty for an empty cell."""
    return [name for name in cell.split("; ") if name]


def verified_entries(stack: Stack) -> int:
    """The number of verified entries of the audit log. Raises StackError if the chain is broken."""
    verdict = re.search(r"[\d,]+", stack.manage("verify_audit"))
    return int(verdict[0].replace(",", "")) if verdict else 0


def is_passed(observations: dict[str, Any]) -> bool:
    """Exactly one debit of the right amount, approved once, confirmed, and on record."""
    return (
        observations["status"] == "succeeded"
        and observations["debits_at_provider"] == 1
        and Decimal(observations["debited"]) == AMOUNT
        and observations["approvals"] == 1
        and observations["audit_entries"] > 0
        and observations["csv_rows"] > 0
    )


if __name__ == "__main__":
    sys.exit(main())
