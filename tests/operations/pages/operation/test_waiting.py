"""Why an operation waits: levels, who can approve now, and for everybody else why not."""

import pytest
from django.test import Client
from django.utils.html import strip_tags

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.policies.versions import group, levels, of_group, of_people, put_in_effect

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operation(preparer: User, approver: User, second_approver: User, administrator: User) -> Operation:
    factories.person("Ngozi Eze", Role.APPROVER)
    treasury, directors = group("Treasury", approver), group("Directors", second_approver)
    put_in_effect(levels((1, of_group(treasury)), (1, of_group(directors))))
    return factories.prepared(preparer)


def shown_to(person: User, operation: Operation) -> str:
    page = factories.sign_in(Client(), person).get(operation.get_absolute_url())
    return " ".join(strip_tags(page.content.decode()).replace("&#x27;", "'").split())


def test_the_rule_the_levels_and_the_people_are_named(
    operation: Operation, approver: User, second_approver: User
) -> None:
    shown = shown_to(approver, operation)
    assert "Policy 1, rule 1: All operations need 1 of Treasury, then 1 of Directors." in shown
    assert "1 of Treasury · 1 approval missing 1 of Directors · later" in shown
    assert "Can approve Amara Okafor" in shown
    assert "Chidi Nwosu, Ngozi Eze · not in the current level" in shown
    assert "Tunde Bello · prepared it" in shown
    factories.approve(operation, approver)
    shown = shown_to(second_approver, operation)
    assert "1 of Treasury · done (Amara Okafor) 1 of Directors · 1 approval missing" in shown
    assert "Can approve Chidi Nwosu" in shown


def test_who_has_approved_at_a_level_is_named_before_what_is_missing(
    preparer: User, approver: User, second_approver: User
) -> None:
    directors = group("Directors", approver, second_approver)
    put_in_effect(levels((2, of_group(directors)), (1, {})))
    operation = factories.approve(factories.prepared(preparer), approver)
    shown = shown_to(second_approver, operation)
    assert "2 of Directors · Amara Okafor approved · 1 approval missing" in shown


def test_who_is_not_in_the_open_level_can_reject_and_not_approve(
    operation: Operation, approver: User, second_approver: User
) -> None:
    """Nobody is offered what would be refused."""
    buttons = {person: shown_to(person, operation) for person in (approver, second_approver)}
    assert "Comment optional Approve" in buttons[approver]
    assert "Comment optional Approve" not in buttons[second_approver]
    assert "Reject…" in buttons[second_approver]
    assert "Approve or reject" in buttons[approver]
    assert "Approve or reject" not in buttons[second_approver]
    assert "You can reject it, but not approve it." in buttons[second_approver]


def test_nobody_left_is_said_at_once(operation: Operation, approver: User, administrator: User) -> None:
    approver.memberships.all().delete()
    for person in (administrator, approver):
        assert "Too few people can approve at this level (1 of Treasury). Ask an administrator." in shown_to(
            person, operation
        )


def test_a_tightened_policy_is_explained_on_the_approved_operation(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    assert "Needs more approvals" not in shown_to(approver, operation)
    put_in_effect(levels((1, of_people(second_approver))))
    shown = shown_to(approver, operation)
    assert "The approval policies were tightened after the approval. Now required: 1 of Chidi Nwosu." in shown
    assert "Can approve Chidi Nwosu" in shown
    assert "Comment optional Approve" in shown_to(second_approver, operation)


def test_a_policy_that_refuses_now_is_explained(preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    put_in_effect({"refuse": "Year-end closing"})
    assert "An approval policy refuses this: “Year-end closing”." in shown_to(approver, operation)
