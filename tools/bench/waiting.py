"""P10.waiting: what thousands of releases that wait at one balance cost the pages and the sweeper."""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import requests

from tools.bench.databases import temporary_database
from tools.bench.measure import Measure
from tools.bench.payday import payday_stack
from tools.browser import HttpBrowser
from tools.processes import Stack

FEW = 20  # releases waiting in the measure that is compared with
ROUNDS = 9
BATCH = 5_000  # the most that a file may have
_SENDING_STALLED = {"operation": "balances.transfer", "kind": "delay", "seconds": 25.0, "times": None}
_BATCHES = """
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.operations.batches import checking, creation, files, submission
from backoffice.operations.workflow import approvals
preparer = User.objects.get(full_name="Tunde Bello")
approvers = User.objects.filter(full_name__in=["Amara Okafor", "Chidi Nwosu"])
for first in range(0, {count}, {size}):
    numbers = range(first, min(first + {size}, {count}))
    rows = [f"NGN,{{1000 + number}}.00,person.{{number}},Waiting" for number in numbers]
    content = "\\n".join(["currency,amount,receiver_username,memo", *rows]).encode()
    file = files.upload_file(actor=preparer, kind="transfer", name="w.csv", content=content, language="en")
    files.check_columns(file.pk, actor=preparer, mapping=file.mapping)
    checking.check_file(file.pk, seconds=600)
    batch = submission.submit_file(file.pk, actor=preparer)
    for approver in approvers[:batch.approvals_needed]:
        approvals.approve_operation(
            batch.pk, actor=approver, digest=batch.digest, second_factor_at=timezone.now(),
            confirmation=approvals.ApproverConfirmation(f"{{sum(1000 + number for number in numbers)}}.00"),
        )
    creation.create_operations(batch.pk)
"""
_RELEASES = """
from django.utils import timezone
from backoffice.accounts.models import User
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.models.operations import Operation
approver = User.objects.get(full_name="Amara Okafor")
approved = Operation.objects.filter(status="approved", kind="transfer", release=None, prepared_from__isnull=False)
for pk, digest in list(approved.values_list("pk", "digest")[:{count}]):
    release_operation(pk, actor=approver, digest=digest, second_factor_at=timezone.now())
print("LAST", Operation.objects.exclude(release=None).latest("release__released_at").pk)
"""
_SWEEPS = """
import json, statistics, time
from backoffice.operations import jobs
took = {{}}
for name in ("expire_due", "release_due", "send_due", "check_due"):
    times = []
    for _ in range({rounds}):
        began = time.perf_counter()
        jobs.JOBS[name]()
        times.append(1000 * (time.perf_counter() - began))
    took[name] = statistics.median(times)
print("TOOK", json.dumps(took))
"""


def waiting_measures(releases: int) -> Iterator[Measure]:
    """The slowest page and the slowest job of the sweeper, with this many waiting releases against with few."""
    with (
        temporary_database("waiting") as database,
        tempfile.TemporaryDirectory() as folder,
        payday_stack(database, Path(folder), _BATCHES.format(count=releases, size=BATCH)) as stack,
        HttpBrowser(stack.web) as approver,
    ):
        approver.sign_in("Amara Okafor")
        requests.post(
            f"{stack.sandbox}/_sandbox/faults", json=_SENDING_STALLED, timeout=30
        ).raise_for_status()
        few = _page_times(approver, _release(stack, FEW))
        many = _page_times(approver, _release(stack, releases))
        jobs = _job_times(stack)
    waiting = f"with {releases:,} releases waiting at one balance"
    slowest = max(few, key=lambda page: many[page] / few[page])
    yield Measure(
        "P10.pages",
        f"slowest page ({slowest}) {waiting}, to with {FEW}",
        many[slowest] / few[slowest],
        "x",
        1.5,
    )
    yield Measure("P10.sweep", f"longest round of the sweeper {waiting}", max(jobs.values()), "ms", 200)


def _release(stack: Stack, count: int) -> str:
    """Release so many, and return the path of the one that is last in the queue."""
    printed = stack.manage("shell", "--verbosity", "0", "--command", _RELEASES.format(count=count))
    return f"/operations/{printed.partition('LAST ')[2].strip()}/"


def _page_times(browser: HttpBrowser, last: str) -> dict[str, float]:
    paths = {
        "overview": "/",
        "operations": "/operations/",
        "open operations": "/operations/?tab=open",
        "operations of a kind": "/operations/?kind=transfer",
        "transfers": "/operations/transfers/",
        "the last in the queue": last,
    }
    return {
        page: statistics.median(_milliseconds(browser, path) for _ in range(ROUNDS))
        for page, path in paths.items()
    }


def _milliseconds(browser: HttpBrowser, path: str) -> float:
    began = time.perf_counter()
    browser.get(path)
    return 1000 * (time.perf_counter() - began)


def _job_times(stack: Stack) -> dict[str, float]:
    printed = stack.manage("shell", "--verbosity", "0", "--command", _SWEEPS.format(rounds=ROUNDS))
    took: dict[str, float] = json.loads(printed.partition("TOOK ")[2])
    return took
