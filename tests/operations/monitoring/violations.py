"""Violations made in the database past the services, each named after the integrity check that must find it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction
from django.utils import timezone

from backoffice.accounts import staff
from backoffice.accounts.groups import set_groups
from backoffice.accounts.models import AuthenticatorDevice, GroupMembership, SetupLink, StaffGroup, User
from backoffice.accounts.roles import Role
from backoffice.accounts.staff import issue_setup_link
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import CheckpointDestination, Entry, LastVerification
from backoffice.audit.verification import ChainFault, FaultCode
from backoffice.core.models import GatewayKey
from backoffice.operations.lifecycle.delegation import end_delegation
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release
from backoffice.operations.models.secret import Secret
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.states import Outcome, Status
from backoffice.policies.delegations import Delegation
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.delegations import delegated
from tests.policies.versions import put_in_effect
from tests.recipients import registered


def violated_checks(*, full: bool = True) -> set[str]:
    """Without the check that finds what `past_every_safeguard` removed from the database."""
    return set(inspect(full=full).violations) - {"database_rule_altered"}


VIOLATIONS: dict[str, Callable[[dict[str, Operation]], object]] = {}


def violation(act: Callable[[dict[str, Operation]], object]) -> Callable[[dict[str, Operation]], object]:
    VIOLATIONS[act.__name__] = act
    return act


CHECKPOINT_DESTINATION = "file:///nowhere/checkpoints.jsonl"
PLAIN = ("operations_attempt", "operations_approval")


@contextmanager
def past_every_safeguard() -> Iterator[None]:
    """Without triggers, and without constraints on attempts and approvals; afterwards nothing of it has happened."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            for table in PLAIN:
                cursor.execute(f"ALTER TABLE {table} RENAME TO kept_{table}")
                cursor.execute(f"CREATE TABLE {table} AS SELECT * FROM kept_{table}")  # noqa: S608 - our own names
        with lifted(connection):
            yield
        transaction.set_rollback(True)


@violation
def sent_again(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["sent twice"], number=1).update(outcome=Outcome.SUCCEEDED)


@violation
def insufficient_approvals(history: dict[str, Operation]) -> None:
    Approval.objects.filter(operation=history["succeeded"]).delete()


@violation
def insufficient_approvals__but_by_the_preparer(history: dict[str, Operation]) -> None:
    Approval.objects.filter(operation=history["succeeded"]).update(approver=history["succeeded"].preparer)


@violation
def insufficient_approvals__by_a_second_person(history: dict[str, Operation]) -> None:
    Operation.objects.filter(pk=history["succeeded"].pk).update(approvals_needed=2)


@violation
def insufficient_approvals__under_other_content(history: dict[str, Operation]) -> None:
    Approval.objects.filter(operation=history["succeeded"]).update(digest="0" * 64)


@violation
def content_changed(history: dict[str, Operation]) -> None:
    changed = {**history["succeeded"].payload, "amount": "250000.01"}
    Operation.objects.filter(pk=history["succeeded"].pk).update(payload=changed)


@violation
def content_changed__when_it_was_sent(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["succeeded"]).update(digest="0" * 64)


@violation
def altered_record(history: dict[str, Operation]) -> None:
    Release.objects.update(look_alikes=["T-9"])


@violation
def altered_record__of_which_the_log_has_another_approval(history: dict[str, Operation]) -> None:
    pending = history["half signed"]
    audit.record(
        Action.OPERATION_APPROVED,
        actor=pending.preparer,
        target=pending,
        digest=pending.digest,
        status="pending",
    )


@violation
def altered_recipient(history: dict[str, Operation]) -> None:
    somebody, other = User.objects.order_by("pk")[:2]
    registered.many(somebody, other, 1)


@violation
def altered_policy(_history: dict[str, Operation]) -> None:
    """Nobody approved it, although its seal is valid."""
    put_in_effect({"levels": [{"needed": 1}]})


@violation
def altered_policy__that_the_log_still_has(_history: dict[str, Operation]) -> None:
    """Deleted with its operation: only the log says that there was one."""
    put_in_effect({"levels": [{"needed": 1}]}).delete()


@violation
def altered_delegation(history: dict[str, Operation]) -> None:
    """Nobody agreed on it, although its seal is valid."""
    found = Delegation.objects.get()
    delegated(found.stand_in, found.person, found.group)


@violation
def altered_delegation__that_lasts_longer(_history: dict[str, Operation]) -> None:
    Delegation.objects.update(ends_at=timezone.now() + timedelta(days=400))


@violation
def altered_delegation__to_another_person_under_the_same_operation(history: dict[str, Operation]) -> None:
    found = Delegation.objects.get()
    Delegation.objects.all().delete()
    delegated(found.person, history["pending"].preparer, found.group, pk=found.pk, operation=found.operation)


@violation
def altered_delegation__that_is_gone(_history: dict[str, Operation]) -> None:
    Delegation.objects.all().delete()


@violation
def altered_delegation__that_ended_by_the_log(_history: dict[str, Operation]) -> None:
    """The row as it was before, with the seal that it had."""
    found = Delegation.objects.get()
    end_delegation(found.pk, actor=found.person)
    Delegation.objects.update(ended_at=None, ended_by=None, seal=found.seal)


@violation
def unrecorded_right(history: dict[str, Operation]) -> None:
    history["pending"].preparer.groups.add(Group.objects.get(name=Role.APPROVER))


@violation
def unrecorded_right__of_a_deactivated_person(history: dict[str, Operation]) -> None:
    preparer = history["pending"].preparer
    staff.deactivate_staff(preparer.pk, actor=None)
    User.objects.filter(pk=preparer.pk).update(is_active=True)


@violation
def unrecorded_right__of_a_person_whom_nobody_invited(_history: dict[str, Operation]) -> None:
    factories.person("Ola Stranger")


@violation
def altered_account(history: dict[str, Operation]) -> None:
    User.objects.filter(pk=history["pending"].preparer_id).update(
        password=make_password("written from outside")
    )


@violation
def altered_account__without_a_seal(history: dict[str, Operation]) -> None:
    User.objects.filter(pk=history["pending"].preparer_id).update(seal=None)


@violation
def altered_account__by_the_authenticator_of_another(history: dict[str, Operation]) -> None:
    preparer = history["pending"].preparer
    AuthenticatorDevice.objects.filter(user=preparer).delete()
    other = AuthenticatorDevice.objects.exclude(user=preparer).latest("created_at")
    AuthenticatorDevice.objects.filter(pk=other.pk).update(user=preparer)


@violation
def altered_account__by_a_link(history: dict[str, Operation]) -> None:
    issue_setup_link(history["pending"].preparer_id, actor=None)
    SetupLink.objects.update(expires_at=timezone.now() + timedelta(days=400))


@violation
def unrecorded_right__by_a_group(history: dict[str, Operation]) -> None:
    set_groups(history["pending"].preparer, [StaffGroup.objects.get().pk], operation=uuid.uuid4())


@violation
def unrecorded_right__of_a_person_who_left_a_group(_history: dict[str, Operation]) -> None:
    GroupMembership.objects.all().delete()


@violation
def unrecorded_right__by_a_permission_of_the_role(_history: dict[str, Operation]) -> None:
    approve = Permission.objects.get(codename="approve_operation")
    Group.objects.get(name=Role.PREPARER).permissions.add(approve)


@violation
def unrecorded_transition(history: dict[str, Operation]) -> None:
    Operation.objects.filter(pk=history["pending"].pk).update(
        status=Status.CANCELLED, closed_at=timezone.now()
    )


@violation
def unrecorded_transition__recorded_twice(history: dict[str, Operation]) -> None:
    audit.record(Action.OPERATION_CANCELLED, actor=None, target=history["cancelled"])


@violation
def unrecorded_transition__sent_without_a_release(history: dict[str, Operation]) -> None:
    attempt = Attempt.objects.get(operation=history["returned"])
    attempt.pk, attempt.number = 10**6, 2
    attempt.save(force_insert=True)


@violation
def inconsistent_status(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["succeeded"]).update(outcome=Outcome.REJECTED)


@violation
def inconsistent_status__that_names_no_transaction(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["succeeded"]).update(provider_transaction_id=None)


@violation
def inconsistent_status__of_what_was_never_sent(history: dict[str, Operation]) -> None:
    """What is applied here has no attempt; nothing that moves money gets there without one."""
    Operation.objects.filter(pk=history["approved"].pk).update(
        status=Status.SUCCEEDED, closed_at=timezone.now()
    )
    audit.record(Action.OPERATION_APPLIED, actor=None, target=history["approved"])


@violation
def broken_audit_log(history: dict[str, Operation]) -> None:
    Entry.objects.filter(position=3).update(address="10.9.9.9")


@violation
def broken_audit_log__when_all_of_it_was_verified(_history: dict[str, Operation]) -> None:
    fault = ChainFault(3, FaultCode.CONTENT_CHANGED).detail
    LastVerification.objects.create(pk=1, at=timezone.now(), verified=2, newest_hash="0" * 64, fault=fault)


@violation
def checkpoint_contradicted(_history: dict[str, Operation]) -> None:
    fault = ChainFault(3, FaultCode.OTHER_AT_CHECKPOINT, destination=CHECKPOINT_DESTINATION).detail
    CheckpointDestination.objects.create(address=CHECKPOINT_DESTINATION, since=timezone.now(), fault=fault)


@violation
def stale_release(history: dict[str, Operation]) -> None:
    factories.change_release(Release.objects.get(), expires_at=timezone.now() - timedelta(minutes=5))


@violation
def stale_release__that_lives_too_long(history: dict[str, Operation]) -> None:
    factories.change_release(Release.objects.get(), expires_at=timezone.now() + timedelta(minutes=5))


@violation
def stale_release__of_what_is_closed(history: dict[str, Operation]) -> None:
    Release.objects.update(operation=history["cancelled"])


@violation
def unneeded_secret(history: dict[str, Operation]) -> None:
    _keep_secret(history["succeeded"])
    audit.record(Action.SECRET_REVEALED, actor=None, target=history["succeeded"])


@violation
def unneeded_secret__in_use(history: dict[str, Operation]) -> None:
    _keep_secret(history["succeeded"])
    GatewayKey.objects.create(
        name="till",
        made_by=history["succeeded"].pk,
        state=GatewayKey.State.IN_USE,
        since=timezone.now(),
        encrypted_key=b"",
    )


def _keep_secret(operation: Operation) -> None:
    Secret.objects.create(
        operation=operation, viewer=operation.preparer, encrypted_at=timezone.now(), encrypted_value=b""
    )


@violation
def unchecked_outcome(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["unknown"]).update(next_check_at=None)


@violation
def unchecked_outcome__for_long(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["unknown"]).update(
        next_check_at=timezone.now() - timedelta(hours=1)
    )


@violation
def shared_transaction(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["processing"]).update(provider_transaction_id="T-1")


@violation
def two_unknown_at_balance(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["processing"]).update(provider_transaction_id=None)


@violation
def two_under_way_at_balance(history: dict[str, Operation]) -> None:
    unmatched = Attempt.objects.filter(operation__in=[history["processing"], history["unknown"]])
    unmatched.update(provider_transaction_id=None, is_under_way=True)
    unmatched.filter(operation=history["processing"]).update(amount=Decimal(1))
