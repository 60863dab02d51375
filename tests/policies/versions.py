"""Policies in effect, groups and proposals, made without pages."""

import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from backoffice.accounts.groups import create_group, set_groups
from backoffice.accounts.models import StaffGroup, User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.operations.kinds.approval_policy import ApprovalPolicyPayload
from backoffice.operations.models.operations import Operation
from backoffice.policies.document import PolicyDocument
from backoffice.policies.models import PolicyVersion, policy_in_effect
from tests import factories

NGN = {"codes": ["NGN"]}


def document(*rules: dict[str, Any], **members: Any) -> PolicyDocument:
    return PolicyDocument.model_validate({"rules": rules, **members})


def levels(*pairs: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    """A rule for everything with these levels."""
    return {"levels": [{"needed": needed, "of": of} for needed, of in pairs]}


def put_in_effect(*rules: dict[str, Any], **members: Any) -> PolicyVersion:
    """The next version with these rules, as two people would have put it into effect."""
    new = document(*rules, **members)
    version = PolicyVersion(
        number=(policy_in_effect().number or 0) + 1,
        document=new.stored(),
        digest=new.digest,
        operation=uuid.uuid4(),
        in_effect_since=timezone.now(),
    )
    version.make_seal()
    with transaction.atomic():
        version.save(force_insert=True)
        audit.record(
            Action.POLICY_IN_EFFECT, actor=None, target=version, number=version.number, digest=new.digest
        )
    return version


def group(name: str, *people: User) -> StaffGroup:
    found = create_group(name)
    for person in people:
        others = [membership.group_id for membership in person.memberships.all()]
        set_groups(person, [*others, found.pk], operation=uuid.uuid4())
    return found


def of_group(found: StaffGroup) -> dict[str, Any]:
    return {"group": {"id": found.pk, "name": found.name}}


def of_people(*people: User) -> dict[str, Any]:
    return {"named": [{"id": person.pk, "name": person.full_name} for person in people]}


def proposed(preparer: User, *rules: dict[str, Any], replaces: int = 0) -> Operation:
    payload = ApprovalPolicyPayload(
        replaces=replaces, document=document(*rules), added=1, changed=0, removed=0
    )
    return factories.prepared_of_kind("approval_policy", payload, preparer)
