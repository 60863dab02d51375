"""Settings by state: who approves which change, ends which delegation, acts on which person and recipient."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.access_report import access_rows, report_digest
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.access_review import AccessReviewPayload
from backoffice.operations.kinds.recipient import RecipientChange
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from backoffice.policies.delegations import Delegation
from tests import factories
from tests.operations.delegations import delegated, leave
from tests.operations.kinds.staff import changes
from tests.operations.steps import text_of
from tests.operations.workflow.test_actions_by_state import undone
from tests.policies.versions import group, proposed, put_in_effect
from tests.recipients import recipient_files, registered

pytestmark = [pytest.mark.django_db, pytest.mark.any_engine]

Cast = Mapping[str, User]
ROLES = {
    "preparer": (Role.PREPARER,),
    "approver": (Role.APPROVER,),
    "stand-in": (Role.APPROVER, Role.ADMINISTRATOR),
    "colleague": (Role.APPROVER,),
    "auditor": (Role.AUDITOR,),
    "administrator": (Role.ADMINISTRATOR,),
    "second": (Role.ADMINISTRATOR,),
    "outsider": (),
}


@pytest.fixture
def cast(db: None) -> Cast:
    """People of every role. Where a test needs a group, it has the approver, the stand-in and the colleague."""
    return {
        name: factories.person(name.title(), *roles, email=f"{name}@example.com")
        for name, roles in ROLES.items()
    }


def differences(expected: Mapping[str, str], found: Mapping[str, list[Any]]) -> dict[str, str]:
    """The rows that are not as listed, each with what was found."""
    rows = {name: " ".join(map(str, row)) for name, row in found.items()}
    assert rows.keys() == expected.keys()
    return {name: row for name, row in rows.items() if row.split() != expected[name].split()}


def decided(action: str, operation: Operation, person: User) -> str:
    """The status after this person has tried, or why it was refused."""
    with undone():
        try:
            return str(ACTIONS[action](operation, person).status)
        except OperationError as exc:
            return REASONS[exc.refusal["code"]]


def _reject(operation: Operation, person: User) -> Operation:
    return approvals.reject_operation(
        operation.pk,
        actor=person,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        reason="Not agreed",
    )


def _cancel(operation: Operation, person: User) -> Operation:
    return approvals.cancel_operation(operation.pk, actor=person)


ACTIONS: dict[str, Callable[[Operation, User], Operation]] = {
    "approve": factories.approve,
    "reject": _reject,
    "cancel": _cancel,
}
REASONS = {
    "permission_missing": "role",
    "self_approval": "self",
    "own_rights": "own",
    "status_changed": "status",
    "policy_outdated": "outdated",
    "not_the_preparer": "other",
}
APPROVED_BY = {
    #                         prep. approver  stand-in  colleague aud. admin.    second    outsider
    "invitation":            "role role      succeeded role      role self      succeeded role",
    "rights of the second":  "role role      succeeded role      role self      own       role",
    "policy, put in effect": "role role      status    role      role status    status    role",
    "policy, outdated":      "role role      outdated  role      role self      outdated  role",
    "delegation":            "role role      own       role      role succeeded succeeded role",
    "recipient":             "self succeeded succeeded succeeded role role      role      role",
    "recipient import":      "self succeeded succeeded succeeded role role      role      role",
    "access review":         "role role      succeeded role      role self      succeeded role",
    "withdrawn":             "role role      status    role      role status    status    role",
}  # fmt: skip


REJECTED_BY = {
    #                         prep. approver stand-in colleague aud. admin.   second   outsider
    "invitation":            "role role     rejected role      role self     rejected role",
    "rights of the second":  "role role     rejected role      role self     own      role",
    "policy, put in effect": "role role     status   role      role self     status   role",
    "policy, outdated":      "role role     rejected role      role self     rejected role",
    "delegation":            "role role     own      role      role rejected rejected role",
    "recipient":             "self rejected rejected rejected  role role     role     role",
    "recipient import":      "self rejected rejected rejected  role role     role     role",
    "access review":         "role role     rejected role      role self     rejected role",
    "withdrawn":             "role role     status   role      role status   self     role",
}  # fmt: skip
CANCELLED_BY = {
    #                         prep.     approver  stand-in colleague aud.  admin.    second outsider
    "invitation":            "other     other     other    other     other cancelled other  other",
    "rights of the second":  "other     other     other    other     other cancelled other  other",
    "policy, put in effect": "other     other     other    other     other status    other  other",
    "policy, outdated":      "other     other     other    other     other cancelled other  other",
    "delegation":            "other     cancelled other    other     other other     other  other",
    "recipient":             "cancelled other     other    other     other other     other  other",
    "recipient import":      "cancelled other     other    other     other other     other  other",
    "access review":         "other     other     other    other     other cancelled other  other",
    "withdrawn":             "other     other     other    other     other other     status other",
}  # fmt: skip
DECIDED_BY = {"approve": APPROVED_BY, "reject": REJECTED_BY, "cancel": CANCELLED_BY}


def _review(person: User) -> Operation:
    payload = AccessReviewPayload(digest=report_digest(access_rows()), people=8, rights=8, findings="Fine")
    return factories.prepared_of_kind("access_review", payload, person)


def settings_changes(cast: Cast) -> dict[str, Operation]:
    """One change of each kind, and of each state that a change can be in."""
    administrator, approver = cast["administrator"], cast["approver"]
    cast["preparer"].groups.add(*approver.groups.all())
    treasury = group("Treasury", approver, cast["stand-in"], cast["colleague"])
    put_in_effect({"levels": [{"needed": 1}]})
    rules = [{"when": {"kinds": [kind]}, "levels": [{"needed": 1}]} for kind in ("transfer", "withdrawal")]
    policies = [proposed(administrator, rule, replaces=1) for rule in rules]
    factories.approve(policies[0], cast["second"])
    operations = {
        "invitation": changes.proposed(changes.invitation("Auditor"), administrator),
        "rights of the second": changes.proposed(changes.rights(cast["second"], "Auditor"), administrator),
        "policy, put in effect": policies[0],
        "policy, outdated": policies[1],
        "delegation": factories.prepared_of_kind(
            "delegation", leave(approver, cast["stand-in"], treasury), approver
        ),
        "recipient": factories.prepared_of_kind("recipient", registered.bank_account(), cast["preparer"]),
        "recipient import": recipient_files.prepared(cast["preparer"], recipient_files.users(2)),
        "access review": _review(administrator),
        "withdrawn": changes.proposed(changes.invitation("Approver", name="Bo Li"), cast["second"]),
    }
    Operation.objects.filter(pk=operations["withdrawn"].pk).update(
        status="cancelled", closed_at=timezone.now()
    )
    return operations


@pytest.mark.parametrize("action", list(ACTIONS))
def test_who_decides_a_change_of_settings(cast: Cast, action: str) -> None:
    found = {
        name: [decided(action, operation, person) for person in cast.values()]
        for name, operation in settings_changes(cast).items()
    }
    assert differences(DECIDED_BY[action], found) == {}


ENDED_BY = {
    #               prep. approver stand-in colleague aud. admin. second outsider
    "begins later": "404  ended    ended    404       404  404    404    403",
    "waiting time": "404  ended    ended    404       404  404    404    403",
    "in effect":    "404  ended    ended    404       404  404    404    403",
    "ended":        "404  302      302      404       404  404    404    403",
    "ended early":  "404  302      302      404       404  404    404    403",
}  # fmt: skip


def test_who_ends_a_delegation(cast: Cast) -> None:
    """Its two people, until it has ended: then they are led back, and nothing changes."""
    two = cast["approver"], cast["stand-in"]
    treasury = group("Treasury", *two, cast["colleague"])
    now, hour = timezone.now(), timedelta(hours=1)
    states: dict[str, dict[str, Any]] = {
        "begins later": {"starts_at": now + hour},
        "waiting time": {"agreed_at": now},
        "in effect": {},
        "ended": {"ends_at": now - hour},
        "ended early": {"ended_at": now - hour, "ended_by": two[0]},
    }
    delegations = {state: delegated(*two, treasury, **changes) for state, changes in states.items()}
    found: dict[str, list[Any]] = {state: [] for state in states}
    for person in cast.values():
        client = factories.sign_in(Client(), person)
        for state, delegation in delegations.items():
            found[state].append(_end(client, delegation))
    assert differences(ENDED_BY, found) == {}


def _end(client: Client, delegation: Delegation) -> object:
    with undone():
        answer = client.post(reverse("governance:end_delegation", args=[delegation.pk]))
        ended_at = Delegation.objects.values_list("ended_at", flat=True).get(pk=delegation.pk)
    return "ended" if ended_at != delegation.ended_at else answer.status_code


ACTED_ON_BY = {
    #                            prep. approver stand-in colleague aud. admin. second outsider
    "deactivate, active":       "403   403      302      403       403  302    302    403",
    "deactivate, administrator": "403  403      302      403       403  422    302    403",
    "deactivate, deactivated":  "403   403      422      403       403  422    422    403",
    "end_sessions, active":     "403   403      302      403       403  302    302    403",
    "end_sessions, administrator": "403 403     302      403       403  302    302    403",
    "end_sessions, deactivated": "403  403      302      403       403  302    302    403",
}  # fmt: skip


def test_who_acts_on_a_person(cast: Cast) -> None:
    """Any administrator can, but not on their own account, and an account is not deactivated twice."""
    gone = factories.person("Gone Person", Role.AUDITOR)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    people = {"active": cast["colleague"], "administrator": cast["administrator"], "deactivated": gone}
    found: dict[str, list[Any]] = {name: [] for name in ACTED_ON_BY}
    for person in cast.values():
        client = factories.sign_in(Client(), person)
        for name, row in found.items():
            action, _, state = name.partition(", ")
            address = reverse(f"governance:{action}", args=[people[state].pk])
            with undone():
                row.append(client.post(address, {"reason": "Left"}).status_code)
    assert differences(ACTED_ON_BY, found) == {}


OFFERED = {
    "suggested": ["add", "retire"],
    "approved": ["change", "retire"],
    "retired": ["add"],
    "waiting": [],
}


def test_what_the_page_of_a_recipient_offers_to_whom(cast: Cast) -> None:
    """The preparer alone changes recipients, in whichever state they allow it; everybody else reads, if any role."""
    preparer = cast["preparer"]
    two = preparer, cast["approver"]
    address = registered.agreed(registered.address(), *two)
    waiting = registered.agreed(registered.bank_account("1111112222"), *two)
    states = {
        "suggested": registered.suggested(preparer),
        "approved": registered.agreed(registered.user(), *two),
        "retired": registered.agreed(registered.changed(address, RecipientChange.RETIRE), *two),
        "waiting": waiting,
    }
    factories.prepared_of_kind("recipient", registered.changed(waiting, alias="Rent 2"), preparer)
    wrong = []
    for name, person in cast.items():
        client = factories.sign_in(Client(), person)
        for state, version in states.items():
            answer = client.get(version.get_absolute_url())
            offered = re.findall(r"\?change=(\w+)", text_of(answer))
            expected = OFFERED[state] if name == "preparer" else []
            if answer.status_code != (403 if name == "outsider" else 200) or offered != expected:
                wrong.append((name, state, answer.status_code, offered))
    assert wrong == []
