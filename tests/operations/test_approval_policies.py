"""Policies where they decide: when an operation is prepared, approved, released and claimed."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.operations import errors, seals
from backoffice.operations.approval import progress, requirements
from backoffice.operations.approval.waiting import operations_waiting_for
from backoffice.operations.delivery import send
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.kinds.staffing import Staffing, check_staffing
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Operation, Release
from backoffice.operations.models.reason_codes import RecordFault
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.operations.workflow import prepare
from backoffice.policies.models import PolicyVersion, default_document, policy_in_effect
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.steps import status_of
from tests.policies.versions import NGN, group, levels, of_group, of_people, proposed, put_in_effect
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

ABOVE_MILLION: dict[str, Any] = {"currencies": NGN, "amount": {"above": 1_000_000}}


@pytest.fixture
def third_approver(db: None) -> User:
    return factories.person("Ngozi Eze", Role.APPROVER)


def claim(operation: Operation) -> send.SendClaim | None:
    release = Release.objects.select_related("operation").get(pk=operation.pk)
    return send.claim_operation(operation.pk, send.preflight_read(release))


# Preparing


def test_without_a_version_the_limits_of_the_settings_decide(preparer: User) -> None:
    assert policy_in_effect().document == default_document()
    small, large = factories.prepared(preparer), factories.prepared(preparer, amount=Decimal(20_000_000))
    assert [one.approvals_needed for one in (small, large)] == [1, 2]
    assert [one.policy_version for one in (small, large)] == [None, None]
    assert [one.rule["code"] for one in (small, large)] == ["one_approver", "two_above_limit"]


def test_an_operation_keeps_its_version_rule_and_levels(
    preparer: User, approver: User, second_approver: User
) -> None:
    treasury, directors = group("Treasury", approver), group("Directors", second_approver)
    put_in_effect(
        {"when": {"kinds": ["transfer"]}, "levels": [{"needed": 3}]},
        {"when": ABOVE_MILLION, **levels((1, of_group(treasury)), (1, of_group(directors)))},
    )
    operation = factories.prepared(preparer, amount=Decimal(2_000_000))
    operation.refresh_from_db()
    assert (operation.policy_version, operation.approvals_needed, operation.rule["number"]) == (1, 2, "2")
    assert operation.rule_sentence == (
        "Policy 1, rule 2: All operations above NGN 1,000,000.00 need 1 of Treasury, then 1 of Directors."
    )
    assert [level.of.group and level.of.group.name for level in operation.required_levels] == [
        "Treasury",
        "Directors",
    ]
    entry = Entry.objects.get(action=Action.OPERATION_PREPARED)
    assert (entry.detail["policy_version"], entry.detail["levels"]) == (1, operation.levels)


def test_what_no_rule_fits_needs_one_other_person(preparer: User, approver: User) -> None:
    put_in_effect({"when": ABOVE_MILLION, "levels": [{"needed": 3}]})
    operation = factories.prepared(preparer)
    assert (operation.approvals_needed, operation.rule["code"]) == (1, "last_of_policy")
    preparer.groups.add(*approver.groups.all())
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(operation, preparer)
    assert factories.approve(operation, approver).status == Status.APPROVED


def test_a_refused_operation_is_not_prepared(preparer: User) -> None:
    put_in_effect({"when": {"recipient": "new"}, "refuse": "Ask Treasury first"})
    with pytest.raises(errors.PolicyRefusedError, match="Ask Treasury first"):
        factories.prepared(preparer)
    assert not Operation.objects.exists()
    refused = Entry.objects.get(action=Action.OPERATION_ACTION_REFUSED)
    assert refused.detail["refusal"] == {"code": "policy_refused", "reason": "Ask Treasury first"}


def test_totals_count_what_waits_and_not_what_was_cancelled(preparer: User, approver: User) -> None:
    total = {"window": "day", "of": "recipient", "above": 600_000}
    put_in_effect({"when": {"currencies": NGN, "total": total}, "levels": [{"needed": 2}]})
    needed = [factories.prepared(preparer).approvals_needed for _ in range(3)]
    assert needed == [1, 1, 2]
    Operation.objects.exclude(approvals_needed=2).update(status=Status.CANCELLED, closed_at=timezone.now())
    assert factories.prepared(preparer).approvals_needed == 1
    assert factories.prepared_to_another_account(preparer).approvals_needed == 1


def test_totals_end_with_their_window(preparer: User) -> None:
    total = {"window": "day", "of": "preparer", "above": 300_000}
    put_in_effect({"when": {"currencies": NGN, "total": total}, "levels": [{"needed": 2}]})
    earlier = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=earlier.pk).update(prepared_at=timezone.now() - timedelta(hours=25))
    assert [factories.prepared(preparer).approvals_needed for _ in range(2)] == [1, 2]


def test_a_form_submitted_twice_does_not_count_twice_in_its_own_total(preparer: User) -> None:
    """Two requests of a double click: the second one finds the operation of the first, whatever the policy."""
    total = {"window": "day", "of": "preparer", "above": 300_000}
    put_in_effect({"when": {"currencies": NGN, "total": total}, "refuse": "Ask Treasury first"})
    first = factories.prepared(preparer)
    content = KINDS["withdrawal"].read(first.payload)
    again = prepare.prepare_operation(first.pk, actor=preparer, kind="withdrawal", payload=content)
    assert (again, Operation.objects.count()) == (first, 1)


def test_totals_count_what_was_prepared_before_the_clock_was_set_back(preparer: User) -> None:
    """As after a failover to a database server whose clock is behind."""
    total = {"window": "day", "of": "preparer", "above": 300_000}
    put_in_effect({"when": {"currencies": NGN, "total": total}, "levels": [{"needed": 2}]})
    assert factories.prepared(preparer).approvals_needed == 1
    behind = timezone.now() - timedelta(minutes=10)
    with clock.use_clock(lambda: behind):
        assert factories.prepared(preparer).approvals_needed == 2


# Approving


@pytest.fixture
def two_levels(preparer: User, approver: User, second_approver: User, third_approver: User) -> Operation:
    """One of Treasury (`approver`), then one of Directors (`second_approver`)."""
    treasury, directors = group("Treasury", approver), group("Directors", second_approver)
    put_in_effect(levels((1, of_group(treasury)), (1, of_group(directors))))
    return factories.prepared(preparer)


def test_an_approval_counts_for_the_open_level_only(
    two_levels: Operation, approver: User, second_approver: User, third_approver: User
) -> None:
    for person in (second_approver, third_approver):
        with pytest.raises(errors.NotInLevelError, match="1 of Treasury"):
            factories.approve(two_levels, person)
    assert factories.approve(two_levels, approver).status == Status.PENDING
    with pytest.raises(errors.NotInLevelError, match="1 of Directors"):
        factories.approve(two_levels, third_approver)
    assert factories.approve(two_levels, second_approver).status == Status.APPROVED


def test_an_approver_of_both_groups_counts_once(two_levels: Operation, approver: User) -> None:
    directors = approver.memberships.model.objects.exclude(user=approver).get().group
    approver.memberships.create(group=directors, since=timezone.now(), operation=two_levels.pk)
    factories.approve(two_levels, approver)
    with pytest.raises(errors.AlreadyApprovedError):
        factories.approve(two_levels, approver)
    assert status_of(two_levels) == Status.PENDING


def test_a_level_gives_nobody_the_permission(preparer: User, approver: User, administrator: User) -> None:
    put_in_effect(levels((1, of_people(administrator))))
    with pytest.raises(errors.PermissionMissingError):
        factories.approve(factories.prepared(preparer), administrator)


def test_a_preparer_who_is_named_cannot_approve(preparer: User, approver: User) -> None:
    put_in_effect(levels((1, of_people(preparer))))
    operation = factories.prepared(preparer)
    preparer.groups.add(*approver.groups.all())
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(operation, preparer)


# Sending


@pytest.fixture
def released(provider: StubProvider, preparer: User, approver: User, second_approver: User) -> Operation:
    return factories.release(factories.approved(preparer, approver), second_approver)


def test_a_complete_operation_is_sent(
    provider: StubProvider, two_levels: Operation, approver: User, second_approver: User
) -> None:
    for person in (approver, second_approver):
        factories.approve(two_levels, person)
    send.send_operation(factories.release(two_levels, approver).pk)
    assert len(provider.posts) == 1


def test_a_tightened_policy_holds_what_is_released(
    provider: StubProvider, released: Operation, approver: User, second_approver: User, third_approver: User
) -> None:
    put_in_effect({"levels": [{"needed": 3}]})
    send.send_operation(released.pk)
    assert (provider.posts, Release.objects.count(), status_of(released)) == ([], 0, Status.APPROVED)
    refused = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).get()
    assert refused.detail["refusal"] == {"code": Refusal.APPROVALS_MISSING}
    with pytest.raises(errors.ApprovalsMissingError):
        factories.release(released, second_approver)
    with pytest.raises(errors.AlreadyApprovedError):
        factories.approve(released, approver)
    factories.approve(released, second_approver)
    factories.approve(released, third_approver)
    send.send_operation(factories.release(released, second_approver).pk)
    assert len(provider.posts) == 1
    assert not Incident.objects.exists()


def test_a_tightened_policy_holds_at_the_claim_itself(
    provider: StubProvider, released: Operation, second_approver: User
) -> None:
    put_in_effect(levels((1, of_people(second_approver))))
    with pytest.raises(errors.ApprovalsMissingError):
        claim(released)
    assert provider.posts == []


def test_a_policy_that_refuses_now_holds_what_waits(
    provider: StubProvider, released: Operation, preparer: User, approver: User
) -> None:
    waiting = factories.prepared(preparer)
    put_in_effect({"when": {"kinds": ["withdrawal"]}, "refuse": "Bank closed"})
    send.send_operation(released.pk)
    assert (provider.posts, Release.objects.count()) == ([], 0)
    with pytest.raises(errors.PolicyRefusedError):
        factories.approve(waiting, approver)


def test_a_loosened_policy_frees_nothing_that_waits(
    provider: StubProvider, two_levels: Operation, approver: User, second_approver: User
) -> None:
    factories.approve(two_levels, approver)
    put_in_effect({"levels": [{"needed": 1}]})
    assert status_of(two_levels) == Status.PENDING
    assert progress.approval_progress(two_levels).missing == 1
    assert factories.approve(two_levels, second_approver).status == Status.APPROVED


def test_an_approver_who_left_the_group_no_longer_counts_when_it_is_sent(
    provider: StubProvider, two_levels: Operation, approver: User, second_approver: User
) -> None:
    for person in (approver, second_approver):
        factories.approve(two_levels, person)
    factories.release(two_levels, approver)
    second_approver.memberships.all().delete()
    with pytest.raises(errors.ApprovalsMissingError):
        claim(two_levels)
    assert provider.posts == []


def test_a_policy_of_the_same_version_is_not_decided_again(released: Operation) -> None:
    """Nor are the limits of the settings: what was prepared below an earlier limit is sent."""
    assert requirements.required_levels(released) == released.required_levels
    assert claim(released) is not None


# What was altered


def test_levels_do_not_change(two_levels: Operation) -> None:
    for change in ({"levels": None}, {"levels": [{"needed": 1}]}, {"policy_version": None}):
        with pytest.raises(DatabaseError, match="operation_keeps_content"), transaction.atomic():
            Operation.objects.filter(pk=two_levels.pk).update(**change)


@pytest.mark.parametrize(
    "change", [{"levels": None}, {"levels": [{"needed": 1, "of": {}}]}, {"policy_version": 2}]
)
def test_altered_levels_break_the_seal(
    two_levels: Operation, second_approver: User, change: dict[str, Any]
) -> None:
    with lifted(connection):
        Operation.objects.filter(pk=two_levels.pk).update(**change)
    with pytest.raises(errors.AlteredRecordError):
        factories.approve(two_levels, second_approver)
    assert set(Incident.objects.get().evidence["faults"]) >= {
        RecordFault.OPERATION_SEAL,
        RecordFault.LOGGED_PREPARATION,
    }


def test_the_audit_log_has_to_agree_with_the_levels(two_levels: Operation) -> None:
    """Also where the seal is right, as after a theft of the keys."""
    with lifted(connection):
        altered = Operation.objects.get(pk=two_levels.pk)
        altered.levels = [{"needed": 1, "of": {"role": "", "group": None, "named": []}}]
        altered.make_seal()
        altered.save()
    with pytest.raises(errors.AlteredRecordError) as refused:
        seals.check_record(altered, [], None)
    assert refused.value.faults == [RecordFault.LOGGED_PREPARATION]


def test_a_version_is_neither_changed_nor_deleted_nor_replaced(preparer: User) -> None:
    first = put_in_effect({"levels": [{"needed": 2}]})
    with pytest.raises(DatabaseError), transaction.atomic():
        PolicyVersion.objects.update(in_effect_since=timezone.now())
    with pytest.raises(DatabaseError), transaction.atomic():
        PolicyVersion.objects.all().delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        PolicyVersion.objects.create(
            number=3, document={}, digest="", operation=preparer_id(preparer), in_effect_since=timezone.now()
        )
    PolicyVersion.objects.update(seal=first.seal)


def preparer_id(preparer: User) -> str:
    return f"00000000-0000-0000-0000-{preparer.pk:012}"


@pytest.mark.parametrize("change", [{"seal": None}, {"digest": "0" * 64}, {"document": {"rules": []}}])
def test_an_altered_version_stops_everything(
    provider: StubProvider, released: Operation, preparer: User, change: dict[str, Any]
) -> None:
    put_in_effect({"levels": [{"needed": 1}]}, {"levels": [{"needed": 2}]})
    with lifted(connection):
        PolicyVersion.objects.update(**change)
    send.send_operation(released.pk)
    assert provider.posts == []
    with pytest.raises(errors.PolicyAlteredError):
        factories.prepared(preparer)


@pytest.mark.parametrize("is_logged", [True, False])
def test_a_missing_version_stops_what_was_prepared_under_it(
    two_levels: Operation, approver: User, is_logged: bool
) -> None:
    with lifted(connection):
        PolicyVersion.objects.all().delete()
        if not is_logged:
            Entry.objects.filter(action=Action.POLICY_IN_EFFECT).delete()
    with pytest.raises(errors.PolicyAlteredError):
        factories.approve(two_levels, approver)
    with pytest.raises(
        errors.PolicyAlteredError
    ):  # what is required of recipients alone would refuse the approval
        requirements.agreed_levels(Operation.objects.get(pk=two_levels.pk))


def test_an_operation_of_an_earlier_release_needs_as_many_of_everyone(released: Operation) -> None:
    """It has no levels, and its seal was made without them."""
    with lifted(connection):
        old = Operation.objects.get(pk=released.pk)
        old.levels = None
        old.make_seal()
        old.save()
        rows: list[Approval | Release] = [*old.approvals.all(), Release.objects.get(operation=old)]
        for row in rows:
            row.operation = old
            row.make_seal()
            row.save()
        for entry in Entry.objects.filter(action=Action.OPERATION_PREPARED):
            detail = {
                name: value
                for name, value in entry.detail.items()
                if name not in {"levels", "policy_version"}
            }
            Entry.objects.filter(pk=entry.pk).update(detail=detail)
    assert claim(released) is not None


# The kind


def test_two_administrators_put_a_version_into_effect(
    preparer: User, approver: User, second_approver: User, administrator: User
) -> None:
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    operation = proposed(administrator, {"when": ABOVE_MILLION, "levels": [{"needed": 2}]})
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(operation, administrator)
    with pytest.raises(errors.PermissionMissingError):
        factories.approve(operation, approver)
    assert factories.approve(operation, other).status == Status.SUCCEEDED
    version = PolicyVersion.objects.get()
    assert (version.number, version.operation) == (1, operation.pk)
    assert "altered_policy" not in inspect(full=False).violations
    assert factories.prepared(preparer, amount=Decimal(2_000_000)).approvals_needed == 2


def test_a_version_that_was_prepared_beside_another_is_not_applied(
    approver: User, second_approver: User, administrator: User
) -> None:
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    first = proposed(administrator, {"when": ABOVE_MILLION, "levels": [{"needed": 2}]})
    second = proposed(administrator, {"when": ABOVE_MILLION, "levels": [{"needed": 1}]})
    factories.approve(first, other)
    with pytest.raises(errors.PolicyOutdatedError):
        factories.approve(second, other)
    assert PolicyVersion.objects.count() == 1


def test_a_version_that_nobody_can_satisfy_is_not_applied(approver: User, administrator: User) -> None:
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    operation = proposed(administrator, {"when": ABOVE_MILLION, "levels": [{"needed": 2}]})
    with pytest.raises(errors.PolicyUnsatisfiableError, match="Rule 1 cannot be satisfied"):
        factories.approve(operation, other)
    assert not PolicyVersion.objects.exists()


@pytest.mark.parametrize("kind", ["withdrawal", "payment"])
def test_a_rule_about_one_kind_of_payment_needs_enough_people(
    approver: User, administrator: User, kind: str
) -> None:
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    rule = {"when": {**ABOVE_MILLION, "kinds": [kind]}, "levels": [{"needed": 2}]}
    operation = proposed(administrator, rule)
    with pytest.raises(errors.PolicyUnsatisfiableError, match="Rule 1 cannot be satisfied"):
        factories.approve(operation, other)


def test_a_change_of_people_leaves_the_policy_satisfiable(
    preparer: User, approver: User, second_approver: User, administrator: User
) -> None:
    before = Staffing.now()
    check_staffing(before, before.without_person(approver.pk))
    put_in_effect({"when": ABOVE_MILLION, "levels": [{"needed": 2}]})
    with pytest.raises(errors.PolicyUnsatisfiableError):
        check_staffing(before, before.without_person(approver.pk))
    factories.person("Ngozi Eze", Role.APPROVER)
    now = Staffing.now()
    check_staffing(now, now.without_person(approver.pk))


def test_a_rule_that_lacks_people_already_hides_no_other_one(
    preparer: User, approver: User, second_approver: User, administrator: User
) -> None:
    put_in_effect(
        {"when": {"kinds": ["resume"]}, "levels": [{"needed": 5}]},
        {"when": ABOVE_MILLION, "levels": [{"needed": 2}]},
    )
    before = Staffing.now()
    with pytest.raises(errors.PolicyUnsatisfiableError, match="Rule 2 cannot be satisfied"):
        check_staffing(before, before.without_person(approver.pk))
    factories.person("Ngozi Eze", Role.APPROVER)
    check_staffing(before, Staffing.now())  # Rule 1 lacks people whoever prepares, so also for her
    check_staffing(Staffing.now(), before)


def test_a_rule_that_somebody_could_only_satisfy_alone_is_refused(
    approver: User, second_approver: User, administrator: User
) -> None:
    """An approver may prepare a resumption, which one other person then cannot approve twice."""
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    operation = proposed(administrator, {"when": {"kinds": ["resume"]}, "levels": [{"needed": 2}]})
    with pytest.raises(errors.PolicyUnsatisfiableError, match="Amara Okafor"):
        factories.approve(operation, other)


def test_a_name_that_is_another_persons_is_refused(
    approver: User, second_approver: User, administrator: User
) -> None:
    """Whoever approves the version reads the names, and the ids decide."""
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    of = {"named": [{"id": second_approver.pk, "name": approver.full_name}]}
    operation = proposed(administrator, {"when": ABOVE_MILLION, **levels((1, of))})
    with pytest.raises(errors.PolicyNamesOutdatedError):
        factories.approve(operation, other)


def test_an_approved_version_that_is_gone_raises_an_alarm(
    approver: User, second_approver: User, administrator: User
) -> None:
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    operation = proposed(administrator, {"when": ABOVE_MILLION, "levels": [{"needed": 2}]})
    factories.approve(operation, other)
    with lifted(connection):
        PolicyVersion.objects.all().delete()
    found = inspect(full=False).violations["altered_policy"]["references"]
    assert found == ["Approval policy 1", operation.reference]


def deleted_with_its_operation(operation: Operation) -> None:
    """As somebody can who has the database alone."""
    with lifted(connection):
        PolicyVersion.objects.filter(operation=operation.pk).delete()
        Approval.objects.filter(operation=operation.pk).delete()
        Operation.objects.filter(pk=operation.pk).delete()


@pytest.mark.parametrize("before", [0, 1])
def test_a_version_deleted_with_its_operation_stops_everything(
    provider: StubProvider,
    released: Operation,
    preparer: User,
    approver: User,
    administrator: User,
    before: int,
) -> None:
    """Neither the version before it decides, nor the settings."""
    other = factories.person("Bisi Ade", Role.ADMINISTRATOR)
    for _ in range(before):
        put_in_effect({"levels": [{"needed": 1}]})
    waiting = factories.prepared(preparer)
    rule = {"when": ABOVE_MILLION, "levels": [{"needed": 2}]}
    factories.approve(operation := proposed(administrator, rule, replaces=before), other)
    deleted_with_its_operation(operation)
    with pytest.raises(errors.PolicyAlteredError):
        factories.prepared(preparer)
    with pytest.raises(errors.PolicyAlteredError):
        factories.approve(waiting, approver)
    with pytest.raises(errors.PolicyAlteredError):
        claim(released)
    with pytest.raises(errors.PolicyAlteredError):
        factories.approve(proposed(administrator, rule, replaces=before), other)
    assert provider.posts == []
    references = inspect(full=False).violations["altered_policy"]["references"]
    assert references == [f"Approval policy {number}" for number in range(before + 1, 0, -1)]


def test_a_version_that_is_not_in_the_audit_log_decides_nothing(preparer: User) -> None:
    """Also with a valid seal, as after a theft of the keys."""
    put_in_effect({"levels": [{"needed": 2}]})
    with lifted(connection):
        Entry.objects.filter(action=Action.POLICY_IN_EFFECT).delete()
    with pytest.raises(errors.PolicyAlteredError):
        factories.prepared(preparer)
    assert "altered_policy" in inspect(full=False).violations


def test_a_version_costs_one_query(preparer: User, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    factories.prepared(preparer)
    with django_assert_num_queries(1):
        assert policy_in_effect().number is None
    put_in_effect({"levels": [{"needed": 2}]})
    with django_assert_num_queries(1):
        assert policy_in_effect().number == 1


def test_a_proposed_policy_waits_for_the_other_administrator(
    administrator: User, second_administrator: User, approver: User
) -> None:
    operation = proposed(administrator, {"levels": [{"needed": 1}]})
    waiting = [
        operation in operations_waiting_for(one) for one in (administrator, second_administrator, approver)
    ]
    assert waiting == [False, True, False]


@pytest.mark.usefixtures("approver", "second_approver")
@pytest.mark.parametrize("is_reactivated", [False, True])
def test_an_approval_of_somebody_who_was_deactivated_puts_nothing_into_effect(
    administrator: User, second_administrator: User, *, is_reactivated: bool
) -> None:
    """What is applied here is checked at no later moment. Who was reactivated in the database alone stays excluded."""
    third, fourth = (factories.person(name, Role.ADMINISTRATOR) for name in ("Efe Obi", "Ayo Bello"))
    put_in_effect({"when": {"kinds": ["approval_policy"]}, "levels": [{"needed": 2}]})
    operation = proposed(administrator, {"levels": [{"needed": 1}]}, replaces=1)
    factories.approve(operation, second_administrator)
    staff.deactivate_staff(second_administrator.pk, actor=administrator)
    User.objects.filter(pk=second_administrator.pk).update(is_active=is_reactivated)
    assert factories.approve(operation, third).status == Status.PENDING
    assert policy_in_effect().number == 1
    factories.approve(operation, fourth)
    assert policy_in_effect().number == 2
