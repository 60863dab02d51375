"""What the approval policies require of recipients: with the settings, and with the version of the preparation."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from pytest_django import Settings

from backoffice import settings_values
from backoffice.accounts.models import User
from backoffice.operations import errors
from backoffice.operations.allow_list import cools_until, demanded_by_deployment, requirements_for
from backoffice.operations.approval.waiting import operations_waiting_for
from backoffice.operations.delivery import send
from backoffice.operations.kinds.recipient import RecipientChange
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.selectors import current_policy
from backoffice.operations.states import Status
from backoffice.policies.document import RecipientRequirements
from backoffice.policies.models import PolicyVersion
from backoffice.recipients.models import RecipientVersion
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.operations.provider_list import NAMED
from tests.operations.steps import show, status_of, text_of
from tests.policies.versions import put_in_effect
from tests.recipients import registered
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

LISTED: dict[str, Any] = {"approved_only": ["withdrawal", "transfer"]}
COOLING: dict[str, Any] = {"cooling": {"hours": 24}}
WITH_APPROVAL: dict[str, Any] = {"cooling": {"hours": 24, "extra_approval": True}}
WITH_CEILING: dict[str, Any] = {
    "cooling": {"hours": 24, "ceilings": [{"currency": "NGN", "amount": "300000"}]}
}
NOTHING: dict[str, Any] = {}


@pytest.fixture
def ada(preparer: User, approver: User) -> RecipientVersion:
    """The recipient of `factories.payload`, whom two people agreed on."""
    return registered.agreed(registered.bank_account(), preparer, approver)


def require(members: dict[str, Any]) -> PolicyVersion:
    return put_in_effect(recipients=members)


def claim(operation: Operation) -> send.SendClaim | None:
    release = Release.objects.select_related("operation").get(pk=operation.pk)
    return send.claim_operation(operation.pk, send.preflight_read(release))


def released(preparer: User, approver: User) -> Operation:
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver)
    return operation


# The allow-list


def test_the_policy_in_effect_refuses_recipients_outside_the_register(preparer: User) -> None:
    require(LISTED)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.prepared(preparer)
    assert not Operation.objects.exists()


def test_a_tightened_policy_holds_at_every_later_step(
    preparer: User, approver: User, second_approver: User, provider: StubProvider
) -> None:
    pending, approved = factories.prepared(preparer), factories.approved(preparer, approver)
    sent = released(preparer, approver)
    require(LISTED)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.approve(pending, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.release(approved, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        claim(sent)
    assert status_of(sent) == Status.APPROVED
    assert provider.changes == []


def test_a_loosened_policy_frees_nothing_that_waits(
    preparer: User, approver: User, ada: RecipientVersion, provider: StubProvider
) -> None:
    require(LISTED)
    pending, approved = factories.prepared(preparer), factories.approved(preparer, approver)
    sent = released(preparer, approver)
    registered.agreed(registered.changed(ada, RecipientChange.RETIRE), preparer, approver)
    require(NOTHING)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.approve(pending, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.release(approved, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        claim(sent)
    assert provider.changes == []
    assert factories.prepared(preparer, amount="7.00")


def test_the_rows_of_a_batch_keep_the_version_of_their_batch(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    rows = payouts.transfers(2)
    names = [one.cells["receiver_username"] for one in payouts.checked(preparer, rows).rows.all()]
    versions = [registered.agreed(registered.user(one, f"Person {one}"), preparer, approver) for one in names]
    require(LISTED)
    batch = payouts.prepared(preparer, rows)
    require(NOTHING)
    for version in versions:
        registered.agreed(registered.changed(version, RecipientChange.RETIRE), preparer, approver)
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.approve(batch, approver)


def test_the_rows_of_a_file_are_checked_by_the_policy(preparer: User) -> None:
    require(LISTED)
    file = payouts.checked(preparer, payouts.transfers(2))
    assert [row.errors[0][0] for row in file.rows.order_by("number")] == ["receiver_username"] * 2


def test_what_was_prepared_under_an_altered_version_is_not_paid(preparer: User, approver: User) -> None:
    require(COOLING)
    operation = factories.approved(preparer, approver)
    require(NOTHING)
    with lifted(connection):
        PolicyVersion.objects.filter(number=1).update(document={"rules": []})
    with pytest.raises(errors.PolicyAlteredError):
        factories.release(operation, approver)


# Cooling


def test_cooling_of_the_policy_holds_until_it_ends(
    preparer: User, approver: User, ada: RecipientVersion, provider: StubProvider, as_approver: Client
) -> None:
    operation = released(preparer, approver)
    require(COOLING)
    with pytest.raises(errors.RecipientCoolingError):
        claim(operation)
    assert cools_until(ada) == ada.details_since + timedelta(hours=24)
    page = text_of(show(as_approver, operation))
    assert "Cannot be sent yet" in page
    assert "With one more approval" not in page


def test_a_loosened_cooling_holds_what_was_prepared_before(
    preparer: User, approver: User, second_approver: User, ada: RecipientVersion
) -> None:
    require(COOLING)
    before = factories.approved(preparer, approver)
    require(WITH_APPROVAL)
    with pytest.raises(errors.RecipientCoolingError):
        factories.release(before, approver)
    after = factories.approved(preparer, approver, amount="2.00")
    with pytest.raises(errors.ApprovalsMissingError):
        factories.release(after, approver)
    assert set(operations_waiting_for(second_approver)) == {before, after}
    factories.approve(after, second_approver)
    assert factories.release(after, approver)
    require(NOTHING)
    with pytest.raises(errors.RecipientCoolingError):
        factories.release(before, approver)


def test_the_lists_count_the_approval_that_a_policy_permits_in_place_of_cooling(
    preparer: User, approver: User, second_approver: User, ada: RecipientVersion
) -> None:
    require(WITH_APPROVAL)
    operation = factories.approved(preparer, approver)
    require(NOTHING)  # the version of the preparation decides
    assert set(operations_waiting_for(approver)) == set()
    assert set(operations_waiting_for(second_approver)) == {operation}
    factories.approve(operation, second_approver)
    assert set(operations_waiting_for(approver)) == {operation}  # to be sent


def test_a_ceiling_of_the_policy_counts_all_payments_together(
    preparer: User, approver: User, ada: RecipientVersion, provider: StubProvider
) -> None:
    provider.answer_post = lambda: NAMED
    require(WITH_CEILING)
    first = factories.approved(preparer, approver, amount="200000.00")
    second = factories.approved(preparer, approver, amount="150000.00")
    for operation in (first, second):
        factories.release(operation, approver)
    assert send.send_operation(first.pk)
    with pytest.raises(errors.RecipientCoolingError):
        claim(second)


# With the settings


def test_a_policy_cannot_take_away_what_the_settings_demand(preparer: User, settings: Settings) -> None:
    settings.ALLOW_LIST = frozenset({"withdrawal"})
    require({"approved_only": ["transfer"]})
    with pytest.raises(errors.RecipientNotApprovedError):
        factories.prepared(preparer)
    assert requirements_for(current_policy()).approved_only == ("withdrawal", "transfer")


def test_cooling_of_the_settings_holds_whatever_the_policy_permits(
    preparer: User, approver: User, ada: RecipientVersion, settings: Settings
) -> None:
    settings.RECIPIENT_COOLING_HOURS = 24
    require(
        {
            "cooling": {
                "hours": 1,
                "extra_approval": True,
                "ceilings": [{"currency": "NGN", "amount": "9000000"}],
            }
        }
    )
    operation = factories.approved(preparer, approver)
    with pytest.raises(errors.RecipientCoolingError):
        factories.release(operation, approver)
    assert cools_until(ada) == ada.details_since + timedelta(hours=24)


def test_the_settings_without_hours_demand_no_cooling_and_forbid_no_ceiling(settings: Settings) -> None:
    assert demanded_by_deployment() == RecipientRequirements()
    require(WITH_CEILING)
    cooling = requirements_for(current_policy()).cooling
    assert cooling is not None
    assert cooling.ceiling("NGN") == Decimal(300_000)


def test_nothing_is_read_of_earlier_versions_for_what_was_prepared_under_the_one_in_effect(
    preparer: User,
) -> None:
    require(NOTHING)
    operation = factories.prepared(preparer)
    policy = current_policy()
    with connection.execute_wrapper(_refuse):
        assert requirements_for(policy, operation) == RecipientRequirements()


def _refuse(*_: object) -> None:
    raise AssertionError("a query")


@pytest.mark.parametrize("hours", [-1, 8761])
def test_hours_that_no_policy_can_have_are_no_setting(hours: int) -> None:
    assert settings_values.cooling_hours(8760) == 8760
    with pytest.raises(ImproperlyConfigured, match="COUNTERSIGN_RECIPIENT_COOLING_HOURS"):
        settings_values.cooling_hours(hours)


def test_a_kind_that_pays_nobody_is_no_setting() -> None:
    assert settings_values.allow_listed_kinds(["transfer"]) == {"transfer"}
    with pytest.raises(ImproperlyConfigured, match="COUNTERSIGN_ALLOW_LIST"):
        settings_values.allow_listed_kinds(["transfers"])
