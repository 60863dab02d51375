"""Every action on an operation against every state, role and group: what is done, and why the rest is refused."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import AccountChange, RightsGrant
from backoffice.accounts.roles import Role
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.errors import OperationError
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import BEFORE_SENDING, CLOSED, Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.delegations import delegated
from tests.operations.steps import reloaded
from tests.policies.versions import group, levels, of_group, put_in_effect

pytestmark = [pytest.mark.django_db, pytest.mark.any_engine]

DONE = "done"
REASONS: dict[str, str] = {
    Refusal.SELF_APPROVAL: "self",
    Refusal.PERMISSION_MISSING: "role",
    Refusal.NOT_THE_PREPARER: "other",
    Refusal.NOT_IN_LEVEL: "level",
    Refusal.ON_LEAVE: "leave",
    Refusal.NEW_RIGHTS_WAIT: "new",
    Refusal.STATUS_CHANGED: "status",
    Refusal.WRONG_STATUS: "status",
    Refusal.EXPIRED: "late",
    Refusal.FURTHER_APPROVAL_NEEDED: "more",
    Refusal.ALREADY_APPROVED: "twice",
}

Action = Callable[[Operation, User], object]


def decide(service: Callable[..., Operation], **values: Any) -> Action:
    return lambda operation, person: service(
        operation.pk, actor=person, digest=operation.digest, second_factor_at=timezone.now(), **values
    )


ACTIONS: dict[str, Action] = {
    "approve": decide(approvals.approve_operation),
    "approve and send": decide(approvals.approve_and_release_operation, otp=SecretStr("123456")),
    "reject": decide(approvals.reject_operation, reason="Not ours"),
    "send": decide(release_operation, otp=SecretStr("123456")),
    "cancel": lambda operation, person: approvals.cancel_operation(operation.pk, actor=person),
}

# Of two levels, the first is of Treasury and the second of Directors. All but the last three may approve by role. The
# preparer and the auditor are in both groups, too; "on leave" and "new" are directors: the first has a stand-in,
# and the second got the right within the last 24 hours.
PEOPLE = (
    "preparer",
    "treasurer",
    "director",
    "on leave",
    "new",
    "no group",
    "auditor",
    "administrator",
    "outsider",
)
EXPECTED = {
    #                    prep.  treas.  dir.   leave  new    none   aud.   admin. outs.
    "pending": {
        "approve":          "self  done   level  leave  new    level  role   role   role",
        "approve and send": "self  more   level  leave  new    level  role   role   role",
        "reject":           "self  done   done   done   new    done   role   role   role",
        "send":             "self  status status status new    status role   role   role",
        "cancel":           "done  other  other  other  other  other  other  other  other",
    },
    "first level given": {
        "approve":          "self  twice  done   leave  new    level  role   role   role",
        "approve and send": "self  twice  done   leave  new    level  role   role   role",
        "reject":           "self  done   done   done   new    done   role   role   role",
        "send":             "self  status status status new    status role   role   role",
        "cancel":           "done  other  other  other  other  other  other  other  other",
    },
    "past its expiry": {
        "approve":          "self  late   late   late   new    late   role   role   role",
        "approve and send": "self  late   late   late   new    late   role   role   role",
        "reject":           "self  late   late   late   new    late   role   role   role",
        "send":             "self  status status status new    status role   role   role",
        "cancel":           "done  other  other  other  other  other  other  other  other",
    },
    "approved": {
        "approve":          "status status status status new   status role   role   role",
        "approve and send": "status status status status new   status role   role   role",
        "reject":           "self  status status status new    status role   role   role",
        "send":             "self  done   done   done   new    done   role   role   role",
        "cancel":           "done  other  other  other  other  other  other  other  other",
    },
}  # fmt: skip
INVOLVED = "preparer", "director", "new"
SENT_OR_CLOSED = {
    "approve":          "status status new",
    "approve and send": "status status new",
    "reject":           "self   status new",
    "send":             "self   status new",
    "cancel":           "status other  other",
}  # fmt: skip


def people() -> dict[str, User]:
    roles: dict[str, tuple[Role, ...]] = {
        "preparer": (Role.PREPARER, Role.APPROVER),
        "auditor": (Role.AUDITOR,),
        "administrator": (Role.ADMINISTRATOR,),
        "outsider": (),
    }
    return {
        name: factories.person(
            name.title(), *roles.get(name, (Role.APPROVER,)), email=f"{number}@example.com"
        )
        for number, name in enumerate(PEOPLE)
    }


def pending(cast: dict[str, User]) -> Operation:
    treasury = group("Treasury", cast["treasurer"], cast["preparer"], cast["auditor"])
    directors = group(
        "Directors", *(cast[one] for one in ("director", "on leave", "new", "preparer", "auditor"))
    )
    put_in_effect(levels((1, of_group(treasury)), (1, of_group(directors))))
    delegated(cast["on leave"], cast["director"], directors)
    RightsGrant.objects.create(
        user=cast["new"],
        change=AccountChange.ROLES_CHANGED,
        at=timezone.now(),
        operation=uuid.uuid4(),
        prepared_by=cast["auditor"],
        approved_by=cast["preparer"],
    )
    return factories.prepared(cast["preparer"])


def in_state(state: str, cast: dict[str, User]) -> Operation:
    operation = pending(cast)
    if state == "pending":
        return operation
    factories.approve(operation, cast["treasurer"])
    if state == "past its expiry":
        factories.expire(operation)
    elif state == "approved":
        factories.approve(operation, cast["director"])
    return reloaded(operation)


def moved(operation: Operation, status: str) -> Operation:
    """The same in this status, past services and triggers."""
    closed_at = timezone.now() if status in CLOSED else None
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(status=status, closed_at=closed_at)
    return reloaded(operation)


@contextmanager
def undone() -> Iterator[None]:
    """What is done within is undone afterwards, so that each cell begins with the same rows."""
    savepoint = transaction.savepoint()
    yield
    transaction.savepoint_rollback(savepoint)


def trace(operation: Operation) -> tuple[str, int, bool]:
    found = Operation.objects.get(pk=operation.pk)
    return found.status, found.approvals.count(), Release.objects.filter(pk=operation.pk).exists()


def result(operation: Operation, person: User, action: Action) -> str:
    """What the action of this person came to: done, or why not. Whatever was refused changed nothing."""
    before = trace(operation)
    with undone():
        try:
            action(operation, person)
        except OperationError as exc:
            assert trace(operation) == before
            return REASONS[exc.refusal["code"]]
        assert trace(operation) != before
        return DONE


def wrong_cells(operation: Operation, cast: dict[str, User], expected: dict[str, str]) -> list[str]:
    """The cells of this table that are not as listed, with what they came to."""
    cells = [
        (name, person, answer)
        for name, row in expected.items()
        for person, answer in zip(cast, row.split(), strict=True)
    ]
    found = [(name, one, is_, result(operation, cast[one], ACTIONS[name])) for name, one, is_ in cells]
    return [f"{name} by {one}: {came}, not {is_}" for name, one, is_, came in found if came != is_]


@pytest.mark.parametrize("state", EXPECTED)
def test_each_action_of_each_person_is_answered_as_listed(state: str) -> None:
    cast = people()
    assert wrong_cells(in_state(state, cast), cast, EXPECTED[state]) == []


def test_once_sent_or_closed_nobody_does_anything() -> None:
    cast = people()
    operation = in_state("approved", cast)
    involved = {name: cast[name] for name in INVOLVED}
    wrong = {
        status: wrong_cells(moved(operation, status), involved, SENT_OR_CLOSED)
        for status in Status
        if status not in BEFORE_SENDING
    }
    assert {status: cells for status, cells in wrong.items() if cells} == {}
