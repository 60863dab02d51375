"""Functions that run inside Django, each in its own process, on the database of `measures.py`:
`python -m tools.inside_django tools.bench.payouts.process <function> <JSON>`.

Each returns what its step cost: seconds without those spent on requests to the provider, queries, and the MiB by which
the memory of the process grew at most. Of a page, the median of some times.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.models import Sum
from django.test import Client
from django.utils import timezone
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.sessions import SessionStore
from backoffice.operations.batches import checking, creation, files, submission
from backoffice.operations.models.batches import BatchRow, PayoutFile
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tools.browser import forms_of

ROUNDS = 7
PREPARER, APPROVERS = "Tunde Bello", ("Amara Okafor", "Chidi Nwosu")
_STATUS = Path("/proc/self/status")


class Cost:
    """What the work of a block costs; complete once the block has ended."""

    def __init__(self) -> None:
        self.seconds, self.processor = 0.0, 0.0
        self.provider_seconds, self.provider_processor = 0.0, 0.0
        self.queries, self.growth, self.bytes = 0, 0.0, 0

    def as_json(self) -> dict[str, float]:
        names = ("seconds", "processor", "queries", "growth", "bytes")
        return {name: getattr(self, name) for name in names}

    def count_query(self, execute: Any, query: str, values: Any, many: bool, context: Any) -> Any:
        self.queries += 1
        return execute(query, values, many, context)


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of the block."""
    cost = Cost()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began, worked = _mebibytes("VmRSS"), time.perf_counter(), time.process_time()
    with ExitStack() as stack:
        stack.enter_context(connection.execute_wrapper(cost.count_query))
        stack.enter_context(_provider_time(cost))
        yield cost
    cost.seconds = time.perf_counter() - began - cost.provider_seconds
    cost.processor = time.process_time() - worked - cost.provider_processor
    cost.growth = max(_mebibytes("VmHWM") - before, 0.0)


@contextmanager
def _provider_time(cost: Cost) -> Iterator[None]:
    """Count within the block how long requests to the provider take."""
    send = HTTPAdapter.send

    def timed(adapter: HTTPAdapter, request: PreparedRequest, **options: Any) -> Response:
        began, worked = time.perf_counter(), time.process_time()
        try:
            return send(adapter, request, **options)
        finally:
            cost.provider_seconds += time.perf_counter() - began
            cost.provider_processor += time.process_time() - worked

    with patch.object(HTTPAdapter, "send", timed):
        yield


def _mebibytes(name: str) -> float:
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    return next(int(words[1]) / 1024 for words in lines if words[0] == f"{name}:")


def check(path: str) -> dict[str, Any]:
    """Check the file of withdrawals at this path."""
    preparer = User.objects.get(full_name=PREPARER)
    file = files.upload_file(
        actor=preparer,
        kind="withdrawal",
        name="payday.csv",
        content=Path(path).read_bytes(),
        language="en",
    )
    files.check_columns(file.pk, actor=preparer, mapping=file.mapping)
    with measured() as cost:
        while checking.check_file(file.pk):
            pass
    file.refresh_from_db()
    if file.error_count or file.checked_count != file.row_count:
        raise ValueError(list(file.rows.filter(has_errors=True).values_list("errors", flat=True)[:3]))
    return cost.as_json()


def store() -> dict[str, Any]:
    """Submit the file for approval."""
    file = PayoutFile.objects.get(state="checked")
    with measured() as cost:
        submission.submit_file(file.pk, actor=file.uploader)
    return cost.as_json()


def approve() -> dict[str, Any]:
    """Approve the batch, by as many people as it needs."""
    batch = _batch()
    total = BatchRow.objects.filter(batch=batch).aggregate(total=Sum("amount"))["total"]
    people = [User.objects.get(full_name=name) for name in APPROVERS[: batch.approvals_needed]]
    with measured() as cost:
        for person in people:
            approvals.approve_operation(
                batch.pk,
                actor=person,
                digest=batch.digest,
                second_factor_at=timezone.now(),
                confirmation=approvals.ApproverConfirmation(str(total)),
            )
    return cost.as_json()


def create() -> dict[str, Any]:
    """Make the rows of the batch operations."""
    batch = _batch()
    with measured() as cost:
        creation.create_operations(batch.pk)
    if BatchRow.objects.filter(batch=batch, operation__isnull=True).exists():
        raise ValueError("Some rows are no operations")
    return cost.as_json()


def pages() -> dict[str, Any]:
    """Open each page of the batch, then confirm to send all of it."""
    batch, client = _batch(), _signed_in(APPROVERS[0])
    send = f"/operations/send/?batch={batch.reference}"
    paths = {
        "batch": batch.get_absolute_url(),
        "rows": f"{batch.get_absolute_url()}rows/",
        "list": "/operations/",
        "send": send,
    }
    found = {name: _opened(client, path) for name, path in paths.items()}
    given = next(form.values for form in forms_of(_text(client, send)) if "selection" in form.values)
    with measured() as cost:
        answer = client.post(send, given)
    if answer.status_code != 302:
        raise ValueError(f"{send} answered {answer.status_code}")
    cost.bytes = len(answer.content)
    progress = BulkRelease.objects.get(pk=given["submission"]).get_absolute_url()
    return {**found, "confirmed": cost.as_json(), "progress": _opened(client, progress)}


def _text(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def _opened(client: Client, path: str) -> dict[str, float]:
    """What opening the page costs when it has been opened before: the median of `ROUNDS`. `growth` is the largest of
    all, the first time included.
    """
    costs = [_open(client, path) for _ in range(1 + ROUNDS)]
    median = sorted(costs[1:], key=lambda cost: cost["seconds"])[ROUNDS // 2]
    return {**median, "growth": max(cost["growth"] for cost in costs)}


def _open(client: Client, path: str) -> dict[str, float]:
    with measured() as cost:
        answer = client.get(path)
    if answer.status_code != 200:
        raise ValueError(f"{path} answered {answer.status_code}")
    cost.bytes = len(answer.content)
    return cost.as_json()


def _batch() -> Operation:
    return Operation.objects.filter(batch__isnull=False).latest("prepared_at")


def _signed_in(name: str) -> Client:
    """The browser of a person who has just confirmed the second factor."""
    user, session = User.objects.get(full_name=name), SessionStore()
    session.update(
        {
            "_auth_user_id": str(user.pk),
            "_auth_user_backend": "backoffice.accounts.roles.StaffBackend",
            "_auth_user_hash": user.get_session_auth_hash(),
        }
    )
    session.create()
    session.confirm_second_factor(AuthenticatorDevice.objects.filter(user=user)[0])
    session.save()
    client = Client(headers={"Host": "127.0.0.1"})
    client.cookies["countersign_session"] = str(session.session_key)
    return client


FUNCTIONS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "check": check,
    "store": store,
    "approve": approve,
    "create": create,
    "pages": pages,
}


def main() -> int:
    """Run the function named by the first argument with the second one; the last line is the result."""
    print(json.dumps(FUNCTIONS[sys.argv[1]](**json.loads(sys.argv[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
