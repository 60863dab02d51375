"""Factories: plain functions that create people, operations and attempts for tests."""

import itertools
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.restrictions import AccountChange, BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import SessionStore
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.kinds.withdrawal import WithdrawalPayload
from backoffice.operations.lifecycle import incidents, pause
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.monitoring import Incident, LostAttempt
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.otp import UsedOtp
from backoffice.operations.models.reason_codes import PauseCause
from backoffice.operations.workflow import approvals, prepare

PASSWORD = "correct horse battery staple"
_NUMBERS = itertools.count(1)


def person(name: str, *roles: Role, email: str | None = None) -> User:
    """A person with an authenticator and the given roles."""
    user = User(email=email or f"{name.split()[0].lower()}@countersign.example", full_name=name)
    user.set_password(PASSWORD)
    user.recovery_codes_stored_at = timezone.now()
    user.save()
    user.groups.set(Group.objects.filter(name__in=roles))
    device = AuthenticatorDevice(user=user, confirmed=True)
    device.set_new_seed()
    device.save()
    return user


def record_rights() -> None:
    """Have the audit log say that everybody has the rights they have, as if services had given them."""
    with transaction.atomic():
        for user in User.objects.order_by("pk"):
            roles = sorted(user.groups.values_list("name", flat=True))
            audit.record(Action.STAFF_CREATED, actor=None, target=user, email=user.email, roles=roles)
            ids = sorted(user.memberships.values_list("group", flat=True))
            if ids:
                audit.record(Action.STAFF_GROUPS_CHANGED, actor=None, target=user, group_ids=ids)


def sign_in(client: Client, user: User) -> Client:
    """A session with password and second factor, as after the sign-in pages, without requesting them."""
    session: Any = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "backoffice.accounts.roles.StaffBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.confirm_second_factor(AuthenticatorDevice.objects.get(user=user, confirmed=True))
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    return client


def break_glass(user: User, *, hours_ago: float = 0.0) -> BreakGlassChange:
    """A change of this person's account with break-glass, so many hours ago."""
    return BreakGlassChange.objects.create(
        user=user,
        change=AccountChange.ROLES_CHANGED,
        roles=[group.name for group in user.groups.all()],
        reason="Nobody else is there",
        os_user="root",
        host="bastion-1",
        at=timezone.now() - timedelta(hours=hours_ago),
    )


def payload(**changes: Any) -> WithdrawalPayload:
    """A valid withdrawal."""
    members: dict[str, Any] = {
        "currency": "NGN",
        "amount": Decimal("250000.00"),
        "bank_code": "044",
        "bank": "Access Bank",
        "account_number": "0123456789",
        "account_name": "ADA CHIDINMA OBI",
        "typed_name": "Ada Chidinma Obi",
        "name_reason": "",
        "memo": "",
    }
    return WithdrawalPayload(**{**members, **changes})


def prepared_of_kind(kind: str, payload: Payload, preparer: User) -> Operation:
    """A pending operation of any kind."""
    return prepare.prepare_operation(uuid.uuid4(), actor=preparer, kind=kind, payload=payload)


def approve(operation: Operation, approver: User) -> Operation:
    """The operation, approved by a second person who has typed and ticked what its kind requires."""
    kind, payload = read_content(operation)
    confirmation = kind.confirmation(payload)
    return approvals.approve_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        confirmation=approvals.ApproverConfirmation(
            confirmation.expected if confirmation else "", acknowledged=bool(kind.acknowledgement(payload))
        ),
    )


def prepared(preparer: User, **changes: Any) -> Operation:
    """A pending withdrawal, marked as a repeated payment, so that tests can prepare many equal ones."""
    further = {"duplicate_reason": f"Delivery {next(_NUMBERS)}"}
    return prepare.prepare_operation(
        uuid.uuid4(), actor=preparer, kind="withdrawal", payload=payload(**{**further, **changes})
    )


def prepared_to_another_account(preparer: User, **changes: Any) -> Operation:
    """A pending withdrawal to an account of its own, so that nothing is a repeated payment."""
    return prepared(
        preparer, **{"duplicate_reason": "", "account_number": f"{next(_NUMBERS):010}", **changes}
    )


def approved(preparer: User, approver: User, **changes: Any) -> Operation:
    """A withdrawal that a second person has approved."""
    return approve(prepared(preparer, **changes), approver)


def release(operation: Operation, actor: User, otp: str = "123456", **changes: Any) -> Operation:
    """Release an approved operation, as if every code entered before had expired."""
    UsedOtp.objects.all().delete()
    arguments = {"digest": operation.digest, "second_factor_at": timezone.now(), **changes}
    return release_operation(operation.pk, actor=actor, otp=SecretStr(otp), **arguments)


def bulk_release(actor: User, *operations: Operation) -> BulkRelease:
    """An order of this user to send these operations, as the page records it."""
    now = timezone.now()
    order = BulkRelease.objects.create(
        released_by=actor, created_at=now, confirmed_at=now, second_factor_at=now, is_pending=False
    )
    for position, operation in enumerate(operations, start=1):
        order.items.create(position=position, operation=operation, digest=operation.digest)
    return order


def expire(operation: Operation, at: datetime | None = None) -> None:
    """Let an operation expire at this time, or now, as if it had been prepared like this: sealed again."""
    operation = Operation.objects.get(pk=operation.pk)
    operation.expires_at = at or timezone.now()
    operation.make_seal()
    operation.save(update_fields=["expires_at", "seal"])


def change_release(release: Release, **changes: Any) -> None:
    """Change a release as if it had been given like this: sealed again."""
    for name, value in changes.items():
        setattr(release, name, value)
    release.make_seal()
    Release.objects.filter(pk=release.pk).update(seal=release.seal, **changes)


def attempt(operation: Operation, **changes: Any) -> Attempt:
    """An attempt just sent, with unknown outcome, created without the services."""
    now = timezone.now()
    members = {"number": 1, "released_by": operation.preparer, "digest": operation.digest}
    return operation.attempts.create(**{**members, "started_at": now, "deadline_at": now, **changes})


def incident_of_restore() -> Incident:
    """The incident of a database that was found restored to an earlier moment, with payments paused."""
    found = pause.pause_because_of(PauseCause.DATABASE_RESTORED)
    return incidents.raise_for_pause(found, evidence={"machine": "payments-1", "journal": "J", "until": 1})


def lost_attempt(incident: Incident, operation: Operation, **changes: Any) -> LostAttempt:
    """An attempt of this operation, stored or not, that only the journal has."""
    line = {"reference": operation.reference, "kind": "withdrawal", "currency": "NGN", "amount": "250000"}
    usual = {"operation_id": operation.pk, "number": 1, "started_at": timezone.now(), "machine": "payments-1"}
    return LostAttempt.objects.create(incident=incident, line=line, **usual | changes)
