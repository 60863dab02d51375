"""Texts about people who cannot decide yet name the hours of the settings."""

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import AccountChange, RightsGrant
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.delegation import check_delegation
from backoffice.operations.models.operations import Operation
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.refusals.sentences import sentence
from tests import factories
from tests.operations.delegations import leave
from tests.policies.versions import group

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operation(preparer: User, approver: User, second_approver: User, administrator: User) -> Operation:
    """An operation; its second approver got new rights just now."""
    operation = factories.prepared(preparer)
    RightsGrant.objects.create(
        user=second_approver,
        change=AccountChange.ROLES_CHANGED,
        at=timezone.now(),
        operation=operation.pk,
        prepared_by=administrator,
        approved_by=preparer,
    )
    return operation


@pytest.mark.parametrize(("rights", "break_glass", "longest"), [(24, 24, 24), (48, 24, 48), (24, 72, 72)])
def test_the_hours_that_an_approver_waits_at_most_are_those_of_the_settings(
    operation: Operation,
    approver: User,
    second_approver: User,
    settings: Settings,
    rights: int,
    break_glass: int,
    longest: int,
) -> None:
    settings.NEW_RIGHTS_WAIT_HOURS = rights
    settings.BREAK_GLASS_RESTRICTION_HOURS = break_glass
    page = factories.sign_in(Client(), approver).get(operation.get_absolute_url()).content.decode()
    shown = " ".join(strip_tags(page).split())
    assert f"Chidi Nwosu · must wait up to {longest} hours (new account, rights or second factor)" in shown
    with pytest.raises(OperationError, match=rf"without new rights in the last {longest} hours\. Nothing"):
        check_delegation(leave(approver, second_approver, group("Treasury", approver, second_approver)))


def test_a_refusal_that_was_recorded_without_its_hours_is_shown_as_it_was() -> None:
    recorded = {"code": Refusal.DELEGATION_NOT_ENTITLED.value}
    assert "without new rights in the last 24 hours." in sentence(recorded)
