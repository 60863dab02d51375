"""The checks of the campaign's figures fail a run when they should."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import ResponseCode, coded
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.faults.conftest import broken_promises
from tests.faults.harness.figures import CampaignFigures, compare_with_provider
from tests.sandbox_process import ROOT

LOST = [coded(ResponseCode.ERROR, error="The connection broke.")]


@dataclass
class FakeLedger:
    """A provider with this ledger."""

    orders: list[dict[str, str]]

    def ledger(self) -> Any:
        return {"differences": [], "orders": self.orders, "payments": []}


Ended = Callable[..., Operation]


@pytest.fixture
def ended(preparer: User, approver: User) -> Ended:
    """A withdrawal after its one attempt, with these values."""

    def make(*statuses: Status, **values: object) -> Operation:
        operation = factories.approved(preparer, approver)
        now = clock.now()
        Attempt.objects.create(
            operation=operation,
            number=1,
            released_by=approver,
            digest=operation.digest,
            started_at=now,
            deadline_at=now,
            **{"closed_at": now if "outcome" in values else None, **values},
        )
        for status in (Status.SENDING, *statuses):
            transition(operation, status)
        return operation

    return make


def done(operation: Operation, transaction_id: str, status: str = "fulfilled") -> dict[str, str]:
    """The provider's record of it."""
    return {
        "transactionId": transaction_id,
        "kind": operation.kind,
        "currency": operation.currency,
        "amount": str(operation.amount),
        "status": status,
    }


def judged(*orders: dict[str, str], fails: bool = True) -> list[str]:
    """What the figures report as missed after comparing the database with these orders of the provider."""
    figures = CampaignFigures()
    if fails:
        with pytest.raises(AssertionError):
            compare_with_provider(FakeLedger(list(orders)), "a part", figures)
    else:
        compare_with_provider(FakeLedger(list(orders)), "a part", figures)
    return broken_promises(figures, "sample")


SUCCEEDED = {"outcome": Outcome.SUCCEEDED, "provider_transaction_id": "T-1"}


def test_operations_closed_as_in_the_ledger_have_no_failures(ended: Ended) -> None:
    operation = ended(Status.UNKNOWN, Status.SUCCEEDED, responses=LOST, **SUCCEEDED)
    assert judged(done(operation, "T-1"), fails=False) == []


def test_two_ledger_entries_of_one_operation_are_a_double_debit(ended: Ended) -> None:
    operation = ended(Status.SUCCEEDED, **SUCCEEDED)
    assert "1 double debits" in judged(done(operation, "T-1"), done(operation, "T-2"))


@pytest.mark.parametrize(
    ("status", "outcome", "named", "judgement"),
    [
        (Status.SUCCEEDED, Outcome.SUCCEEDED, "T-1", "fulfilled T-2"),
        (Status.SUCCEEDED, Outcome.SUCCEEDED, "T-1", ""),
        (Status.FAILED, Outcome.FAILED, None, "fulfilled T-2"),
        (Status.APPROVED, Outcome.NOT_SENT, None, "fulfilled T-2"),
    ],
    ids=["another's", "nobody's", "failed and executed", "to be sent again and executed"],
)
def test_a_closure_that_contradicts_the_ledger_is_wrong(
    ended: Ended, status: Status, outcome: str, named: str | None, judgement: str
) -> None:
    operation = ended(status, outcome=outcome, provider_transaction_id=named)
    orders = [done(operation, judgement.split()[1], judgement.split()[0])] if judgement else []
    assert "1 wrong closures" in judged(*orders)


@pytest.mark.parametrize(
    ("status", "values"),
    [(Status.UNKNOWN, {"responses": LOST}), (Status.UNKNOWN, {"next_check_at": "now"}), (Status.REVIEW, {})],
    ids=["nobody will look", "nobody knows why", "to be reviewed, without a finding"],
)
def test_an_open_operation_without_a_reason_is_counted(
    ended: Ended, status: Status, values: dict[str, str]
) -> None:
    known = {name: clock.now() if value == "now" else value for name, value in values.items()}
    ended(*dict.fromkeys((Status.UNKNOWN, status)), **known)
    assert judged() == ["1 open cases without a reason"]


def test_an_unrequested_ledger_entry_fails_the_cell(ended: Ended) -> None:
    operation = ended(Status.SUCCEEDED, **SUCCEEDED)
    judged(done(operation, "T-1"), {**done(operation, "T-2"), "amount": "3.50"})


def test_an_ambiguous_case_left_to_people_lowers_the_automatic_share(ended: Ended) -> None:
    operation = ended(Status.UNKNOWN, responses=LOST, next_check_at=clock.now())
    assert judged(done(operation, "T-1"), fails=False) == ["closed automatically: 0.0 %, not 99 %"]


@pytest.mark.parametrize(("closed", "missed"), [(98, 1), (99, 0), (100, 0)])
def test_ninety_nine_percent_must_be_closed_automatically(closed: int, missed: int) -> None:
    assert len(CampaignFigures(ambiguous=100, closed_automatically=closed).missed()) == missed


def test_no_ambiguous_cases_meet_the_target() -> None:
    assert CampaignFigures().missed() == []


@pytest.mark.parametrize(
    ("seconds", "is_late"),
    [
        ([1.0, 2.0, 90.0], False),
        ([1.0, 15.0, 90.0], False),
        ([1.0, 15.1, 90.0], True),
        ([90.0, 90.0], False),
        ([], False),
    ],
    ids=["an outlier", "at the limit", "the median", "too few to tell", "none"],
)
def test_a_recovery_is_judged_by_its_median(seconds: list[float], is_late: bool) -> None:
    figures = CampaignFigures()
    figures.recovered("at once", 0.1)
    for took in seconds:
        figures.recovered("slow", took)
    assert bool(broken_promises(figures, "whole")) is is_late
    assert broken_promises(figures, "sample") == []


MISSES_ONE = """
def pytest_collection_finish():
    from tests.faults.harness.figures import FIGURES

    FIGURES.cells["a part"] = FIGURES.double_debits = 1
"""


def test_a_run_fails_by_its_figures_even_if_all_tests_pass(tmp_path: Path) -> None:
    (tmp_path / "misses_one.py").write_text(MISSES_ONE)
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "misses_one",
        "-k",
        "test_no_ambiguous_cases_meet_the_target",
    ]
    ended = subprocess.run(
        [*run, __file__],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert b"1 passed" in ended.stdout
    assert b"MISSED: 1 double debits" in ended.stdout
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
