"""What someone can write who has the whole database, and no key of Countersign."""

import uuid
from datetime import timedelta
from functools import partial

from django.db import connection, transaction
from django.db.models import JSONField, TextField, Value
from django.db.models.functions import Cast
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import ChainHead, Entry
from backoffice.operations.approval import requirements
from backoffice.operations.descriptions import Subject
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release, content_digest
from backoffice.operations.states import Status
from backoffice.operations.workflow import prepare
from tests.append_only.triggers import lifted


def forge_entry(action: str, target_type: str, target_id: str, detail: object = None) -> Entry:
    """Append an entry to the audit log with a correct hash, which needs no key."""
    with transaction.atomic():
        head = ChainHead.objects.get()
        forged = Entry(
            position=head.position + 1,
            at=timezone.now(),
            actor_label="Countersign",
            action=action,
            target_type=target_type,
            target_id=target_id,
            detail={} if detail is None else detail,
            previous_hash=head.hash,
        )
        forged.hash = forged.digest()
        audit.advance_head([forged])
        forged.save(force_insert=True)
    return forged


UNREADABLE_JSON = "1" * 5000
"""Valid JSON for both databases, of which Python makes no value: a number with too many digits."""


def make_unreadable(row: Operation | Attempt | Release, column: str = "payload") -> None:
    """Replace this JSON of the row by what cannot be read, past the triggers."""
    setattr(row, column, _stored_json(UNREADABLE_JSON))
    with lifted(connection):
        row.save(update_fields=[column])


def make_entry_unreadable(entry: Entry) -> None:
    """Replace the detail by what cannot be read: in SQLite invalid JSON, past the constraints, too."""
    is_sqlite = connection.vendor == "sqlite"
    text = "{" if is_sqlite else f'{{"status": {UNREADABLE_JSON}}}'
    with lifted(connection), connection.cursor() as cursor:
        if is_sqlite:
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        Entry.objects.filter(pk=entry.pk).update(detail=_stored_json(text))
        if is_sqlite:
            cursor.execute("PRAGMA ignore_check_constraints = OFF")


def _stored_json(text: str) -> Cast:
    return Cast(Value(text, output_field=TextField()), JSONField())


def alter_content(operation: Operation, **changes: object) -> str:
    """Change payload and digest of the operation and its approvals, past the triggers; returns the digest."""
    payload = {**operation.payload, **changes}
    digest = content_digest(operation.pk, operation.kind, payload)
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(payload=payload, digest=digest)
        Approval.objects.filter(operation=operation).update(digest=digest)
    return digest


def forge(
    kind: str, payload: Payload, preparer: User, approver: User, *, like: Operation | None = None
) -> Operation:
    """Insert a released operation under all triggers, with its entries in the audit log and their hashes.

    With `like`, each row gets the seal of that released operation's row.
    """
    now = timezone.now()
    subject = Subject(uuid.uuid4(), KINDS[kind], payload, preparer.pk, str(preparer), now)
    forged = prepare.draft_operation(subject, preparer, requirements.approval_requirement(subject), None)
    approval = Approval(
        operation=forged, approver=approver, preparer=preparer, digest=forged.digest, approved_at=now
    )
    release = Release(
        operation=forged,
        released_by=approver,
        released_at=now - timedelta(seconds=5),
        expires_at=now + timedelta(minutes=10),
        balance=forged.currency,
    )
    forged.seal = like.seal if like else None
    approval.seal = like.approvals.get().seal if like else None
    release.seal = Release.objects.get(operation=like).seal if like else None
    with transaction.atomic():
        for row in (forged, approval):
            row.save(force_insert=True)
        Operation.objects.filter(pk=forged.pk).update(status=Status.APPROVED, decided_at=now)
        release.save(force_insert=True)
        record = partial(audit.record, target=forged, digest=forged.digest)
        terms = {"rule": forged.rule, "policy_version": forged.policy_version, "levels": forged.levels}
        record(Action.OPERATION_PREPARED, actor=preparer, kind=kind, **terms)
        needed = forged.approvals_needed
        record(Action.OPERATION_APPROVED, actor=approver, needed=needed, status="approved")
        record(Action.OPERATION_RELEASED, actor=approver)
    return Operation.objects.get(pk=forged.pk)
